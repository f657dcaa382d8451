"""Targets of the fuzzers, and the properties that hold for every input."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

CORPUS: Final = Path(__file__).parent / "corpus"


class Wrong(AssertionError):
    """Two readings of the same input do not agree."""


def same(one: object, other: object, what: str) -> None:
    """Raises Wrong if two readings differ."""
    if one != other:
        raise Wrong(f"{what}: {str(one)[:300]!r} is not {str(other)[:300]!r}")


@dataclass(frozen=True)
class Target:
    """A reader. `run` raises what the reader does, which may only be of `declared`, and Wrong.

    One input may take `base` seconds of processor time and `each` for a KiB. `words` are what inputs are made of.
    """

    name: str
    run: Callable[[bytes], object]
    declared: tuple[type[BaseException], ...] = ()
    words: tuple[bytes, ...] = ()
    most: int = 4096
    """Bytes of an input."""
    base: float = 0.1
    each: float = 0.02

    @property
    def folder(self) -> Path:
        return CORPUS / self.name

    def corpus(self) -> list[bytes]:
        """Return the initial inputs, the smallest first."""
        return sorted((path.read_bytes() for path in self.folder.iterdir()), key=len)

    def limit(self, data: bytes) -> float:
        """Seconds of processor time that an input may take."""
        return self.base + self.each * len(data) / 1024
