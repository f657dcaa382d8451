"""HTTP/2 connections to other servers: frames both ways, windows, and whether the other side is still there.

Behaves as golang.org/x/net/http2 (Transport) does with the settings of k8s.io/apimachinery `util/net`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Final

from steersman.net.ascii import lower
from steersman.net.client.answer import BadAnswer
from steersman.net.client.http2.answer import WINDOW, Http2Answer, NotProcessed
from steersman.net.client.http2.health import Health, health_of_environment
from steersman.net.client.http2.receiving import Receiving
from steersman.net.fields import FieldCache
from steersman.net.http2 import frames, hpack
from steersman.net.http2.frames import ErrorCode, StreamFault
from steersman.net.message import BodyAborted
from steersman.net.upgrade import UpgradedConnection, hang_up

IDLE_SECONDS: Final = 90.0
CONNECTION_WINDOW: Final = 1 << 30
"""Bytes that may come on all streams: who does not read the body of one answer holds up no other."""
_WRITE_HIGH_WATER: Final = 256 << 10
_FEW_STREAMS: Final = 100
"""Streams that may be open before the other side has said how many."""
_GIVEN_BACK: Final = CONNECTION_WINDOW // 2
_ONLY_HTTP1: Final = frozenset({"host", "connection", "proxy-connection", "keep-alive", "transfer-encoding", "upgrade"})
_METHODS: Final = {"GET": b"\x82", "POST": b"\x83"}
_METHOD_NAME: Final = b"\x02"
_SCHEME_HTTPS: Final = b"\x87"
_PATH_NAME: Final = b"\x04"
_AUTHORITY_NAME: Final = b"\x01"
_PING: Final = b"still on"
_RESET_PING: Final = b"was that"
_BANDWIDTH_PING: Final = bytes((2, 4, 16, 16, 9, 14, 7, 7))
"""With this a server of grpc-go (etcd) measures how much is under way: again with each request that comes when no such
question is open..."""
BANDWIDTH_SECONDS: Final = 0.1
"""...so that it waits for its answer: at once, both sides would send and read packets beside those of each request."""


_fields: Final = FieldCache(hpack.field)


class Http2Connection(Receiving):
    """Takes the connection over. `when_room` is told each time when it can take a request again, `when_gone` when it
    never will any more."""

    def __init__(
        self,
        connection: UpgradedConnection,
        when_room: Callable[[Http2Connection], None],
        when_gone: Callable[[Http2Connection], None],
        health: Health | None = None,
    ) -> None:
        loop = asyncio.get_running_loop()
        super().__init__(loop.time())
        self._loop = loop
        self._when_room = when_room
        self._when_gone = when_gone
        self._health = health or health_of_environment()
        self._most_streams = _FEW_STREAMS
        self._pending_resets = 0
        """Streams that this side has reset, of which the other side is not known to have heard."""
        self._starved: deque[Http2Answer] = deque()
        """Those that wait for the connection's window, or until it has written what it has."""
        self._out: list[bytes] = []
        self._scheduled = False
        self._blocked = False
        self._is_full = False
        self._pinged: float | None = None
        """When the other side was asked whether it is still there."""
        self._measured: asyncio.TimerHandle | None = None
        """Answers a question for the bandwidth."""
        self._idle_since = loop.time()
        self._timer: asyncio.TimerHandle | None = None
        self._out.append(
            frames.PREFACE
            + frames.settings(
                {
                    frames.Setting.ENABLE_PUSH: 0,
                    frames.Setting.INITIAL_WINDOW_SIZE: WINDOW,
                    frames.Setting.MAX_HEADER_LIST_SIZE: self.most_header_bytes,
                }
            )
            + frames.window_update(0, CONNECTION_WINDOW - frames.DEFAULT_WINDOW)
        )
        self.recv_window = CONNECTION_WINDOW
        self._transport, self._source, came = connection.hand_over(self)
        self._transport.set_write_buffer_limits(high=_WRITE_HIGH_WATER)
        self._flush()
        self._tick()
        for each in came:
            self.take(each)

    # Requests

    @property
    def can_take(self) -> bool:
        """Whether one more request may be sent."""
        return (
            not self.is_over
            and not self.is_leaving
            and len(self.streams) + self._pending_resets < self._most_streams
            and self.next_id < frames.MAX_WINDOW
        )

    @property
    def takes_none(self) -> bool:
        """Return True if the other side has said that it takes no requests at all."""
        return not self._most_streams

    async def send(
        self,
        method: str,
        target: str,
        headers: Sequence[tuple[str, str]],
        body: AsyncIterator[bytes] | None = None,
        *,
        whole: bytes = b"",
    ) -> Http2Answer:
        """Sends a request and waits for the head of its answer.

        Raises BadAnswer, NotProcessed, and ValueError for what cannot stand in a head.
        """
        if not self.can_take:
            raise NotProcessed("http2: client conn not usable")
        block = self._head_block(method, target, headers)
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

    def begin(
        self, answer: Http2Answer, block: bytes, body: AsyncIterator[bytes] | None = None, whole: bytes = b""
    ) -> None:
        """Sends the head of a request whose `answer` is of `next_id`, and its body, which is in pieces or `whole`."""
        has_body = body is not None or bool(whole)
        self.next_id += 2
        self.streams[answer.id] = answer
        self._out.append(frames.headers(answer.id, block, 0 if has_body else frames.END_STREAM, self.max_frame))
        if not has_body:
            answer.is_sent = True
        elif whole and len(whole) <= min(answer.window, self.window, self.max_frame) and not self._blocked:
            self._send_data(answer, whole, ends=True)
        else:
            answer.sending = self._loop.create_task(self._send_body(answer, body if body is not None else _once(whole)))
        if len(self.streams) == 1:
            self._flush()  # there is nobody else whose frames could leave with these
        else:
            self.schedule()

    def _head_block(self, method: str, target: str, headers: Sequence[tuple[str, str]]) -> bytes:
        """The encoded head of a request. Raises ValueError."""
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
                self.table_update(),
                _AUTHORITY_NAME,
                hpack.string(authority),
                _METHODS.get(method) or _METHOD_NAME + hpack.string(method),
                _PATH_NAME,
                hpack.string(target),
                _SCHEME_HTTPS,
                *_fields.encode(fields),
            )
        )

    async def _send_body(self, answer: Http2Answer, body: AsyncIterator[bytes]) -> None:
        try:
            async for piece in body:
                await self._send_piece(answer, piece)
            self._send_data(answer, b"", ends=True)
            self.schedule()
        except BodyAborted as error:  # the other side must not take what has come for the whole
            answer.fail(BadAnswer(str(error)))
            self.abandon(answer)

    async def _send_piece(self, answer: Http2Answer, piece: bytes) -> None:
        at = 0
        while at < len(piece):
            while self._blocked or min(answer.window, self.window) <= 0:
                if answer.window > 0:
                    self._starved.append(answer)
                answer.room = self._loop.create_future()
                await answer.room
            size = min(answer.window, self.window, self.max_frame, len(piece) - at)
            self._send_data(answer, piece[at : at + size], ends=False)
            self.schedule()
            at += size
        self._feed_starved()

    def _send_data(self, answer: Http2Answer, data: bytes, *, ends: bool) -> None:
        size = len(data)
        answer.window -= size
        self.window -= size
        flags = frames.END_STREAM if ends else 0
        self._out.append(frames.pack_head(size << 8 | frames.DATA, flags, answer.id))
        if data:
            self._out.append(data)
        if ends:
            answer.is_sent = True
            if answer.is_received:
                self.forget(answer)

    def _feed_starved(self) -> None:
        """Lets the next one send that waits for the connection; it lets the one after it."""
        while self._starved and self.window > 0 and not self._blocked:
            answer = self._starved.popleft()
            if not answer.is_forgotten:
                answer.may_send()
                return

    # What answers ask

    def consumed(self, answer: Http2Answer, size: int) -> None:
        if self.is_over or answer.is_received or answer.is_forgotten:
            return
        answer.unacknowledged += size
        if answer.unacknowledged >= WINDOW // 2:
            answer.recv_window += answer.unacknowledged
            self._out.append(frames.window_update(answer.id, answer.unacknowledged))
            answer.unacknowledged = 0
            self.schedule()

    def give_back(self, size: int) -> None:
        self.unacknowledged += size
        if self.unacknowledged >= _GIVEN_BACK:
            self.recv_window += self.unacknowledged
            self._out.append(frames.window_update(0, self.unacknowledged))
            self.unacknowledged = 0
            self.schedule()

    def abandon(self, answer: Http2Answer) -> None:
        """Ends a stream that nobody waits for any more. As the other side may be gone, the stream counts as open until
        that is known to be there."""
        if answer.is_forgotten:
            return
        self._out.append(frames.rst_stream(answer.id, ErrorCode.CANCEL))
        if self._health.confirms_resets:
            if not self._pending_resets:
                self._out.append(frames.frame(frames.PING, 0, 0, _RESET_PING))
            self._pending_resets += 1
        self.schedule()
        self.forget(answer)

    def forget(self, answer: Http2Answer) -> None:
        answer.is_forgotten = True
        del self.streams[answer.id]
        if not self.streams:
            self._idle_since = self._loop.time()
            if self.is_leaving:
                self.close()
                return
        self._tell_of_room()

    def _tell_of_room(self) -> None:
        if self._is_full and self.can_take:
            self._is_full = False
            self._when_room(self)

    def filled(self) -> None:
        """Has `when_room` called when a request can be taken again."""
        self._is_full = True

    # What comes

    def limit_streams(self, most: int) -> None:
        self._most_streams = most
        self._tell_of_room()

    def pinged(self, payload: bytes, *, is_answer: bool) -> None:
        if not is_answer:
            if payload == _BANDWIDTH_PING and self._measured is None:
                self._measured = self._loop.call_later(BANDWIDTH_SECONDS, self._answer_measured)
            else:
                self._answer_ping(payload)
            return
        if payload == _PING and self._timer is not None:
            self._pinged = None
            self._timer.cancel()
            self._tick()  # the next silence counts from here
        self._pending_resets = 0
        self._tell_of_room()

    def _answer_measured(self) -> None:
        self._measured = None
        self._answer_ping(_BANDWIDTH_PING)

    def _answer_ping(self, payload: bytes) -> None:
        self._out.append(frames.frame(frames.PING, frames.ACK, 0, payload))
        self.schedule()

    def acknowledge_settings(self) -> None:
        self._out.append(frames.frame(frames.SETTINGS, frames.ACK, 0))
        self.schedule()

    def widened(self, answer: Http2Answer | None) -> None:
        if answer is None:
            self._feed_starved()
        elif answer.window > 0:
            answer.may_send()

    def reset(self, fault: StreamFault) -> None:
        self._out.append(frames.rst_stream(fault.stream_id, fault.code))
        self.schedule()
        answer = self.streams.get(fault.stream_id)
        if answer is not None:
            answer.fail(BadAnswer(f"stream error: stream ID {fault.stream_id}; {fault.code.name}; {fault.reason}"))
            self.forget(answer)

    def leave(self) -> None:
        """The other side takes no more requests: those that it has are waited for."""
        self._when_gone(self)
        if not self.streams:
            self.close()

    # Writing

    def schedule(self) -> None:
        """Has what is collected written soon."""
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._scheduled = False
        if self._out and not self.is_over:
            self._transport.write(b"".join(self._out))
        self._out.clear()

    def pause_writing(self) -> None:
        """The transport has enough."""
        self._blocked = True

    def resume_writing(self) -> None:
        """The transport takes more."""
        self._blocked = False
        self._feed_starved()

    # The end

    def _tick(self) -> None:
        """Closes the connection if it has been idle for long, and asks whether the other side is still there if nothing
        has come for long."""
        self._timer = None
        if self.is_over:
            return
        now, health = self._loop.time(), self._health
        due = [self._idle_since + IDLE_SECONDS] if not self.streams else []
        if health.read_idle:
            if self._pinged is None and now - self.last_read >= health.read_idle:
                self._pinged = now
                self._out.append(frames.frame(frames.PING, 0, 0, _PING))
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
        """Takes no more requests; closes when those under way are answered."""
        if not self.is_leaving and not self.is_over:
            self.is_leaving = True
            self.leave()

    def close(self) -> None:
        """Closes the connection; what is under way fails."""
        self.end(BadAnswer("http2: client connection force closed via ClientConn.Close"))

    def end(self, error: BadAnswer, code: ErrorCode = ErrorCode.NO_ERROR) -> None:
        if self.is_over:
            return
        if code is not ErrorCode.NO_ERROR:
            self._out.append(frames.goaway(0, code, str(error)))
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
        self._when_gone(self)


async def _once(whole: bytes) -> AsyncIterator[bytes]:
    yield whole
