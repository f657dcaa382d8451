"""Tests that no secret of a server becomes visible: each secret is a unique text, searched for in all output.

Secrets are given by every flag and in every request part that takes one, at each verbosity. The webhooks and issuers do
not answer, so that errors about them are part of the output. Files that the server creates must be readable by their
owner alone, whatever the umask.
"""

from __future__ import annotations

import base64
import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from steersman.authentication.service_account_keys import make_signing_key
from steersman.testing import WITHOUT_ACCOUNTS, ServerProcess
from tests.e2e.fake_kubelet import Certificates

pytestmark = pytest.mark.slow

_CANARY: Final = "canary"
_PUBLIC: Final = {"ca.crt", "apiserver.crt", "admin.crt", "certificates.json"}
"""Files in the data folder that anybody may read."""
_NAMESPACE: Final = "/api/v1/namespaces/default"
_PAGES: Final = (
    "/metrics",
    "/version",
    "/flagz",
    "/statusz",
    "/healthz?verbose",
    "/readyz?verbose",
    "/livez?verbose",
    "/debug/flags/",
    "/logs/",
    "/configz",
    "/debug/api_priority_and_fairness/dump_requests",
)

_ENCRYPTION_KEY: Final = base64.b64encode(b"canary-of-32-bytes-for-secretbox").decode()


def canary(name: str) -> str:
    """Return a secret that is unique to the place it is used in."""
    return f"{_CANARY}-{name}-8d1f"


def kubeconfig(folder: Path, name: str, user: dict[str, Any], server: str = "https://127.0.0.1:9/hook") -> Path:
    """Write a kubeconfig for a webhook at an address where nothing listens, and return its path."""
    path = folder / f"{name}.kubeconfig"
    path.write_text(
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "c",
                "clusters": [{"name": "k", "cluster": {"server": server, "insecure-skip-tls-verify": True}}],
                "users": [{"name": "u", "user": user}],
                "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
            }
        )
    )
    path.chmod(0o600)
    return path


def jwt(claims: dict[str, Any]) -> str:
    """Return an unsigned token."""
    parts = (json.dumps(each).encode() for each in ({"alg": "RS256", "kid": "k"}, claims))
    return ".".join(base64.urlsafe_b64encode(each).rstrip(b"=").decode() for each in (*parts, b"signature"))


def _secret_file(path: Path, text: bytes) -> Path:
    path.write_bytes(text)
    path.chmod(0o600)
    return path


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    folder: Path = tmp_path_factory.mktemp("server")
    folder.chmod(0o700)
    tokens = _secret_file(folder / "tokens.csv", f'{canary("token-file")},alice,1,"dev"\n'.encode())
    signing = _secret_file(folder / "signing.key", make_signing_key())
    kubelet = Certificates(folder, "127.0.0.1")
    keys = {"keys": [{"name": "k", "secret": _ENCRYPTION_KEY}]}
    providers = [{"resources": ["secrets"], "providers": [{"secretbox": keys}, {"identity": {}}]}]
    encryption = {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "EncryptionConfiguration", "resources": providers}
    encrypted = _secret_file(folder / "encryption.json", json.dumps(encryption).encode())
    policy = folder / "audit.yaml"
    policy.write_text('{"apiVersion":"audit.k8s.io/v1","kind":"Policy","rules":[{"level":"Metadata"}]}')
    user_in_url = f"https://u:{canary('url-password')}@127.0.0.1:9/hook"
    webhooks = {
        "authentication-token-webhook-config-file": kubeconfig(folder, "authn", {"token": canary("authn-webhook")}),
        "authorization-webhook-config-file": kubeconfig(
            folder, "authz", {"username": "u", "password": canary("authz-password")}
        ),
        "audit-webhook-config-file": kubeconfig(folder, "audit", {"token": canary("audit-webhook")}, user_in_url),
    }
    before = os.umask(0)
    try:
        process = ServerProcess(
            folder / "data",
            WITHOUT_ACCOUNTS,
            "--v=10",
            f"--token-auth-file={tokens}",
            "--enable-bootstrap-token-auth",
            f"--encryption-provider-config={encrypted}",
            f"--service-account-signing-key-file={signing}",
            f"--kubelet-client-key={kubelet.client.key_file}",
            f"--kubelet-client-certificate={kubelet.client.cert_file}",
            "--authorization-mode=Node,RBAC,Webhook",
            f"--audit-policy-file={policy}",
            f"--audit-log-path={folder}/logs/audit.log",
            "--audit-webhook-batch-max-wait=1s",
            "--audit-webhook-initial-backoff=50ms",
            "--oidc-issuer-url=https://127.0.0.1:9",
            "--oidc-client-id=c",
            "--authentication-token-webhook-cache-ttl=0s",
            *(f"--{flag}={path}" for flag, path in webhooks.items()),
        )
        with process:
            os.umask(before)
            yield process
    finally:
        os.umask(before)


def _asked(server: ServerProcess) -> tuple[list[str], list[str]]:
    """Send a request with every secret. Return the secrets, and the answers that must contain none of them."""
    secrets = [
        canary(name)
        for name in (
            "token-file",
            "authn-webhook",
            "authz-password",
            "audit-webhook",
            "url-password",
            "bearer",
            "basic",
            "cookie",
            "bootstrap",
            "data",
            "proxied",
        )
    ]
    answers = []
    encoded = base64.b64encode(canary("data").encode()).decode()
    unsigned = [
        jwt({"iss": issuer, "sub": canary("claim"), "aud": "c", "exp": 4_000_000_000})
        for issuer in ("https://127.0.0.1:9", "https://kubernetes.default.svc.cluster.local", "https://nobody")
    ]
    with server.client() as client:

        def ask(method: str, path: str, body: Any = None, **headers: str) -> None:
            answers.append(repr(client.request(method, path, body, headers)))

        for token in (canary("token-file"), canary("bearer"), *unsigned, f"abcdef.{canary('bootstrap')}"):
            ask("GET", "/api/v1/nodes", Authorization=f"Bearer {token}")
        password = base64.b64encode(f"u:{canary('basic')}".encode()).decode()
        ask("GET", "/api/v1/nodes", Authorization=f"Basic {password}")
        ask("GET", "/api/v1/nodes", Authorization=f"Bearer {canary('bearer')} {canary('bearer')}")
        ask("GET", "/api/v1/nodes", Cookie=f"session={canary('cookie')}")
        ask("POST", f"{_NAMESPACE}/secrets", {"metadata": {"name": "A_"}, "data": {"a": encoded}})
        ask("POST", f"{_NAMESPACE}/secrets", {"metadata": {"name": "a"}, "data": {"a": canary("data")}})
        client.request("POST", f"{_NAMESPACE}/secrets", {"metadata": {"name": "a"}, "data": {"a": encoded}})
        made = {
            "metadata": {"name": "bootstrap-token-abcdef"},
            "type": "bootstrap.kubernetes.io/token",
            "stringData": {
                "token-id": "abcdef",
                "token-secret": canary("bootstrap"),
                "usage-bootstrap-authentication": "true",
            },
        }
        client.request("POST", "/api/v1/namespaces/kube-system/secrets", made)
        client.request("POST", f"{_NAMESPACE}/serviceaccounts", {"metadata": {"name": "a"}})
        _, issued = client.request("POST", f"{_NAMESPACE}/serviceaccounts/a/token", {"spec": {}})
        token = json.loads(issued)["status"]["token"]
        ask("GET", "/api/v1/nodes", Authorization=f"Bearer {token}")
        ask("GET", "/api/v1/nodes", Authorization=f"Bearer {token[:-4]}AAAA")
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": canary("bearer")}}
        client.request("POST", "/apis/authentication.k8s.io/v1/tokenreviews", review)
        ask("GET", "/", Authorization=f"Bearer {canary('proxied')}", **{"X-Remote-User": "x"})
        answers += [repr(client.request("GET", path)) for path in (*_PAGES, f"{_NAMESPACE}/events")]
    signatures = [each.rpartition(".")[2] for each in (token, *unsigned[:1])]
    return [*secrets, _ENCRYPTION_KEY, encoded, password, token, *unsigned, *signatures[:1]], answers


def _keys(folder: Path) -> list[str]:
    """Return one line of each of the server's private keys."""
    files = [*folder.parent.rglob("*.key"), *folder.parent.rglob("*key*.pem")]
    lines = [path.read_text().splitlines()[1] for path in files if "PRIVATE" in path.read_text()]
    assert lines
    return lines


@pytest.mark.parametrize("verbosity", [0, 2, 6, 10])
def test_no_secret_shows_anywhere(server: ServerProcess, verbosity: int) -> None:
    with server.client() as client:
        assert client.request("PUT", "/debug/flags/v", str(verbosity).encode())[0] == 200
    secrets, answers = _asked(server)
    told = {
        "the log": server.errors.read_text(),
        "the audit": "".join(path.read_text() for path in server.folder.parent.glob("logs/audit*.log")),
        "answers": "\n".join(answers),
    }
    assert "/api/v1/nodes" in told["the audit"]
    for where, text in told.items():
        assert [secret for secret in (*secrets, *_keys(server.folder)) if secret in text] == [], where


def test_the_dead_webhooks_were_told_of(server: ServerProcess) -> None:
    """The log has errors of the webhooks, so that the other tests have searched such errors for secrets."""
    assert "127.0.0.1:9" in server.errors.read_text()


def test_files_are_for_their_owner_whatever_the_umask(server: ServerProcess) -> None:
    logs = server.folder.parent / "logs"
    assert stat.S_IMODE(server.folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(logs.stat().st_mode) == 0o700
    open_ones = {
        path.name for path in (*server.folder.rglob("*"), *logs.rglob("*")) if stat.S_IMODE(path.stat().st_mode) & 0o077
    }
    assert open_ones <= _PUBLIC
    assert {path.name for path in server.folder.rglob("*") if stat.S_IMODE(path.stat().st_mode) & 0o022} == set()
