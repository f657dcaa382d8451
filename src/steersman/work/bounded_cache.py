"""A cache and a set that hold so much at most, and never lose at once what is asked for often.

What is full is not emptied: what has not been asked for since it was last half full goes (second chance, by
generations). A hit in the younger generation costs a look-up in a dict or set of C, and nothing else.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class BoundedCache(dict[K, V], Generic[K, V]):
    """Values by what they were made of: `cache[key]` is None where nothing is kept, and `keep` keeps a value.

    As a dict it is its younger generation, so use `cache[key]`, not `get` or `in`; values must not be None.
    """

    __slots__ = ("_old", "_old_weight", "_old_weights", "_weight", "_weights", "largest", "most", "room")

    def __init__(self, most: int, room: int = 0, *, largest: int = 0) -> None:
        """`most` values are kept, and `room` bytes (as `keep` is told) if that is not 0, at most `largest` of one."""
        self.most = most
        self.room = room
        self.largest = largest or room
        self._old: dict[K, V] = {}
        self._weight = 0
        self._weights: dict[K, int] = {}
        self._old_weight = 0
        self._old_weights: dict[K, int] = {}

    if TYPE_CHECKING:

        def __getitem__(self, key: K, /) -> V | None: ...  # type: ignore[override]

    def __missing__(self, key: K) -> V | None:
        """Return the value of the older generation, which is young again, or None."""
        if key not in self._old:
            return None
        value = self._old.pop(key)
        self._insert(key, value, self._lighten(key))
        return value

    def keep(self, key: K, value: V, weight: int = 0) -> None:
        """Keep a value of `weight` bytes with its key, instead of what was kept; nothing if that is too large."""
        if self.pop(key, None) is not None:
            self._weight -= self._weights.pop(key, 0)
        elif self._old.pop(key, None) is not None:
            self._lighten(key)
        if not self.room or weight <= self.largest:
            self._insert(key, value, weight)

    def forget(self) -> None:
        """Forget everything: it is not true any more."""
        self._lose_old()
        self._begin()

    @property
    def count(self) -> int:
        """The number of values."""
        return len(self) + len(self._old)

    @property
    def weight(self) -> int:
        """The bytes that all values take."""
        return self._weight + self._old_weight

    def _insert(self, key: K, value: V, weight: int) -> None:
        """Add what is in neither generation."""
        if len(self) >= max(self.most // 2, 1):
            self._grow_old()
        if self.room and self._weight + weight > min(self.room // 2, self.room - self._old_weight):
            self._grow_old()
            if weight + self._old_weight > self.room:
                self._lose_old()
        self[key] = value
        if weight:
            self._weights[key] = weight
            self._weight += weight

    def _grow_old(self) -> None:
        self._old, self._old_weights, self._old_weight = dict(self.items()), self._weights, self._weight
        self._begin()

    def _lose_old(self) -> None:
        self._old, self._old_weights, self._old_weight = {}, {}, 0

    def _lighten(self, key: K) -> int:
        """Take the bytes of a value from the older generation."""
        weight = self._old_weights.pop(key, 0)
        self._old_weight -= weight
        return weight

    def _begin(self) -> None:
        self.clear()
        self._weight, self._weights = 0, {}


class BoundedSet(set[K], Generic[K]):
    """Members that are short, as whoever adds them sees to: as a set it is its younger generation."""

    __slots__ = ("_old", "most")

    def __init__(self, most: int) -> None:
        """`most` members are kept."""
        self.most = most
        self._old: set[K] = set()

    def has(self, member: K) -> bool:
        """Return True if `member` is kept, and make it young again."""
        if member in self:
            return True
        if member not in self._old:
            return False
        self.keep(member)
        return True

    def keep(self, member: K) -> None:
        """Keep a member."""
        if len(self) >= self.most // 2:
            self._old = set(self)
            self.clear()
        self._old.discard(member)
        self.add(member)

    @property
    def count(self) -> int:
        """The number of members."""
        return len(self) + len(self._old)
