"""Tests that logs at any -v hide secrets: credentials, bodies, watch events, and text typed into a command."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Origin, Subprotocol

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


def a_webhook(folder: Path, name: str) -> Path:
    """Return the kubeconfig of a webhook at a port where nothing listens, with a key in its URL."""
    path = folder / f"{name}.kubeconfig"
    cluster = {"server": f"https://user:{CANARY}@127.0.0.1:9/{name}?key={CANARY}", "insecure-skip-tls-verify": True}
    path.write_text(
        json.dumps(
            {
                "clusters": [{"name": "w", "cluster": cluster}],
                "contexts": [{"name": "w", "context": {"cluster": "w"}}],
                "current-context": "w",
            }
        )
    )
    return path


@pytest.mark.parametrize("form", ["text", "json"])
def test_urls_of_webhooks_are_told_without_their_keys(tmp_path: Path, form: str) -> None:
    """Neither the log nor an answer has the key, whichever webhook does not answer."""
    (tmp_path / "policy.yaml").write_text("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n")
    images = {"kubeConfigFile": str(a_webhook(tmp_path, "images")), "retryBackoff": 1}
    plugins = [{"name": "ImagePolicyWebhook", "configuration": {"imagePolicy": images}}]
    admission = {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration", "plugins": plugins}
    (configuration := tmp_path / "admission.json").write_text(json.dumps(admission))
    with (
        ServerProcess(
            tmp_path / "data",
            WITHOUT_ACCOUNTS,
            "--v=10",
            f"--logging-format={form}",
            "--authorization-mode=RBAC,Webhook",
            f"--authorization-webhook-config-file={a_webhook(tmp_path, 'authorization')}",
            f"--authentication-token-webhook-config-file={a_webhook(tmp_path, 'tokens')}",
            f"--audit-webhook-config-file={a_webhook(tmp_path, 'audit')}",
            "--audit-webhook-mode=blocking",
            "--audit-webhook-initial-backoff=1ms",
            f"--audit-policy-file={tmp_path / 'policy.yaml'}",
            "--enable-admission-plugins=ImagePolicyWebhook",
            f"--admission-control-config-file={configuration}",
            f"--service-account-jwks-uri=https://a/keys?key={CANARY}",
        ) as server,
        server.client() as client,
    ):
        pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
        answers = [
            client.request("POST", PODS, pod),
            client.request("GET", f"/api?access_token={CANARY}"),
            client.request("POST", "/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": "x"}}),
            client.request("GET", PODS, None, {"Impersonate-User": "jane"}),
        ]
    assert CANARY not in repr(answers)
    logged = server.errors.read_text()
    for name in ("images", "authorization", "tokens", "audit"):
        assert f"127.0.0.1:9/{name}?timeout=" in logged, name
    assert CANARY not in logged


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, kubelet: Kubelet) -> Iterator[ServerProcess]:
    folder: Path = tmp_path_factory.mktemp("server")
    tokens = folder / "tokens.csv"
    tokens.write_text(f'{CANARY},user,user,"system:masters"\n')
    made = kubelet.certificates
    process = ServerProcess(
        folder / "data",
        WITHOUT_ACCOUNTS,
        "--v=10",
        f"--token-auth-file={tokens}",
        f"--kubelet-client-certificate={made.client.cert_file}",
        f"--kubelet-client-key={made.client.key_file}",
        f"--kubelet-certificate-authority={made.ca}",
    )
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
    connection: ClientConnection = connect(
        f"wss://{host}:{port}{path}",
        ssl=server.context(alpn=("http/1.1",)),
        proxy=None,
        origin=Origin("https://example.com"),
        subprotocols=offered,
    )
    return connection


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
        assert json.loads(list(command)[-1][1:])["status"] == "Success"
    logged = server.errors.read_text()
    for kept in (CANARY, encoded, " ".join(f"{byte:02x}" for byte in CANARY.encode()[:8])):
        assert kept not in logged
