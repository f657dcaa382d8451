"""The answer of another server to a request, common to HTTP/1.1 and HTTP/2."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from typing import Final

_LONGEST: Final = 2048


class BadAnswer(Exception):
    """A violation of HTTP or a hang-up by the other server; the text is Go's, at most 2,048 characters."""

    def __init__(self, text: str) -> None:
        super().__init__(text[:_LONGEST])


class Answer(ABC):
    """An answer whose body is read once, with `async for`. Callers must always call `close()`.

    `headers` are in their original order, with lower-case names. Reading raises BodyAborted if the body is cut off.
    """

    version = "1.1"
    """HTTP version of the connection."""

    def __init__(self) -> None:
        self.status = 0
        self.headers: list[tuple[str, str]] = []
        self.length: int | None = None
        """The announced length of the body in bytes, None if unknown."""

    def header(self, name: str) -> str:
        """Return the first value of a header field, or ""."""
        return next((value for key, value in self.headers if key == name), "")

    @abstractmethod
    def whole(self) -> bytes | None:
        """Return and consume the body if all of it has arrived with the head and its length is known; otherwise
        None.
        """

    @abstractmethod
    def __aiter__(self) -> AsyncIterator[bytes]:
        """Yield the pieces of the body as they arrive. Raises BodyAborted."""

    async def read(self, limit: int) -> bytes:
        """Return at most the first `limit` bytes of the body. Raises BodyAborted."""
        if (whole := self.whole()) is not None:
            return whole[:limit]
        taken = bytearray()
        async for piece in self:
            taken += piece
            if len(taken) >= limit:
                break
        return bytes(taken[:limit])

    @abstractmethod
    def cut_off(self) -> None:
        """End the answer early: the reader of the body gets BodyAborted."""

    @abstractmethod
    async def close(self) -> None:
        """Release the answer; the rest of the request and of the body is abandoned."""
