"""Destination of a proxied request."""

from __future__ import annotations

import posixpath
from collections.abc import AsyncIterator, Sequence
from typing import Final
from urllib.parse import quote, quote_plus

from msgspec import Struct

from steersman.net.client.answer import Answer
from steersman.net.client.dial import host_port
from steersman.net.client.transport import Address, Dialer
from steersman.net.upgrade import UpgradedConnection

_PATH_SAFE: Final = "/$&+,:;=@-_.~"


class Location(Struct, frozen=True, kw_only=True):
    """The URL of a backend, and the transport for requests to it.

    `path` is unescaped, `query` as sent. Without `port` the scheme's default applies. `addresses` are addresses of
    `host` that were resolved and checked before.
    """

    transport: Dialer

    scheme: str
    host: str
    port: int | None = None
    path: str = ""
    query: str = ""
    addresses: tuple[str, ...] = ()

    @property
    def authority(self) -> str:
        """Host and port as in a URL."""
        if self.port is None:
            return f"[{self.host}]" if ":" in self.host else self.host
        return host_port(self.host, self.port)

    @property
    def target(self) -> str:
        """Path and query as in the first line of a request."""
        path = escaped_path(self.path)
        path = path if path.startswith("/") else f"/{path}"
        return f"{path}?{self.query}" if self.query else path

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}{self.target}"

    @property
    def _address(self) -> Address:
        secure = self.scheme == "https"
        port = self.port if self.port is not None else 443 if secure else 80
        return Address(self.host, port, secure, self.addresses)

    async def dial(self) -> UpgradedConnection:
        """Return a new connection. Raises DialError."""
        return await self.transport.dial(self._address)

    async def send(
        self,
        method: str,
        headers: Sequence[tuple[str, str]],
        body: AsyncIterator[bytes] | None = None,
        *,
        chunked: bool = False,
    ) -> Answer:
        """Send a request and return its answer. See Transport.send."""
        return await self.transport.send(self._address, method, self.target, headers, body, chunked=chunked)


def escaped_path(path: str) -> str:
    """Return a path as Go's URL.EscapedPath does."""
    return quote(path, safe=_PATH_SAFE, errors="surrogateescape")


def encoded_query(pairs: list[tuple[str, str]]) -> str:
    """Return a query as Go's url.Values.Encode does: sorted by name, values of one name in their order."""
    return "&".join(
        f"{quote_plus(name)}={quote_plus(value)}" for name, value in sorted(pairs, key=lambda pair: pair[0])
    )


def join_path(*parts: str) -> str:
    """Return the joined and cleaned path as Go's path.Join does; "" for no parts."""
    joined = "/".join(part for part in parts if part)
    if not joined:
        return ""
    return posixpath.normpath(joined.replace("//", "/") if joined.startswith("//") else joined)


def join_preserving_trailing_slash(*parts: str) -> str:
    """Return the joined and cleaned parts; a slash at the end of the last part stays."""
    joined = join_path(*parts)
    last = next((part for part in reversed(parts) if part), "")
    return f"{joined}/" if last.endswith("/") and not joined.endswith("/") else joined
