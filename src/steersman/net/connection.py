"""What all connections of a server share, and what every connection has whatever it speaks."""

from __future__ import annotations

import asyncio
import logging
from bisect import bisect_right
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate
from typing import Any, ClassVar, Final, Protocol, cast

from steersman.net import eager
from steersman.net.fields import FieldCache
from steersman.net.limits import Limits
from steersman.net.message import Body, BodyAborted, Handler, Peer, Request, Response, Stream, Upgraded
from steersman.net.turns import InSlices, Turns

log = logging.getLogger("steersman.net")

_READ_SIZE: Final = 256 << 10
BATCH: Final = 128 << 10
"""Bytes joined into one write to the transport; between two batches the loop gets its turn.

More than this would be a mapping of its own to the allocator: a page fault for every 4 KB sent.
"""
PIECE_OF_STREAM: Final = 16 << 10
"""Bytes given to the transport at a time where a `Stream` is sent, which many clients may leave unread.

TLS encrypts all that it is given at once, and keeps the buffer for it as long as the connection is there. Small pieces
are dearer, as each is a record of TLS, but the transport is left with less that is this connection's own.
"""
_LOOKED_AT: Final = 256
"""Parts of what is sent whose bytes are added up at a time."""

_IPV4_IN_IPV6: Final = "::ffff:"
"""What stands before an IPv4 address that the C library prints as one of IPv6: `::ffff:192.0.2.1`."""

LONGEST_AT_THE_END: Final = 5.0
"""Seconds that the rest of a head may take when the server goes down, as in Go."""


@dataclass(slots=True)
class Counters:
    """What happened since the server was made; `open` is by protocol ("http/1.1", "h2")."""

    accepted: int = 0
    refused: int = 0
    tls_handshake_errors: int = 0
    requests: int = 0
    running: int = 0
    streams: int = 0
    open: dict[str, int] = field(default_factory=lambda: {"http/1.1": 0, "h2": 0})


class Connection(Protocol):
    """An open connection, as the server sees it."""

    def check(self, now: float) -> None:
        """Called every so often with the loop's time: closes the connection if it has waited too long."""
        ...

    def send_elsewhere(self) -> None:
        """Tells the client to send what follows on another connection; what comes before it knows is answered."""
        ...

    def shut_down(self) -> None:
        """Finishes the requests in flight, takes no new ones, then closes."""
        ...

    def abort(self) -> None:
        """Closes at once."""
        ...


class ClosedTransport(asyncio.Transport):
    """What a connection that is lost has for a transport: nothing can be done with it.

    A transport of TLS and its protocol know each other. If the protocol kept the transport, both would be there until
    the next collection of garbage, with all that they hold.
    """

    def is_closing(self) -> bool:
        """It is closed."""
        return True

    def write(self, data: object) -> None:
        """Nobody reads it."""

    def close(self) -> None:
        """It is closed."""

    def abort(self) -> None:
        """It is closed."""

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Nothing waits."""

    def pause_reading(self) -> None:
        """Nothing comes."""

    def resume_reading(self) -> None:
        """Nothing comes."""


CLOSED: Final = ClosedTransport()
_NOBODY: Final = Peer()


class Receiver(asyncio.BufferedProtocol):
    """The asyncio side of a connection: one joined write for each turn of the loop, one buffer to read for all.

    With a plain Protocol, TLS would allocate and shrink 256 KB for every read: a mapping of its own each time. The loop
    fills the buffer and says so in one go, and what has come is copied out first, so that one buffer is enough.
    """

    __slots__ = (
        "__weakref__",
        "_closing_since",
        "_deaf",
        "_later",
        "_lost",
        "_peer",
        "_put_off",
        "_transport",
        "_unsent",
        "blocked",
        "core",
        "out",
        "piece",
        "scheduled",
    )
    protocol: ClassVar[str]
    """Name of the protocol in `Counters.open`."""

    def __init__(self, core: Core) -> None:
        self.core = core
        self.out: list[bytes] = []
        """Pieces for the next write."""
        self.scheduled = False
        """flush() will be called soon."""
        self.blocked = False
        """The transport has enough: what is to be sent waits."""
        self.piece = BATCH
        """Bytes that the transport is given at a time."""
        self._unsent: list[bytes] = []
        """Pieces from `out` that the transport is yet to take; empty unless it has enough."""
        self._transport: asyncio.Transport = cast(asyncio.Transport, None)
        self._peer = _NOBODY
        self._lost = False
        self._deaf = False
        """True once input is ignored, or not read as a request any more."""
        self._later = False
        """Goes on with what has come in a later turn."""
        self._put_off = False
        """True while input waits that came in a turn of the loop without time for it."""
        self._closing_since: float | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Register the connection."""
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=self.core.limits.write_high_water)
        self._peer = peer_of(transport)
        self.core.connections.add(self)
        self.core.counters.open[self.protocol] += 1

    def connection_lost(self, exc: Exception | None) -> None:
        """Cut off what is in flight, now or soon."""
        self._lost = self._deaf = True
        self.core.remove(self)
        self.core.counters.open[self.protocol] -= 1
        self._transport = CLOSED
        if self.core.turns.spent():
            self.core.losses.later(self)
        else:
            self.dropped()

    def get_buffer(self, sizehint: int) -> memoryview:
        """Where the loop reads to."""
        return self.core.read_buffer

    def buffer_updated(self, nbytes: int) -> None:
        """The loop has read."""
        self.data_received(self.core.read_buffer[:nbytes].tobytes())

    def data_received(self, data: bytes) -> None:
        """Takes what has come."""
        raise NotImplementedError

    def take_up(self) -> None:
        """Works on what was put off, unless that has been done."""
        raise NotImplementedError

    def dropped(self) -> None:
        """Cuts off what is in flight, as nobody is there any more."""
        raise NotImplementedError

    def schedule(self) -> None:
        """Has flush() called once, soon: when it is this connection's turn to write."""
        if not self.scheduled:
            self.scheduled = True
            self.core.flushes.later(self)

    def flush(self) -> None:
        """Writes what is collected, and a batch of what waits."""
        self.scheduled = False
        if self._lost:
            self.out.clear()
            self._unsent.clear()
        else:
            self._write_out()

    def _write_out(self) -> None:
        """Writes what is collected and what may follow it; the connection is there."""
        raise NotImplementedError

    def sends_stream(self) -> None:
        """Give the transport little at a time from now on, as many clients leave streams unread."""
        self.piece = PIECE_OF_STREAM
        self._transport.set_write_buffer_limits(high=self.core.limits.write_high_water // 4)

    def sends_answers(self) -> None:
        """Give the transport more at a time again, after a stream."""
        self.piece = BATCH
        self._transport.set_write_buffer_limits(high=self.core.limits.write_high_water)

    def _send(self, out: list[bytes]) -> None:
        """Gives the transport what is in `out`, which is empty afterwards, until it has enough.

        The rest waits as it came, in bytes that other connections may share.
        """
        # no more than a batch of an answer comes at a time
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
        """Gives the transport what it is yet to take, as the connection is closed or taken over."""
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
        """Close the connection if it has been idle, in the middle of a head, or about to close, for too long."""
        limits = self.core.limits
        if self._closing_since is None:
            self._check_waits(now)
        elif now - self._closing_since > limits.linger + limits.tls_shutdown_timeout:
            self.abort()

    def _check_waits(self, now: float) -> None:
        """End what has waited for too long on a connection that is not about to close."""
        raise NotImplementedError


def _take(pieces: list[bytes], at: int, offset: int, room: int, parts: list[bytes]) -> tuple[int, int]:
    """Append about `room` bytes of `pieces`, from an offset in the one at `at` on, to `parts`; return where that ends.

    Only a piece of more bytes than there is room is divided. Lists have thousands of pieces, which are looked at many
    at a time.
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
    """One request and its response, as a connection carries them; it is the response's BodyWriter too."""

    request: Request

    @property
    def buffered(self) -> int: ...

    def respond(self, response: Response) -> None:
        """Queues the head, and the body unless it is an async iterator."""
        ...

    async def upgrade(self, take_over: Callable[[Upgraded], Awaitable[None]]) -> None:
        """Hands the connection over after a 101 response."""
        ...

    def write(self, data: bytes) -> None: ...

    def end(self) -> None: ...

    def abort(self) -> None: ...

    async def drain(self) -> None: ...

    @property
    def responded(self) -> bool:
        """Whether a head has been queued."""
        ...

    @property
    def over(self) -> bool:
        """Whether the body has ended, or nobody wants it any more."""
        ...

    @property
    def closed(self) -> bool:
        """Whether all of the answer has left, or nobody wants it any more."""
        ...


class Core:
    """What the connections of one server share."""

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
        "limits",
        "loop",
        "losses",
        "put_off",
        "read_buffer",
        "turns",
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
        self.read_buffer = memoryview(bytearray(_READ_SIZE))
        self.turns = Turns(loop)
        self.flushes: InSlices[Receiver] = InSlices(loop, Receiver.flush)
        """Connections that have something to write: what many are told at once is encrypted in slices."""
        self.put_off: InSlices[Receiver] = InSlices(loop, lambda each: each.take_up())
        """Those to which something has come in a turn that had no time for it: before and beside `turns`, where others
        are that have had theirs."""
        self.losses: InSlices[Receiver] = InSlices(loop, lambda each: each.dropped())
        """Those that are no more, where many are lost at once."""
        self._change: asyncio.Future[None] | None = None

    @property
    def is_full(self) -> bool:
        """Whether there are as many connections as there may be."""
        return 0 < self.limits.max_connections <= len(self.connections)

    def remove(self, connection: Connection) -> None:
        """Forgets a connection that is no more."""
        self.connections.discard(connection)
        self._changed()

    async def wait_for_change(self, timeout: float) -> None:
        """Waits until a connection or a handler has ended, at most `timeout` seconds."""
        self._change = self.loop.create_future()
        await asyncio.wait([self._change], timeout=timeout)

    def _changed(self) -> None:
        if self._change is not None and not self._change.done():
            self._change.set_result(None)

    def start(self, exchange: Exchange) -> asyncio.Task[None] | None:
        """Starts the handler for a request; its task, if it did not end at once."""
        counters = self.counters
        counters.requests += 1
        counters.running += 1
        coroutine = answer(self.handler, exchange)
        task = eager.start(self.loop, coroutine) if self.eager else self.loop.create_task(coroutine)
        if task is None:
            counters.running -= 1
        else:
            task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        self.counters.running -= 1
        self._changed()
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("a request's task failed", exc_info=error)


async def answer(handler: Handler, exchange: Exchange) -> None:
    """Runs the handler and sends what it answers. A failure is logged and answered with 500, or cuts the answer off."""
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
        elif is_pulled(response.body):
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
    if exchange.closed:  # if not, whoever closes it tells
        tell_over(exchange.request)


def _send(exchange: Exchange, response: Response) -> None:
    """Sends a response that was kept back. A failure is logged and answered with 500."""
    try:
        exchange.respond(response)
    except Exception:
        log.exception("the answer to %s %s cannot be sent", exchange.request.method, exchange.request.path)
        exchange.respond(internal_server_error())
    if exchange.closed:
        tell_over(exchange.request)


def tell_over(request: Request) -> None:
    """Calls `request.when_over`, once."""
    when_over = request.when_over
    if when_over is not None:
        request.when_over = None
        when_over()


def internal_server_error() -> Response:
    """500, for a handler that failed."""
    return Response(500, [("content-type", "text/plain; charset=utf-8")], b"Internal Server Error")


_WHOLE: Final = (bytes, list, tuple)
"""The types of bodies that are there as a whole."""


def is_pulled(body: Body) -> bool:
    """Whether a body is an async iterator."""
    return not isinstance(body, _WHOLE) and isinstance(body, AsyncIterator)


def is_pushed(body: Body) -> bool:
    """Whether a body is a `Stream`."""
    return not isinstance(body, _WHOLE) and not isinstance(body, AsyncIterator)


async def pump(body: AsyncIterator[bytes], exchange: Exchange) -> None:
    """Sends the pieces of an async iterator under back-pressure, and closes it in any case."""
    try:
        if not exchange.over:
            await _send_pieces(body, exchange)
    except BodyAborted:
        exchange.abort()
    finally:
        await _close_body(body)


async def _close_body(body: Body) -> None:
    """Lets go of what an async iterator holds: a connection to a backend, say."""
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
        if exchange.over:
            return
    exchange.end()


def notify_closed(stream: Stream) -> None:
    """Tells a pushed body that it is over; what it raises is logged."""
    try:
        stream.closed()
    except Exception:
        log.exception("closed() of a response body failed")


def peer_of(transport: asyncio.BaseTransport) -> Peer:
    """Who is at the other end of a transport."""
    host, port = _place(transport.get_extra_info("peername"))
    tls = transport.get_extra_info("ssl_object")
    certificate = tls.getpeercert(True) if tls is not None else None
    authorities = () if certificate is None else tls.peer_chain()
    return Peer(host, port, certificate, tls is not None, authorities, _place(transport.get_extra_info("sockname")))


def _place(address: object) -> tuple[str, int]:
    """A host, and a port. An IPv4 address is told as such where one socket listens for both families."""
    if not isinstance(address, tuple):
        return str(address or ""), 0
    host = str(address[0])
    return host.removeprefix(_IPV4_IN_IPV6) if "." in host else host, int(address[1])
