"""Authentication by tokens of a real issuer over HTTPS, with a changing configuration file."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from steersman.controlplane import jwt_authentication
from steersman.controlplane.options import OptionsError
from steersman.net.in_process import InProcessClient
from steersman.server.certificates import CertificateFiles, ensure_certificates
from steersman.testing import Environment
from tests.authentication.jwt.issuer import EC, RSA, keys, token

PATH = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
REVIEW = json.dumps({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}).encode()


class HttpsIssuer:
    """Serves an issuer's documents over HTTPS."""

    def __init__(self, files: CertificateFiles) -> None:
        self._files = files
        self.keys = keys(RSA)
        self.url = ""
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> HttpsIssuer:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self._files.server, self._files.server_key)
        self._server = await asyncio.start_server(self._answer, "127.0.0.1", 0, ssl=context)
        self.url = f"https://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        target = (await reader.readuntil(b"\r\n\r\n")).split()[1]
        found = msgspec.json.encode({"issuer": self.url, "jwks_uri": f"{self.url}/keys"})
        body = self.keys if target == b"/keys" else found
        head = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
        writer.write(head % len(body) + body)
        writer.close()

    def configuration(self, prefix: str = "acme:", **more: Any) -> str:
        authenticator = {
            "issuer": {"url": self.url, "certificateAuthority": self._files.ca.read_text(), "audiences": ["steersman"]},
            "claimMappings": {"username": {"claim": "sub", "prefix": prefix}},
        }
        document = {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration"}
        return json.dumps({**document, "jwt": [authenticator], **more})


@pytest.fixture
async def issuer(tmp_path: Path) -> AsyncIterator[HttpsIssuer]:
    async with HttpsIssuer(ensure_certificates(tmp_path / "issuer", ["127.0.0.1"])) as issuer:
        yield issuer


def client(environment: Environment) -> InProcessClient:
    server = environment.plane.server
    assert server is not None
    return InProcessClient(server.handler)


async def whoami(environment: Environment, text: str) -> str:
    """Return the user of a token, "" for none."""
    headers = [("authorization", f"Bearer {text}"), ("content-type", "application/json")]
    response = await client(environment).request("POST", PATH, headers, REVIEW)
    body = json.loads(await response.read())
    return str(body["status"]["userInfo"]["username"]) if response.status == 201 else ""


async def becomes(environment: Environment, text: str, wanted: str) -> None:
    async def is_so() -> bool:
        return await whoami(environment, text) == wanted

    await environment.wait_until(is_so, 20)


async def test_tokens_of_an_issuer_count_and_a_new_file_too(
    issuer: HttpsIssuer, tmp_path: Path, keys_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jwt_authentication, "LOOK_EVERY", 0.02)
    path = tmp_path / "authn.json"
    path.write_text(issuer.configuration())
    async with Environment(folder=keys_folder, authentication_config=str(path)) as environment:
        await becomes(environment, token(iss=issuer.url), "acme:jane")
        assert await whoami(environment, token(iss=issuer.url, aud="other")) == ""
        assert await whoami(environment, token(EC, algorithm="ES256", iss=issuer.url)) == ""
        issuer.keys = keys(EC)
        assert await whoami(environment, token(EC, algorithm="ES256", iss=issuer.url)) == "acme:jane"
        path.write_text("damaged")
        path.write_text(issuer.configuration("other:"))
        number = 0
        while await whoami(environment, token(EC, algorithm="ES256", iss=issuer.url, jti=str(number))) != "other:jane":
            number += 1
            await asyncio.sleep(0.02)
        path.write_text(issuer.configuration("third:", anonymous={"enabled": True}))  # which cannot change
        await asyncio.sleep(0.2)
        assert await whoami(environment, token(EC, algorithm="ES256", iss=issuer.url, jti="x")) == "other:jane"
        admin = [("authorization", f"Bearer {environment.token()}")]
        exposed = (await (await client(environment).request("GET", "/metrics", admin)).read()).decode()
        assert 'automatic_reloads_total{status="success"' in exposed
        assert "apiserver_authentication_config_controller_last_config_info{" in exposed


async def test_flags_name_an_issuer_too(issuer: HttpsIssuer, tmp_path: Path, keys_folder: Path) -> None:
    given: dict[str, Any] = {
        "oidc_issuer_url": issuer.url,
        "oidc_client_id": "steersman",
        "oidc_ca_file": str(tmp_path / "issuer/ca.crt"),
        "oidc_required_claim": {"hd": "acme"},
    }
    async with Environment(folder=keys_folder, **given) as environment:
        await becomes(environment, token(iss=issuer.url, hd="acme"), f"{issuer.url}#jane")
        assert await whoami(environment, token(iss=issuer.url)) == ""


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"oidc_issuer_url": "https://a"}, "must be specified together"),
        ({"oidc_issuer_url": "http://a", "oidc_client_id": "x"}, "URL scheme must be https"),
        ({"oidc_issuer_url": "https://a", "oidc_client_id": "x", "oidc_signing_algs": ("HS256",)}, "unsupported"),
        ({"authentication_config": "FILE", "oidc_client_id": "x"}, "mutually exclusive"),
        ({"authentication_config": "FILE"}, "failed to load authentication configuration from file"),
    ],
)
async def test_what_cannot_be_used_stops_the_start(
    options: dict[str, Any], text: str, tmp_path: Path, keys_folder: Path
) -> None:
    (tmp_path / "authn").write_text("damaged")
    given: dict[str, Any] = {
        name: str(tmp_path / "authn") if value == "FILE" else value for name, value in options.items()
    }
    with pytest.raises(OptionsError, match=text):
        async with Environment(folder=keys_folder, **given):
            pass
