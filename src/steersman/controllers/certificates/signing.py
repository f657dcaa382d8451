"""Signing of certificates by a cluster's authority (pkg/controller/certificates/authority)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from steersman.controllers.authority import Authority, CannotSign
from steersman.controllers.certificates.requests import alternative_names

if TYPE_CHECKING:
    from cryptography import x509

BACKDATE: Final = timedelta(minutes=5)
"""Time by which the start of a certificate's validity lies in the past, as clocks differ."""
SHORT: Final = timedelta(hours=8)
"""Shorter validities count from the time of signing, longer ones from the (backdated) start of the validity."""

_BITS: Final = {
    "signing": 0,
    "digital signature": 0,
    "content commitment": 1,
    "key encipherment": 2,
    "data encipherment": 3,
    "key agreement": 4,
    "cert sign": 5,
    "crl sign": 6,
    "encipher only": 7,
    "decipher only": 8,
}
"""Usages that are bits of the extension keyUsage (RFC 5280, section 4.2.1.3)."""
_PURPOSES: Final = {
    "any": "2.5.29.37.0",
    "server auth": "1.3.6.1.5.5.7.3.1",
    "client auth": "1.3.6.1.5.5.7.3.2",
    "code signing": "1.3.6.1.5.5.7.3.3",
    "email protection": "1.3.6.1.5.5.7.3.4",
    "s/mime": "1.3.6.1.5.5.7.3.4",
    "ipsec end system": "1.3.6.1.5.5.7.3.5",
    "ipsec tunnel": "1.3.6.1.5.5.7.3.6",
    "ipsec user": "1.3.6.1.5.5.7.3.7",
    "timestamping": "1.3.6.1.5.5.7.3.8",
    "ocsp signing": "1.3.6.1.5.5.7.3.9",
    "microsoft sgc": "1.3.6.1.4.1.311.10.3.3",
    "netscape sgc": "2.16.840.1.113730.4.1",
}
"""Usages that are purposes of the extension extKeyUsage, in the order of certificates."""


def sign(
    authority: Authority, csr: x509.CertificateSigningRequest, usages: Iterable[str], seconds: int | None, now: float
) -> bytes:
    """Return a certificate in PEM for these usages, valid for `seconds`. It takes up to 0.1 s.

    Raises CannotSign, Unreadable.
    """
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import Encoding

    if not csr.is_signature_valid:
        raise CannotSign("unable to verify certificate request signature")
    issuer, key = authority.load()
    begins, ends = _validity(datetime.fromtimestamp(now, UTC), authority.duration(seconds), issuer.not_valid_after_utc)
    subject = _subject(csr.subject)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer.subject)
        .public_key(csr.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begins)
        .not_valid_after(ends)
    )
    for extension, critical in _extensions(csr, issuer, list(usages), nameless=not subject.rdns):
        builder = builder.add_extension(extension, critical)
    return builder.sign(key, _hash_of(key)).public_bytes(Encoding.PEM)


def _validity(now: datetime, lasts: timedelta, last: datetime) -> tuple[datetime, datetime]:
    """Return the start and end of a certificate's validity; `last` is the end of the authority's. Raises CannotSign."""
    if last <= now:
        raise CannotSign(f"refusing to sign a certificate that expired in the past: NotAfter={last}")
    ends = now + lasts if lasts < SHORT else now + lasts - BACKDATE
    return now - BACKDATE, min(ends, last)


def _subject(name: x509.Name) -> x509.Name:
    """Return the parts of a subject that are signed, in the order of Go's pkix.Name."""
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    several = (
        NameOID.COUNTRY_NAME,
        NameOID.ORGANIZATION_NAME,
        NameOID.ORGANIZATIONAL_UNIT_NAME,
        NameOID.LOCALITY_NAME,
        NameOID.STATE_OR_PROVINCE_NAME,
        NameOID.STREET_ADDRESS,
        NameOID.POSTAL_CODE,
    )
    parts = [name.get_attributes_for_oid(each) for each in several]
    parts += [name.get_attributes_for_oid(each)[-1:] for each in (NameOID.COMMON_NAME, NameOID.SERIAL_NUMBER)]
    return x509.Name([x509.RelativeDistinguishedName(dict.fromkeys(each)) for each in parts if each])


def _extensions(
    csr: x509.CertificateSigningRequest, issuer: x509.Certificate, usages: list[str], *, nameless: bool
) -> Iterator[tuple[x509.ExtensionType, bool]]:
    """Yield the extensions of a certificate, each with True if it is critical. Raises CannotSign, Unreadable."""
    from cryptography import x509

    if unknown := [each for each in usages if each not in _BITS and each not in _PURPOSES]:
        raise CannotSign(f"unrecognized usage values: {unknown}")
    if bits := {_BITS[each] for each in usages if each in _BITS}:
        yield x509.UnrecognizedExtension(x509.oid.ExtensionOID.KEY_USAGE, _bit_string(bits)), True
    if purposes := dict.fromkeys(oid for usage, oid in _PURPOSES.items() if usage in usages):
        yield x509.ExtendedKeyUsage([x509.ObjectIdentifier(each) for each in purposes]), False
    yield x509.BasicConstraints(ca=False, path_length=None), True
    try:
        own = issuer.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    except x509.ExtensionNotFound:
        pass
    else:
        yield x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(own), False
    if names := alternative_names(csr).all:
        yield x509.SubjectAlternativeName(names), nameless


def _bit_string(bits: set[int]) -> bytes:
    """Return a DER BIT STRING with these bits set; the first bit is 0."""
    last = max(bits)
    content = sum(0x8000 >> each for each in bits).to_bytes(2, "big")[: last // 8 + 1]
    return bytes((3, len(content) + 1, 7 - last % 8)) + content


def _hash_of(key: Any) -> Any:
    """Return the hash that Go uses for signatures by such a key; None for a key type with a built-in hash."""
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

    if isinstance(key, EllipticCurvePrivateKey):
        return {384: hashes.SHA384(), 521: hashes.SHA512()}.get(key.key_size, hashes.SHA256())
    return hashes.SHA256() if isinstance(key, RSAPrivateKey) else None
