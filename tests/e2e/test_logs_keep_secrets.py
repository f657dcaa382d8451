"""What must never be logged, at any -v: credentials, bodies, what watches tell, and what is typed into a command."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Subprotocol

from steersman.testing import WITHOUT_ACCOUNTS, ServerProcess
from tests.e2e.fake_kubelet import Certificates, Kubelet

pytestmark = pytest.mark.slow

CANARY = "canary-in-a-coal-mine"
SECRETS = "/api/v1/namespaces/default/secrets"
PODS = "/api/v1/namespaces/default/pods"
MERGE = {"Content-Type": "application/merge-patch+json"}


@pytest.fixture(scope="module")
def kubelet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubelet]:
    kubelet = Kubelet(Certificates(tmp_path_factory.mktemp("kubelet"), "127.0.0.1"))
    kubelet.start()
    yield kubelet
    kubelet.stop()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, kubelet: Kubelet) -> Iterator[ServerProcess]:
    folder: Path = tmp_path_factory.mktemp("server")
    tokens = folder / "tokens.csv"
    tokens.write_text(f'{CANARY},user,user,"system:masters"\n')
    made = kubelet.certificates
    process = ServerProcess(
        folder / "data", WITHOUT_ACCOUNTS, "--v=10", f"--token-auth-file={tokens}",
        f"--kubelet-client-certificate={made.client.cert_file}", f"--kubelet-client-key={made.client.key_file}",
        f"--kubelet-certificate-authority={made.ca}",
    )  # fmt: skip
    process.start()
    with process.client() as client:
        client.request("POST", "/api/v1/nodes", {"metadata": {"name": "n"}})
        status = {
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": kubelet.port}},
        }
        client.request("PATCH", "/api/v1/nodes/n/status", {"status": status}, MERGE)
        spec = {"nodeName": "n", "containers": [{"name": "c", "image": "x"}]}
        assert client.request("POST", PODS, {"metadata": {"name": "p"}, "spec": spec})[0] == 201
        client.request("PATCH", f"{PODS}/p/status", {"status": {"phase": "Running"}}, MERGE)
    yield process
    process.stop()


def opened(server: ServerProcess, path: str, *protocols: str) -> ClientConnection:
    host, port = server.address
    offered = [Subprotocol(each) for each in protocols] or None
    return connect(
        f"wss://{host}:{port}{path}", ssl=server.context(alpn=("http/1.1",)), proxy=None, origin="https://example.com",
        subprotocols=offered,
    )  # fmt: skip


@pytest.mark.parametrize("verbosity", range(11))
def test_nothing_that_passes_through_is_logged(server: ServerProcess, verbosity: int) -> None:
    encoded = base64.b64encode(CANARY.encode()).decode()
    with server.client() as client:
        assert client.request("PUT", "/debug/flags/v", str(verbosity).encode())[0] == 200
        secret = {"metadata": {"name": f"s{verbosity}"}, "data": {"a": encoded}}
        with opened(server, f"{SECRETS}?watch=1&timeoutSeconds=20") as watch:
            assert client.request("POST", SECRETS, secret)[0] == 201
            assert any(encoded in str(watch.recv(timeout=10)) for _ in range(verbosity + 1))
        assert client.request("POST", SECRETS, f"{{{CANARY}".encode())[0] == 400
        token = {"Authorization": f"Bearer {CANARY}"}
        assert client.request("GET", f"{SECRETS}/s{verbosity}", None, token)[0] == 200
        client.request("GET", "/api", None, {"Authorization": f"Bearer {CANARY}-wrong"})
    with opened(server, f"{PODS}/p/exec?stdin=1&stdout=1&command=cat", "v5.channel.k8s.io") as command:
        command.recv(timeout=10)
        command.send(b"\x00" + CANARY.encode())
        assert command.recv(timeout=10) == b"\x01" + CANARY.encode()
        command.send(b"\xff\x00")
        assert json.loads(bytes(list(command)[-1])[1:])["status"] == "Success"
    logged = server.errors.read_text()
    for kept in (CANARY, encoded, " ".join(f"{byte:02x}" for byte in CANARY.encode()[:8])):
        assert kept not in logged
