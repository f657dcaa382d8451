"""Verification of client certificates against CAs (crypto/x509 `Verify`)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from steersman.authentication.certificate_usage import allows_client_auth
from steersman.authentication.interface import AuthenticationError
from steersman.machinery.go.pem import blocks
from steersman.machinery.private_files import read_bounded
from steersman.machinery.values import times
from steersman.work.bounded_cache import BoundedCache
from steersman.work.followed_files import FollowedFiles

if TYPE_CHECKING:  # takes 0.1 s to import
    from OpenSSL.crypto import X509, X509Store

logger = logging.getLogger(__name__)

_KEPT: Final = 1024
"""Limit of cached verification results."""
_KEPT_SECONDS: Final = 60.0
_LONGEST: Final = 16
"""Limit of certificates in a chain."""


class CertificateVerifier(Protocol):
    """A verifier of client certificates."""

    def verify(self, chain: Sequence[bytes]) -> bool:
        """Return True if a CA vouches for the first certificate (DER) of `chain`; the others are intermediate
        certificates.
        """
        ...


class Certificates:
    """Verifier with a fixed set of CA certificates (DER).

    Certificates in `exactly` are accepted themselves, but not as issuers. `clock` returns seconds since the epoch.
    """

    def __init__(
        self,
        authorities: frozenset[bytes] = frozenset(),
        exactly: frozenset[bytes] = frozenset(),
        clock: Callable[[], float] = times.unix_now,
    ) -> None:
        self.authorities: Final = authorities
        self._exactly = exactly
        self._clock = clock
        self._trusted: list[X509] | None = None
        self._cache: BoundedCache[bytes, tuple[bool, float]] = BoundedCache(_KEPT)

    def verify(self, chain: Sequence[bytes]) -> bool:
        """Verify a chain, see CertificateVerifier. A chain that is not cached takes about 0.2 ms, the first one 0.1 s."""
        if not chain:
            return False
        chain = chain[:_LONGEST]
        if chain[0] in self._exactly:
            return True
        key, now = sha256(b"".join(chain)).digest(), self._clock()
        known = self._cache[key]
        # the second comparison rejects entries from before the clock was set back
        if known is not None and 0 < known[1] - now <= _KEPT_SECONDS:
            return known[0]
        is_good = self._leads_to_one(chain, now)
        self._cache.keep(key, (is_good, now + _KEPT_SECONDS))
        return is_good

    def _leads_to_one(self, chain: Sequence[bytes], now: float) -> bool:
        from cryptography.x509 import load_der_x509_certificate
        from OpenSSL.crypto import X509, Error, X509StoreContext, X509StoreContextError

        try:
            given = [X509.from_cryptography(load_der_x509_certificate(each)) for each in chain]
            verified_chain = X509StoreContext(self._store(now), given[0], given[1:]).get_verified_chain()
            # the caller checks the usage of the first certificate
            return all(allows_client_auth(each.to_cryptography()) for each in verified_chain[1:])
        except (X509StoreContextError, Error, ValueError, AuthenticationError) as error:
            logger.debug("verifying a client certificate failed: %s", error)
            return False

    def _store(self, now: float) -> X509Store:
        """Return a certificate store in which every CA ends a chain, not only self-signed ones. The first call parses
        them.
        """
        from cryptography.x509 import load_der_x509_certificate
        from OpenSSL.crypto import X509, X509Store, X509StoreFlags

        if self._trusted is None:
            self._trusted = [X509.from_cryptography(load_der_x509_certificate(each)) for each in self.authorities]
        store = X509Store()
        store.set_flags(X509StoreFlags.PARTIAL_CHAIN)
        store.set_time(datetime.fromtimestamp(now, UTC))
        for each in self._trusted:
            store.add_cert(each)
        return store


class Authorities:
    """Verifier with the CA certificates in PEM files, reloaded when these change.

    The constructor raises OSError if the files cannot be read. See Certificates for the files `exactly` and for
    `clock`.
    """

    def __init__(
        self, files: Sequence[str], exactly: Sequence[str] = (), clock: Callable[[], float] = times.unix_now
    ) -> None:
        self._files = tuple(files)
        self._exactly = tuple(exactly)
        self._clock = clock
        self._certificates = FollowedFiles((*self._files, *self._exactly), self._read_anew, _refused, first=self._read)

    def verify(self, chain: Sequence[bytes]) -> bool:
        """Verify a chain, see CertificateVerifier."""
        return self._certificates.current().verify(chain)

    def share(self, other: Authorities) -> bool:
        """Return True if both have a CA certificate in common."""
        return not self._certificates.value.authorities.isdisjoint(other._certificates.value.authorities)

    def _read(self) -> Certificates:
        return Certificates(_in_files(self._files), _in_files(self._exactly), self._clock)

    def _read_anew(self) -> Certificates:
        """Read the changed files. Raises OSError, and ValueError if no CA certificate would be left."""
        found = self._read()
        if not found.authorities:
            raise ValueError("there is no certificate in " + ", ".join(self._files))
        return found


def _refused(error: Exception) -> None:
    logger.warning("reading client CAs failed, keeping the ones read before: %s", error)


def certificates_in(pem: bytes) -> frozenset[bytes]:
    """Return the certificates (DER) in a PEM text."""
    return frozenset(each.content for each in blocks(pem) if each.type == "CERTIFICATE")


def _in_files(files: Sequence[str]) -> frozenset[bytes]:
    return frozenset(each for name in files for each in certificates_in(read_bounded(Path(name))))
