"""From header blocks to fields, and to the heads of requests: decoding within bounds, for one HTTP/2 connection."""

from __future__ import annotations

from typing import Final

from jh2._hazmat import Decoder, HPACKError, OversizedHeaderListError

from steersman.net.http2 import hpack
from steersman.net.http2.frames import ConnectionFault, ErrorCode
from steersman.net.http2.request import Fields, Head, HeadParser
from steersman.net.limits import Limits

_MAX_KNOWN: Final = 256
_LONGEST_KEPT: Final = 4096
"""Bytes of the fields of a block that is remembered: a byte of one may stand for all that the table has room for."""
_FIELD_OVERHEAD: Final = 32
"""What a field counts for besides its name and value (RFC 9113 section 6.5.2)."""


class TooLarge(Exception):
    """A block so far over a bound that it was not decoded: the table is lost, and the connection with it."""


class FieldDecoder:
    """Decodes blocks in the order in which they came, all of them: each may change the table for the next."""

    __slots__ = ("_decoder", "_fields", "_max_bytes", "_max_count", "_repeatable")

    def __init__(self, max_bytes: int, max_count: int) -> None:
        self._max_bytes = max_bytes
        self._max_count = max_count
        self._decoder = Decoder(max_bytes)
        self._fields: dict[bytes, Fields] = {}
        """Those of blocks that mean the same if they come again."""
        self._repeatable = False

    def decode(self, block: bytes) -> Fields:
        """The fields of a block, which are not to be changed. Raises ConnectionFault, and TooLarge."""
        known = self._fields.get(block)
        if known is not None:
            self._repeatable = True
            return known
        fields = self._decoded(block)
        # Only a block of nothing but references to one-byte indexes (RFC 7541 section 6.1) leaves the table as it is,
        # and means the same as long as no other block has changed the table.
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
        """Whether a list of fields is longer than the settings allow."""
        return _size(fields) + _FIELD_OVERHEAD * len(fields) > self._max_bytes


def _size(fields: Fields) -> int:
    return sum(len(name) + len(value) for name, value, _ in fields)


def _text(fields: Fields, code: hpack.Coded) -> bytes:
    """What a string in Huffman code stands for."""
    name, value, _ = fields[code.field]
    return value if code.part else name


class BlockReader(FieldDecoder):
    """The same for requests, whose blocks and heads are often those of one before."""

    __slots__ = ("_heads", "_known")

    def __init__(self, limits: Limits) -> None:
        super().__init__(limits.max_header_list_bytes, limits.max_header_count)
        self._heads = HeadParser()
        self._known: dict[bytes, Head] = {}

    def known(self, block: bytes) -> Head | None:
        """The head that the same block had before, if it means the same now."""
        return self._known.get(block)

    def decode(self, block: bytes) -> Fields:
        fields = super().decode(block)
        if not self._repeatable and self._known:
            self._known.clear()
        return fields

    def head(self, stream_id: int, block: bytes, fields: Fields) -> Head:
        """The head that the fields of the block decoded last are. Raises StreamFault."""
        head = self._heads.parse(stream_id, fields)
        if self._repeatable and len(self._known) < _MAX_KNOWN and _size(fields) <= _LONGEST_KEPT:
            self._known[block] = head
        return head
