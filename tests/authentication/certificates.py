"""Certificates of clients and CAs for tests."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

NOW = datetime(2030, 1, 1, tzinfo=UTC)
KEY = ec.generate_private_key(ec.SECP256R1())
CA_KEY = ec.generate_private_key(ec.SECP256R1())


def name(*attributes: Any) -> Any:
    return x509.Name([x509.NameAttribute(oid, value) for oid, value in attributes])


def certificate(
    subject: Any,
    *,
    usage: Any = ExtendedKeyUsageOID.CLIENT_AUTH,
    issuer: Any = "ca",
    signer: Any = CA_KEY,
    encoding: Any = Encoding.DER,
) -> Any:
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(name((NameOID.COMMON_NAME, issuer)))
        .public_key(CA_KEY.public_key() if issuer == subject else KEY.public_key())
        .serial_number(77)
        .not_valid_before(NOW - timedelta(days=1))
        .not_valid_after(NOW + timedelta(days=1))
    )
    if usage is not None:
        builder = builder.add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
    return builder.sign(signer, SHA256()).public_bytes(encoding)


def root(
    common_name: Any = "ca", key: Any = CA_KEY, *, issuer: Any = None, signer: Any = None, usage: Any = None
) -> Any:
    """Return a CA certificate, self-signed or signed by an issuer."""
    subject = name((NameOID.COMMON_NAME, common_name))
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject if issuer is None else name((NameOID.COMMON_NAME, issuer)))
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(NOW - timedelta(days=9))
        .not_valid_after(NOW + timedelta(days=9))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    )
    if usage is not None:
        builder = builder.add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
    return builder.sign(signer or key, SHA256()).public_bytes(Encoding.PEM)


class Clock:
    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> Any:
        return self.now.timestamp()
