"""Generation of object names and uids.

Follows k8s.io/apiserver `storage/names` and k8s.io/apimachinery `util/rand`.
"""

from __future__ import annotations

import os
from threading import local
from typing import Final

MAX_NAME_LENGTH: Final = 63
RANDOM_LENGTH: Final = 5
MAX_BASE_LENGTH: Final = MAX_NAME_LENGTH - RANDOM_LENGTH

ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
"""Letters without vowels, so that no words arise, and digits that do not look like letters."""

# Each letter represents the same number of byte values. The byte values left over are thrown away.
_FAIR: Final = 256 // len(ALPHABET) * len(ALPHABET)
_LETTERS: Final = bytes(ord(ALPHABET[byte % len(ALPHABET)]) for byte in range(256))
_UNFAIR: Final = bytes(range(_FAIR, 256))


_POOL: Final = 4096
"""Bytes read from the operating system at once: one such read may cost more than the rest of a name."""


class _Pool:
    """Random bytes of the operating system, of which `used` have been used."""

    __slots__ = ("bytes", "used")

    def __init__(self) -> None:
        self.bytes = b""
        self.used = 0


class _Random(local):
    """Holder of each thread's pool."""

    def __init__(self) -> None:
        self.pool = _Pool()


_random: Final = _Random()


def _random_bytes(count: int) -> bytes:
    """Return `count` random bytes that cannot be guessed and are not returned again."""
    pool = _random.pool
    begin = pool.used
    end = begin + count
    if end > len(pool.bytes):
        pool.bytes = os.urandom(_POOL)
        begin, end = 0, count
    pool.used = end
    return pool.bytes[begin:end]


def random_text(length: int) -> str:
    """Return `length` random characters of ALPHABET."""
    text = b""
    while len(text) < length:
        text += _random_bytes(length + 3).translate(_LETTERS, _UNFAIR)
    return text[:length].decode()


def generate_name(base: str) -> str:
    """Return a name for `generateName`: `base`, cut to 58 bytes, followed by five random characters."""
    if len(base) > MAX_BASE_LENGTH or not base.isascii():
        base = base.encode()[:MAX_BASE_LENGTH].decode(errors="replace")
    return base + random_text(RANDOM_LENGTH)


def new_uid() -> str:
    """Return a random UUID (RFC 9562 version 4) as text."""
    digits = _random_bytes(16).hex()
    variant = _VARIANTS[digits[16]]
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"


_VARIANTS: Final = {digit: "89ab"[number % 4] for number, digit in enumerate("0123456789abcdef")}
"""Variant digits by the random digit in their place."""
