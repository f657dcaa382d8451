"""Service account tokens of a signer on a socket: signing, verification, publication, and faulty signers."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from steersman.authentication import external_signer
from steersman.authentication.service_account_keys import VerificationKey
from steersman.authentication.service_account_tokens import TokenVerifier
from steersman.controlplane.options import OptionsError
from steersman.net import protobuf_fields as proto
from steersman.testing import Environment
from tests.unix_rpc_server import UnixRPCServer

ISSUER = "https://kubernetes.default.svc.cluster.local"
KEYS = [rsa.generate_private_key(public_exponent=65537, key_size=2048) for _ in range(2)]
TOKEN_REQUEST = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
TOKENS = "/api/v1/namespaces/default/serviceaccounts/a/token"


class Signer(UnixRPCServer):
    """Signs with one of two keys."""

    def __init__(self, socket: str) -> None:
        methods = {"Sign": self._sign, "FetchKeys": self._fetch_keys, "Metadata": self._metadata}
        super().__init__(socket, "v1.ExternalJWTSigner", methods)
        self.signs_with = 0
        self.published = [0]
        self.verifies_only: set[int] = set()
        self.longest = 7200
        self.hint = 60
        self.header: dict[str, Any] = {}
        self.raw_header = b""
        """Bytes of the header, if not the usual ones."""
        self.padding = ""
        """Characters after the header."""

    def _sign(self, request: dict[int, list[proto.Value]]) -> bytes:
        head = {"alg": "RS256", "kid": f"key-{self.signs_with}", "typ": "JWT", **self.header}
        header = encoded(self.raw_header or json.dumps(head).encode())
        header += self.padding
        signed = f"{header}.{proto.text_of(request, 1)}".encode()
        signature = KEYS[self.signs_with].sign(signed, padding.PKCS1v15(), hashes.SHA256())
        return proto.encode([(1, header), (2, encoded(signature))])

    def _fetch_keys(self, request: dict[int, list[proto.Value]]) -> bytes:
        keys = [
            proto.encode([(1, f"key-{each}"), (2, public(each)), (3, int(each in self.verifies_only))])
            for each in self.published
        ]
        stamp = proto.encode([(1, int(time.time()))])
        return proto.encode([*((1, each) for each in keys), (2, stamp), (3, self.hint)])

    def _metadata(self, request: dict[int, list[proto.Value]]) -> bytes:
        return proto.encode([(1, self.longest)])


def public(number: int) -> bytes:
    return KEYS[number].public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


def encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


@pytest.fixture
async def signer(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Signer]:
    signer = Signer(f"{tmp_path_factory.mktemp('s')}/s")
    await signer.start()
    yield signer
    await signer.stop()


def environment(signer: Signer, **options: Any) -> Environment:
    return Environment(service_account_signing_endpoint=signer.socket, service_account_issuer=(ISSUER,), **options)


async def make_account(client: Any) -> None:
    body = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "a"}}
    assert (await client.post("/api/v1/namespaces/default/serviceaccounts", body)).status == 201


async def whoami(environment: Environment, token: str) -> int:
    client = environment.client("")
    return int((await client.get("/api/v1/namespaces/none/pods", authorization=f"Bearer {token}")).status)


async def test_tokens_are_signed_known_and_published(signer: Signer) -> None:
    async with environment(signer) as running:
        client = running.client()
        await make_account(client)
        answer = await client.post(TOKENS, {**TOKEN_REQUEST, "spec": {"expirationSeconds": 100_000}})
        token = answer.json()["status"]["token"]
        assert "shortened to 7200 seconds" in answer.headers["warning"]
        assert await whoami(running, token) == 403
        assert await whoami(running, token[:-8] + "AAAAAAAA") == 401
        keys = await client.get("/openid/v1/jwks", accept="*/*")
        assert [each["kid"] for each in keys.json()["keys"]] == ["key-0"]
        assert 50 < int(keys.headers["cache-control"].removeprefix("public, max-age=")) <= 60
        discovery = await client.get("/.well-known/openid-configuration", accept="*/*")
        assert discovery.json()["id_token_signing_alg_values_supported"] == ["RS256"]
        metrics = (await client.get("/metrics")).body.decode()
        assert 'apiserver_externaljwt_sign_request_total{code="OK"} 1' in metrics
        assert 'apiserver_externaljwt_fetch_keys_request_total{code="OK"}' in metrics


async def test_a_new_key_is_fetched_when_a_token_names_it(signer: Signer) -> None:
    async with environment(signer) as running:
        client = running.client()
        await make_account(client)
        old = (await client.post(TOKENS, TOKEN_REQUEST)).json()["status"]["token"]
        signer.signs_with, signer.published, signer.verifies_only = 1, [0, 1], {0}
        new = (await client.post(TOKENS, TOKEN_REQUEST)).json()["status"]["token"]
        assert await whoami(running, new) == 403
        assert await whoami(running, old) == 403
        keys = await client.get("/openid/v1/jwks", accept="*/*")
        assert [each["kid"] for each in keys.json()["keys"]] == ["key-1"]
        signer.signs_with = 0
        refused = await client.post(TOKENS, TOKEN_REQUEST)
        assert refused.json()["message"] == (
            "Internal error occurred: failed to generate token: while validating header: key used for signing JWT "
            "(kid: key-0) is excluded from OIDC discovery docs"
        )
        fetched = signer.calls.count("FetchKeys")
        head = encoded(b'{"alg":"RS256","kid":"unknown"}')
        assert await whoami(running, f"{head}.{new.split('.')[1]}.{new.split('.')[2]}") == 401
        assert signer.calls.count("FetchKeys") == fetched + 1


@pytest.mark.parametrize("padding", ["=", "=="])
async def test_a_header_with_padding_is_refused(signer: Signer, padding: str) -> None:
    async with environment(signer) as running:
        await make_account(running.client())
        signer.padding = padding
        refused = await running.client().post(TOKENS, TOKEN_REQUEST)
        assert refused.status == 500
        assert "while validating header: while unwrapping header: illegal base64 data" in refused.json()["message"]


@pytest.mark.parametrize("header", [b"{", b"[]", b'{"alg":"RS256","kid":"\xff","typ":"JWT"}', b"[" * 100_000])
async def test_a_header_that_is_no_object_is_refused(signer: Signer, header: bytes) -> None:
    async with environment(signer) as running:
        await make_account(running.client())
        signer.raw_header = header
        refused = await running.client().post(TOKENS, TOKEN_REQUEST)
        assert refused.status == 500
        assert "while validating header: while parsing header JSON" in refused.json()["message"]


@pytest.mark.parametrize(
    ("header", "why"),
    [
        ({"typ": "x"}, "bad type"),
        ({"kid": ""}, "key id missing"),
        ({"alg": "none"}, 'bad signing algorithm "none"'),
        ({"jku": "https://evil"}, "while parsing header JSON: not an object of alg, kid and typ"),
    ],
)
async def test_a_header_that_is_none_of_ours_is_refused(signer: Signer, header: dict[str, Any], why: str) -> None:
    async with environment(signer) as running:
        await make_account(running.client())
        signer.header = header
        refused = await running.client().post(TOKENS, TOKEN_REQUEST)
        assert refused.status == 500
        assert refused.json()["message"] == (
            f"Internal error occurred: failed to generate token: while validating header: {why}"
        )


async def test_a_signer_that_dies_and_comes_back(signer: Signer) -> None:
    async with environment(signer, request_timeout=1.0) as running:
        client = running.client()
        await make_account(client)
        token = (await client.post(TOKENS, TOKEN_REQUEST)).json()["status"]["token"]
        signer.failure = grpc.StatusCode.UNAVAILABLE
        refused = await client.post(TOKENS, TOKEN_REQUEST)
        assert refused.json()["message"] == (
            "Internal error occurred: failed to generate token: while signing jwt: rpc error: code = Unavailable "
            "desc = the server was told to fail"
        )
        assert await whoami(running, token) == 403
        signer.failure = None
        assert (await client.post(TOKENS, TOKEN_REQUEST)).status == 201


@pytest.mark.parametrize(
    ("told", "options", "why"),
    [
        ({"longest": 599}, {}, r"max token life supported by external-jwt-signer \(599s\) is less than acceptable"),
        ({"hint": 0}, {}, r"while fetching token verification keys: found invalid refresh hint \(0s\)"),
        ({"published": []}, {}, "found no keys"),
        ({}, {"service_account_max_token_expiration": 9000}, r": 2h30m0s > 2h0m0s"),
        ({}, {"service_account_key_file": ("a",)}, "They are mutually exclusive"),
        ({"failure": grpc.StatusCode.INTERNAL}, {}, "while setting up external-jwt-signer: while initially filling"),
    ],
)
async def test_what_ends_the_start(signer: Signer, told: dict[str, Any], options: dict[str, Any], why: str) -> None:
    for name, value in told.items():
        setattr(signer, name, value)
    with pytest.raises(OptionsError, match=why):
        await environment(signer, **options).start()


async def test_a_thousand_keys_are_read_and_tried_beside_the_loop(
    signer: Signer, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: dict[str, set[int]] = {"read": set(), "tried": set()}
    read, tried = external_signer.verification_key, TokenVerifier.verify

    def read_somewhere(key_id: str, der: bytes) -> VerificationKey:
        threads["read"].add(threading.get_ident())
        return read(key_id, der)

    def tried_somewhere(self: TokenVerifier, token: str, key_id: str) -> bytes:
        threads["tried"].add(threading.get_ident())
        return tried(self, token, key_id)

    monkeypatch.setattr(external_signer, "verification_key", read_somewhere)
    monkeypatch.setattr(TokenVerifier, "verify", tried_somewhere)
    signer.published = [0] * 999
    async with environment(signer) as running:
        await make_account(running.client())
        token = (await running.client().post(TOKENS, TOKEN_REQUEST)).json()["status"]["token"]
        assert await whoami(running, token) == 403
        _, payload, signature = token.split(".")
        nameless = encoded(b'{"alg":"RS256"}')
        assert await whoami(running, f"{nameless}.{payload}.{signature}") == 401
    assert threading.get_ident() not in threads["read"] | threads["tried"]
    assert threads["read"]
    assert threads["tried"]
