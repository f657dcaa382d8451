"""Client certificates (X.509): the subject's common name is the user, its organizations are the groups."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from hashlib import sha256
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from steersman.authentication.authorities import CertificateVerifier
from steersman.authentication.certificate_usage import allows_client_auth, extensions_of
from steersman.authentication.interface import AuthenticationError, Credentials
from steersman.authentication.user import CREDENTIAL_ID, UserInfo, authenticated
from steersman.machinery.go.strings import to_upper
from steersman.machinery.values import times
from steersman.work.bounded_cache import BoundedCache

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

UID_OID: Final = "1.3.6.1.4.1.57683.2"
"""Attribute type of a user's uid in the subject (k8s.io/apimachinery `apis/asn1.X509UID`)."""

_KEPT: Final = 4096
"""Limit of certificates with a cached user."""
_LONGEST_DESCRIBED: Final = 4096
"""Bytes up to which a certificate's extensions are parsed for a message: at 80 KB this takes 70 ms."""


class CertificateUser(Struct, frozen=True):
    """The user of a certificate, and the certificate's validity in seconds since the epoch."""

    user: UserInfo
    not_before: float
    not_after: float


class ClientCertificateAuthenticator:
    """Authenticates users by the client certificate of their connection.

    By default TLS must have verified the chain. With `authorities`, these verify it regardless of TLS. With `roots`
    (PEM) instead, one of these must be the direct issuer.
    """

    def __init__(
        self,
        roots: bytes | None = None,
        *,
        authorities: CertificateVerifier | None = None,
        clock: Callable[[], float] = times.unix_now,
        remaining: Callable[[float], None] | None = None,
    ) -> None:
        """`remaining` is called with the seconds until the expiry of each request's certificate, before its
        verification.
        """
        self._remaining = remaining
        self._roots_pem = roots
        self._authorities = authorities
        self._roots: Sequence[Certificate] | None = None
        self._clock = clock
        self._cache: BoundedCache[bytes, CertificateUser] = BoundedCache(_KEPT)

    def authenticate(self, credentials: Credentials) -> UserInfo | None:
        """Return the user of the client certificate; None without a certificate, or if it names no user.

        Raises AuthenticationError for a certificate of an unknown authority or outside its validity.
        """
        der = credentials.client_certificate
        if der is None:
            return None
        known = self._cache[der]
        if self._remaining is not None:
            self._remaining((_end_of(der) if known is None else known.not_after) - self._clock())
        if self._authorities is not None and not self._authorities.verify((der, *credentials.authorities)):
            raise AuthenticationError(f"{describe(der)}: x509: certificate signed by unknown authority")
        if known is None:
            if not credentials.certificate_verified and self._roots_pem is None and self._authorities is None:
                raise AuthenticationError(f"{describe(der)}: x509: certificate signed by unknown authority")
            known = self._examine(der)
            if known is None:
                return None
            self._cache.keep(der, known)
        now = self._clock()
        if not known.not_before <= now <= known.not_after:
            raise AuthenticationError(f"{describe(der)}: x509: certificate has expired or is not yet valid")
        return known.user

    def _examine(self, der: bytes) -> CertificateUser | None:
        certificate = parse_certificate(der)
        if self._roots_pem is not None:
            self._check_issuer(certificate, der)
        try:
            suitable = allows_client_auth(certificate)
            user = certificate_user(certificate, der)
        except ValueError as error:  # cryptography parses parts lazily
            raise AuthenticationError(f"the client certificate cannot be parsed: {error}") from None
        if not suitable:
            raise AuthenticationError(f"{describe(der)}: x509: certificate specifies an incompatible key usage")
        return user

    def _check_issuer(self, certificate: Certificate, der: bytes) -> None:
        """Raise AuthenticationError unless one of the roots issued the certificate."""
        from cryptography.exceptions import InvalidSignature
        from cryptography.x509 import load_pem_x509_certificates

        if self._roots is None:
            self._roots = load_pem_x509_certificates(self._roots_pem or b"")
        for root in self._roots:
            try:
                certificate.verify_directly_issued_by(root)
            except (ValueError, TypeError, InvalidSignature):
                continue
            return
        raise AuthenticationError(f"{describe(der)}: x509: certificate signed by unknown authority")


def certificate_user(certificate: Certificate, der: bytes) -> CertificateUser | None:
    """Return the user of a certificate; None if it has no common name. Raises AuthenticationError for an invalid
    uid.
    """
    from cryptography.x509.oid import NameOID

    name = ""
    groups: list[str] = []
    uids: list[str] = []
    for attribute in certificate.subject:
        value = attribute.value
        if not isinstance(value, str):
            continue
        if attribute.oid == NameOID.COMMON_NAME:
            name = value
        elif attribute.oid == NameOID.ORGANIZATION_NAME:
            groups.append(value)
        elif attribute.oid.dotted_string == UID_OID:
            uids.append(value)
    if not name:
        return None
    if len(uids) > 1:
        raise AuthenticationError(f"expected 1 UID, but found multiple: [{' '.join(uids)}]")
    if uids == [""]:
        raise AuthenticationError("UID cannot be an empty string")
    extra = MappingProxyType({CREDENTIAL_ID: (f"X509SHA256={sha256(der).hexdigest()}",)})
    return CertificateUser(
        authenticated(UserInfo(name, uids[0] if uids else "", tuple(groups), extra)),
        certificate.not_valid_before_utc.timestamp(),
        certificate.not_valid_after_utc.timestamp(),
    )


def common_name(certificate: Certificate) -> str:
    """Return the last common name in a certificate's subject, "" without one."""
    from cryptography.x509.oid import NameOID

    found = [each.value for each in certificate.subject if each.oid == NameOID.COMMON_NAME]
    return str(found[-1]) if found else ""


@lru_cache(maxsize=256)
def _described(der: bytes) -> str:
    from cryptography import x509

    certificate = parse_certificate(der)
    subject = authority = b""
    for extension in extensions_of(certificate) if len(der) <= _LONGEST_DESCRIBED else ():
        if isinstance(extension.value, x509.SubjectKeyIdentifier):
            subject = extension.value.digest
        elif isinstance(extension.value, x509.AuthorityKeyIdentifier):
            authority = extension.value.key_identifier or b""
    return (
        f"verifying certificate SN={certificate.serial_number}, SKID={to_upper(subject.hex(':'))}, "
        f"AKID={to_upper(authority.hex(':'))} failed"
    )


def _end_of(der: bytes) -> float:
    """Return the expiry of a certificate in seconds since the epoch. Raises AuthenticationError."""
    try:
        return parse_certificate(der).not_valid_after_utc.timestamp()
    except ValueError:  # cryptography parses parts lazily
        raise AuthenticationError("the client certificate cannot be parsed") from None


def describe(der: bytes) -> str:
    """Return the beginning of an error text, with a certificate's serial number and key identifiers.

    The key identifiers of an unusually large certificate are omitted: anybody can send one, and parsing it costs time.
    """
    return _described(der) if len(der) <= _LONGEST_DESCRIBED else _described.__wrapped__(der)


def parse_certificate(der: bytes) -> Certificate:
    """Parse a DER certificate. Raises AuthenticationError."""
    from cryptography.x509 import load_der_x509_certificate

    try:
        return load_der_x509_certificate(der)
    except ValueError:
        raise AuthenticationError("the client certificate cannot be parsed") from None
