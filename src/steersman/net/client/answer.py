"""The answer of another server to a request, whichever version of HTTP it came by."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from typing import Final

_LONGEST: Final = 2048


class BadAnswer(Exception):
    """The other server does not speak HTTP as it should, or has hung up; the text is Go's, at most 2,048 characters."""

    def __init__(self, text: str) -> None:
        super().__init__(text[:_LONGEST])


class Answer(ABC):
    """An answer whose body is to be read, once, with `async for`; `close()` in any case.

    `headers` are as they came, with lower-case names. Raises BodyAborted if the body is cut off.
    """

    def __init__(self) -> None:
        self.status = 0
        self.headers: list[tuple[str, str]] = []
        self.length: int | None = None
        """What the answer says of its body's length."""

    def header(self, name: str) -> str:
        """The first value of a field, or ""."""
        return next((value for key, value in self.headers if key == name), "")

    @abstractmethod
    def whole(self) -> bytes | None:
        """The body, if all of it has come with the head and its length is known; it is read then."""

    @abstractmethod
    def __aiter__(self) -> AsyncIterator[bytes]:
        """The body in pieces, as they come. Raises BodyAborted."""

    async def read(self, limit: int) -> bytes:
        """The first `limit` bytes of the body. Raises BodyAborted."""
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
        """Ends the answer: who reads the body is told that it ended too early."""

    @abstractmethod
    async def close(self) -> None:
        """Nobody reads any more; what is still being sent ends."""
