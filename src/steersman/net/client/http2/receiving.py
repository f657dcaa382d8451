"""The receiving half of an HTTP/2 connection to another server: frames, and what each of them says.

What another server sends is bounded: a frame, the fields of a head, frames that carry nothing, bytes that nobody reads.
"""

from __future__ import annotations

import asyncio
from typing import Final

from steersman.net.client.answer import BadAnswer
from steersman.net.client.dial import Received
from steersman.net.client.http1 import MAX_FIELDS, MAX_HEAD_BYTES, MAX_INTERIM
from steersman.net.client.http2.answer import Http2Answer, NotProcessed
from steersman.net.http1.head import quoted
from steersman.net.http2 import frames, hpack
from steersman.net.http2.blocks import FieldDecoder, TooLarge
from steersman.net.http2.flood import TokenBucket
from steersman.net.http2.frames import ConnectionFault, ErrorCode, Setting, StreamFault

_CONTROL_BURST: Final = 2000
_CONTROL_RATE: Final = 200
_UPDATE_BURST: Final = 50_000
_UPDATE_RATE: Final = 20_000
"""WINDOW_UPDATE: a server may send two for each piece that it reads."""
_MOST_STREAMS: Final = 1000
"""Streams that may be open if the other side sets no bound."""
_DEFAULT_TABLE: Final = 4096
_MOST_DEBUG_BYTES: Final = 1024


class Receiving(Received):
    """See the module. What follows of a frame is for who sends, below."""

    most_header_bytes = MAX_HEAD_BYTES

    def __init__(self, now: float) -> None:
        super().__init__()
        self.streams: dict[int, Http2Answer] = {}
        self.window = frames.DEFAULT_WINDOW
        """Bytes that may be sent."""
        self.peer_window = frames.DEFAULT_WINDOW
        """The same for a new stream."""
        self.recv_window = frames.DEFAULT_WINDOW
        self.unacknowledged = 0
        self.max_frame = frames.DEFAULT_FRAME_SIZE
        self.last_read = now
        self.is_over = False
        self.is_leaving = False
        """No request is sent any more."""
        self._partial = b""
        self._has_settings = False
        self._table_update_due = False
        self._decoder = FieldDecoder(MAX_HEAD_BYTES, MAX_FIELDS)
        self._block: bytearray | None = None
        self._block_id = self._block_flags = 0
        self._goaway: tuple[int, int, bytes] | None = None
        self._control = TokenBucket(burst=_CONTROL_BURST, rate=_CONTROL_RATE, now=now)
        self._updates = TokenBucket(burst=_UPDATE_BURST, rate=_UPDATE_RATE, now=now)
        self._loop: asyncio.AbstractEventLoop

    def table_update(self) -> bytes:
        """What the next block must begin with, if anything."""
        if not self._table_update_due:
            return b""
        self._table_update_due = False
        return hpack.EMPTY_THE_TABLE

    # For who sends

    def give_back(self, size: int) -> None:
        """So many bytes have come, and the connection may carry as many more."""
        raise NotImplementedError

    def forget(self, answer: Http2Answer) -> None:
        """A stream is over."""
        raise NotImplementedError

    def reset(self, fault: StreamFault) -> None:
        """A stream breaks the rules."""
        raise NotImplementedError

    def limit_streams(self, most: int) -> None:
        """How many streams may be open."""
        raise NotImplementedError

    def pinged(self, payload: bytes, *, is_answer: bool) -> None:
        """PING has come."""
        raise NotImplementedError

    def acknowledge_settings(self) -> None:
        """SETTINGS have been taken."""
        raise NotImplementedError

    def widened(self, answer: Http2Answer | None) -> None:
        """More may be sent on a stream, or on the connection."""
        raise NotImplementedError

    def leave(self) -> None:
        """The other side takes no more requests."""
        raise NotImplementedError

    def end(self, error: BadAnswer, code: ErrorCode = ErrorCode.NO_ERROR) -> None:
        """Closes the connection; what is under way fails with this."""
        raise NotImplementedError

    # Events

    def take(self, data: bytes) -> None:
        """Takes frames."""
        if self.is_over:
            return
        self.last_read = self._loop.time()
        try:
            self._parse(self._partial + data if self._partial else data)
        except ConnectionFault as fault:
            self.end(BadAnswer(f"http2: connection error: {fault.code.name}: {fault.reason}"), fault.code)

    def eof_received(self) -> bool:
        """The other side sends no more."""
        self._lost()
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is gone."""
        self._lost()

    def _lost(self) -> None:
        if self._goaway is None:
            self.end(BadAnswer("unexpected EOF"))
            return
        last, code, debug = self._goaway
        self.end(
            BadAnswer(
                "http2: server sent GOAWAY and closed the connection; "
                f"LastStreamID={last}, ErrCode={_code(code)}, debug={quoted(debug)}"
            )
        )

    # Frames

    def _parse(self, data: bytes) -> None:
        at, end = 0, len(data)
        handlers = self._ON_FRAME
        while end - at >= frames.HEADER_LENGTH and not self.is_over:
            head, flags, stream_id = frames.unpack_head(data, at)
            length, kind = head >> 8, head & 0xFF
            if length > frames.DEFAULT_FRAME_SIZE:
                raise ConnectionFault(ErrorCode.FRAME_SIZE_ERROR, "frame too large")
            start = at + frames.HEADER_LENGTH
            following = start + length
            if following > end:
                break
            at = following
            if self._block is not None and kind != frames.CONTINUATION:
                raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "expected CONTINUATION")
            if not self._has_settings and kind != frames.SETTINGS:
                raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "received another frame before SETTINGS")
            if kind >= len(handlers):
                self._spend_control()
                continue
            try:
                handlers[kind](self, flags, stream_id & frames.MAX_WINDOW, data[start:following])
            except StreamFault as fault:
                self._spend_control()
                self.reset(fault)
        self._partial = data[at:] if at < end and not self.is_over else b""

    def _on_data(self, flags: int, stream_id: int, payload: bytes) -> None:
        size = len(payload)
        self._check_known(stream_id)
        if size > self.recv_window:
            raise ConnectionFault(ErrorCode.FLOW_CONTROL_ERROR, "connection window exceeded")
        self.recv_window -= size
        self.give_back(size)  # what nobody reads is bounded by the window of its stream
        data = frames.unpadded(flags, payload) if flags & frames.PADDED else payload
        answer = self.streams.get(stream_id)
        if answer is None or answer.is_received:
            self._spend_control()
            if answer is not None:
                raise StreamFault(stream_id, ErrorCode.STREAM_CLOSED, "DATA after END_STREAM")
            return
        if size > answer.recv_window:
            raise StreamFault(stream_id, ErrorCode.FLOW_CONTROL_ERROR, "stream window exceeded")
        answer.recv_window -= size
        answer.unacknowledged += size - len(data)
        if data:
            answer.take_data(data)
        elif not flags & frames.END_STREAM:
            self._spend_control()
        if flags & frames.END_STREAM:
            self._ended(answer)

    def _ended(self, answer: Http2Answer) -> None:
        answer.take_end()
        if answer.is_sent:
            self.forget(answer)

    def _check_known(self, stream_id: int) -> None:
        """Raises ConnectionFault for a stream that nobody has opened."""
        if not stream_id & 1 or stream_id >= self.next_id:
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "a frame of an idle stream")

    next_id = 1
    """Of the next stream."""

    def _on_headers(self, flags: int, stream_id: int, payload: bytes) -> None:
        self._check_known(stream_id)
        block = frames.unpadded(flags, payload) if flags & frames.PADDED else payload
        if flags & frames.HAS_PRIORITY:
            if len(block) < 5:
                raise ConnectionFault(ErrorCode.FRAME_SIZE_ERROR, "HEADERS too short")
            block = block[5:]
        if flags & frames.END_HEADERS:
            self._on_block(flags, stream_id, block)
            return
        self._block = bytearray(block)
        self._block_id, self._block_flags = stream_id, flags

    def _on_continuation(self, flags: int, stream_id: int, payload: bytes) -> None:
        block = self._block
        if block is None or stream_id != self._block_id:
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "unexpected CONTINUATION")
        block += payload
        if len(block) > MAX_HEAD_BYTES:
            raise ConnectionFault(ErrorCode.ENHANCE_YOUR_CALM, "response header list larger than advertised limit")
        if len(payload) < 256:
            self._spend_control()
        if flags & frames.END_HEADERS:
            self._block = None
            self._on_block(self._block_flags, stream_id, bytes(block))

    def _on_block(self, flags: int, stream_id: int, block: bytes) -> None:
        """A complete header block: it must be decoded whatever becomes of it, for the sake of the table."""
        try:
            fields = self._decoder.decode(block)
        except TooLarge:
            raise ConnectionFault(
                ErrorCode.ENHANCE_YOUR_CALM, "response header list larger than advertised limit"
            ) from None
        answer = self.streams.get(stream_id)
        if answer is None:
            self._spend_control()
            return
        ends = bool(flags & frames.END_STREAM)
        if answer.is_received:
            raise StreamFault(stream_id, ErrorCode.PROTOCOL_ERROR, "protocol error: headers after END_STREAM")
        if answer.has_head:
            if not ends:
                raise StreamFault(stream_id, ErrorCode.PROTOCOL_ERROR, "trailers without END_STREAM")
            answer.take_trailers(fields)
            self._ended(answer)
            return
        if self._decoder.is_over(fields):
            raise StreamFault(stream_id, ErrorCode.PROTOCOL_ERROR, "response header list larger than advertised limit")
        answer.take_head(fields, ends=ends)
        if answer.interim > MAX_INTERIM:
            raise StreamFault(stream_id, ErrorCode.PROTOCOL_ERROR, "too many 1xx informational responses")
        if ends and answer.is_sent:
            self.forget(answer)

    def _on_priority(self, _flags: int, _stream_id: int, _payload: bytes) -> None:
        self._spend_control()

    def _on_rst_stream(self, _flags: int, stream_id: int, payload: bytes) -> None:
        if len(payload) != 4:
            raise ConnectionFault(ErrorCode.FRAME_SIZE_ERROR, "RST_STREAM of wrong length")
        self._check_known(stream_id)
        answer = self.streams.get(stream_id)
        if answer is None:
            self._spend_control()
            return
        code = int.from_bytes(payload)
        text = f"stream error: stream ID {stream_id}; {_code(code)}; received from peer"
        is_unread = code in (ErrorCode.REFUSED_STREAM, ErrorCode.PROTOCOL_ERROR)
        answer.fail(NotProcessed(text) if is_unread else BadAnswer(text))
        self.forget(answer)

    def _on_settings(self, flags: int, stream_id: int, payload: bytes) -> None:
        if stream_id:
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "SETTINGS on a stream")
        if len(payload) % 6 or (flags & frames.ACK and payload):
            raise ConnectionFault(ErrorCode.FRAME_SIZE_ERROR, "SETTINGS of wrong length")
        if flags & frames.ACK:
            if not self._has_settings:
                raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "expected SETTINGS")
            self._spend_control()
            return
        self._spend_control()
        if len(payload) > 6 * 100:
            raise ConnectionFault(ErrorCode.ENHANCE_YOUR_CALM, "too many settings")
        found = frames.parse_settings(payload)
        if not self._has_settings and not any(key == Setting.MAX_CONCURRENT_STREAMS for key, _ in found):
            self.limit_streams(_MOST_STREAMS)
        self._has_settings = True
        for key, value in dict(found).items():  # the last one of a kind counts
            self._set(key, value)
        self.acknowledge_settings()

    def _set(self, key: int, value: int) -> None:
        if key == Setting.INITIAL_WINDOW_SIZE:
            if value > frames.MAX_WINDOW:
                raise ConnectionFault(ErrorCode.FLOW_CONTROL_ERROR, "initial window too large")
            change, self.peer_window = value - self.peer_window, value
            for answer in list(self.streams.values()):
                answer.window += change
                if answer.window > frames.MAX_WINDOW:
                    raise ConnectionFault(ErrorCode.FLOW_CONTROL_ERROR, "window too large")
                self.widened(answer)
        elif key == Setting.MAX_FRAME_SIZE:
            if not frames.DEFAULT_FRAME_SIZE <= value < 1 << 24:
                raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "invalid maximum frame size")
        elif key == Setting.HEADER_TABLE_SIZE:
            self._table_update_due = self._table_update_due or value < _DEFAULT_TABLE
        elif key == Setting.MAX_CONCURRENT_STREAMS:
            self.limit_streams(value)

    def _on_push_promise(self, _flags: int, _stream_id: int, _payload: bytes) -> None:
        raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "nobody has asked for a push")

    def _on_ping(self, flags: int, stream_id: int, payload: bytes) -> None:
        if stream_id:
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "PING on a stream")
        if len(payload) != 8:
            raise ConnectionFault(ErrorCode.FRAME_SIZE_ERROR, "PING of wrong length")
        self._spend_control()
        self.pinged(payload, is_answer=bool(flags & frames.ACK))

    def _on_goaway(self, _flags: int, stream_id: int, payload: bytes) -> None:
        """Streams after the last one that it names may be sent again elsewhere, the others are waited for."""
        if stream_id:
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "GOAWAY on a stream")
        if len(payload) < 8:
            raise ConnectionFault(ErrorCode.FRAME_SIZE_ERROR, "GOAWAY too short")
        self._spend_control()
        last, code = int.from_bytes(payload[:4]) & frames.MAX_WINDOW, int.from_bytes(payload[4:8])
        before = self._goaway
        if before is not None and before[1]:
            code = before[1]  # what was wrong first
        self._goaway = last, code, payload[8 : 8 + _MOST_DEBUG_BYTES]
        for each in [answer for answer in self.streams.values() if answer.id > last]:
            if each.id == 1 and code:
                each.fail(BadAnswer(f"http2: Transport received GOAWAY from server ErrCode:{_code(code)}"))
            else:
                each.fail(NotProcessed("http2: Transport received Server's graceful shutdown GOAWAY"))
            if not each.is_forgotten:
                self.forget(each)
        if not self.is_over:
            self.is_leaving = True
            self.leave()

    def _on_window_update(self, _flags: int, stream_id: int, payload: bytes) -> None:
        if len(payload) != 4:
            raise ConnectionFault(ErrorCode.FRAME_SIZE_ERROR, "WINDOW_UPDATE of wrong length")
        if not self._updates.take(self._loop.time()):
            raise ConnectionFault(ErrorCode.ENHANCE_YOUR_CALM, "too many updates of windows")
        increment = int.from_bytes(payload) & frames.MAX_WINDOW
        if not stream_id:
            if not increment:
                raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "WINDOW_UPDATE of 0")
            self.window += increment
            if self.window > frames.MAX_WINDOW:
                raise ConnectionFault(ErrorCode.FLOW_CONTROL_ERROR, "connection window too large")
            self.widened(None)
            return
        self._check_known(stream_id)
        answer = self.streams.get(stream_id)
        if answer is None:
            return
        if not increment:
            raise StreamFault(stream_id, ErrorCode.PROTOCOL_ERROR, "WINDOW_UPDATE of 0")
        answer.window += increment
        if answer.window > frames.MAX_WINDOW:
            raise StreamFault(stream_id, ErrorCode.FLOW_CONTROL_ERROR, "window too large")
        self.widened(answer)

    _ON_FRAME: Final = (
        _on_data,
        _on_headers,
        _on_priority,
        _on_rst_stream,
        _on_settings,
        _on_push_promise,
        _on_ping,
        _on_goaway,
        _on_window_update,
        _on_continuation,
    )
    """By type."""

    def _spend_control(self) -> None:
        """Counts a frame that asks for work and carries nothing. Raises ConnectionFault when there are too many."""
        if not self._control.take(self._loop.time()):
            raise ConnectionFault(ErrorCode.ENHANCE_YOUR_CALM, "too many control frames")


def _code(code: int) -> str:
    """An error's name as Go writes it."""
    try:
        return ErrorCode(code).name
    except ValueError:
        return f"unknown error code 0x{code:x}"
