"""HTTP/2 server connections (RFC 9113): requests, their handlers, and the end of a connection."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import Any, Final, cast

from steersman.net.ascii import lower
from steersman.net.body import EMPTY_BODY, IncomingBody
from steersman.net.connection import BATCH, LONGEST_AT_THE_END, Core
from steersman.net.http2 import frames, hpack
from steersman.net.http2.blocks import BlockReader, TooLarge
from steersman.net.http2.flood import FEW, FrameBudget
from steersman.net.http2.flow_control import ReceiveWindow
from steersman.net.http2.frames import ConnectionFault, ErrorCode, Setting, StreamFault
from steersman.net.http2.output import Http2Output
from steersman.net.http2.request import Head
from steersman.net.http2.stream import Http2Stream
from steersman.net.message import Headers, Request, Response
from steersman.net.time_slices import SlicedQueue

log = logging.getLogger("steersman.net")

_MAX_REMEMBERED_RESETS: Final = 1000
_REST_OF_BODY: Final = 0.02
"""Seconds allowed for the rest of a request's body after the whole response, before the stream is reset."""
_LAST_PING: Final = b"last one"
"""Payload of a PING whose acknowledgement shows that the client has read everything sent before, GOAWAY included."""
_TOO_LARGE: Final = b"<h1>HTTP Error 431</h1><p>Request Header Field(s) Too Large</p>"


class Http2Connection(Http2Output):
    """An HTTP/2 connection of a client: starts handlers in its time slices, manages streams, and shuts down
    gracefully.
    """

    __slots__ = (
        "_answered_early",
        "_blocks",
        "_draining",
        "_handlers",
        "_idle_since",
        "_last_id",
        "_limits",
        "_new",
        "_preface_seen",
        "_reset_by_us",
        "_resets",
        "_stream_window",
    )
    protocol = "h2"
    header_too_large = "header list too large"

    def __init__(self, core: Core) -> None:
        super().__init__(core)
        self._limits = core.limits
        self._preface_seen = False
        self._last_id = 0
        self._new: deque[Http2Stream] = deque()
        """Streams whose handlers are to be started."""
        self._reset_by_us: dict[int, None] = {}
        self._answered_early: dict[int, None] = {}
        """Ids of streams with a complete response that are reset unless the rest of the request's body arrives soon."""
        self._blocks = BlockReader(core.limits)
        limits = core.limits
        self._stream_window = (min(limits.first_window, limits.stream_window), limits.stream_window // 2)
        """Size and step of the receive window of a new stream."""
        self._draining = False
        self._handlers = 0
        self._idle_since = core.loop.time()
        self._resets = FrameBudget("resets", FEW, core.loop.time)

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send the server's preface."""
        super().connection_made(transport)
        self.out.append(
            frames.settings(
                {
                    Setting.MAX_CONCURRENT_STREAMS: self._limits.max_streams,
                    Setting.INITIAL_WINDOW_SIZE: min(self._limits.first_window, self._limits.stream_window),
                    Setting.MAX_HEADER_LIST_SIZE: self._limits.max_header_list_bytes,
                }
            )
        )
        if self._limits.connection_window > frames.DEFAULT_WINDOW:
            self.out.append(frames.window_update(0, self._limits.connection_window - frames.DEFAULT_WINDOW))
        self.flush()
        if self.core.draining:
            self.shut_down()

    def dropped(self) -> None:
        """Cut off what is in flight, as the client is gone."""
        self._drop_streams("the client has gone")
        self.out.clear()
        self._unsent.clear()
        self.ready.clear()
        self._stalled.clear()

    def eof_received(self) -> bool:
        """End the connection: the client sends no more, so it cannot acknowledge frames either."""
        self.process_postponed()
        return False

    def data_received(self, data: bytes) -> None:
        """Process frames, start the handlers of complete heads, and write the resulting output."""
        if self._deaf:
            return
        if self.later:
            self._partial += data
            return
        queue = self.core.input_queue
        if queue.is_iteration_over():
            self._partial += data
            self._put_off = True
            self._continue_later(self.core.postponed)
            return
        queue.start_slice()
        self._run(self._partial + data if self._partial else data)

    def process_postponed(self) -> None:
        """Process postponed input, unless that has happened already."""
        if self._put_off:
            self._put_off = False
            self.core.input_queue.start_slice()
            self.go_on()

    def go_on(self) -> None:
        """Process the input that was left over."""
        self.later = False
        if not self._lost and not self._deaf:
            self._start_new()
            self._run(self._partial)
        if not self.later and not self._lost and not self._transport.is_closing():
            self._transport.resume_reading()  # also after shutdown: closing on unread input would lose the last answer

    def _run(self, data: bytes) -> None:
        """Process frames for at most one time slice."""
        self.scheduled = True  # defers output of this method to the flush() at its end
        try:
            if self._preface_seen:
                self._parse(data)
            else:
                self._read_preface(data)
        except ConnectionFault as fault:
            self._fail(fault.code, fault.reason)
        if self._new:
            self._start_new()
        self.flush()

    def _start_new(self) -> None:
        """Start handlers for at most one time slice."""
        new, queue = self._new, self.core.input_queue
        while new:
            if self.leaving and self._keeps_enough():
                return  # continues when one of the waiting answers has been sent
            stream = new.popleft()
            if not stream.closed:
                self._start(stream)
                if new and queue.is_slice_over():
                    self._continue_later(self.core.input_queue)
                    return

    def _keeps_enough(self) -> bool:
        """Return True if the limit of complete answers that wait for the client to read them is reached."""
        kept = free = 0
        for stream in self.leaving:
            kept += stream.buffered
            if stream.request.on_request_end is None:
                free += stream.buffered
        return kept > self._limits.max_unsent or free > self._limits.max_unsent_free

    def _continue_later(self, queue: SlicedQueue[Any]) -> None:
        if not self.later:
            self.later = True
            queue.enqueue(self)
            if not self._lost and not self._transport.is_closing():
                self._transport.pause_reading()

    # Streams

    def _start(self, stream: Http2Stream) -> None:
        if stream.request.path == "*" and stream.request.method == "OPTIONS":
            stream.respond(Response(200))  # a request to the server as a whole, answered as in Go
            return
        task = self.core.start(stream, self._handler_ended)
        if task is not None:
            self._handlers += 1
            stream.task = task
            if stream.cancelled:
                task.cancel()

    def _handler_ended(self, task: asyncio.Task[None]) -> None:
        self._handlers -= 1
        self.core.ended(task)

    def half_closed(self, stream: Http2Stream) -> None:
        """End a stream whose END_STREAM has been queued; reset it if the rest of its request's body does not arrive
        soon.

        A body that is complete by then needs no reset; curl drops a response that a reset overtakes.
        """
        if not stream.remote_closed:
            self._remember_reset(stream.id)
            if not self._answered_early:
                self.core.loop.call_later(_REST_OF_BODY, self._reset_answered)
            self._answered_early[stream.id] = None
        self._forget(stream, None)

    def _reset_answered(self) -> None:
        """Reset streams with a complete response whose clients are still sending bodies."""
        if not self._lost and not self._deaf:
            self.out.extend(frames.rst_stream(stream_id, ErrorCode.NO_ERROR) for stream_id in self._answered_early)
            self.schedule()
        self._answered_early.clear()

    def reset(self, stream: Http2Stream, code: int) -> None:
        """Reset a stream."""
        if stream.closed:
            return
        self.out.append(frames.rst_stream(stream.id, code))
        self._remember_reset(stream.id)
        self.schedule()
        self._forget(stream, "the response was aborted")

    def _remember_reset(self, stream_id: int) -> None:
        """Remember a stream reset by this side: its frames may still be on their way and are no error."""
        self._reset_by_us[stream_id] = None
        if len(self._reset_by_us) > _MAX_REMEMBERED_RESETS:
            del self._reset_by_us[next(iter(self._reset_by_us))]

    def _forget(self, stream: Http2Stream, reason: str | None) -> None:
        del self.streams[stream.id]
        self.core.counters.streams -= 1
        if self.leaving and self.leaving.pop(stream, None) is not None and self._new and not self.later:
            self.later = True
            self.core.input_queue.enqueue(self)
        if unread := stream.close(reason):
            self.give_back(unread)
        if not self.streams:
            self._idle_since = self.core.loop.time()
            if self.piece != BATCH:
                self.sends_answers()
            if self._draining:
                self._close_when_read()

    def _drop_streams(self, reason: str) -> None:
        streams = list(self.streams.values())
        self.streams.clear()
        self.leaving.clear()
        self.core.counters.streams -= len(streams)
        for stream in streams:
            stream.close(reason)

    # Receive windows

    def open_window(self, stream: Http2Stream) -> None:
        """Open the full stream window, as the handler waits for more of a body."""
        self._continue(stream)
        more = self._limits.stream_window - self._limits.first_window
        if more > 0 and not stream.remote_closed and not stream.closed:
            stream.recv.left += more
            self.out.append(frames.window_update(stream.id, more))
            self.schedule()

    def _continue(self, stream: Http2Stream) -> None:
        """Send 100 Continue if the client holds its body back."""
        if stream.wants_continue and not stream.responded and not stream.closed and not stream.received:
            stream.wants_continue = False
            block = self.prefix(hpack.STATUSES[100])
            self.out.append(frames.headers(stream.id, block, 0, self.max_frame))
            self.schedule()

    # Handlers of frames

    def _read_preface(self, data: bytes) -> None:
        preface = frames.PREFACE
        if len(data) < len(preface) and preface.startswith(data):
            self._partial = data
            return
        if not data.startswith(preface):
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "bad preface")
        self._preface_seen = True
        self._parse(data, len(preface))

    def stops(self) -> bool:
        if not self.core.input_queue.is_slice_over():
            return False
        self._continue_later(self.core.input_queue)
        return True

    def is_idle(self, stream_id: int) -> bool:
        return stream_id > self._last_id and not self._draining

    def ignores_data(self, stream_id: int, *, ends: bool) -> bool:
        if stream_id not in self._reset_by_us and stream_id <= self._last_id:
            return False
        if ends:
            self._answered_early.pop(stream_id, None)
        return True

    def on_data(self, stream: Http2Stream, data: bytes, size: int, *, ends: bool) -> None:
        body: Any = stream.body
        used = len(data)
        if used < size:
            stream.consumed(size - used)
        received = stream.received = stream.received + used
        expected = body.expected
        if expected is not None and received != expected and (ends or received > expected):
            self.give_back(used)
            raise StreamFault(stream.id, ErrorCode.PROTOCOL_ERROR, "body and content-length differ")
        if used:
            body.feed(data)
        if ends:
            stream.remote_closed = True
            body.finish()

    def on_header_block(self, stream_id: int, block: bytes, *, ends: bool) -> None:
        blocks = self._blocks
        head = blocks.cached_head(block)
        if head is None or stream_id <= self._last_id:
            try:
                fields = blocks.decode(block)
            except TooLarge:
                if stream_id > self._last_id:
                    self._refuse_head(stream_id, ends=ends)
                raise ConnectionFault(ErrorCode.ENHANCE_YOUR_CALM, self.header_too_large) from None
            if stream_id <= self._last_id:
                self._on_trailers(stream_id, ends=ends)
                return
            if self._draining:
                return
            self._last_id = stream_id
            self._check_room(stream_id)
            if blocks.is_over(fields):
                self._refuse_head(stream_id, ends=ends)
                return
            head = blocks.head(stream_id, block, fields)
        self._open(stream_id, head, ends)

    def _on_trailers(self, stream_id: int, *, ends: bool) -> None:
        stream = self.streams.get(stream_id)
        if stream is None:
            if stream_id in self._reset_by_us:
                self._answered_early.pop(stream_id, None)
                return
            raise ConnectionFault(ErrorCode.STREAM_CLOSED, "HEADERS on a closed stream")
        if stream.remote_closed:
            raise StreamFault(stream_id, ErrorCode.STREAM_CLOSED, "HEADERS on a half-closed stream")
        if not ends:
            raise StreamFault(stream_id, ErrorCode.PROTOCOL_ERROR, "trailers without END_STREAM")
        body = cast(IncomingBody, stream.body)
        if body.expected is not None and stream.received != body.expected:
            raise StreamFault(stream_id, ErrorCode.PROTOCOL_ERROR, "body and content-length differ")
        stream.remote_closed = True
        body.finish()

    def _open(self, stream_id: int, head: Head, ends: bool) -> None:
        """Open the stream of a new request; its handler starts when all received frames have been processed."""
        if self._draining:
            return
        self._last_id = stream_id
        self._check_room(stream_id)
        if ends and head.content_length:
            raise StreamFault(stream_id, ErrorCode.PROTOCOL_ERROR, "body and content-length differ")
        stream = Http2Stream(self, stream_id, self.peer_window, remote_closed=ends)
        if not ends:
            stream.body = IncomingBody(stream.consumed, stream.open_window, head.content_length)
            stream.recv = ReceiveWindow(*self._stream_window)
            expected = head.headers.get("expect")
            stream.wants_continue = expected is not None and lower(expected) == "100-continue"
        headers = Headers(head.headers)
        headers.sent = head.headers.sent
        stream.request = Request(
            head.method, head.path, head.query, headers, stream.body, self._peer, "2", head.scheme, head.host
        )
        self.streams[stream_id] = stream
        self.core.counters.streams += 1
        self._new.append(stream)

    def _check_room(self, stream_id: int) -> None:
        """Raise StreamFault if the limit of open requests is reached.

        The check comes before the parsing of the head, but after the decoding of its block, which updates the table.
        """
        most = self._limits.max_streams
        if len(self.streams) >= most or self._handlers >= 2 * most:
            raise StreamFault(stream_id, ErrorCode.REFUSED_STREAM, "too many streams")

    def _refuse_head(self, stream_id: int, *, ends: bool) -> None:
        """Answer a head over the limit with 431, as Go does."""
        self._last_id = stream_id
        stream = Http2Stream(self, stream_id, self.peer_window, remote_closed=ends)
        stream.request = Request("GET", "", "", Headers.from_pairs(()), EMPTY_BODY, self._peer, "2")
        self.streams[stream_id] = stream
        self.core.counters.streams += 1
        stream.respond(Response(431, [("content-type", "text/html; charset=utf-8")], _TOO_LARGE))

    def on_reset(self, stream_id: int, code: int) -> None:
        self._resets.spend()
        stream = self.streams.get(stream_id)
        if stream is not None:
            self._forget(stream, "the client has reset the stream")
        self._answered_early.pop(stream_id, None)
        self._reset_by_us.pop(stream_id, None)  # frames that arrive now were sent after both resets

    def on_ping(self, payload: bytes, *, is_answer: bool) -> None:
        if not is_answer:
            self._answer_ping(payload)
        elif payload == _LAST_PING and self._closing_since is not None:
            self.core.loop.call_soon(self._close)

    def on_goaway(self, payload: bytes) -> None:
        self.shut_down()

    # The end

    def fail_stream(self, fault: StreamFault) -> None:
        self._resets.spend()  # a client that provokes resets is bounded like one that sends them
        stream = self.streams.get(fault.stream_id)
        if stream is not None:
            self.reset(stream, fault.code)
        else:
            self.out.append(frames.rst_stream(fault.stream_id, fault.code))
            self._remember_reset(fault.stream_id)

    def _fail(self, code: ErrorCode, reason: str) -> None:
        """Send GOAWAY for a protocol violation, ignore further input and cut off everything in flight."""
        if log.isEnabledFor(logging.DEBUG):
            log.debug("closing HTTP/2 connection of %s: %s (%s)", self._peer.host, reason, code.name)
        self._deaf = True
        self._new.clear()
        self._partial = b""
        self.out.append(frames.goaway(self._last_id, code, reason))
        self._drop_streams("the client broke the protocol")
        self.flush()
        self._close_soon()

    def send_elsewhere(self) -> None:
        """Send GOAWAY, which says which requests are answered. See Connection."""
        self.shut_down()

    def shut_down(self) -> None:
        """Send GOAWAY without an error: streams up to the last one finish, newer ones need another connection."""
        if self._draining or self._lost:
            return
        self._draining = True
        self.out.append(frames.goaway(self._last_id, ErrorCode.NO_ERROR))
        self.schedule()
        if not self.streams:
            self._close_when_read()

    def _close_when_read(self) -> None:
        """Close when the client has read everything, which its answer to a PING shows; in any case after a while."""
        if self._closing_since is None:
            self.out.append(frames.frame(frames.PING, 0, 0, _LAST_PING))
            self.schedule()
            self._close_soon()

    def _close_soon(self) -> None:
        """Close after some time for the client to read the last frames: closing on unread input resets the
        connection.
        """
        if self._closing_since is None:
            self._closing_since = self.core.loop.time()
            self.core.loop.call_later(self._limits.linger, self._close)

    def _check_waits(self, now: float) -> None:
        limits = self._limits
        longest_head = limits.header_timeout
        if self.core.draining:
            longest_head = min(longest_head, LONGEST_AT_THE_END)
        if not self._settings_seen:
            if now - self._idle_since > limits.header_timeout:
                self.abort()
        elif self._block is not None and now - self._block.since > longest_head:
            self._fail(ErrorCode.ENHANCE_YOUR_CALM, "header block not completed")
        elif not self.streams and now - self._idle_since > limits.idle_timeout:
            self.shut_down()
        elif self.leaving:
            for stream in [each for each, since in self.leaving.items() if now - since > limits.send_timeout]:
                self.reset(stream, ErrorCode.INTERNAL_ERROR)
