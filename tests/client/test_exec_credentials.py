"""Exec plugins of kubeconfigs: real programs that print credentials, and a real server that takes them."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import pytest_asyncio

from steersman.api.authentication.v1 import SelfSubjectReview
from steersman.client.client import Client
from steersman.client.exec_credentials import ExecCredentials, PluginError
from steersman.client.over_tls import TLSTransport
from steersman.client.resources import NAMESPACES, SELF_SUBJECT_REVIEWS
from steersman.client.transport import Unreachable
from steersman.machinery.errors.status import StatusError
from steersman.net.tls import Certificate
from steersman.server.certificates import CertificateFiles
from steersman.testing import Environment
from steersman.webhooks.kubeconfig import KubeconfigError, always_with, client_tls
from steersman.webhooks.kubeconfig_types import ExecPlugin
from steersman.webhooks.user_kubeconfig import load_kubeconfigs
from tests.client.exec_plugin import V1, Plugin, token_of, with_user
from tests.controllers.waiting import eventually
from tests.net.client.origin import Gateway, Origin

PAST = "2020-01-01T00:00:00Z"
FUTURE = "2999-01-01T00:00:00Z"


@pytest_asyncio.fixture
async def kubeconfig() -> AsyncIterator[Path]:
    """Run a server, and yield the kubeconfig of its administrator."""
    async with Environment(listen=True) as environment:
        yield environment.kubeconfig()


@pytest.fixture
def plugin(tmp_path: Path) -> Plugin:
    return Plugin(tmp_path)


def exec_of(plugin: Plugin, **more: Any) -> dict[str, Any]:
    return {"exec": {"apiVersion": V1, "command": str(plugin.path), "interactiveMode": "Never", **more}}


async def user_of(client: Client) -> str:
    found = await client.create(SELF_SUBJECT_REVIEWS, SelfSubjectReview())
    return found.status.user_info.username


async def test_a_plugin_is_run_once_and_its_token_kept(kubeconfig: Path, plugin: Plugin) -> None:
    plugin.prints({"token": token_of(kubeconfig), "expirationTimestamp": FUTURE})
    user = exec_of(plugin, args=["get-token", "--cluster=a"], env=[{"name": "WHO", "value": "me"}], installHint=None)
    client = Client(TLSTransport.from_kubeconfig(with_user(kubeconfig, user)), "tests")
    await asyncio.gather(*(client.list(NAMESPACES) for _ in range(5)))
    assert await user_of(client) == "admin"
    await client.aclose()
    assert plugin.runs == [{"kind": "ExecCredential", "apiVersion": V1, "spec": {"interactive": False}}]
    assert plugin.arguments == ["get-token --cluster=a me"]


async def test_expired_credentials_are_obtained_anew(kubeconfig: Path, plugin: Plugin) -> None:
    token = token_of(kubeconfig)
    plugin.prints({"token": token, "expirationTimestamp": PAST}, {"token": token})
    client = Client(TLSTransport.from_kubeconfig(with_user(kubeconfig, exec_of(plugin))), "tests")
    for _ in range(3):
        await client.list(NAMESPACES)
    await client.aclose()
    assert len(plugin.runs) == 2


async def test_refused_credentials_are_renewed_once(kubeconfig: Path, plugin: Plugin) -> None:
    plugin.prints({"token": "old"}, {"token": token_of(kubeconfig)}, {"token": "wrong"})
    path = with_user(kubeconfig, exec_of(plugin))
    client = Client(TLSTransport.from_kubeconfig(path), "tests")
    assert await user_of(client) == "admin"
    await client.aclose()
    assert len(plugin.runs) == 2
    client = Client(TLSTransport.from_kubeconfig(path), "tests")
    with pytest.raises(StatusError) as refused:
        await client.list(NAMESPACES)
    await client.aclose()
    assert refused.value.code == 401
    assert len(plugin.runs) == 4


async def test_a_plugin_gives_a_certificate(kubeconfig: Path, plugin: Plugin) -> None:
    files = CertificateFiles(kubeconfig.parent)
    plugin.prints(
        {"clientCertificateData": files.admin.read_text(), "clientKeyData": files.admin_key.read_text()},
        version="client.authentication.k8s.io/v1beta1",
    )
    user = {"exec": {"apiVersion": "client.authentication.k8s.io/v1beta1", "command": str(plugin.path), "env": None}}
    client = Client(TLSTransport.from_kubeconfig(with_user(kubeconfig, user)), "tests")
    assert await user_of(client) == "kubernetes-admin"
    await client.aclose()
    assert len(plugin.runs) == 1


async def test_a_command_is_relative_to_its_kubeconfig_and_gets_the_cluster(kubeconfig: Path, tmp_path: Path) -> None:
    (kubeconfig.parent / "bin").mkdir()
    plugin = Plugin(kubeconfig.parent / "bin")
    plugin.prints({"token": token_of(kubeconfig)})
    extension = {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "a", "n": 1}}
    user = {
        "exec": {
            "apiVersion": V1,
            "command": "bin/plugin",
            "interactiveMode": "Never",
            "provideClusterInfo": True,
        }
    }
    path = with_user(kubeconfig, user, extensions=[extension], **{"tls-server-name": "localhost"})
    transport = TLSTransport.from_kubeconfig(path)
    await Client(transport, "tests").list(NAMESPACES)
    await transport.aclose()
    (run,) = plugin.runs
    cluster = run["spec"]["cluster"]
    assert cluster.pop("server").startswith("https://127.0.0.1:")
    assert len(cluster.pop("certificate-authority-data")) > 100
    assert cluster == {"tls-server-name": "localhost", "config": {"audience": "a", "n": 1}}


async def test_a_token_of_the_kubeconfig_makes_the_plugin_unnecessary(kubeconfig: Path, plugin: Plugin) -> None:
    user = exec_of(plugin) | {"token": token_of(kubeconfig)}
    client = Client(TLSTransport.from_kubeconfig(with_user(kubeconfig, user)), "tests")
    await client.list(NAMESPACES)
    await client.aclose()
    assert plugin.runs == []


async def test_a_plugin_that_fails_makes_the_server_unreachable_with_its_words(
    kubeconfig: Path, tmp_path: Path
) -> None:
    plugin = Plugin(tmp_path, "#!/bin/sh\necho 'log in first' >&2\nexit 3\n")
    client = Client(TLSTransport.from_kubeconfig(with_user(kubeconfig, exec_of(plugin))), "tests")
    with pytest.raises(Unreachable) as failed:
        await client.list(NAMESPACES)
    await client.aclose()
    expected = f"getting credentials: exec: executable {plugin.path} failed with exit code 3: log in first"
    assert str(failed.value).endswith(expected)


def credentials(path: Path | str, seconds: float = 20, **more: Any) -> ExecCredentials:
    configured = ExecPlugin(str(path), (), (), V1, more.pop("mode", "Never"), **more)
    return ExecCredentials(configured, lambda cert, key: always_with(client_tls(b"", cert, key)), seconds)


async def failure(found: ExecCredentials) -> str:
    with pytest.raises(PluginError) as failed:
        await found.current()
    return str(failed.value)


@pytest.mark.parametrize(
    ("printed", "problem"),
    [
        ("[" * 100_000, "decoding stdout: "),
        ("- " * 100_000, "decoding stdout: "),
        ('{"a":' * 50_000, "decoding stdout: "),
        ("", "decoding stdout: Object 'Kind' is missing in ''"),
        ("secret-token", "decoding stdout: "),
        ('{"kind": "Status", "apiVersion": "v1"}', "decoding stdout: no kind"),
        ('{"kind": "ExecCredential", "apiVersion": "client.authentication.k8s.io/v1"}', "didn't return a status field"),
        (
            '{"kind": "ExecCredential", "apiVersion": "client.authentication.k8s.io/v1", "status": {}}',
            "exec plugin didn't return a token or cert/key pair",
        ),
        (
            '{"kind": "ExecCredential", "apiVersion": "client.authentication.k8s.io/v1beta1", "status": {"token": "a"}}',
            f"exec plugin is configured to use API version {V1}, plugin returned version "
            "client.authentication.k8s.io/v1beta1",
        ),
        (
            '{"kind": "ExecCredential", "apiVersion": "client.authentication.k8s.io/v1", '
            '"status": {"clientKeyData": "a"}}',
            "exec plugin returned only certificate or key, not both",
        ),
        (
            '{"kind": "ExecCredential", "apiVersion": "client.authentication.k8s.io/v1", '
            '"status": {"clientKeyData": "a", "clientCertificateData": "b"}}',
            "failed parsing client key/certificate: ",
        ),
        (
            '{"kind": "ExecCredential", "apiVersion": "client.authentication.k8s.io/v1", '
            '"status": {"token": "a", "expirationTimestamp": "soon"}}',
            "decoding stdout: ",
        ),
    ],
)
async def test_output_that_is_no_credential_is_refused(tmp_path: Path, printed: str, problem: str) -> None:
    plugin = Plugin(tmp_path)
    (tmp_path / "answer").write_text(printed)
    refused = await failure(credentials(plugin.path))
    assert problem in refused
    assert "secret-token" not in refused


async def test_a_plugin_that_is_not_installed_is_told_with_its_hint(tmp_path: Path) -> None:
    refused = await failure(credentials("no-such-plugin", install_hint="install it so"))
    assert refused.startswith("exec: executable no-such-plugin not found. It looks like ")
    assert refused.endswith(" install it so")
    (tmp_path / "plain").write_text("")
    assert "not found" in await failure(credentials(tmp_path / "plain"))


def runs(pid: int) -> bool:
    """Return True if a process runs; a child that nobody has waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] != "Z"
    except FileNotFoundError:
        return False


async def test_a_plugin_that_hangs_ends_with_its_children(tmp_path: Path) -> None:
    plugin = Plugin(tmp_path, '#!/bin/sh\nsleep 60 &\necho $! > "$0.child"\nwait\n')
    found = credentials(plugin.path, 0.3)
    assert (await failure(found)).endswith("gave no credentials within 0.3 seconds")
    child = int((tmp_path / "plugin.child").read_text())

    async def is_gone() -> bool:
        return not runs(child)

    await eventually(is_gone)


async def test_output_is_bounded(tmp_path: Path) -> None:
    plugin = Plugin(tmp_path, "#!/bin/sh\nhead -c 3000000 /dev/zero\n")
    assert (await failure(credentials(plugin.path))).endswith("printed more than 1048576 bytes")
    plugin = Plugin(tmp_path, "#!/bin/sh\nexec cat /dev/zero\n")  # without an end
    assert (await failure(credentials(plugin.path))).endswith("printed more than 1048576 bytes")
    plugin = Plugin(tmp_path, "#!/bin/sh\nkill -9 $$\n")
    assert (await failure(credentials(plugin.path))).endswith("failed with exit code -1")
    plugin = Plugin(tmp_path, "#!/bin/sh\nhead -c 3000000 /dev/zero | tr '\\0' x >&2\nexit 1\n")
    assert len(await failure(credentials(plugin.path))) < 3_000


async def test_a_plugin_that_must_ask_needs_a_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "isatty", lambda _: False)
    refused = await failure(credentials(Plugin(tmp_path).path, mode="Always"))
    assert refused == "exec plugin cannot support interactive mode: standard input is not a terminal"


@pytest.mark.parametrize(
    ("user", "cluster", "problem"),
    [
        ({"exec": {"apiVersion": V1}}, {}, "command must be specified for kubernetes-admin to use exec"),
        ({"exec": {"command": "a"}}, {}, "apiVersion must be specified for"),
        ({"exec": {"command": "a", "apiVersion": V1}}, {}, "interactiveMode must be specified for"),
        (
            {"exec": {"command": "a", "apiVersion": V1, "interactiveMode": "Often"}},
            {},
            'invalid interactiveMode for kubernetes-admin: "Often"',
        ),
        (
            {"exec": {"command": "a", "apiVersion": V1, "interactiveMode": "Never", "env": [{"value": "x"}]}},
            {},
            "env variable name must be specified for",
        ),
        (
            {
                "exec": {
                    "command": "a",
                    "apiVersion": "client.authentication.k8s.io/v1alpha1",
                    "interactiveMode": "Never",
                }
            },
            {},
            'exec plugin: invalid apiVersion "client.authentication.k8s.io/v1alpha1"',
        ),
        ({"auth-provider": {"name": "gcp"}}, {}, 'no Auth Provider found for name "gcp"'),
        ({"as-groups": ["a"]}, {}, "without impersonating a user"),
        ({}, {"proxy-url": "socks5://127.0.0.1:1"}, "not supported: the SOCKS proxy"),
        ({}, {"proxy-url": "ftp://127.0.0.1"}, 'unsupported scheme "ftp", must be http, https, or socks5'),
        ({}, {"proxy-url": "http://"}, "has no host"),
    ],
)
def test_a_user_that_cannot_be_used_is_refused(
    hook_files: CertificateFiles, tmp_path: Path, user: dict[str, Any], cluster: dict[str, Any], problem: str
) -> None:
    plain = tmp_path / "plain"
    plain.write_text(
        '{"clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}], "users": [{"name": '
        '"kubernetes-admin", "user": {}}], "contexts": [{"name": "x", "context": {"cluster": "c", "user": '
        '"kubernetes-admin"}}], "current-context": "x"}'
    )
    with pytest.raises(KubeconfigError) as refused:
        load_kubeconfigs([with_user(plain, user, **cluster)])
    assert problem in str(refused.value)


async def test_requests_are_made_for_another_user(kubeconfig: Path) -> None:
    user = {
        "token": token_of(kubeconfig),
        "as": "joe",
        "as-uid": "7",
        "as-groups": ["one", "system:masters"],
        "as-user-extra": {"example.com/a b%": ["x", "y"]},
    }
    client = Client(TLSTransport.from_kubeconfig(with_user(kubeconfig, user)), "tests")
    found = (await client.create(SELF_SUBJECT_REVIEWS, SelfSubjectReview())).status.user_info
    await client.aclose()
    assert (found.username, found.uid) == ("joe", "7")
    assert found.groups == ["one", "system:masters", "system:authenticated"]
    assert found.extra == {"example.com/a b%": ["x", "y"]}


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_all_requests_go_through_the_proxy_of_the_cluster(kubeconfig: Path, scheme: str) -> None:
    files = CertificateFiles(kubeconfig.parent)
    origin = Origin(Certificate(str(files.server), str(files.server_key)))
    origin.port = urlsplit(load_kubeconfigs([kubeconfig]).url).port or 0
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files.server, files.server_key)
    gateway = Gateway(origin)
    async with gateway.serving(context if scheme == "https" else None):
        user = {"token": token_of(kubeconfig)}
        path = with_user(kubeconfig, user, **{"proxy-url": f"{scheme}://me:secret@127.0.0.1:{gateway.port}"})
        client = Client(TLSTransport.from_kubeconfig(path), "tests")
        assert await user_of(client) == "admin"
        await client.aclose()
    (head,) = gateway.heads
    assert head.startswith(f"CONNECT 127.0.0.1:{origin.port} HTTP/1.1".encode())
    assert b"Proxy-Authorization: Basic bWU6c2VjcmV0" in head
