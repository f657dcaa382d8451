"""Results of work on ownership that comes again and again, kept within bounds."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final, Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

_MOST: Final = 128
"""Results that are kept of one kind in one version."""
_ROOM: Final = 2 << 20
"""Bytes that they take together, about; one may take a sixteenth."""


class Remembered(Generic[K, V]):
    """Results by what they were made of. Clients choose what that is, so what all of them take is bounded."""

    __slots__ = ("_results", "_weight")

    def __init__(self) -> None:
        self._results: dict[K, V] = {}
        self._weight = 0

    def get(self, key: K | None) -> V | None:
        """What was kept under `key`; None if there is nothing."""
        return self._results.get(key) if key is not None else None

    def keep(self, key: K, result: V, weight: int) -> None:
        """Keeps a result of `weight` bytes if that is not too much; all that was kept before makes room if need be."""
        if weight > _ROOM // 16:
            return
        if len(self._results) >= _MOST or self._weight + weight > _ROOM:
            self._results.clear()
            self._weight = 0
        self._results[key] = result
        self._weight += weight

    def __len__(self) -> int:
        return len(self._results)
