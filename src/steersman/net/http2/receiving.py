"""The receiving half of an HTTP/2 connection (RFC 9113), for servers and clients: frames, windows, and their limits.

Frame sizes, header blocks, frames without effect and unread bytes are bounded. A server and a client implement the
methods that raise NotImplementedError here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Final, Generic, NamedTuple, Protocol, TypeVar

from steersman.net.http2 import frames, hpack
from steersman.net.http2.flood import FEW, FrameBudget
from steersman.net.http2.flow_control import ReceiveWindow
from steersman.net.http2.frames import (
    CONTINUATION,
    DEFAULT_FRAME_SIZE,
    END_STREAM,
    HEADER_LENGTH,
    MAX_WINDOW,
    PADDED,
    SETTINGS,
    ConnectionFault,
    ErrorCode,
    Setting,
    StreamFault,
    unpack_head,
)

_DEFAULT_TABLE: Final = 4096
_MOST_SETTINGS: Final = 100
_SHORT_CONTINUATION: Final = 256
"""Bytes of a CONTINUATION below which it counts as a control frame."""


class ReceivingStream(Protocol):
    """A stream, as the receiving half of its connection uses it."""

    id: int
    window: int
    """Bytes that may be sent on the stream."""
    recv: ReceiveWindow
    remote_closed: bool
    """True once END_STREAM has been received."""


S = TypeVar("S", bound=ReceivingStream)


class _OpenBlock(NamedTuple):
    """A header block whose CONTINUATION frames are incomplete."""

    stream_id: int
    flags: int
    since: float
    data: bytearray


class Receiving(Generic[S]):
    """Reader of frames, which keeps account of the windows of both directions."""

    header_too_large: ClassVar[str]
    """Error text for a header block over the limit."""
    largest_frame: ClassVar[int] = frames.DEFAULT_FRAME_SIZE
    """Limit of the payload of sent frames, in bytes, even if the other side accepts larger ones."""

    out: list[bytes]
    """Pieces for the next write."""

    def __init__(self, clock: Callable[[], float], recv: ReceiveWindow, max_block_bytes: int) -> None:
        self.streams: dict[int, S] = {}
        self.window = frames.DEFAULT_WINDOW
        """Bytes that may be sent on all streams together."""
        self.peer_window = frames.DEFAULT_WINDOW
        """Bytes that may be sent on a new stream."""
        self.recv = recv
        self.max_frame = frames.DEFAULT_FRAME_SIZE
        """Limit of the payload of sent frames, in bytes, from the other side's settings."""
        self._clock = clock
        self._max_block_bytes = max_block_bytes
        self._partial = b""
        """The beginning of an incomplete frame, or input left for a later time slice."""
        self._settings_seen = False
        self._table_update_due = False
        self._block: _OpenBlock | None = None
        self._control = FrameBudget("control frames", FEW, clock)
        self._updates: FrameBudget | None = None
        """Limit of WINDOW_UPDATE frames; None if time slices bound the work on input."""

    def prefix(self, block: bytes) -> bytes:
        """Return a header block for sending, preceded by the table size update if one is due."""
        if self._table_update_due:
            self._table_update_due = False
            return hpack.EMPTY_THE_TABLE + block
        return block

    def give_back(self, size: int) -> None:
        """Return flow control credit for the connection; it is announced once enough has accumulated."""
        if increment := self.recv.give_back(size):
            self.out.append(frames.window_update(0, increment))
            self.schedule()

    def give_back_on(self, stream: S, size: int) -> None:
        """Return flow control credit for a stream; it is announced once enough has accumulated."""
        if increment := stream.recv.give_back(size):
            self.out.append(frames.window_update(stream.id, increment))
            self.schedule()

    # Hooks of a server or a client

    def schedule(self) -> None:
        """Schedule the writing of `out`."""
        raise NotImplementedError

    def stops(self) -> bool:
        """Return True if the remaining frames have to wait for a later time slice. Called between two frames."""
        raise NotImplementedError

    def is_idle(self, stream_id: int) -> bool:
        """Return True for a stream that has not been opened; only HEADERS may arrive on it."""
        raise NotImplementedError

    def on_data(self, stream: S, data: bytes, size: int, *, ends: bool) -> None:
        """Process a piece of a body that counts for `size` bytes, padding included. Raises StreamFault."""
        raise NotImplementedError

    def ignores_data(self, stream_id: int, *, ends: bool) -> bool:
        """Return True if DATA of a closed stream may have been on its way before the end of the stream."""
        raise NotImplementedError

    def on_header_block(self, stream_id: int, block: bytes, *, ends: bool) -> None:
        """Process a complete header block. It must be decoded in every case, as it may change the table.

        Raises StreamFault and ConnectionFault.
        """
        raise NotImplementedError

    def on_reset(self, stream_id: int, code: int) -> None:
        """End a stream, if it still exists, that the other side has reset."""
        raise NotImplementedError

    def on_settings(self, settings: dict[int, int]) -> None:
        """Process settings about the connection as a whole; for the first ones, `_settings_seen` is still False."""

    def on_ping(self, payload: bytes, *, is_answer: bool) -> None:
        """Process a PING: answer it unless it is an answer."""
        raise NotImplementedError

    def on_goaway(self, payload: bytes) -> None:
        """Process a GOAWAY frame with this payload of at least 8 bytes."""
        raise NotImplementedError

    def widened(self, stream: S | None) -> None:
        """Resume sending: the window of a stream, or of the connection (None), has grown."""
        raise NotImplementedError

    def fail_stream(self, fault: StreamFault) -> None:
        """Reset a stream after a protocol violation. Raises ConnectionFault if there have been too many."""
        raise NotImplementedError

    # Frames

    def _parse(self, data: bytes, at: int = 0) -> None:
        """Process the frames in `data` from `at` on; incomplete input is stored. Raises ConnectionFault."""
        end = len(data)
        handlers = self._ON_FRAME
        while end - at >= HEADER_LENGTH:
            head, flags, stream_id = unpack_head(data, at)
            length, kind = head >> 8, head & 0xFF
            if length > DEFAULT_FRAME_SIZE:
                raise ConnectionFault(ErrorCode.FRAME_SIZE_ERROR, "frame too large")
            start = at + HEADER_LENGTH
            following = start + length
            if following > end:
                break
            at = following
            if self._block is not None and kind != CONTINUATION:
                raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "expected CONTINUATION")
            if not self._settings_seen and kind != SETTINGS:
                raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "expected SETTINGS")
            try:
                handlers[kind](self, flags, stream_id & MAX_WINDOW, data[start:following])
            except StreamFault as fault:
                self.fail_stream(fault)
            if at < end and self.stops():
                break
        self._partial = data[at:] if at < end else b""

    def _on_data(self, flags: int, stream_id: int, payload: bytes) -> None:
        size, recv = len(payload), self.recv
        if not stream_id:
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "DATA on stream 0")
        if size > recv.left:
            raise ConnectionFault(ErrorCode.FLOW_CONTROL_ERROR, "connection window exceeded")
        recv.left -= size
        data = frames.unpadded(flags, payload) if flags & PADDED else payload
        ends = flags & END_STREAM != 0
        stream = self.streams.get(stream_id)
        if stream is None or stream.remote_closed:
            self.give_back(size)
            self._control.spend()
            if self.is_idle(stream_id):
                raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "DATA on an idle stream")
            if stream is None and self.ignores_data(stream_id, ends=ends):
                return
            raise StreamFault(stream_id, ErrorCode.STREAM_CLOSED, "DATA on a closed stream")
        recv = stream.recv
        if size > recv.left:
            self.give_back(size)
            raise StreamFault(stream_id, ErrorCode.FLOW_CONTROL_ERROR, "stream window exceeded")
        recv.left -= size
        if not data and not ends:
            self._control.spend()
        self.on_data(stream, data, size, ends=ends)

    def _on_headers(self, flags: int, stream_id: int, payload: bytes) -> None:
        block = frames.unpadded(flags, payload) if flags & PADDED else payload
        if not stream_id & 1:
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "HEADERS on a stream that is not the client's")
        if flags & frames.HAS_PRIORITY:
            if len(block) < 5:
                raise ConnectionFault(ErrorCode.FRAME_SIZE_ERROR, "HEADERS too short")
            if _depends_on(block) == stream_id:
                raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "stream depends on itself")
            block = block[5:]
        if flags & frames.END_HEADERS:
            self.on_header_block(stream_id, block, ends=flags & END_STREAM != 0)
        else:
            self._block = _OpenBlock(stream_id, flags, self._clock(), bytearray(block))

    def _on_continuation(self, flags: int, stream_id: int, payload: bytes) -> None:
        block = self._block
        if block is None or stream_id != block.stream_id:
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "unexpected CONTINUATION")
        block.data.extend(payload)
        if len(block.data) > self._max_block_bytes:
            raise ConnectionFault(ErrorCode.ENHANCE_YOUR_CALM, self.header_too_large)
        if len(payload) < _SHORT_CONTINUATION:
            self._control.spend()
        if flags & frames.END_HEADERS:
            self._block = None
            self.on_header_block(stream_id, bytes(block.data), ends=bool(block.flags & frames.END_STREAM))

    def _on_priority(self, _flags: int, stream_id: int, payload: bytes) -> None:
        self._control.spend()
        if not stream_id:
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "PRIORITY on stream 0")
        if len(payload) != 5:
            raise StreamFault(stream_id, ErrorCode.FRAME_SIZE_ERROR, "PRIORITY of wrong length")
        if _depends_on(payload) == stream_id:
            raise StreamFault(stream_id, ErrorCode.PROTOCOL_ERROR, "stream depends on itself")

    def _on_rst_stream(self, _flags: int, stream_id: int, payload: bytes) -> None:
        if len(payload) != 4:
            raise ConnectionFault(ErrorCode.FRAME_SIZE_ERROR, "RST_STREAM of wrong length")
        if not stream_id or self.is_idle(stream_id):
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "RST_STREAM on an idle stream")
        self.on_reset(stream_id, int.from_bytes(payload))

    def _on_settings(self, flags: int, stream_id: int, payload: bytes) -> None:
        if stream_id:
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "SETTINGS on a stream")
        if len(payload) % 6 or (flags & frames.ACK and payload):
            raise ConnectionFault(ErrorCode.FRAME_SIZE_ERROR, "SETTINGS of wrong length")
        if flags & frames.ACK and not self._settings_seen:
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "expected SETTINGS")
        self._control.spend()
        if flags & frames.ACK:
            return
        if len(payload) > 6 * _MOST_SETTINGS:
            raise ConnectionFault(ErrorCode.ENHANCE_YOUR_CALM, "too many settings")
        found = frames.parse_settings(payload)
        for key, value in found:
            _check_setting(key, value)
        settings = dict(found)  # the last value of each setting counts
        self.on_settings(settings)
        self._settings_seen = True
        if (window := settings.get(Setting.INITIAL_WINDOW_SIZE)) is not None:
            self._set_peer_window(window)
        if (largest := settings.get(Setting.MAX_FRAME_SIZE)) is not None:
            self.max_frame = min(largest, self.largest_frame)
        if settings.get(Setting.HEADER_TABLE_SIZE, _DEFAULT_TABLE) < _DEFAULT_TABLE:
            self._table_update_due = True
        self.out.append(frames.frame(frames.SETTINGS, frames.ACK, 0))
        self.schedule()

    def _set_peer_window(self, size: int) -> None:
        change, self.peer_window = size - self.peer_window, size
        for stream in list(self.streams.values()):
            self._widen(stream, change, ConnectionFault(ErrorCode.FLOW_CONTROL_ERROR, "window too large"))

    def _on_push_promise(self, _flags: int, _stream_id: int, _payload: bytes) -> None:
        raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "nobody has asked for a push")

    def _on_ping(self, flags: int, stream_id: int, payload: bytes) -> None:
        if stream_id:
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "PING on a stream")
        if len(payload) != 8:
            raise ConnectionFault(ErrorCode.FRAME_SIZE_ERROR, "PING of wrong length")
        self._control.spend()
        self.on_ping(payload, is_answer=bool(flags & frames.ACK))

    def _answer_ping(self, payload: bytes) -> None:
        self.out.append(frames.frame(frames.PING, frames.ACK, 0, payload))
        self.schedule()

    def _on_goaway(self, _flags: int, stream_id: int, payload: bytes) -> None:
        if stream_id:
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "GOAWAY on a stream")
        if len(payload) < 8:
            raise ConnectionFault(ErrorCode.FRAME_SIZE_ERROR, "GOAWAY too short")
        self._control.spend()
        self.on_goaway(payload)

    def _on_window_update(self, _flags: int, stream_id: int, payload: bytes) -> None:
        if len(payload) != 4:
            raise ConnectionFault(ErrorCode.FRAME_SIZE_ERROR, "WINDOW_UPDATE of wrong length")
        if self._updates is not None:
            self._updates.spend()
        increment = int.from_bytes(payload) & frames.MAX_WINDOW
        if not stream_id:
            if not increment:
                raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "WINDOW_UPDATE of 0")
            self.window += increment
            if self.window > frames.MAX_WINDOW:
                raise ConnectionFault(ErrorCode.FLOW_CONTROL_ERROR, "connection window too large")
            self.widened(None)
            return
        stream = self.streams.get(stream_id)
        if stream is None:
            if self.is_idle(stream_id):
                raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "WINDOW_UPDATE on an idle stream")
            return
        if not increment:
            raise StreamFault(stream_id, ErrorCode.PROTOCOL_ERROR, "WINDOW_UPDATE of 0")
        self._widen(stream, increment, StreamFault(stream_id, ErrorCode.FLOW_CONTROL_ERROR, "window too large"))

    def _on_unknown(self, _flags: int, _stream_id: int, _payload: bytes) -> None:
        self._control.spend()

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
        *(_on_unknown,) * (256 - 10),
    )
    """Handlers by frame type."""

    def _widen(self, stream: S, increment: int, too_wide: Exception) -> None:
        before = stream.window
        stream.window += increment
        if stream.window > frames.MAX_WINDOW:
            raise too_wide
        if before <= 0 < stream.window:
            self.widened(stream)


def _depends_on(block: bytes) -> int:
    """Return the id of the stream that a priority depends on."""
    return int.from_bytes(block[:4]) & frames.MAX_WINDOW


def _check_setting(key: int, value: int) -> None:
    """Raise ConnectionFault for an invalid value of a setting."""
    if key == Setting.INITIAL_WINDOW_SIZE and value > frames.MAX_WINDOW:
        raise ConnectionFault(ErrorCode.FLOW_CONTROL_ERROR, "initial window too large")
    if key == Setting.MAX_FRAME_SIZE and not frames.DEFAULT_FRAME_SIZE <= value < 1 << 24:
        raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "invalid maximum frame size")
    if key == Setting.ENABLE_PUSH and value > 1:
        raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "invalid ENABLE_PUSH")
