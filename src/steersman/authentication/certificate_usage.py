"""What certificates may be used for (RFC 5280, section 4.2.1.12)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steersman.authentication.interface import AuthenticationError

if TYPE_CHECKING:
    from cryptography.x509 import Certificate, Extensions


def allows_client_auth(certificate: Certificate) -> bool:
    """True unless the certificate is limited to other uses. Raises ValueError if it cannot be read."""
    from cryptography.x509 import ExtendedKeyUsage
    from cryptography.x509.oid import ExtendedKeyUsageOID

    for extension in extensions_of(certificate):
        if isinstance(extension.value, ExtendedKeyUsage):
            usages = extension.value
            return ExtendedKeyUsageOID.CLIENT_AUTH in usages or ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE in usages
    return True


def extensions_of(certificate: Certificate) -> Extensions:
    """The certificate's extensions. Raises AuthenticationError if they cannot be read."""
    from cryptography.x509 import DuplicateExtension

    try:
        return certificate.extensions
    except (ValueError, DuplicateExtension) as error:
        raise AuthenticationError(f"the client certificate cannot be parsed: {error}") from None
