"""Passing of bodies and of bytes between a client and a backend, and ending them at shutdown."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial

from steersman.endpoints.proxy.rewriting import PageBody
from steersman.machinery.errors.status import service_unavailable
from steersman.net.client.answer import Answer
from steersman.net.message import Response, Upgraded


class PassedBody:
    """The body of a backend's answer as the body of this server's; closes the backend's connection at its end."""

    def __init__(self, answer: Answer | PageBody) -> None:
        self.on_request_end: Callable[[], None] | None = None
        """Callback, called once at the end."""
        self._answer = answer
        self._pieces = aiter(answer)

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        return await anext(self._pieces)

    async def aclose(self) -> None:
        """Close the backend's answer; called by the client's connection in every case."""
        await self._answer.close()
        over, self.on_request_end = self.on_request_end, None
        if over is not None:
            over()

    def finish(self) -> None:
        """Cut the body off."""
        self._answer.cut_off()


class Passage:
    """A taken-over connection, as a handle for shutdown."""

    def __init__(self, connection: Upgraded) -> None:
        self._connection = connection

    def finish(self) -> None:
        """Close the client's side, which ends the passing of bytes."""
        self._connection.close()


class Beginning:
    """A request to a backend that has not answered yet, as a handle for shutdown."""

    def __init__(self, answering: asyncio.Future[Response]) -> None:
        self.ended = False
        self.response = answering

    def finish(self) -> None:
        """Cancel the request; the client gets an error."""
        self.ended = True
        self.response.cancel()


async def ended_with(open_ones: set[object], answering: Awaitable[Response]) -> Response:
    """Return the response of `answering`, registered in `open_ones` until its end; shutdown finishes the registered
    ones.

    Raises the exceptions of `answering`, and StatusError 503 if shutdown came first.
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
        body.on_request_end = partial(open_ones.discard, body)
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
    """Pass bytes in both directions until one side ends, then close both."""
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
        return  # the other side is gone: both directions end
