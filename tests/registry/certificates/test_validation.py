"""Go's error texts for invalid certificates and requests, independent of those of the library."""

from __future__ import annotations

import base64

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding

from steersman.registry.certificates.validation import certificate_error, request_error


def request(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey | ed25519.Ed25519PrivateKey) -> bytes:
    algorithm = None if isinstance(key, ed25519.Ed25519PrivateKey) else hashes.SHA256()
    return x509.CertificateSigningRequestBuilder(x509.Name([])).sign(key, algorithm).public_bytes(Encoding.DER)


def in_pem(der: bytes, kind: str = "CERTIFICATE REQUEST") -> bytes:
    return b"-----BEGIN %b-----\n%b-----END %b-----\n" % (kind.encode(), base64.encodebytes(der), kind.encode())


GOOD = request(ec.generate_private_key(ec.SECP256R1()))


@pytest.mark.parametrize(
    ("key", "error"),
    [
        (ec.generate_private_key(ec.SECP256R1()), "x509: ECDSA verification failure"),
        (rsa.generate_private_key(65537, 2048), "crypto/rsa: verification error"),
        (ed25519.Ed25519PrivateKey.generate(), "x509: Ed25519 verification failure"),
    ],
    ids=["ECDSA", "RSA", "Ed25519"],
)
def test_a_signature_that_is_wrong(key: ec.EllipticCurvePrivateKey, error: str) -> None:
    der = request(key)
    assert request_error(in_pem(der)) == ""
    assert request_error(in_pem(der[:-1] + bytes([der[-1] ^ 1]))) == error


@pytest.mark.parametrize(
    ("der", "error"),
    [
        (b"", "asn1: syntax error: sequence truncated"),
        (b"\x30\x00", "asn1: syntax error: sequence truncated"),
        (GOOD[:50], "asn1: syntax error: data truncated"),
        (GOOD + b"\0", "asn1: syntax error: trailing data"),
        (b"\x30\x03\x02\x01\x01", "asn1: structure error: no certificate request"),
    ],
    ids=["nothing", "empty", "cut off", "goes on", "another sequence"],
)
def test_what_is_no_request(der: bytes, error: str) -> None:
    assert request_error(in_pem(der)) == error


@pytest.mark.parametrize(
    ("der", "error"),
    [
        (b"", "found CERTIFICATE PEM block containing 0 certificates"),
        (b"abc", "x509: malformed certificate"),
        (GOOD, "x509: malformed certificate"),
    ],
    ids=["nothing", "text", "a request"],
)
def test_what_is_no_certificate(der: bytes, error: str) -> None:
    assert certificate_error(in_pem(der, "CERTIFICATE")) == error
