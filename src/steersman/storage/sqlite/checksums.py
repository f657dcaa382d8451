"""The checksum in each row of the file, over all its columns.

SQLite detects damage to its own structures, but none to the bytes of a key, a number or a value. CRC-32 detects every
change of up to 32 adjacent bits in a row, and all but one in four billion other changes.
"""

from __future__ import annotations

from typing import Final
from zlib import crc32

_PIECE: Final = 5 << 10
"""`crc32` releases the interpreter lock for more bytes, and reacquiring it may cost a switch interval (5 ms)."""


def row_checksum(revision: int, key: bytes, value: bytes | None, created: int, replaced: int, expires: int) -> int:
    """Return the checksum of a row; `value` is None for a delete."""
    length = -1 if value is None else len(value)
    checksum = crc32(b"%d %d %d %d %d " % (revision, created, replaced, expires, length) + key)
    if not value:
        return checksum
    if length <= _PIECE:
        return crc32(value, checksum)
    view = memoryview(value)
    for at in range(0, length, _PIECE):
        checksum = crc32(view[at : at + _PIECE], checksum)
    return checksum
