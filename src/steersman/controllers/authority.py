"""Certificate authority of a cluster: files of its certificate and key, and the longest validity that it grants."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

_LEAST: Final = timedelta(minutes=10)


class CannotSign(Exception):
    """The authority's files cannot be used, its certificate has expired, or the request's own signature is wrong."""


class Authority(Struct, frozen=True):
    """Certificate authority whose files may be replaced at any time; `lasts` is the longest validity in seconds."""

    certificate: Path
    key: Path
    lasts: float = 365 * 86400.0

    def duration(self, requested: int | None) -> timedelta:
        """Return the validity of a certificate for the requested seconds: at least ten minutes, at most `lasts`."""
        if requested is None or requested > self.lasts:
            return timedelta(seconds=self.lasts)
        return max(_LEAST, timedelta(seconds=requested))

    def load(self) -> tuple[Certificate, Any]:
        """Return the certificate and the private key. Raises CannotSign."""
        from cryptography.hazmat.primitives.serialization import load_pem_private_key
        from cryptography.x509 import load_pem_x509_certificates

        try:
            certificates = load_pem_x509_certificates(self.certificate.read_bytes())
        except (OSError, ValueError) as error:
            raise CannotSign(f"error reading CA cert file {self.certificate}") from error
        if len(certificates) != 1:
            count = len(certificates)
            raise CannotSign(f"error reading CA cert file {self.certificate}: expected 1 certificate, found {count}")
        try:
            return certificates[0], load_pem_private_key(self.key.read_bytes(), None)
        except (OSError, ValueError, TypeError) as error:
            raise CannotSign(f"error reading CA key file {self.key}") from error
