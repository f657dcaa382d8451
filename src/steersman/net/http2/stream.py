"""One HTTP/2 stream of a server: a request, its body, and the outgoing response."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Protocol, cast

from steersman.net import outgoing
from steersman.net.body import EMPTY_BODY
from steersman.net.connection import is_pushed, notify_closed
from steersman.net.http2 import hpack
from steersman.net.http2.flow_control import CLOSED_WINDOW
from steersman.net.http2.frames import DATA, END_STREAM, ErrorCode, headers, pack_head
from steersman.net.message import Response, Stream, Upgraded
from steersman.net.outgoing import MANY_PIECES, OutgoingAnswer

_END: Final = END_STREAM


class Carrier(outgoing.Carrier, Protocol):
    """The connection, as its stream uses it; see `output` for attributes without a description."""

    window: int
    """Bytes that may be sent on all streams together."""
    max_frame: int
    """Limit of a frame's payload, in bytes."""
    ready: deque[Http2Stream]
    """Streams that wait for their turn to send."""
    leaving: dict[Http2Stream, float]

    def prefix(self, block: bytes) -> bytes:
        """Return a header block for sending, preceded by the table size update if one is due."""
        ...

    def give_back(self, size: int) -> None:
        """Return flow control credit for the connection."""
        ...

    def give_back_on(self, stream: Http2Stream, size: int) -> None:
        """Return flow control credit for a stream."""
        ...

    def open_window(self, stream: Http2Stream) -> None:
        """Open the full stream window, as the handler waits for more of a body."""
        ...

    def half_closed(self, stream: Http2Stream) -> None:
        """End a stream whose END_STREAM has been queued."""
        ...

    def reset(self, stream: Http2Stream, code: int) -> None:
        """Reset a stream."""
        ...

    def shut_down(self) -> None:
        """Accept no new streams; the open ones finish."""
        ...


class Http2Stream(OutgoingAnswer):
    """A stream and its response's `BodyWriter`.

    Output that can be sent at once goes straight to the connection's list of pieces for the next write. Other output
    (flow control, a slow reader, more than a frame) waits in `pending`, and the stream in the connection's round of
    ready streams.
    """

    __slots__ = (
        "_head",
        "_head_ends",
        "connection",
        "id",
        "parked",
        "queued",
        "received",
        "recv",
        "remote_closed",
        "window",
    )

    def __init__(self, connection: Carrier, stream_id: int, window: int, *, remote_closed: bool) -> None:
        OutgoingAnswer.__init__(self, connection.core.loop, EMPTY_BODY)
        self.connection = connection
        self.id = stream_id
        self.window = window
        """Bytes that may be sent on the stream."""
        self.recv = CLOSED_WINDOW
        self.received = 0
        """Bytes of the request's body received so far."""
        self.remote_closed = remote_closed
        self.queued = False
        """True while the stream is in the connection's round of ready streams, or parked: further output must queue."""
        self.parked = False
        """True while the stream is outside the round until a window opens."""
        self._head = b""
        self._head_ends = False

    # The body of the request

    def consumed(self, size: int) -> None:
        """Return flow control credit for `size` bytes that the handler has read."""
        self.connection.give_back(size)
        if not self.remote_closed and not self.closed:
            self.connection.give_back_on(self, size)

    def open_window(self) -> None:
        """Open the full stream window, as the handler waits for more."""
        self.connection.open_window(self)

    # The response

    def respond(self, response: Response) -> None:
        """Queue the head, and the body unless it is an async iterator. Raises ValueError for an invalid status."""
        if self.closed or self.responded:
            if is_pushed(response.body):
                notify_closed(cast(Stream, response.body))
            return
        status, body = response.status, response.body
        if status < 200 or status > 999 or response.upgrade is not None:
            raise ValueError(f"status {status} cannot be sent over HTTP/2")
        connection = self.connection
        fields = connection.core.h2_fields
        parts = [hpack.STATUSES[status], *fields.encode(response.headers), fields.date()]
        bodiless = status in (204, 304)
        pieces: Sequence[bytes] | None = None
        if type(body) is bytes:
            size = len(body)
            if self._fits(size) and not bodiless and self.request.method != "HEAD":
                parts.append(hpack.content_length(size))
                # a whole response in two frames: the path of nearly every response
                self.responded = self.ended = True
                connection.window -= size
                connection.out += (
                    headers(self.id, connection.prefix(b"".join(parts)), 0, connection.max_frame),
                    pack_head(size << 8 | DATA, _END, self.id),
                    body,
                )
                if not connection.scheduled:
                    connection.schedule()
                connection.half_closed(self)
                if response.close:
                    connection.shut_down()
                return
            pieces = (body,) if size else ()
        elif isinstance(body, (list, tuple)):
            pieces = body
            size = sum(map(len, body))
        if pieces is not None and not bodiless:
            parts.append(hpack.content_length(size))
        elif pieces is None and response.length is not None:
            parts.append(hpack.content_length(response.length))
        self.responded = True
        self._no_body = bodiless or self.request.method == "HEAD"
        block = b"".join(parts)
        if pieces is None:
            self._begin(block, body if is_pushed(body) else None)
        elif self._no_body or not size:
            self._send_head(block, END_STREAM)
        else:
            self._send_whole(block, pieces, size)
        if response.close:
            connection.shut_down()

    def _fits(self, size: int) -> bool:
        """Return True if a body of this size can be sent at once, in one frame."""
        connection = self.connection
        return (
            0 < size <= self.window
            and size <= connection.max_frame
            and size <= connection.window
            and not connection.blocked
        )

    def _begin(self, block: bytes, pushed: object) -> None:
        """Queue the head of a body of unknown length."""
        sink = cast(Stream, pushed)
        if self._no_body:
            self._send_head(block, END_STREAM)
            if pushed is not None:
                notify_closed(sink)
            return
        self._send_head(block, 0)
        if pushed is not None:
            self._sink = sink
            self.connection.sends_stream()
            sink.start(self)

    def _send_head(self, block: bytes, flags: int) -> None:
        connection = self.connection
        frames = headers(self.id, connection.prefix(block), flags, connection.max_frame)
        if flags:
            self.ended = True
        if connection.blocked:
            self._head = frames
            self._head_ends = bool(flags)
            self._queue()
            if flags:
                self._leaves()
            return
        connection.out.append(frames)
        connection.schedule()
        if flags:
            self.connection.half_closed(self)

    def _send_whole(self, block: bytes, pieces: Sequence[bytes], size: int) -> None:
        connection = self.connection
        self._send_head(block, 0)
        if not self.queued and self._fits(size):
            self.window -= size
            connection.window -= size
            connection.out.append(pack_head(size << 8 | DATA, _END, self.id))
            connection.out.extend(pieces)
            self.ended = True
            self.connection.half_closed(self)
            return
        self.keep(filter(None, pieces), size)
        self.ended = True
        self._leaves()
        if not self.queued:
            self._queue()

    async def upgrade(self, take_over: Callable[[Upgraded], Awaitable[None]]) -> None:
        """Do nothing: HTTP/2 has no upgrades, and respond() has refused the 101 already."""

    # BodyWriter

    def write(self, data: bytes) -> None:
        """Queue a piece of the body."""
        size = len(data)
        if self.ended or self.closed or not size:
            return
        connection = self.connection
        if (
            self.queued
            or size > self.window
            or size > connection.window
            or size > connection.max_frame
            or connection.blocked
        ):
            self.keep((data,), size)
            if not self.queued:
                self._queue()
            return
        self.window -= size
        connection.window -= size
        out = connection.out
        out.append(pack_head(size << 8, 0, self.id))
        out.append(data)
        if not connection.scheduled:
            connection.schedule()
        elif len(out) > MANY_PIECES:
            connection.flush()

    def end(self) -> None:
        """End the body."""
        if self.ended or self.closed:
            return
        self.ended = True
        connection = self.connection
        if self.queued or connection.blocked:
            self._leaves()
            if not self.queued:
                self._queue()
            return
        connection.out.append(pack_head(DATA, _END, self.id))
        connection.schedule()
        self.connection.half_closed(self)

    def abort(self) -> None:
        """End the response with RST_STREAM, so that the client sees that it was cut off."""
        if not self.closed:
            self.connection.reset(self, ErrorCode.INTERNAL_ERROR)

    def _queue(self) -> None:
        self.queued = True
        self.connection.ready.append(self)
        self.connection.schedule()

    def _leaves(self) -> None:
        """Mark the answer as complete: what is left of it only has to be sent."""
        connection = self.connection
        connection.leaving[self] = connection.core.loop.time()

    # Sending in turn

    def append_frame(self, out: list[bytes], room: int, max_frame: int) -> int:
        """Append the next frame, of at most `room` bytes of body, to `out`; return the number of bytes of body in it.

        The caller has checked `sendable`. END_STREAM goes with the last byte.
        """
        if self._head:
            out.append(self._head)
            self._head = b""
            if self._head_ends or (not self.pending and not self.ended):
                return 0
        at = len(out)
        out.append(b"")
        size = self.move(out, min(room, max_frame, self.window))
        self.window -= size
        last = self.ended and not self.pending
        if size or last:
            out[at] = pack_head(size << 8 | DATA, _END if last else 0, self.id)
        return size

    @property
    def drained(self) -> bool:
        """True if nothing waits to be sent."""
        return not self.pending and not self._head

    def sendable(self, connection_window: int) -> bool:
        """Return True if flow control permits sending a frame of this stream now."""
        return bool(self._head) or not self.pending or (self.window > 0 and connection_window > 0)
