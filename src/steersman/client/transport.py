"""Transport interface: the way a client's requests reach a server, in this process or over TLS."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Protocol

import msgspec

Fields = Sequence[tuple[str, str]]
"""Header fields as (lower-case name, value)."""


class Unreachable(Exception):
    """The server sent no complete response; the request may be retried."""


class Undecodable(Unreachable, msgspec.DecodeError):
    """The server's response is not the JSON that the request asks for, such as a proxy's HTML page."""


class Response(Protocol):
    """A response whose head has arrived. Its body can be read once, in pieces or whole. Always call `aclose`."""

    @property
    def status(self) -> int:
        """Return the HTTP status code."""
        ...

    def header(self, name: str) -> str:
        """Return the first value of a header field (its name in lower case), "" if it is missing."""
        ...

    def pieces(self) -> AsyncIterator[bytes]:
        """Yield the body as it arrives. Raises Unreachable if it is cut off."""
        ...

    async def read(self) -> bytes:
        """Return the whole body. Raises Unreachable if it is cut off."""
        ...

    async def aclose(self) -> None:
        """Close the response, and tell the server that the rest of the body is not needed."""
        ...


class Transport(Protocol):
    """Sends the requests of one user to one server."""

    async def send(self, method: str, target: str, fields: Fields, body: bytes) -> Response:
        """Send a request and return its response; `target` is a path with an optional query. Raises Unreachable."""
        ...

    async def aclose(self) -> None:
        """Close the connections that are kept open."""
        ...
