"""HPACK (RFC 7541) encoding without a dynamic table, so that encoded fields can be shared. jh2 does the decoding.

Literals without indexing cost some bytes on the wire, but need no encoder state: the same bytes are valid on every
connection, in any order.
"""

from __future__ import annotations

from typing import Final, NamedTuple

# RFC 7541 appendix A: names of the static table that a response may have, by index.
_STATIC_NAMES: Final = {
    "accept-charset": 15,
    "accept-encoding": 16,
    "accept-language": 17,
    "accept-ranges": 18,
    "accept": 19,
    "access-control-allow-origin": 20,
    "age": 21,
    "allow": 22,
    "authorization": 23,
    "cache-control": 24,
    "content-disposition": 25,
    "content-encoding": 26,
    "content-language": 27,
    "content-length": 28,
    "content-location": 29,
    "content-range": 30,
    "content-type": 31,
    "cookie": 32,
    "date": 33,
    "etag": 34,
    "expect": 35,
    "expires": 36,
    "from": 37,
    "host": 38,
    "if-match": 39,
    "if-modified-since": 40,
    "if-none-match": 41,
    "if-range": 42,
    "if-unmodified-since": 43,
    "last-modified": 44,
    "link": 45,
    "location": 46,
    "max-forwards": 47,
    "proxy-authenticate": 48,
    "proxy-authorization": 49,
    "range": 50,
    "referer": 51,
    "refresh": 52,
    "retry-after": 53,
    "server": 54,
    "set-cookie": 55,
    "strict-transport-security": 56,
    "transfer-encoding": 57,
    "user-agent": 58,
    "vary": 59,
    "via": 60,
    "www-authenticate": 61,
}
_STATIC_STATUS: Final = {200: 8, 204: 9, 206: 10, 304: 11, 400: 12, 404: 13, 500: 14}
_STATUS_NAME_INDEX: Final = 8

EMPTY_THE_TABLE: Final = b"\x20"
"""A dynamic table size update to 0 (section 6.3), due when the peer allows less than the default of 4096."""


def integer(value: int, prefix_bits: int, first: int = 0) -> bytes:
    """Return an encoded integer (section 5.1); `first` holds the bits above the prefix in the first byte."""
    limit = (1 << prefix_bits) - 1
    if value < limit:
        return bytes((first | value,))
    out = bytearray((first | limit,))
    value -= limit
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def string(text: str) -> bytes:
    """Return a string literal (section 5.2) without Huffman coding."""
    raw = text.encode()
    size = len(raw)
    return (_LENGTHS[size] if size < 0x7F else integer(size, 7)) + raw


_LENGTHS: Final = tuple(bytes((size,)) for size in range(0x7F))
"""Encoded lengths of short strings."""


def field(name: str, value: str) -> bytes:
    """Return a literal field without indexing (section 6.2.2)."""
    raw = value.encode()
    size = len(raw)
    coded_name = _CODED_NAMES.get(name) or b"\x00" + string(name)
    return coded_name + (_LENGTHS[size] if size < 0x7F else integer(size, 7)) + raw


_CODED_NAMES: Final = {
    **{name: integer(index, 4) for name, index in _STATIC_NAMES.items()},
    "audit-id": b"\x00" + string("audit-id"),
}
"""Beginnings of fields by name: of the static table, and of the field that is different in every answer."""


def status(code: int) -> bytes:
    """Return the :status field of a response."""
    if (index := _STATIC_STATUS.get(code)) is not None:
        return bytes((0x80 | index,))
    return integer(_STATUS_NAME_INDEX, 4) + string(str(code))


_CONTENT_LENGTH: Final = integer(_STATIC_NAMES["content-length"], 4)
_CONTENT_LENGTHS: Final = tuple(_CONTENT_LENGTH + bytes((digits,)) for digits in range(20))


def content_length(length: int) -> bytes:
    """Return the content-length field."""
    digits = b"%d" % length
    return _CONTENT_LENGTHS[len(digits)] + digits


STATUSES: Final = {code: status(code) for code in range(100, 1000)}
"""Encoded :status fields by code, for all codes."""


class Coded(NamedTuple):
    """A Huffman coded string whose padding cannot be checked before decoding: it depends on the length of the text."""

    field: int
    """Index of the field in the block."""
    part: int
    """Part of the field: 0 for its name, 1 for its value."""
    length: int
    """Length of the code in bytes."""
    last: int


def count_fields(block: bytes, limit: int, coded: list[Coded] | None = None) -> int | None:
    """Return the number of fields in a header block (section 6), counting to at most `limit` + 1.

    Returns None for a block that is cut off or that changes the size of the table after a field (section 4.2). More
    than `limit` changes of the size count as too many fields: an encoder makes two at most. Strings whose padding must
    be checked after decoding are added to `coded`.

    Call this before decoding. jh2's decoder panics, which is no Exception, on a block that ends where a string should
    begin, and takes seconds for a block of a million fields or changes of the size, whatever its output limit.
    """
    at, end = 0, len(block)
    count = sizes = 0
    while at < end:
        first = block[at]
        at += 1
        if not 0x20 <= first < 0x40:
            count += 1
            if count > limit:
                return count
        if first >= 0x80:  # indexed field
            if first == 0xFF:
                at = _after_integer(block, at)
            continue
        mask = 0x3F if first >= 0x40 else 0x1F if first >= 0x20 else 0x0F
        if first & mask == mask:
            at = _after_integer(block, at)
        if 0x20 <= first < 0x40:  # table size update
            sizes += 1
            if count:
                return None
            if sizes > limit:
                return limit + 1
            continue
        for part in (1,) if first & mask else (0, 1):
            begin, at = at, _after_string(block, at)
            if coded is not None and at <= end and block[begin] > 0x80 and block[at - 1] & 0x7F != 0x7F:
                coded.append(Coded(count - 1, part, _length(block, begin), block[at - 1]))
    return count if at == end else None


def is_padded_well(text: bytes, code: Coded) -> bool:
    """Return True if the padding of a Huffman coded string consists of ones, as section 5.2 demands."""
    left = 8 * code.length - sum(text.translate(CODE_BITS))
    ones = (1 << left) - 1
    return code.last & ones == ones


CODE_BITS: Final = bytes.fromhex("""
    0d 17 1c 1c 1c 1c 1c 1c 1c 18 1e 1c 1c 1e 1c 1c 1c 1c 1c 1c 1c 1c 1e 1c 1c 1c 1c 1c 1c 1c 1c 1c
    06 0a 0a 0c 0d 06 08 0b 0a 0a 08 0b 08 06 06 06 05 05 05 06 06 06 06 06 06 06 07 08 0f 06 0c 0a
    0d 06 07 07 07 07 07 07 07 07 07 07 07 07 07 07 07 07 07 07 07 07 07 07 08 07 08 0d 13 0d 0e 06
    0f 05 06 05 06 05 06 06 06 05 07 07 06 06 06 05 06 07 06 05 05 06 07 07 07 07 07 0f 0b 0e 0d 1c
    14 16 14 14 16 16 16 17 16 17 17 17 17 17 18 17 18 18 16 17 18 17 17 17 17 15 16 17 16 17 17 18
    16 15 14 16 16 17 17 15 17 16 16 18 15 16 17 17 15 15 16 15 17 16 17 17 14 16 16 16 17 16 16 17
    1a 1a 14 13 16 17 16 19 1a 1a 1a 1b 1b 1a 18 19 13 15 1a 1b 1b 1a 1b 18 15 15 1a 1a 1c 1b 1b 1b
    14 18 14 15 16 15 15 17 16 16 19 19 18 18 1a 17 1a 1b 1a 1a 1b 1b 1b 1b 1b 1c 1b 1b 1b 1b 1b 1a
""")
"""Lengths of the Huffman codes in bits, by byte (appendix B), in hexadecimal digits."""


def _after_integer(block: bytes, at: int) -> int:
    """Return the end of an integer whose continuation bytes begin at `at`; a position beyond the block if it is cut
    off.
    """
    for place in range(at, min(len(block), at + 6)):
        if block[place] < 0x80:
            return place + 1
    return len(block) + 1


def _after_string(block: bytes, at: int) -> int:
    """Return the end of a string literal that begins at `at`; a position beyond the block if it is cut off."""
    if at >= len(block):
        return len(block) + 1
    length = block[at] & 0x7F
    if length < 0x7F:
        return at + 1 + length
    after = _after_integer(block, at + 1)
    return after if after > len(block) else after + _length(block, at)


def _length(block: bytes, at: int) -> int:
    """Return the length in bytes of the string literal that begins at `at`, without its length prefix."""
    length = block[at] & 0x7F
    if length < 0x7F:
        return length
    for shift, byte in enumerate(block[at + 1 : _after_integer(block, at + 1)]):
        length += (byte & 0x7F) << 7 * shift
    return length
