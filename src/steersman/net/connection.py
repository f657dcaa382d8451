"""Server connections: state shared by all connections of a server, and the base class of all protocols."""

from __future__ import annotations

import asyncio
import logging
from bisect import bisect_right
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from functools import partial
from itertools import accumulate
from time import monotonic
from typing import Any, ClassVar, Final, Protocol, cast

from msgspec import Struct, field

from steersman.net import eager
from steersman.net.fields import FieldCache
from steersman.net.limits import Limits
from steersman.net.message import Body, BodyAborted, Handler, Peer, Request, Response, Stream, Upgraded
from steersman.net.receiving_protocol import ReceivingProtocol
from steersman.net.time_slices import InputQueue, SlicedQueue

log = logging.getLogger("steersman.net")

BATCH: Final = 128 << 10
"""Bytes joined into one write to the transport; between two batches the connection yields to the event loop.

The allocator would map a larger buffer anew each time, which costs a page fault for every 4 KB sent.
"""
PIECE_OF_STREAM: Final = 16 << 10
"""Bytes passed to the transport at a time while a `Stream` is sent, as many clients may leave a stream unread.

TLS encrypts a whole write at once and keeps the buffer as long as the connection exists. Small pieces cost more, as
each becomes a TLS record, but leave less memory per connection in the transport.
"""
_LOOKED_AT: Final = 256
"""Number of pieces whose sizes are added up at a time."""

_IPV4_IN_IPV6: Final = "::ffff:"
"""Prefix of an IPv4 address printed as an IPv6 address by the C library: `::ffff:192.0.2.1`."""

LONGEST_AT_THE_END: Final = 5.0
"""Seconds allowed for the rest of a head during shutdown, as in Go."""


class Counters(Struct):
    """Counters since the start of the server; `open` is by protocol ("http/1.1", "h2")."""

    accepted: int = 0
    refused: int = 0
    tls_handshake_errors: int = 0
    requests: int = 0
    running: int = 0
    streams: int = 0
    open: dict[str, int] = field(default_factory=lambda: {"http/1.1": 0, "h2": 0})


class Connection(Protocol):
    """The server's interface for an open connection."""

    def check(self, now: float) -> None:
        """Close the connection if it has waited too long. Called periodically with the event loop's time."""
        ...

    def send_elsewhere(self) -> None:
        """Ask the client to use another connection; requests that arrive meanwhile are answered."""
        ...

    def shut_down(self) -> None:
        """Finish the requests in flight, accept no new ones, then close."""
        ...

    def abort(self) -> None:
        """Close at once."""
        ...


class ClosedTransport(asyncio.Transport):
    """A null transport for a connection that is lost.

    A TLS transport and its protocol refer to each other. If the protocol kept its transport, both would stay in memory
    until the next garbage collection, with everything they refer to.
    """

    def is_closing(self) -> bool:
        """Return True."""
        return True

    def write(self, data: object) -> None:
        """Discard the data."""

    def close(self) -> None:
        """Do nothing."""

    def abort(self) -> None:
        """Do nothing."""

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Do nothing."""

    def pause_reading(self) -> None:
        """Do nothing."""

    def resume_reading(self) -> None:
        """Do nothing."""


CLOSED: Final = ClosedTransport()
_NOBODY: Final = Peer()


class Receiver(ReceivingProtocol):
    """The asyncio protocol of a server connection.

    All pieces collected in one iteration of the event loop are joined into one write.
    """

    __slots__ = (
        "__weakref__",
        "_closing_since",
        "_deaf",
        "_lost",
        "_peer",
        "_put_off",
        "_transport",
        "_unsent",
        "blocked",
        "core",
        "later",
        "out",
        "piece",
        "scheduled",
    )
    protocol: ClassVar[str]
    """Name of the protocol in `Counters.open`."""

    def __init__(self, core: Core) -> None:
        super().__init__()
        self.core = core
        self.out: list[bytes] = []
        """Pieces for the next write."""
        self.scheduled = False
        """True while a call of flush() is scheduled."""
        self.blocked = False
        """True while the transport's buffer is full; output waits."""
        self.piece = BATCH
        """Bytes passed to the transport at a time."""
        self._unsent: list[bytes] = []
        """Pieces from `out` that the transport has not accepted yet; nonempty only while its buffer is full."""
        self._transport: asyncio.Transport = cast(asyncio.Transport, None)
        self._peer = _NOBODY
        self._lost = False
        self._deaf = False
        """True once input is ignored, or no longer parsed as requests."""
        self.later = False
        """True while processing of the input is scheduled for a later time slice."""
        self._put_off = False
        """True while input waits because it arrived in an iteration of the event loop whose time was used up."""
        self._closing_since: float | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Register the connection."""
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=self.core.limits.write_high_water)
        self._peer = peer_of(transport)
        self.core.connections.add(self)
        self.core.counters.open[self.protocol] += 1

    def connection_lost(self, exc: Exception | None) -> None:
        """Cut off what is in flight, now or in a later time slice."""
        self._lost = self._deaf = True
        self.core.remove(self)
        self.core.counters.open[self.protocol] -= 1
        self._transport = CLOSED
        if self.core.input_queue.is_iteration_over():
            self.core.losses.enqueue(self)
        else:
            self.dropped()

    def process_postponed(self) -> None:
        """Process postponed input, unless that has happened already."""
        raise NotImplementedError

    def dropped(self) -> None:
        """Cut off what is in flight, as the client is gone."""
        raise NotImplementedError

    def schedule(self) -> None:
        """Schedule one call of flush() for this connection's next time slice."""
        if not self.scheduled:
            self.scheduled = True
            self.core.flushes.enqueue(self)

    def flush(self) -> None:
        """Write the collected pieces, and a batch of the waiting ones."""
        self.scheduled = False
        if self._lost:
            self.out.clear()
            self._unsent.clear()
        else:
            self._write_out()

    def _write_out(self) -> None:
        """Write the collected pieces and a batch of the waiting ones; the connection is not lost."""
        raise NotImplementedError

    def sends_stream(self) -> None:
        """Pass small pieces to the transport from now on, as many clients leave streams unread."""
        self.piece = PIECE_OF_STREAM
        self._transport.set_write_buffer_limits(high=self.core.limits.write_high_water // 4)

    def sends_answers(self) -> None:
        """Pass large pieces to the transport again, after a stream."""
        self.piece = BATCH
        self._transport.set_write_buffer_limits(high=self.core.limits.write_high_water)

    def _send(self, out: list[bytes]) -> None:
        """Pass the pieces in `out` to the transport until its buffer is full; `out` is empty afterwards.

        The rest waits unjoined, in byte strings that other connections may share.
        """
        # at most one batch of an answer is in `out`
        if not self._unsent and not self.blocked and (self.piece == BATCH or sum(map(len, out)) <= self.piece):
            data = b"".join(out)
            out.clear()
            self._transport.write(data)
            return
        unsent = self._unsent
        unsent += out
        out.clear()
        at = offset = 0
        while at < len(unsent) and not self.blocked:
            parts: list[bytes] = []
            at, offset = _take(unsent, at, offset, self.piece, parts)
            self._transport.write(parts[0] if len(parts) == 1 else b"".join(parts))
        del unsent[:at]
        if offset:
            unsent[0] = cast(bytes, memoryview(unsent[0])[offset:])

    def _send_rest(self) -> None:
        """Pass all waiting pieces to the transport, as the connection is closed or taken over."""
        if self._unsent:
            data = b"".join(self._unsent)
            self._unsent.clear()
            self._transport.write(data)

    # The end

    def send_elsewhere(self) -> None:
        """See Connection."""
        raise NotImplementedError

    def shut_down(self) -> None:
        """See Connection."""
        raise NotImplementedError

    def abort(self) -> None:
        """Close at once."""
        if not self._lost:
            self._transport.abort()

    def _close(self) -> None:
        if not self._lost:
            self._deaf = True
            self._send_rest()
            self._transport.close()

    def check(self, now: float) -> None:
        """Close the connection if it has been idle, in the middle of a head, or closing for too long."""
        limits = self.core.limits
        if self._closing_since is None:
            self._check_waits(now)
        elif now - self._closing_since > limits.linger + limits.tls_shutdown_timeout:
            self.abort()

    def _check_waits(self, now: float) -> None:
        """End waits that have lasted too long, on a connection that is not closing."""
        raise NotImplementedError


def _take(pieces: list[bytes], at: int, offset: int, room: int, parts: list[bytes]) -> tuple[int, int]:
    """Append about `room` bytes of `pieces`, beginning at `offset` in the piece at `at`, to `parts`.

    Returns the position after these bytes as (at, offset). Only a piece larger than `room` is divided. Lists may have
    thousands of pieces; their sizes are summed up in groups.
    """
    size = len(pieces[at]) - offset
    if offset or size > room:
        part = cast(bytes, memoryview(pieces[at])[offset : offset + room])
        parts.append(part)
        if size > room:
            return at, offset + room
        at, room = at + 1, room - size
    while at < len(pieces):
        some = pieces[at : at + _LOOKED_AT]
        ends = list(accumulate(map(len, some)))
        whole = bisect_right(ends, room)
        if whole:
            parts += some[:whole]
            at, room = at + whole, room - ends[whole - 1]
        if whole < len(some):
            break
    return at, 0


class Exchange(Protocol):
    """One request and its response on a connection; also the response's BodyWriter."""

    request: Request

    @property
    def buffered(self) -> int:
        """Return the number of bytes of the body that wait to be sent."""
        ...

    def respond(self, response: Response) -> None:
        """Queue the head, and the body unless it is an async iterator."""
        ...

    async def upgrade(self, take_over: Callable[[Upgraded], Awaitable[None]]) -> None:
        """Hand the connection over after a 101 response."""
        ...

    def write(self, data: bytes) -> None:
        """Queue a piece of the body."""
        ...

    def end(self) -> None:
        """End the body."""
        ...

    def abort(self) -> None:
        """Break the response off, so that the client sees that it is not complete."""
        ...

    async def drain(self) -> None:
        """Wait until little of the body is queued. Raises BodyAborted if the client is gone."""
        ...

    @property
    def responded(self) -> bool:
        """True once a head has been queued."""
        ...

    @property
    def is_over(self) -> bool:
        """True once the body has ended, or the client wants no more of it."""
        ...

    @property
    def closed(self) -> bool:
        """True once the whole answer has been written, or the client wants no more of it."""
        ...


class Core:
    """State shared by the connections of one server."""

    __slots__ = (
        "_change",
        "connections",
        "counters",
        "draining",
        "eager",
        "flushes",
        "h1_fields",
        "h2_fields",
        "handler",
        "input_queue",
        "limits",
        "loop",
        "losses",
        "postponed",
    )

    def __init__(
        self,
        handler: Handler,
        limits: Limits,
        loop: asyncio.AbstractEventLoop,
        *,
        eager: bool,
        h1_fields: FieldCache,
        h2_fields: FieldCache,
    ) -> None:
        self.handler = handler
        self.limits = limits
        self.loop = loop
        self.eager = eager
        self.h1_fields = h1_fields
        self.h2_fields = h2_fields
        self.connections: set[Connection] = set()
        self.counters = Counters()
        self.draining = False
        self.input_queue = InputQueue(loop)
        self.flushes: SlicedQueue[Receiver] = SlicedQueue(loop, Receiver.flush)
        """Connections with output, flushed in time slices: encryption of an event for many watchers takes long."""
        self.postponed: SlicedQueue[Receiver] = SlicedQueue(loop, lambda each: each.process_postponed())
        """Connections whose input arrived in an iteration of the event loop without time left. They are processed
        before `input_queue`, whose connections have had a time slice already.
        """
        self.losses: SlicedQueue[Receiver] = SlicedQueue(loop, lambda each: each.dropped())
        """Lost connections, cleaned up in time slices if many are lost at once."""
        self._change: asyncio.Future[None] | None = None

    @property
    def is_full(self) -> bool:
        """True if the limit of connections is reached."""
        return 0 < self.limits.max_connections <= len(self.connections)

    def remove(self, connection: Connection) -> None:
        """Remove a closed connection."""
        self.connections.discard(connection)
        self._changed()

    async def wait_for_change(self, timeout: float) -> None:
        """Wait until a connection or a handler has ended, at most `timeout` seconds."""
        self._change = self.loop.create_future()
        await asyncio.wait([self._change], timeout=timeout)

    def _changed(self) -> None:
        if self._change is not None and not self._change.done():
            self._change.set_result(None)

    def start(self, exchange: Exchange, on_end: Callable[[asyncio.Task[None]], object]) -> asyncio.Task[None] | None:
        """Start the handler for a request; return its task, or None if it has ended at once.

        `on_end` is called at the end of the task, and must call `ended`.
        """
        counters = self.counters
        counters.requests += 1
        counters.running += 1
        coroutine = answer(self.handler, exchange)
        task = eager.start(self.loop, coroutine) if self.eager else self.loop.create_task(coroutine)
        if task is None:
            counters.running -= 1
        else:
            task.add_done_callback(on_end)
        return task

    def ended(self, task: asyncio.Task[None]) -> None:
        """Count the end of a handler's task. A failure is logged."""
        self.counters.running -= 1
        if self._change is not None:
            self._changed()
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("the task of a request failed", exc_info=error)


async def answer(handler: Handler, exchange: Exchange) -> None:
    """Run the handler and send its response. A failure is logged and answered with 500, or cuts the response off if it
    has begun.
    """
    try:
        response = await handler(exchange.request)
        if response.after is not None:
            response.after(partial(_send, exchange, response))
            return
        try:
            exchange.respond(response)
        except Exception:
            await _close_body(response.body)
            raise
        if response.upgrade is not None:
            await exchange.upgrade(response.upgrade)
        elif type(response.body) is not bytes and is_pulled(response.body):
            await pump(cast(AsyncIterator[bytes], response.body), exchange)
    except asyncio.CancelledError:
        exchange.abort()
    except Exception:
        request = exchange.request
        log.exception("handler of %s %s failed", request.method, request.path)
        if exchange.responded:
            exchange.abort()
        else:
            exchange.respond(internal_server_error())
    # otherwise the connection calls notify_end when the answer has been sent
    if exchange.closed and exchange.request.on_request_end is not None:
        notify_end(exchange.request)


def _send(exchange: Exchange, response: Response) -> None:
    """Send a response that was deferred by `Response.after`. A failure is logged and answered with 500."""
    try:
        exchange.respond(response)
    except Exception:
        log.exception("sending the answer to %s %s failed", exchange.request.method, exchange.request.path)
        exchange.respond(internal_server_error())
    if exchange.closed:
        notify_end(exchange.request)


def notify_end(request: Request) -> None:
    """Call `request.on_request_end`, once."""
    on_request_end = request.on_request_end
    if on_request_end is not None:
        request.on_request_end = None
        on_request_end()


def internal_server_error() -> Response:
    """Return a 500 response for a failed handler."""
    return Response(500, [("content-type", "text/plain; charset=utf-8")], b"Internal Server Error")


_WHOLE: Final = (bytes, list, tuple)
"""Types of bodies that are complete in memory."""


def is_pulled(body: Body) -> bool:
    """Return True if a body is an async iterator."""
    return not isinstance(body, _WHOLE) and isinstance(body, AsyncIterator)


def is_pushed(body: Body) -> bool:
    """Return True if a body is a `Stream`."""
    return not isinstance(body, _WHOLE) and not isinstance(body, AsyncIterator)


async def pump(body: AsyncIterator[bytes], exchange: Exchange) -> None:
    """Send the pieces of an async iterator with backpressure, and close the iterator in any case."""
    try:
        if not exchange.is_over:
            await _send_pieces(body, exchange)
    except BodyAborted:
        exchange.abort()
    finally:
        await _close_body(body)


async def _close_body(body: Body) -> None:
    """Close an async iterator, which may hold a connection to a backend, for example."""
    if (close := getattr(body, "aclose", None)) is not None:
        await cast(Coroutine[Any, Any, None], close())


async def _send_pieces(body: AsyncIterator[bytes], exchange: Exchange) -> None:
    since_turn = 0
    async for piece in body:
        exchange.write(piece)
        since_turn += len(piece)
        if since_turn >= BATCH:
            since_turn = 0
            await asyncio.sleep(0)
            await exchange.drain()
        if exchange.is_over:
            return
    exchange.end()


def notify_closed(stream: Stream) -> None:
    """Call `closed()` of a pushed body; its exceptions are logged."""
    try:
        stream.closed()
    except Exception:
        log.exception("closed() of a response body failed")


def peer_of(transport: asyncio.BaseTransport) -> Peer:
    """Return the peer of a transport: addresses, client certificate, TLS."""
    host, port = _host_and_port(transport.get_extra_info("peername"))
    tls = transport.get_extra_info("ssl_object")
    certificate = tls.getpeercert(True) if tls is not None else None
    authorities = () if certificate is None else tls.peer_chain()
    return Peer(
        host,
        port,
        certificate,
        tls is not None,
        authorities,
        _host_and_port(transport.get_extra_info("sockname")),
        monotonic(),
    )


def _host_and_port(address: object) -> tuple[str, int]:
    """Return host and port. An IPv4 address stays IPv4 on a socket that listens for both families."""
    if not isinstance(address, tuple):
        return str(address or ""), 0
    host = str(address[0])
    return host.removeprefix(_IPV4_IN_IPV6) if "." in host else host, int(address[1])
