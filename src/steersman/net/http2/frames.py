"""HTTP/2 frames (RFC 9113): numbers, encoding, and the errors that end a stream or a connection."""

from __future__ import annotations

from enum import IntEnum
from struct import Struct
from typing import Final

PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
HEADER_LENGTH: Final = 9
DEFAULT_FRAME_SIZE: Final = 16384
DEFAULT_WINDOW: Final = 65535
MAX_WINDOW: Final = (1 << 31) - 1

DATA: Final = 0
HEADERS: Final = 1
PRIORITY: Final = 2
RST_STREAM: Final = 3
SETTINGS: Final = 4
PUSH_PROMISE: Final = 5
PING: Final = 6
GOAWAY: Final = 7
WINDOW_UPDATE: Final = 8
CONTINUATION: Final = 9

ACK: Final = 0x1
END_STREAM: Final = 0x1
END_HEADERS: Final = 0x4
PADDED: Final = 0x8
HAS_PRIORITY: Final = 0x20


class ErrorCode(IntEnum):
    """Error codes (RFC 9113 section 7)."""

    NO_ERROR = 0
    PROTOCOL_ERROR = 1
    INTERNAL_ERROR = 2
    FLOW_CONTROL_ERROR = 3
    SETTINGS_TIMEOUT = 4
    STREAM_CLOSED = 5
    FRAME_SIZE_ERROR = 6
    REFUSED_STREAM = 7
    CANCEL = 8
    COMPRESSION_ERROR = 9
    CONNECT_ERROR = 10
    ENHANCE_YOUR_CALM = 11
    INADEQUATE_SECURITY = 12
    HTTP_1_1_REQUIRED = 13


def error_name(code: int) -> str:
    """Return the name of an error code as Go prints it."""
    try:
        return ErrorCode(code).name
    except ValueError:
        return f"unknown error code 0x{code:x}"


class Setting(IntEnum):
    """Identifiers of settings (RFC 9113 section 6.5.2)."""

    HEADER_TABLE_SIZE = 1
    ENABLE_PUSH = 2
    MAX_CONCURRENT_STREAMS = 3
    INITIAL_WINDOW_SIZE = 4
    MAX_FRAME_SIZE = 5
    MAX_HEADER_LIST_SIZE = 6


class ConnectionFault(Exception):
    """A protocol violation that ends the connection with GOAWAY and this code."""

    def __init__(self, code: ErrorCode, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason


class StreamFault(Exception):
    """A protocol violation that ends one stream with RST_STREAM and this code."""

    def __init__(self, stream_id: int, code: ErrorCode, reason: str) -> None:
        super().__init__(reason)
        self.stream_id = stream_id
        self.code = code
        self.reason = reason


_HEAD: Final = Struct(">IBI")
pack_head: Final = _HEAD.pack
"""Encoder of a frame's nine-byte header: `pack_head(length << 8 | type, flags, stream_id)`."""
unpack_head: Final = _HEAD.unpack_from
_WINDOW_UPDATE: Final = Struct(">IBII").pack
_SETTING: Final = Struct(">HI")
_GOAWAY: Final = Struct(">II").pack


def frame(kind: int, flags: int, stream_id: int, payload: bytes = b"") -> bytes:
    """Return a frame of any type."""
    return pack_head(len(payload) << 8 | kind, flags, stream_id) + payload


def window_update(stream_id: int, increment: int) -> bytes:
    """Return a WINDOW_UPDATE frame; stream 0 is the connection."""
    return _WINDOW_UPDATE(4 << 8 | WINDOW_UPDATE, 0, stream_id, increment)


def rst_stream(stream_id: int, code: int) -> bytes:
    """Return an RST_STREAM frame."""
    return _WINDOW_UPDATE(4 << 8 | RST_STREAM, 0, stream_id, code)


def goaway(last_stream_id: int, code: int, reason: str = "") -> bytes:
    """Return a GOAWAY frame, with `reason` (up to 256 bytes) as debug data."""
    return frame(GOAWAY, 0, 0, _GOAWAY(last_stream_id, code) + reason.encode()[:256])


def settings(values: dict[Setting, int]) -> bytes:
    """Return a SETTINGS frame."""
    return frame(SETTINGS, 0, 0, b"".join(_SETTING.pack(key, value) for key, value in values.items()))


def parse_settings(payload: bytes) -> list[tuple[int, int]]:
    """Return the (identifier, value) pairs of a payload whose length is a multiple of six."""
    return list(_SETTING.iter_unpack(payload))


def headers(stream_id: int, block: bytes, flags: int, max_frame: int) -> bytes:
    """Return a HEADERS frame, followed by CONTINUATION frames if the block is longer than `max_frame`."""
    if len(block) <= max_frame:
        return pack_head(len(block) << 8 | HEADERS, flags | END_HEADERS, stream_id) + block
    pieces = [block[start : start + max_frame] for start in range(0, len(block), max_frame)]
    out = [frame(HEADERS, flags, stream_id, pieces[0])]
    out += [frame(CONTINUATION, 0, stream_id, piece) for piece in pieces[1:-1]]
    out.append(frame(CONTINUATION, END_HEADERS, stream_id, pieces[-1]))
    return b"".join(out)


def unpadded(flags: int, payload: bytes) -> bytes:
    """Return the payload of DATA or HEADERS without its padding. Raises ConnectionFault."""
    if not flags & PADDED:
        return payload
    if not payload or payload[0] >= len(payload):
        raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "padding is longer than the frame")
    return payload[1 : len(payload) - payload[0]]
