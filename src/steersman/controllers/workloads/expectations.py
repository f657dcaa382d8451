"""What a controller has asked for and not seen yet in its informer (pkg/controller ControllerExpectations)."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Iterable
from typing import Final, Generic, TypeVar

from msgspec import Struct, field

K = TypeVar("K", bound=Hashable)

TIMEOUT: Final = 300.0
"""Seconds after which nothing is expected any more."""


class _Expected(Struct):
    at: float
    creations: int = 0
    deletions: set[str] = field(default_factory=set)


class Expectations(Generic[K]):
    """For each key how many objects are to appear, and which ones (by uid or name) are to go.

    An object goes when it is marked for deletion or is gone, whichever is seen first, and counts once.
    """

    def __init__(self) -> None:
        self._expected: dict[K, _Expected] = {}

    def satisfied(self, key: K) -> bool:
        """Whether all was seen, or too much time has passed."""
        found = self._expected.get(key)
        if found is None or (found.creations <= 0 and not found.deletions):
            return True
        return asyncio.get_running_loop().time() - found.at > TIMEOUT

    def expect(self, key: K, *, creations: int = 0, deletions: Iterable[str] = ()) -> None:
        """Forgets what was expected of a key, and expects this."""
        self._expected[key] = _Expected(asyncio.get_running_loop().time(), creations, set(deletions))

    def raise_by(self, key: K, *, creations: int = 0, deletions: Iterable[str] = ()) -> None:
        """Expects this besides what is expected already."""
        found = self._expected.get(key)
        if found is None:
            self.expect(key, creations=creations, deletions=deletions)
        else:
            found.creations += creations
            found.deletions.update(deletions)

    def created(self, key: K, count: int = 1) -> None:
        """So many appeared, or will never do."""
        found = self._expected.get(key)
        if found is not None:
            found.creations -= count

    def deleted(self, key: K, which: str) -> None:
        """One is gone, or is not going to be."""
        found = self._expected.get(key)
        if found is not None:
            found.deletions.discard(which)

    def forget(self, key: K) -> None:
        """Expects nothing."""
        self._expected.pop(key, None)
