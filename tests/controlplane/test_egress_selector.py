"""The file of `--egress-selector-config-file`: routes, and errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from steersman.controlplane.egress_selector import egress_of
from steersman.controlplane.options import OptionsError
from steersman.machinery.metrics import Registry
from steersman.net.client.dial import DialError
from steersman.net.client.egress import Egress
from steersman.net.client.http_connect import direct
from steersman.server.certificates import ensure_certificates
from tests.net.client.konnectivity_proxy import KonnectivityProxy

HEAD = "apiVersion: apiserver.k8s.io/v1beta1\nkind: EgressSelectorConfiguration\n"
FAILED = "failed to read egress selector config: "
INVALID = "failed to validate egress selector configuration: "
AT = "service.connection"


def read(folder: Path, text: str, registry: Registry | None = None) -> Egress:
    file = folder / "egress.yaml"
    file.write_text(text)
    return egress_of(str(file), registry or Registry())


def test_names_have_ways_of_their_own(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        HEAD + "egressSelections:\n"
        "- {name: Cluster, connection: {proxyProtocol: HTTPConnect, transport: {uds: {udsName: /s}}}}\n"
        "- {name: master, connection: {proxyProtocol: Direct}}\n"
        "- {name: etcd, connection: {proxyProtocol: Direct}}\n",
    )
    assert found.is_given
    assert found.cluster not in (None, direct)
    assert found.control_plane is direct
    assert read(tmp_path, HEAD) == Egress()


async def test_tunnels_by_grpc_are_counted(tmp_path: Path) -> None:
    registry = Registry()
    transport = f"{{uds: {{udsName: {tmp_path}/s}}}}"
    found = read(
        tmp_path,
        HEAD + f"egressSelections:\n- {{name: cluster, connection: {{proxyProtocol: GRPC, transport: {transport}}}}}\n",
        registry,
    )
    async with KonnectivityProxy(0, error="no agent available").serving_at(tmp_path / "s"):
        assert found.cluster is not None
        with pytest.raises(DialError, match="no agent available"):
            await found.cluster("192.0.2.1", 443, None, "")
    told = "\n".join(registry.expose())
    assert 'apiserver_egress_dialer_dial_start_total{protocol="grpc",transport="uds"} 1' in told
    assert 'dial_failure_count{protocol="grpc",transport="uds",stage="proxy"} 1' in told


async def test_tunnels_are_counted(tmp_path: Path) -> None:
    files, registry = ensure_certificates(tmp_path / "pki"), Registry()
    tls = f"{{caBundle: {files.ca}, clientCert: {files.admin}, clientKey: {files.admin_key}, tlsServerName: localhost}}"
    found = read(
        tmp_path,
        HEAD + "egressSelections:\n- {name: cluster, connection: {proxyProtocol: HTTPConnect, transport: "
        f"{{tcp: {{url: 'https://127.0.0.1:1', tlsConfig: {tls}}}}}}}}}\n",
        registry,
    )
    assert found.cluster is not None
    with pytest.raises(DialError, match="connection refused"):
        await found.cluster("192.0.2.1", 443, None, "")
    told = "\n".join(registry.expose())
    assert 'apiserver_egress_dialer_dial_start_total{protocol="http_connect",transport="tcp"} 1' in told
    failure = 'apiserver_egress_dialer_dial_failure_count{protocol="http_connect",transport="tcp",stage="connect"} 1'
    assert failure in told


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", FAILED + "Object 'Kind' is missing in ''"),
        (
            HEAD.replace("v1beta1", "v1"),
            FAILED + 'no kind "EgressSelectorConfiguration" is registered for version "apiserver.k8s.io/v1" in scheme '
            '"pkg/runtime/scheme.go:111"',
        ),
        (
            HEAD + "egressSelections:\n- {name: cluster, connection: {proxyProtocol: Direct, foo: 1}}\n",
            FAILED + 'strict decoding error: unknown field "egressSelections[0].connection.foo" '
            "(known are proxyProtocol, transport)",
        ),
        (
            HEAD + "egressSelections:\n- {name: a, connection: {proxyProtocol: Direct, transport: {}}}\n",
            f'{INVALID}[{AT}.transport: Invalid value: "direct": config must be absent for direct connect, {AT}: '
            'Unsupported value: "a": supported values: "cluster", "controlplane", "etcd"]',
        ),
        (
            HEAD + "egressSelections:\n- {name: etcd, connection: {proxyProtocol: HTTPConnect, transport: "
            "{tcp: {url: 'ftp://x'}, uds: {udsName: a}}}}\n",
            f'{INVALID}{AT}.tcp: Invalid value: {{"URL":"ftp://x","TLSConfig":null}}: TCP and UDS cannot both be set',
        ),
        (
            HEAD + "egressSelections:\n- {name: etcd, connection: {proxyProtocol: HTTPConnect, transport: "
            "{tcp: {url: 'https://x', tlsConfig: {caBundle: /no, clientKey: /no}}}}}\n",
            f'{INVALID}[{AT}.tlsConfig.caBundle: Invalid value: "/no": TLS config ca bundle does not exist, '
            f'{AT}.tlsConfig.clientCert: Invalid value: "nil": Using TLS requires clientCert, '
            f'{AT}.tlsConfig.clientKey: Invalid value: "/no": TLS client key does not exist]',
        ),
        (
            HEAD + "egressSelections:\n- {name: etcd, connection: {proxyProtocol: GRPC, transport: {uds: {}}}}\n",
            f'{INVALID}{AT}.udsName: Invalid value: "nil": must be present for UDS connections',
        ),
    ],
)
def test_what_cannot_be_used_is_told_as_upstream_tells_it(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(OptionsError) as caught:
        read(tmp_path, text)
    assert str(caught.value) == told


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    path = tmp_path / "none"
    with pytest.raises(OptionsError) as caught:
        egress_of(str(path), Registry())
    assert str(caught.value) == (
        f'{FAILED}unable to read egress selector configuration from "{path}" [open {path}: no such file or directory]'
    )
