"""Requests to a handler without a socket, for tests and for programs that embed a server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from time import monotonic
from typing import cast

from steersman.net import eager
from steersman.net.body import EMPTY_BODY, EmptyBody, IncomingBody
from steersman.net.connection import answer, is_pushed, notify_closed, notify_end
from steersman.net.message import BodyAborted, Handler, Headers, Peer, Request, Response, Stream, Upgraded
from steersman.net.outgoing import OutgoingAnswer
from steersman.net.time_slices import RequestQueue


class ClientResponse:
    """A handler's response; callers close it, or read it to its end."""

    __slots__ = ("_exchange", "headers", "status")

    def __init__(self, exchange: _Exchange, status: int, headers: list[tuple[str, str]]) -> None:
        self._exchange = exchange
        self.status = status
        self.headers = fields = Headers.from_pairs(headers)
        if len(fields) != len(fields.sent):  # of a repeated field, such as Warning, all values are wanted
            for name in fields:
                fields[name] = fields.joined(name)

    async def read(self) -> bytes:
        """Return the rest of the body. Raises BodyAborted if it is cut off."""
        pieces: list[bytes] = []
        while (piece := await self._exchange.next()) is not None:
            pieces.append(piece)
        return b"".join(pieces)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Yield the body in the pieces in which it was written. Raises BodyAborted if it is cut off."""
        while (piece := await self._exchange.next()) is not None:
            yield piece

    async def aclose(self) -> None:
        """Abandon the response: the handler is cancelled, a pushed body is closed."""
        await self._exchange.leave()

    async def __aenter__(self) -> ClientResponse:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


class InProcessClient:
    """Client of a handler in this process and on this event loop."""

    def __init__(self, handler: Handler, *, peer: Peer | None = None, host: str = "localhost") -> None:
        self._handler = handler
        self._peer = peer or Peer("127.0.0.1", 0, None, True, since=monotonic())
        self._host = host

    async def request(
        self,
        method: str,
        target: str,
        headers: Iterable[tuple[str, str]] = (),
        body: bytes | AsyncIterator[bytes] = b"",
    ) -> ClientResponse:
        """Run the handler until it answers, and return the response.

        `target` is a path with an optional query; header names are lower case. Raises BodyAborted if there is no
        answer. A failure of the handler is logged and answered with 500, as over a socket.
        """
        incoming: IncomingBody | EmptyBody = EMPTY_BODY
        feeding: asyncio.Task[None] | None = None
        if isinstance(body, bytes):
            if body:
                headers = _with_length(headers, len(body))
                incoming = IncomingBody(expected=len(body))
                incoming.feed(body)
                incoming.finish()
        else:
            incoming = IncomingBody()
            feeding = asyncio.ensure_future(_feed(incoming, body))
        path, _, query = target.partition("?")
        request = Request(
            method, path, query, Headers.from_pairs(headers), incoming, self._peer, "1.1", "https", self._host
        )
        loop = asyncio.get_running_loop()
        exchange = _Exchange(self._handler, request, incoming, feeding, loop)
        RequestQueue.for_loop(loop).enqueue(exchange)
        return await exchange.response()


def _with_length(headers: Iterable[tuple[str, str]], length: int) -> Sequence[tuple[str, str]]:
    """Return the headers with a content-length, as any client sends it."""
    fields = tuple(headers)
    for name, _ in fields:
        if name == "content-length":
            return fields
    return (*fields, ("content-length", str(length)))


async def _feed(body: IncomingBody, pieces: AsyncIterator[bytes]) -> None:
    """Feed an async iterator to a request body, each piece when the previous one has been read."""
    try:
        async for piece in pieces:
            body.feed(piece)
            await body.emptied()
        body.finish()
    except Exception as error:
        body.fail(str(error))


class _Exchange(OutgoingAnswer):
    """One request and its response: the client reads what the handler writes."""

    __slots__ = ("_feeding", "_handler", "_head", "_reader", "gone")

    def __init__(
        self,
        handler: Handler,
        request: Request,
        body: IncomingBody | EmptyBody,
        feeding: asyncio.Task[None] | None,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        super().__init__(loop, body)
        self.request = request
        self._handler = handler
        self.gone = False
        """True once the client has abandoned the request."""
        # a reference to the ClientResponse, which refers to this exchange, would be a cycle for the garbage collector
        self._head: asyncio.Future[tuple[int, list[tuple[str, str]]]] = loop.create_future()
        self._feeding = feeding
        self._no_body = request.method == "HEAD"
        self._reader: asyncio.Future[None] | None = None

    # The handler's side

    def begin(self) -> None:
        """Run the handler, unless the client has abandoned the request already."""
        if not self.gone:
            self.task = eager.start(self._loop, answer(self._handler, self))

    def respond(self, response: Response) -> None:
        """Queue the head, and the body unless it is an async iterator."""
        body = response.body
        if self.responded or self.gone:
            if is_pushed(body):
                notify_closed(cast(Stream, body))
            return
        if response.upgrade is not None:
            raise ValueError("there is no connection to upgrade")
        self.responded = True
        self._no_body = self._no_body or response.status in (204, 304)
        if not self._head.done():
            self._head.set_result((response.status, response.headers))
        if self._no_body:
            self.ended = self.closed = True
            if is_pushed(body):
                notify_closed(cast(Stream, body))
        elif isinstance(body, (bytes, list, tuple)):
            for piece in (body,) if isinstance(body, bytes) else cast(Sequence[bytes], body):
                self.write(piece)
            self.end()
        elif is_pushed(body):
            self._sink = cast(Stream, body)
            self._sink.start(self)

    async def upgrade(self, take_over: Callable[[Upgraded], Awaitable[None]]) -> None:
        """Do nothing: respond() refuses upgrades."""

    def write(self, data: bytes) -> None:
        """Queue a piece of the body."""
        if self.closed or not data:
            return
        self.keep((data,), len(data))
        if self._reader is not None:
            self._wake_reader()

    def end(self) -> None:
        """End the body; the client can read the written pieces at any time."""
        if not self.closed:
            self.ended = True
            self._over()

    def abort(self) -> None:
        """Cut the response off."""
        if self.closed:
            return
        self.cancelled = True
        if not self._head.done():
            self._head.set_exception(BodyAborted("the handler gave no answer"))
        self._over()

    def _over(self) -> None:
        self.closed = True
        if self._sink is not None:
            self.close_sink()
        if self._reader is not None:
            self._wake_reader()
        notify_end(self.request)

    # The client's side

    async def response(self) -> ClientResponse:
        """Wait for the head and return the response; a cancelled caller abandons the request."""
        try:
            status, headers = await self._head
        except asyncio.CancelledError:
            await self.leave()
            raise
        return ClientResponse(self, status, headers)

    async def next(self) -> bytes | None:
        """Return the next piece, or None at the end. Raises BodyAborted."""
        while not self.pending:
            if self.cancelled:
                raise BodyAborted("the response was cut off")
            if self.ended:
                return None
            self._reader = self._loop.create_future()
            await self._reader
        piece = self.pending.popleft()
        self.buffered -= len(piece)
        self.wake_writers()
        return piece

    async def leave(self) -> None:
        """Abandon the request: cancel the handler and wait for its end."""
        if self.gone:
            return
        unfinished = not self.ended
        self.gone = self.cancelled = True
        self._over()
        self.forget_pending()
        if isinstance(self.body, IncomingBody):
            self.body.fail("the client has gone")
        for task in (self.task, self._feeding):
            if task is not None and not task.done() and task is not asyncio.current_task():
                if unfinished or task is self._feeding:
                    task.cancel()
                await asyncio.wait([task])

    def _wake_reader(self) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)
