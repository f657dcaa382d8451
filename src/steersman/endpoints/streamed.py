"""End of answers: callbacks for metrics and limits, called at the last byte of a streamed body or after a large
body.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from typing import Final

from steersman.endpoints.request import Request
from steersman.net.message import Response

SMALL: Final = 4096
"""Bytes of a body that Go's servers accept from a handler at once, whether the client reads or not."""
_FEW_PIECES: Final = 8


class StreamedBody:
    """A body in pieces, produced as the connection accepts them. An error during production cuts the answer off.

    The connection closes the body in any case: at its end, when the client leaves, or at the deadline.
    """

    __slots__ = ("_callbacks", "_pieces", "size")

    def __init__(self, pieces: AsyncGenerator[bytes, None]) -> None:
        self._pieces = pieces
        self._callbacks: list[Callable[[], None]] | None = []
        self.size = 0
        """Bytes produced so far."""

    def __aiter__(self) -> StreamedBody:
        return self

    async def __anext__(self) -> bytes:
        piece = await anext(self._pieces)
        self.size += len(piece)
        return piece

    async def aclose(self) -> None:
        """Stop production, and call the callbacks once."""
        callbacks, self._callbacks = self._callbacks, None
        try:
            await self._pieces.aclose()
        finally:
            for callback in reversed(callbacks or ()):
                callback()

    def on_request_end(self, callback: Callable[[], None]) -> None:
        """Register a callback for the end of the body; callbacks run in reverse order. Called at once if the body is
        over.
        """
        if self._callbacks is not None:
            self._callbacks.append(callback)
        else:
            callback()


def on_request_end(response: Response, callback: Callable[[], None]) -> None:
    """Call `callback` at the end of the response: at once, unless its body is still being produced."""
    body = response.body
    if type(body) is StreamedBody:
        body.on_request_end(callback)
    else:
        callback()


def ends_at_once(request: Request, response: Response) -> bool:
    """Return True if the request needs no seat once its answer has been passed to the connection.

    An answer that waits for its client costs only memory. Small answers are worth that memory, and so are refusals of
    any size: users without rights must not hold seats. The connection limits the memory of both
    (`Limits.max_unsent_free`).
    """
    if request.refused:
        return True
    body = response.body
    if type(body) is bytes:
        return len(body) <= SMALL
    return type(body) is list and len(body) <= _FEW_PIECES and sum(map(len, body)) <= SMALL
