"""How a client's requests reach a server: in this process, or over TLS."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Protocol

Fields = Sequence[tuple[str, str]]
"""Header fields, their names in lower case."""


class Unreachable(Exception):
    """The server gave no answer, or none to its end: it may be asked again."""


class Response(Protocol):
    """An answer whose head is there. Its body is read once, in pieces or whole; `aclose` in any case."""

    @property
    def status(self) -> int: ...

    def header(self, name: str) -> str:
        """The first value of a field (its name in lower case), or ""."""
        ...

    def pieces(self) -> AsyncIterator[bytes]:
        """The body as it comes. Raises Unreachable if it is cut off."""
        ...

    async def read(self) -> bytes:
        """The whole body. Raises Unreachable if it is cut off."""
        ...

    async def aclose(self) -> None:
        """Leaves: the server is told that nobody wants the rest."""
        ...


class Transport(Protocol):
    """Sends requests of one user to one server."""

    async def send(self, method: str, target: str, fields: Fields, body: bytes) -> Response:
        """The answer to a request; `target` is a path with an optional query. Raises Unreachable."""
        ...

    async def aclose(self) -> None:
        """Closes what is kept open."""
        ...
