"""Expectations: creations and deletions that a controller's informer has not shown yet (ControllerExpectations).

Follows pkg/controller controller_utils.go.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Final, Generic, TypeVar

from msgspec import Struct, field

from steersman.work import simulated_time

K = TypeVar("K", bound=Hashable)

TIMEOUT: Final = 300.0
"""Seconds after which expectations expire."""


class _Expected(Struct):
    at: float
    creations: int = 0
    deletions: set[str] = field(default_factory=set)


class Expectations(Generic[K]):
    """Number of expected creations, and uids or names of expected deletions, for each key.

    An object counts as deleted when it is marked for deletion or is gone, whichever is seen first, and counts once.
    """

    def __init__(self) -> None:
        self._expected: dict[K, _Expected] = {}

    def are_satisfied(self, key: K) -> bool:
        """Return True if all expected changes were observed, or the expectations have expired."""
        expected = self._expected.get(key)
        if expected is None or (expected.creations <= 0 and not expected.deletions):
            return True
        return simulated_time.time() - expected.at > TIMEOUT

    def expect(self, key: K, *, creations: int = 0, deletions: Iterable[str] = ()) -> None:
        """Replace the expectations of a key."""
        self._expected[key] = _Expected(simulated_time.time(), creations, set(deletions))

    def add(self, key: K, *, creations: int = 0, deletions: Iterable[str] = ()) -> None:
        """Add to the expectations of a key."""
        expected = self._expected.get(key)
        if expected is None:
            self.expect(key, creations=creations, deletions=deletions)
        else:
            expected.creations += creations
            expected.deletions.update(deletions)

    def observe_creation(self, key: K, count: int = 1) -> None:
        """Count creations that were observed, or that failed."""
        expected = self._expected.get(key)
        if expected is not None:
            expected.creations -= count

    def observe_deletion(self, key: K, which: str) -> None:
        """Count a deletion that was observed, or that failed; `which` is a uid or name."""
        expected = self._expected.get(key)
        if expected is not None:
            expected.deletions.discard(which)

    def forget(self, key: K) -> None:
        """Remove the expectations of a key.

        Controllers do so when its object appears, too: changes of pods whose owner is not in the informer are not
        observed, so a write that was under way while the object was gone would be expected until the timeout. An
        object comes back with its uid when a snapshot is restored.
        """
        self._expected.pop(key, None)
