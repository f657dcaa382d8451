"""Keys of issuers, and their optional certificates."""

from __future__ import annotations

import base64
import datetime
import json
from hashlib import sha1, sha256

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from steersman.authentication.jwt.key_set import KeySetError, read_keys

INVALID = "go-jose/go-jose: invalid JWK, "


def encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


KEY, OTHER = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())


def certificate_of(key: ec.EllipticCurvePrivateKey) -> bytes:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "issuer")])
    now = datetime.datetime.now(datetime.UTC)
    built = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(), now, now)
    return built.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.DER)


CERTIFICATE, OF_OTHER = certificate_of(KEY), certificate_of(OTHER)
X5C = [base64.b64encode(CERTIFICATE).decode()]
SHA1, SHA256 = sha1(CERTIFICATE).digest(), sha256(CERTIFICATE).digest()


def jwks(**members: object) -> bytes:
    numbers = KEY.public_key().public_numbers()
    place = {"x": encoded(numbers.x.to_bytes(32, "big")), "y": encoded(numbers.y.to_bytes(32, "big"))}
    return json.dumps({"keys": [{"kty": "EC", "crv": "P-256", "kid": "k", **place, **members}]}).encode()


@pytest.mark.parametrize(
    "members",
    [
        {},
        {"x5c": X5C},
        {"x5c": [*X5C, base64.b64encode(OF_OTHER).decode()]},
        {"x5c": X5C, "x5t": encoded(SHA1), "x5t#S256": encoded(SHA256)},
        {"x5c": X5C, "x5t": encoded(SHA1.hex().encode()), "x5t#S256": encoded(SHA256.hex().encode())},
        {"x5t": encoded(b"x" * 20)},
    ],
)
def test_a_key_may_come_with_its_certificate(members: dict[str, object]) -> None:
    (found,) = read_keys(jwks(**members))
    assert found.key_id == "k"
    assert found.key is not None


@pytest.mark.parametrize(
    ("members", "told"),
    [
        (
            {"x5c": [base64.b64encode(OF_OTHER).decode()]},
            INVALID + "public keys in key and x5c fields to not match",
        ),
        ({"x5c": X5C, "x5t": encoded(b"x" * 20)}, INVALID + "x5c thumbprint does not match x5t value"),
        ({"x5c": X5C, "x5t#S256": encoded(b"x" * 32)}, INVALID + "x5c thumbprint does not match x5t#S256 value"),
        ({"x5t": encoded(b"x" * 19)}, INVALID + "x5t header is of incorrect size"),
        ({"x5t#S256": encoded(b"x" * 20)}, INVALID + "x5t#S256 header is of incorrect size"),
        ({"x5t": "!"}, INVALID + "x5t header has invalid encoding"),
        ({"x5t": encoded(b"x" * 40)}, INVALID + "unable to hex decode x5t"),
        ({"kty": "oct", "x5c": X5C}, INVALID + "found 'oct' (symmetric) key with cert chain"),
        ({"x5c": X5C * 17}, INVALID + "more than 16 certificates"),
    ],
)
def test_a_key_with_another_certificate_is_refused(members: dict[str, object], told: str) -> None:
    with pytest.raises(KeySetError) as caught:
        read_keys(jwks(**members))
    assert str(caught.value) == told


@pytest.mark.parametrize("damaged", ["!", base64.b64encode(CERTIFICATE[:-5]).decode(), "AAAA"])
def test_a_damaged_certificate_is_refused(damaged: str) -> None:
    with pytest.raises(KeySetError, match=r"^go-jose/go-jose: failed to unmarshal x5c field: "):
        read_keys(jwks(x5c=[damaged]))
