"""Inputs made of others: bytes changed, parts left out, doubled, exchanged; words of the language put in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Final

_ODD: Final = (
    b"\0",
    b"\xff",
    b"\x80",
    b"\xc3\xa9",
    b"\xed\xa0\x80",
    b"\r\n",
    b"\n",
    b" ",
    b"\\",
    b'"',
    b"{",
    b"[",
    b"}",
    b"]",
    b",",
    b":",
    b"-1",
    b"0",
    b"9223372036854775808",
    b"1e999",
    b"\xef\xbb\xbf",
    b"%00",
    b"*",
)
_MOST_AT_ONCE: Final = 5


class Mutator:
    """Makes inputs of at most `most` bytes out of a pool and words."""

    def __init__(self, random: Random, words: Sequence[bytes], most: int) -> None:
        self._random = random
        self._words = (*words, *_ODD)
        self._most = most
        self._ways: tuple[Callable[[bytearray, Sequence[bytes]], None], ...] = (
            self._flipped,
            self._set,
            self._cut,
            self._worded,
            self._worded,
            self._doubled,
            self._spliced,
            self._moved,
            self._repeated,
            self._counted,
        )

    def mutated(self, data: bytes, pool: Sequence[bytes]) -> bytes:
        """One more input."""
        found = bytearray(data)
        for _ in range(self._random.randint(1, _MOST_AT_ONCE)):
            self._random.choice(self._ways)(found, pool)
        return bytes(found[: self._most])

    def _range(self, data: bytearray) -> tuple[int, int]:
        start = self._random.randint(0, len(data))
        return start, min(len(data), start + self._random.choice((1, 2, 4, 8, 16, 64)))

    def _flipped(self, data: bytearray, pool: Sequence[bytes]) -> None:
        if data:
            data[self._random.randrange(len(data))] ^= 1 << self._random.randrange(8)

    def _set(self, data: bytearray, pool: Sequence[bytes]) -> None:
        if data:
            data[self._random.randrange(len(data))] = self._random.randrange(256)

    def _cut(self, data: bytearray, pool: Sequence[bytes]) -> None:
        start, end = self._range(data)
        del data[start:end]

    def _worded(self, data: bytearray, pool: Sequence[bytes]) -> None:
        start, end = self._range(data)
        data[start : start if self._random.random() < 0.6 else end] = self._random.choice(self._words)

    def _doubled(self, data: bytearray, pool: Sequence[bytes]) -> None:
        start, end = self._range(data)
        data[start:start] = data[start:end]

    def _spliced(self, data: bytearray, pool: Sequence[bytes]) -> None:
        other = self._random.choice(pool)
        at = self._random.randint(0, len(data))
        data[at:] = other[self._random.randint(0, len(other)) :]

    def _moved(self, data: bytearray, pool: Sequence[bytes]) -> None:
        start, end = self._range(data)
        part = bytes(data[start:end])
        del data[start:end]
        at = self._random.randint(0, len(data))
        data[at:at] = part

    def _repeated(self, data: bytearray, pool: Sequence[bytes]) -> None:
        if self._random.random() < 0.2:
            start, end = self._range(data)
            data[start:start] = bytes(data[start:end]) * self._random.choice((10, 100, 1000))

    def _counted(self, data: bytearray, pool: Sequence[bytes]) -> None:
        start, _ = self._range(data)
        data[start:start] = str(self._random.choice((0, 1, 63, 64, 255, 256, 2**31, 2**32, 2**63, -1))).encode()
