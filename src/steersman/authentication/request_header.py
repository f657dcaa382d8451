"""Authentication by a trusted proxy, which names users in headers and has a client certificate of a separate CA.

Follows k8s.io/apiserver `authentication/request/headerrequest`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from msgspec import Struct

from steersman.authentication.authorities import CertificateVerifier
from steersman.authentication.certificate_usage import allows_client_auth
from steersman.authentication.client_certificate import (
    common_name,
    describe,
    parse_certificate,
)
from steersman.authentication.interface import AuthenticationError, Credentials
from steersman.authentication.user import UserInfo
from steersman.machinery.go.urls import unescape_path
from steersman.machinery.values import times
from steersman.net.ascii import lower
from steersman.net.message import Headers
from steersman.work.bounded_cache import BoundedCache

_KEPT: Final = 256
"""Limit of cached certificates of proxies."""


class HeaderRemover(Protocol):
    """A remover of identity headers."""

    def clear(self, headers: Headers) -> None:
        """Remove all identity headers from a request, as its user has been determined."""
        ...


class HeaderNames(Struct, frozen=True):
    """Lower-case names of identity headers: the first user name and uid found count, and every group."""

    user: tuple[str, ...] = ()
    uid: tuple[str, ...] = ()
    group: tuple[str, ...] = ()
    extra_prefix: tuple[str, ...] = ()

    @classmethod
    def from_names(
        cls, user: tuple[str, ...], uid: tuple[str, ...], group: tuple[str, ...], extra_prefix: tuple[str, ...]
    ) -> HeaderNames:
        """Return header names from configured names in any case."""
        return cls(*(tuple(map(lower, each)) for each in (user, uid, group, extra_prefix)))

    def clear(self, headers: Headers) -> None:
        """Remove all identity headers. See HeaderRemover."""
        for name in (*self.user, *self.uid, *self.group):
            headers.pop(name, None)
        for name in [each for each in headers if each.startswith(self.extra_prefix)]:
            del headers[name]


class _Proxy(Struct, frozen=True):
    """The common name of a proxy's certificate, and the certificate's validity in seconds since the epoch."""

    name: str
    not_before: float
    not_after: float


class RequestHeaderAuthenticator:
    """Authenticates users by `headers` of a proxy with a certificate of `authorities`.

    If there are `allowed_names`, the certificate's common name must be one of them.
    """

    def __init__(
        self,
        headers: HeaderNames,
        authorities: CertificateVerifier,
        allowed_names: tuple[str, ...] = (),
        *,
        clock: Callable[[], float] = times.unix_now,
    ) -> None:
        self.headers = headers
        self._authorities = authorities
        self._allowed_names = frozenset(allowed_names)
        self._clock = clock
        self._cache: BoundedCache[bytes, _Proxy] = BoundedCache(_KEPT)

    def authenticate(self, credentials: Credentials) -> UserInfo | None:
        """Return the user that a trusted proxy names in headers; None without a client certificate or a user's name.

        Raises AuthenticationError for a client certificate that is not one of a trusted proxy.
        """
        der = credentials.client_certificate
        if der is None:
            return None
        if not self._authorities.verify((der, *credentials.authorities)):
            raise AuthenticationError("x509: certificate signed by unknown authority")
        self._check(self._proxy(der), der)
        headers, names = credentials.headers, self.headers
        user = _first(headers, names.user)
        if not user:
            return None
        groups = tuple(value for name in names.group for value in headers.get_all(name) if value)
        return UserInfo(user, _first(headers, names.uid), groups, _extra(headers, names.extra_prefix))

    def _proxy(self, der: bytes) -> _Proxy:
        known = self._cache[der]
        if known is None:
            certificate = parse_certificate(der)
            try:
                if not allows_client_auth(certificate):
                    raise AuthenticationError("x509: certificate specifies an incompatible key usage")
                name = common_name(certificate)
            except ValueError as error:
                raise AuthenticationError(f"the client certificate cannot be parsed: {error}") from None
            known = _Proxy(
                name, certificate.not_valid_before_utc.timestamp(), certificate.not_valid_after_utc.timestamp()
            )
            self._cache.keep(der, known)
        return known

    def _check(self, proxy: _Proxy, der: bytes) -> None:
        if not proxy.not_before <= self._clock() <= proxy.not_after:
            raise AuthenticationError(f"{describe(der)}: x509: certificate has expired or is not yet valid")
        if self._allowed_names and proxy.name not in self._allowed_names:
            raise AuthenticationError(f"x509: subject with cn={proxy.name} is not in the allowed list")


def _first(headers: Headers, names: tuple[str, ...]) -> str:
    """Return the first value of the first of these headers that has a value, "" without one."""
    for name in names:
        values = headers.get_all(name)
        if values and values[0]:
            return values[0]
    return ""


def _extra(headers: Headers, prefixes: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """Return the extra fields by the rest of the header's name after the prefix."""
    found: dict[str, list[str]] = {}
    for prefix in prefixes:
        for name, value in headers.pairs:
            if name.startswith(prefix):
                found.setdefault(unescape_path(name.removeprefix(prefix)), []).append(value)
    return {key: tuple(values) for key, values in found.items()}
