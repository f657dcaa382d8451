"""Certificate requests and authorities for tests."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from steersman.api.certificates.v1 import CertificateSigningRequest, CertificateSigningRequestSpec
from steersman.api.meta.v1 import ObjectMeta
from steersman.controllers.authority import Authority

_OIDS = {"O": NameOID.ORGANIZATION_NAME, "CN": NameOID.COMMON_NAME, "DC": NameOID.DOMAIN_COMPONENT}
NODE = (("O", "system:nodes"), ("CN", "system:node:n"))


def pem(*subject: tuple[str, str], names: Sequence[x509.GeneralName] = ()) -> bytes:
    """Return a PKCS #10 request in PEM."""
    name = x509.Name([x509.NameAttribute(_OIDS[part], value) for part, value in subject])
    builder = x509.CertificateSigningRequestBuilder().subject_name(name)
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    made = builder.sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256())
    return made.public_bytes(Encoding.PEM)


def request(
    name: str, data: bytes, signer: str, usages: Sequence[str], seconds: int | None = None
) -> CertificateSigningRequest:
    """Return a CertificateSigningRequest."""
    spec = CertificateSigningRequestSpec(
        request=data, signer_name=signer, usages=list(usages), expiration_seconds=seconds
    )
    return CertificateSigningRequest(metadata=ObjectMeta(name=name), spec=spec)


def authority(folder: Path, *, days: float = 3650, begins: datetime | None = None) -> Authority:
    """Return an authority whose certificate is valid for so many days."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "ca")])
    begins = begins or datetime.now(UTC) - timedelta(days=1)
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    builder = builder.serial_number(1).not_valid_before(begins).not_valid_after(begins + timedelta(days=days))
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    builder = builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    certificate, private = folder / "ca.crt", folder / "ca.key"
    certificate.write_bytes(builder.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM))
    private.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return Authority(certificate, private)
