"""Decoding of HTTP/2 header blocks into fields and request heads, within bounds, for one connection."""

from __future__ import annotations

from typing import Final

from jh2._hazmat import Decoder, HPACKError, OversizedHeaderListError

from steersman.net.http2 import hpack
from steersman.net.http2.frames import ConnectionFault, ErrorCode
from steersman.net.http2.request import Fields, Head, HeadParser
from steersman.net.limits import Limits

_MAX_KNOWN: Final = 256
_LONGEST_KEPT: Final = 4096
"""Limit of a cached block's fields in bytes: a block of one byte may stand for a whole table of fields."""
_FIELD_OVERHEAD: Final = 32
"""Size that a field counts for in addition to its name and value (RFC 9113 section 6.5.2)."""


class TooLarge(Exception):
    """A block so far over a limit that it was not decoded: the table is out of sync, and the connection must end."""


class FieldDecoder:
    """Decoder of header blocks. It needs every block of a connection in order, as each may change the table."""

    __slots__ = ("_decoder", "_fields", "_max_bytes", "_max_count", "_repeatable")

    def __init__(self, max_bytes: int, max_count: int) -> None:
        self._max_bytes = max_bytes
        self._max_count = max_count
        self._decoder = Decoder(max_bytes)
        self._fields: dict[bytes, Fields] = {}
        """Cache of fields by block, for blocks that mean the same when they come again."""
        self._repeatable = False

    def decode(self, block: bytes) -> Fields:
        """Return the fields of a block; callers must not change them. Raises ConnectionFault and TooLarge."""
        known = self._fields.get(block)
        if known is not None:
            self._repeatable = True
            return known
        fields = self._decoded(block)
        # Only a block that consists of one-byte indexes (RFC 7541 section 6.1) leaves the table unchanged. It means the
        # same as long as no other block has changed the table.
        self._repeatable = bool(block) and min(block) > 0x80 and 0xFF not in block
        if not self._repeatable:
            self._fields.clear()
        elif len(self._fields) < _MAX_KNOWN and _size(fields) <= _LONGEST_KEPT:
            self._fields[block] = fields
        return fields

    def _decoded(self, block: bytes) -> Fields:
        coded: list[hpack.Coded] = []
        count = hpack.count_fields(block, self._max_count, coded)
        if count is None:
            raise ConnectionFault(ErrorCode.COMPRESSION_ERROR, "header block is cut off, or out of order")
        if count > self._max_count:
            raise TooLarge
        try:
            fields: Fields = self._decoder.decode(block, True)
        except OversizedHeaderListError:
            raise TooLarge from None
        except HPACKError:
            raise ConnectionFault(ErrorCode.COMPRESSION_ERROR, "header block cannot be decoded") from None
        if not all(hpack.is_padded_well(_text(fields, each), each) for each in coded):
            raise ConnectionFault(ErrorCode.COMPRESSION_ERROR, "a string is padded with something else than ones")
        return fields

    def is_over(self, fields: Fields) -> bool:
        """Return True if a list of fields exceeds the limit of the settings."""
        return _size(fields) + _FIELD_OVERHEAD * len(fields) > self._max_bytes


def _size(fields: Fields) -> int:
    return sum(len(name) + len(value) for name, value, _ in fields)


def _text(fields: Fields, code: hpack.Coded) -> bytes:
    """Return the decoded text of a Huffman coded string."""
    name, value, _ = fields[code.field]
    return value if code.part else name


class BlockReader(FieldDecoder):
    """Decoder of request blocks, with a cache of heads: many blocks repeat an earlier one."""

    __slots__ = ("_heads", "_known")

    def __init__(self, limits: Limits) -> None:
        super().__init__(limits.max_header_list_bytes, limits.max_header_count)
        self._heads = HeadParser()
        self._known: dict[bytes, Head] = {}

    def cached_head(self, block: bytes) -> Head | None:
        """Return the cached head of the same block, or None if there is none or the table has changed since."""
        return self._known.get(block)

    def decode(self, block: bytes) -> Fields:
        fields = super().decode(block)
        if not self._repeatable and self._known:
            self._known.clear()
        return fields

    def head(self, stream_id: int, block: bytes, fields: Fields) -> Head:
        """Return the request head of the block decoded last. Raises StreamFault."""
        head = self._heads.parse(stream_id, fields)
        if self._repeatable and len(self._known) < _MAX_KNOWN and _size(fields) <= _LONGEST_KEPT:
            self._known[block] = head
        return head
