"""Bodies of HTTP/1 messages: of known length, and chunked (RFC 9112 section 7.1) as Go's net/http parses them."""

from __future__ import annotations

from typing import Final

from steersman.net.http1.head import Fault, MalformedFields, end_of_fields, read_fields

_LONGEST_LINE: Final = 4096
_LONGEST_TRAILER: Final = 4096
_MOST_TRAILERS: Final = _LONGEST_TRAILER
_CHUNKS_AT_ONCE: Final = 256
_FREE_OVERHEAD: Final = 16
"""Bytes besides its data that a chunk may have without counting as overhead, in addition to twice the size of the
data.
"""
_MOST_OVERHEAD: Final = 16 << 10
_HEX: Final = frozenset(b"0123456789abcdefABCDEF")
_MOST_DIGITS: Final = 16


class MalformedChunks(Exception):
    """The body is malformed; the text is Go's."""


class KnownLength:
    """Reader of a body of known length."""

    __slots__ = ("_left", "complete")

    def __init__(self, length: int) -> None:
        self._left = length
        self.complete = False

    def read(self, data: bytes | bytearray, at: int) -> tuple[bytes, int]:
        """Return a piece of the body from `at` on, and its end."""
        stop = min(len(data), at + self._left)
        self._left -= stop - at
        self.complete = not self._left
        return bytes(data[at:stop]), stop


class ChunkReader:
    """Reader of a chunked body. Incomplete input (a line, the trailer) stays unread and must be passed again."""

    __slots__ = ("_at_end_of_chunk", "_in_trailer", "_left", "_overhead", "complete")

    def __init__(self) -> None:
        self.complete = False
        self._left = 0
        self._at_end_of_chunk = False
        self._in_trailer = False
        self._overhead = 0

    def read(self, data: bytes | bytearray, at: int) -> tuple[bytes, int]:
        """Return the data of some chunks from `at` on, and the end of the input used: at least one step if possible.

        Raises MalformedChunks.
        """
        chunks: list[bytes] = []
        end = len(data)
        for _ in range(_CHUNKS_AT_ONCE):
            if self._left:
                stop = min(end, at + self._left)
                chunks.append(bytes(data[at:stop]))
                self._left -= stop - at
                at = stop
                if self._left:
                    break
                self._at_end_of_chunk = True
            if self._at_end_of_chunk:
                if end - at < 2:
                    break
                if data[at] != 0x0D or data[at + 1] != 0x0A:
                    raise MalformedChunks("malformed chunked encoding")
                at += 2
                self._at_end_of_chunk = False
            if self._in_trailer:
                at = self._trailer(data, at)
                break
            line = self._line(data, at)
            if line is None:
                break
            at += len(line) + 2
            self._begin(line)
        return chunks[0] if len(chunks) == 1 else b"".join(chunks), at

    @staticmethod
    def _line(data: bytes | bytearray, at: int) -> bytes | None:
        end = data.find(b"\n", at, at + _LONGEST_LINE)
        if end < 0:
            if len(data) - at >= _LONGEST_LINE:
                raise MalformedChunks("header line too long")
            return None
        line = bytes(data[at:end])
        found = line.find(b"\r")
        if found < 0:
            raise MalformedChunks("chunked line ends with bare LF")
        if found != len(line) - 1:
            raise MalformedChunks("invalid CR in chunked line")
        return line[:-1]

    def _begin(self, line: bytes) -> None:
        """Parse the line that begins a chunk."""
        digits = line.rstrip(b" \t").partition(b";")[0]
        if not digits:
            raise MalformedChunks("empty hex number for chunk length")
        if not _HEX.issuperset(digits[: _MOST_DIGITS + 1]):
            raise MalformedChunks("invalid byte in chunk length")
        if len(digits) > _MOST_DIGITS:
            raise MalformedChunks("http chunk length too large")
        size = int(digits, 16)
        self._overhead = max(0, self._overhead + len(line) + 2 - _FREE_OVERHEAD - 2 * size)
        if self._overhead > _MOST_OVERHEAD:
            raise MalformedChunks("chunked encoding contains too much non-data")
        self._left = size
        self._in_trailer = not size

    def _trailer(self, data: bytes | bytearray, at: int) -> int:
        """Skip the trailer fields, which no caller uses, and return the end of the input used.

        As in Go, an empty line with CRLF must be in the buffer, but it need not belong to the trailer: the trailer ends
        at the first empty line, with CRLF or LF. The bytes after that line belong to the next request.
        """
        if data[at : at + 2] == b"\r\n":
            self.complete = True
            return at + 2
        if data.find(b"\r\n\r\n", at, at + _LONGEST_TRAILER) < 0:
            if len(data) - at >= _LONGEST_TRAILER:
                raise MalformedChunks("http: suspiciously long trailer after chunked body")
            return at
        end = end_of_fields(data, at)
        try:
            read_fields(bytes(data[at:end]), _MOST_TRAILERS)
        except (MalformedFields, Fault) as error:
            raise MalformedChunks(str(error)) from None
        self.complete = True
        return end
