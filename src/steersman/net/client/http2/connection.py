"""HTTP/2 connections to other servers: requests, their answers, and health checks by PING.

Behaves as golang.org/x/net/http2 (Transport) does with the settings of k8s.io/apimachinery `util/net`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Final

from steersman.net.ascii import lower
from steersman.net.client.answer import BadAnswer
from steersman.net.client.http1 import MAX_FIELDS, MAX_HEAD_BYTES, MAX_INTERIM
from steersman.net.client.http2.answer import WINDOW, ClientStream, Http2Answer, NotProcessed, StreamReset
from steersman.net.client.http2.health import Health, health_of_environment
from steersman.net.client.http2.sending import CONNECTION_WINDOW, Sending
from steersman.net.fields import FieldCache
from steersman.net.http1.head import quoted
from steersman.net.http2 import frames, hpack
from steersman.net.http2.blocks import FieldDecoder, TooLarge
from steersman.net.http2.flood import MANY, FrameBudget
from steersman.net.http2.frames import ConnectionFault, ErrorCode, Setting, StreamFault
from steersman.net.upgrade import UpgradedConnection, hang_up

IDLE_SECONDS: Final = 90.0
MOST_STREAMS: Final = 1000
"""Limit of open streams if the other side sets none."""
_WRITE_HIGH_WATER: Final = 256 << 10
_FEW_STREAMS: Final = 100
"""Limit of open streams before the other side's settings have arrived."""
_ONLY_HTTP1: Final = frozenset({"host", "connection", "proxy-connection", "keep-alive", "transfer-encoding", "upgrade"})
_METHODS: Final = {"GET": b"\x82", "POST": b"\x83"}
_METHOD_NAME: Final = b"\x02"
_SCHEME_HTTPS: Final = b"\x87"
_PATH_NAME: Final = b"\x04"
_AUTHORITY_NAME: Final = b"\x01"
_PING: Final = b"still on"
_RESET_PING: Final = b"was that"
_BANDWIDTH_PING: Final = bytes((2, 4, 16, 16, 9, 14, 7, 7))
"""PING payload by which a server of grpc-go (etcd) estimates bandwidth. The server sends another such PING with the
next request as soon as the last one is answered.
"""
BANDWIDTH_SECONDS: Final = 0.1
"""Seconds before such a PING is answered. Without the delay, both sides would send additional packets with each
request.
"""
_MOST_DEBUG_BYTES: Final = 1024


_fields: Final = FieldCache(hpack.field)


class Http2Connection(Sending):
    """A connection shared by concurrent requests; it takes over an UpgradedConnection.

    `when_gone` is called once the connection accepts no more requests. `on_capacity` is called when the connection
    accepts a request again after `filled`.
    """

    header_too_large = "response header list larger than advertised limit"

    def __init__(
        self,
        connection: UpgradedConnection,
        when_gone: Callable[[Http2Connection], None] | None = None,
        on_capacity: Callable[[Http2Connection], None] | None = None,
        health: Health | None = None,
    ) -> None:
        loop = asyncio.get_running_loop()
        super().__init__(loop)
        self._on_capacity = on_capacity
        self._when_gone = when_gone
        self._health = health or health_of_environment()
        self._decoder = FieldDecoder(MAX_HEAD_BYTES, MAX_FIELDS)
        self._updates = FrameBudget("updates of windows", MANY, loop.time)
        self._most_streams = _FEW_STREAMS
        self._pending_resets = 0
        """Streams that this side has reset and whose reset the other side has not confirmed."""
        self._is_full = False
        """True while somebody waits until the connection accepts another request."""
        self._waiting: list[asyncio.Future[None]] = []
        self.is_leaving = False
        """True once no more requests are sent."""
        self._goaway: tuple[int, int, bytes] | None = None
        self._pinged: float | None = None
        """Time of the unanswered health check PING, None without one."""
        self._measured: asyncio.TimerHandle | None = None
        """Timer of the delayed answer to a bandwidth PING."""
        self._idle_since = loop.time()
        self.last_read = self._idle_since
        """Time at which bytes last arrived."""
        self._timer: asyncio.TimerHandle | None = None
        self.out.append(
            frames.PREFACE
            + frames.settings(
                {
                    frames.Setting.ENABLE_PUSH: 0,
                    frames.Setting.INITIAL_WINDOW_SIZE: WINDOW,
                    frames.Setting.MAX_HEADER_LIST_SIZE: MAX_HEAD_BYTES,
                }
            )
            + frames.window_update(0, CONNECTION_WINDOW - frames.DEFAULT_WINDOW)
        )
        self._transport, self._source, came = connection.hand_over(self)
        self._transport.set_write_buffer_limits(high=_WRITE_HIGH_WATER)
        self._flush()
        self._tick()
        for each in came:
            self.data_received(each)

    # Requests

    @property
    def has_capacity(self) -> bool:
        """True if one more request may be sent."""
        return (
            not self.is_over
            and not self.is_leaving
            and len(self.streams) + self._pending_resets < self._most_streams
            and self.next_id < frames.MAX_WINDOW
        )

    @property
    def accepts_nothing(self) -> bool:
        """True if the other side allows no streams at all."""
        return not self._most_streams

    async def greeted(self) -> None:
        """Wait for the other side's first settings. Raises BadAnswer if the connection ends before."""
        if not self._settings_seen and not self.is_over:
            await self._change()
        if not self._settings_seen:
            raise BadAnswer("unexpected EOF")

    async def send(
        self,
        method: str,
        target: str,
        headers: Sequence[tuple[str, str]],
        body: AsyncIterator[bytes] | None = None,
        *,
        whole: bytes = b"",
    ) -> Http2Answer:
        """Send a request, wait for the head of its answer and return the answer.

        Raises BadAnswer, NotProcessed, and ValueError for text that must not stand in a head.
        """
        if not self.has_capacity:
            raise NotProcessed("http2: client conn not usable")
        block = _head_block(method, target, headers)
        answer = Http2Answer(self, self.next_id, self.peer_window, head_only=method == "HEAD")
        self.begin(answer, block, body, whole)
        try:
            await answer.begun()
        except NotProcessed as error:
            error.begun = body is not None
            await answer.close()
            raise
        except BaseException:
            await answer.close()
            raise
        return answer

    # Requests of streams

    def consumed(self, stream: ClientStream, size: int) -> None:
        """Return flow control credit for `size` bytes read from a stream's body. See Carrier.

        Credit of the connection is returned as bytes arrive, since unread bytes are bounded by the windows of their
        streams.
        """
        if not (self.is_over or stream.remote_closed or stream.is_forgotten):
            self.give_back_on(stream, size)

    def abandon(self, stream: ClientStream) -> None:
        """Reset a stream that nobody waits for any more. See Carrier.

        The other side may be gone. Therefore the stream counts as open until the other side answers a PING.
        """
        if stream.is_forgotten:
            return
        self.out.append(frames.rst_stream(stream.id, ErrorCode.CANCEL))
        if self._health.confirms_resets:
            if not self._pending_resets:
                self.out.append(frames.frame(frames.PING, 0, 0, _RESET_PING))
            self._pending_resets += 1
        self.schedule()
        self.forget(stream)

    def forget(self, stream: ClientStream) -> None:
        stream.is_forgotten = True
        del self.streams[stream.id]
        if not self.streams:
            self._idle_since = self._loop.time()
            if self.is_leaving:
                self.close()
                return
        self._notify_capacity()

    def _notify_capacity(self) -> None:
        if self._is_full and self.has_capacity:
            self._is_full = False
            self._wake()
            if self._on_capacity is not None:
                self._on_capacity(self)

    def _notify_end(self) -> None:
        self._wake()
        if self._when_gone is not None:
            self._when_gone(self)

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for waiter in waiting:
            if not waiter.done():
                waiter.set_result(None)

    def filled(self) -> None:
        """Request a call of `on_capacity` once the connection accepts a request again."""
        self._is_full = True

    async def wait_for_capacity(self) -> None:
        """Wait until one more request may be sent, or until the connection accepts no more requests at all."""
        if not (self.has_capacity or self.is_over or self.is_leaving):
            await self._change()

    async def _change(self) -> None:
        self._is_full = True
        waiter = self._loop.create_future()
        self._waiting.append(waiter)
        await waiter

    # Events

    def data_received(self, data: bytes) -> None:
        """Process received bytes."""
        if self.is_over:
            return
        self.last_read = self._loop.time()
        try:
            self._parse(self._partial + data if self._partial else data)
        except ConnectionFault as fault:
            self.end(BadAnswer(f"http2: connection error: {fault.code.name}: {fault.reason}"), fault.code)

    def eof_received(self) -> bool:
        """End the connection: the other side sends no more."""
        self._lost()
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """End the connection: it was lost."""
        self._lost()

    def _lost(self) -> None:
        if self._goaway is None:
            self.end(BadAnswer("unexpected EOF"))
            return
        last, code, debug = self._goaway
        self.end(
            BadAnswer(
                "http2: server sent GOAWAY and closed the connection; "
                f"LastStreamID={last}, ErrCode={frames.error_name(code)}, debug={quoted(debug)}"
            )
        )

    # Handlers of frames

    def stops(self) -> bool:
        return self.is_over

    def is_idle(self, stream_id: int) -> bool:
        return not stream_id & 1 or stream_id >= self.next_id

    def ignores_data(self, stream_id: int, *, ends: bool) -> bool:
        return True

    def on_data(self, stream: ClientStream, data: bytes, size: int, *, ends: bool) -> None:
        self.give_back(size)
        if len(data) < size:
            self.consumed(stream, size - len(data))
        if data:
            if not stream.has_head:
                raise _broken(stream.id, "received DATA before a HEADERS frame")
            stream.on_data(data)
        if ends:
            self._ended(stream)

    def _ended(self, stream: ClientStream) -> None:
        stream.on_end()
        if stream.is_sent:
            self.forget(stream)

    def on_header_block(self, stream_id: int, block: bytes, *, ends: bool) -> None:
        if self.is_idle(stream_id):
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "HEADERS on an idle stream")
        try:
            fields = self._decoder.decode(block)
        except TooLarge:
            raise ConnectionFault(ErrorCode.ENHANCE_YOUR_CALM, self.header_too_large) from None
        stream = self.streams.get(stream_id)
        if stream is None:
            self._control.spend()
            return
        if stream.remote_closed:
            raise _broken(stream_id, "headers after END_STREAM")
        if stream.has_head:
            if not ends:
                raise StreamFault(stream_id, ErrorCode.PROTOCOL_ERROR, "trailers without END_STREAM")
            stream.on_trailers(fields)
            self._ended(stream)
            return
        if self._decoder.is_over(fields):
            raise StreamFault(stream_id, ErrorCode.PROTOCOL_ERROR, self.header_too_large)
        stream.on_head(fields, ends=ends)
        if stream.interim > MAX_INTERIM:
            raise StreamFault(stream_id, ErrorCode.PROTOCOL_ERROR, "too many 1xx informational responses")
        if ends and stream.is_sent:
            self.forget(stream)

    def on_reset(self, stream_id: int, code: int) -> None:
        stream = self.streams.get(stream_id)
        if stream is None:
            self._control.spend()
            return
        text = f"stream error: stream ID {stream_id}; {frames.error_name(code)}; received from peer"
        if code in (ErrorCode.REFUSED_STREAM, ErrorCode.PROTOCOL_ERROR):
            unread = NotProcessed(text)
            unread.reset = code
            stream.fail(unread)
        else:
            stream.fail(StreamReset(text, code))
        self.forget(stream)

    def on_settings(self, settings: dict[int, int]) -> None:
        most = settings.get(Setting.MAX_CONCURRENT_STREAMS)
        if most is None and not self._settings_seen:
            most = MOST_STREAMS
        if most is not None:
            self._most_streams = most
            self._notify_capacity()

    def on_ping(self, payload: bytes, *, is_answer: bool) -> None:
        if not is_answer:
            if payload == _BANDWIDTH_PING and self._measured is None:
                self._measured = self._loop.call_later(BANDWIDTH_SECONDS, self._answer_measured)
            else:
                self._answer_ping(payload)
            return
        if payload == _PING and self._timer is not None:
            self._pinged = None
            self._timer.cancel()
            self._tick()  # restarts the read-idle time
        self._pending_resets = 0
        self._notify_capacity()

    def _answer_measured(self) -> None:
        self._measured = None
        self._answer_ping(_BANDWIDTH_PING)

    def on_goaway(self, payload: bytes) -> None:
        """Fail streams above the last processed id, which may be retried elsewhere, and wait for the others."""
        last, code = int.from_bytes(payload[:4]) & frames.MAX_WINDOW, int.from_bytes(payload[4:8])
        before = self._goaway
        if before is not None and before[1]:
            code = before[1]  # the first error is the cause
        self._goaway = last, code, payload[8 : 8 + _MOST_DEBUG_BYTES]
        for each in [stream for stream in self.streams.values() if stream.id > last]:
            if each.id == 1 and code:
                each.fail(BadAnswer(f"http2: Transport received GOAWAY from server ErrCode:{frames.error_name(code)}"))
            else:
                each.fail(NotProcessed("http2: Transport received Server's graceful shutdown GOAWAY"))
            if not each.is_forgotten:
                self.forget(each)
        if not self.is_over:
            self._leave()

    def fail_stream(self, fault: StreamFault) -> None:
        self._control.spend()
        self.out.append(frames.rst_stream(fault.stream_id, fault.code))
        self.schedule()
        stream = self.streams.get(fault.stream_id)
        if stream is not None:
            stream.fail(BadAnswer(f"stream error: stream ID {fault.stream_id}; {fault.code.name}; {fault.reason}"))
            self.forget(stream)

    # The end

    def _leave(self) -> None:
        """Accept no more requests; wait for those that the other side is processing."""
        self.is_leaving = True
        self._notify_end()
        if not self.streams:
            self.close()

    def _tick(self) -> None:
        """Close the connection after a long idle time; send a PING if nothing has arrived for long, and end the
        connection if the PING is not answered.
        """
        self._timer = None
        if self.is_over:
            return
        now, health = self._loop.time(), self._health
        due = [self._idle_since + IDLE_SECONDS] if not self.streams else []
        if health.read_idle:
            if self._pinged is None and now - self.last_read >= health.read_idle:
                self._pinged = now
                self.out.append(frames.frame(frames.PING, 0, 0, _PING))
                self.schedule()
            asked = self._pinged
            if asked is not None and now - asked >= health.ping_timeout:
                self.end(BadAnswer("http2: client connection lost"))
                return
            due.append(self.last_read + health.read_idle if asked is None else asked + health.ping_timeout)
        else:
            due.append(now + IDLE_SECONDS)
        if not self.streams and now - self._idle_since >= IDLE_SECONDS:
            self.close()
            return
        self._timer = self._loop.call_at(max(min(due), now + 0.001), self._tick)

    def shut_down(self) -> None:
        """Accept no more requests; close the connection when the running ones are answered."""
        if not self.is_leaving and not self.is_over:
            self._leave()

    def close(self) -> None:
        """Close the connection; running requests fail."""
        self.end(BadAnswer("http2: client connection force closed via ClientConn.Close"))

    def end(self, error: BadAnswer, code: ErrorCode = ErrorCode.NO_ERROR) -> None:
        """Close the connection; running requests fail with `error`. With a `code`, GOAWAY is sent first."""
        if self.is_over:
            return
        if code is not ErrorCode.NO_ERROR:
            self.out.append(frames.goaway(0, code, str(error)))
        self._flush()
        self.is_over = True
        hang_up(self._transport, self._source)
        for timer in (self._timer, self._measured):
            if timer is not None:
                timer.cancel()
        streams = list(self.streams.values())
        self.streams.clear()
        for each in streams:
            each.is_forgotten = True
            each.fail(error)
        self._starved.clear()
        self._notify_end()


def _head_block(method: str, target: str, headers: Sequence[tuple[str, str]]) -> bytes:
    """Return the encoded head of a request. Raises ValueError for control characters in target or host."""
    authority = ""
    fields = []
    for name, value in headers:
        small = lower(name)
        if small not in _ONLY_HTTP1:
            fields.append((small, value))
        elif small == "host":
            authority = value
    if not (target.isprintable() and authority.isprintable()):
        raise ValueError("a line break in a request's head")
    return b"".join(
        (
            _AUTHORITY_NAME,
            hpack.string(authority),
            _METHODS.get(method) or _METHOD_NAME + hpack.string(method),
            _PATH_NAME,
            hpack.string(target),
            _SCHEME_HTTPS,
            *_fields.encode(fields),
        )
    )


def _broken(stream_id: int, what: str) -> StreamFault:
    return StreamFault(stream_id, ErrorCode.PROTOCOL_ERROR, f"protocol error: {what}")
