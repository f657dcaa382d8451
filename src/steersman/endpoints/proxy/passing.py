"""What is passed on while both sides live: the body of an answer, and the bytes of a connection taken over."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial

from steersman.endpoints.proxy.rewriting import PageBody
from steersman.machinery.errors.status import service_unavailable
from steersman.net.client.answer import Answer
from steersman.net.message import Response, Upgraded


class PassedBody:
    """The body of a backend's answer as that of our own; closes the backend's connection when it is over."""

    def __init__(self, answer: Answer | PageBody) -> None:
        self.when_over: Callable[[], None] | None = None
        """Called once, when nothing more is passed on."""
        self._answer = answer
        self._pieces = aiter(answer)

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        return await anext(self._pieces)

    async def aclose(self) -> None:
        """Called by the connection at the end, however it came."""
        await self._answer.close()
        over, self.when_over = self.when_over, None
        if over is not None:
            over()

    def finish(self) -> None:
        """Cuts it off."""
        self._answer.cut_off()


class Passage:
    """A connection that was taken over, for who has to end it."""

    def __init__(self, connection: Upgraded) -> None:
        self._connection = connection

    def finish(self) -> None:
        """Closes the client's side; what passes its bytes on ends with it."""
        self._connection.close()


class Beginning:
    """A request to a backend whose answer has not begun, for who has to end it."""

    def __init__(self, answering: asyncio.Future[Response]) -> None:
        self.ended = False
        self.response = answering

    def finish(self) -> None:
        """The client is told that it gets no answer any more."""
        self.ended = True
        self.response.cancel()


async def ended_with(open_ones: set[object], answering: Awaitable[Response]) -> Response:
    """What `answering` gives; it is among the `open_ones`, which a server ends when it stops, until it is over.

    Raises what `answering` does, and StatusError 503 if it was ended before it began.
    """
    beginning = Beginning(asyncio.ensure_future(answering))
    open_ones.add(beginning)
    try:
        response = await beginning.response
    except asyncio.CancelledError:
        if beginning.ended:
            raise service_unavailable("apiserver is shutting down") from None
        raise
    finally:
        open_ones.discard(beginning)
    return _ended_with(open_ones, response)


def _ended_with(open_ones: set[object], response: Response) -> Response:
    body = response.body
    if isinstance(body, PassedBody):
        open_ones.add(body)
        body.when_over = partial(open_ones.discard, body)
    if response.upgrade is not None:
        response.upgrade = partial(_taken_over, open_ones, response.upgrade)
    return response


async def _taken_over(
    open_ones: set[object], take_over: Callable[[Upgraded], Awaitable[None]], connection: Upgraded
) -> None:
    passage = Passage(connection)
    open_ones.add(passage)
    try:
        await take_over(connection)
    finally:
        open_ones.discard(passage)


async def pass_bytes(one: Upgraded, other: Upgraded) -> None:
    """Passes bytes on both ways until one side ends, then closes both."""
    ways = [asyncio.create_task(_copy(one, other)), asyncio.create_task(_copy(other, one))]
    try:
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
    finally:
        one.close()
        other.close()
        for way in ways:
            way.cancel()
        await asyncio.gather(*ways, return_exceptions=True)


async def _copy(source: Upgraded, sink: Upgraded) -> None:
    try:
        while data := await source.read():
            await sink.write(data)
    except ConnectionResetError:
        return  # the other side has gone: both ways end
