"""The end of answers: what counts or bounds a request goes on until the last byte of a body that is made while it is
sent, and until a large body has left."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from typing import Final

from steersman.endpoints.request import Request
from steersman.net.message import Response

SMALL: Final = 4096
"""Bytes of a whole body that Go's servers take from a handler at once, whether the client reads or not."""
_FEW_PIECES: Final = 8


class StreamedBody:
    """A body in pieces, made as the connection takes them. An error while one is made cuts the answer off.

    The connection closes it in any case: at its end, when the client goes away, or when the time is up.
    """

    __slots__ = ("_callbacks", "_pieces", "size")

    def __init__(self, pieces: AsyncGenerator[bytes, None]) -> None:
        self._pieces = pieces
        self._callbacks: list[Callable[[], None]] | None = []
        self.size = 0
        """Bytes handed out so far."""

    def __aiter__(self) -> StreamedBody:
        return self

    async def __anext__(self) -> bytes:
        piece = await anext(self._pieces)
        self.size += len(piece)
        return piece

    async def aclose(self) -> None:
        """Ends the making of pieces, and tells those who wait for it, once."""
        callbacks, self._callbacks = self._callbacks, None
        try:
            await self._pieces.aclose()
        finally:
            for callback in reversed(callbacks or ()):
                callback()

    def when_over(self, callback: Callable[[], None]) -> None:
        """Has `callback` called when the body is over, after those that were given later."""
        if self._callbacks is not None:
            self._callbacks.append(callback)
        else:
            callback()


def when_over(response: Response, callback: Callable[[], None]) -> None:
    """Calls `callback` when the response is over: at once, unless its body is still to be made."""
    body = response.body
    if type(body) is StreamedBody:
        body.when_over(callback)
    else:
        callback()


def ends_at_once(request: Request, response: Response) -> bool:
    """Return True if the request takes nothing of others any more once its answer is handed to the connection.

    An answer that waits for its client costs a place in memory only. A small one is worth that, and so is a refusal of
    any size: somebody who may do nothing must not keep the seats of those who may. The connection bounds how much of
    both it keeps (`Limits.max_unsent_free`).
    """
    if request.refused:
        return True
    body = response.body
    if type(body) is bytes:
        return len(body) <= SMALL
    return type(body) is list and len(body) <= _FEW_PIECES and sum(map(len, body)) <= SMALL
