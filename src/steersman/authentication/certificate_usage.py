"""Key usage of certificates (RFC 5280, section 4.2.1.12)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steersman.authentication.interface import AuthenticationError

if TYPE_CHECKING:
    from cryptography.x509 import Certificate, Extensions


def allows_client_auth(certificate: Certificate) -> bool:
    """Return True unless the certificate is restricted to other usages. Raises ValueError if it is malformed."""
    from cryptography.x509 import ExtendedKeyUsage
    from cryptography.x509.oid import ExtendedKeyUsageOID

    for extension in extensions_of(certificate):
        if isinstance(extension.value, ExtendedKeyUsage):
            usages = extension.value
            return ExtendedKeyUsageOID.CLIENT_AUTH in usages or ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE in usages
    return True


def extensions_of(certificate: Certificate) -> Extensions:
    """Return the certificate's extensions. Raises AuthenticationError if they are malformed."""
    from cryptography.x509 import DuplicateExtension

    try:
        return certificate.extensions
    except (ValueError, DuplicateExtension) as error:
        raise AuthenticationError(f"the client certificate cannot be parsed: {error}") from None
