"""A bounded cache and a bounded set that evict gradually and keep entries that are used often.

A full cache is never emptied at once. Entries live in two generations: when the younger generation holds half of the
limit it becomes the older one, and the previous older generation is evicted. An entry that is read moves back into the
younger generation (a second chance). A hit in the younger generation costs one look-up in a built-in dict or set.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class BoundedCache(dict[K, V], Generic[K, V]):
    """Cache bounded by the number of entries and optionally by bytes; `cache[key]` returns None for a missing key.

    The underlying dict is the younger generation only. Read with `cache[key]` and not with `get` or `in`, which would
    miss the older generation. Values must not be None.
    """

    __slots__ = (
        "_old",
        "_old_weight",
        "_old_weights",
        "_weight",
        "_weights",
        "max_bytes",
        "max_entries",
        "max_entry_bytes",
    )

    def __init__(self, max_entries: int, max_bytes: int = 0, *, max_entry_bytes: int = 0) -> None:
        """Create a cache of at most `max_entries` entries.

        If `max_bytes` is not 0, it bounds the bytes of all entries, as given to `keep`, and `max_entry_bytes` bounds
        the bytes of one entry (0: `max_bytes`).
        """
        self.max_entries = max_entries
        self.max_bytes = max_bytes
        self.max_entry_bytes = max_entry_bytes or max_bytes
        self._old: dict[K, V] = {}
        self._weight = 0
        self._weights: dict[K, int] = {}
        self._old_weight = 0
        self._old_weights: dict[K, int] = {}

    if TYPE_CHECKING:

        def __getitem__(self, key: K, /) -> V | None: ...  # type: ignore[override]

    def __missing__(self, key: K) -> V | None:
        """Return the value from the older generation, after moving it into the younger one, or None if it is in
        neither.
        """
        if key not in self._old:
            return None
        value = self._old.pop(key)
        self._insert(key, value, self._lighten(key))
        return value

    def keep(self, key: K, value: V, weight: int = 0) -> None:
        """Store `value`, which takes `weight` bytes, and replace the key's previous value.

        If the value is larger than one entry may be, the previous value is removed and nothing is stored.
        """
        if self.pop(key, None) is not None:
            self._weight -= self._weights.pop(key, 0)
        elif self._old.pop(key, None) is not None:
            self._lighten(key)
        if not self.max_bytes or weight <= self.max_entry_bytes:
            self._insert(key, value, weight)

    def forget(self) -> None:
        """Remove all entries, because they are no longer valid."""
        self._lose_old()
        self._begin()

    @property
    def count(self) -> int:
        """Number of entries in both generations."""
        return len(self) + len(self._old)

    @property
    def weight(self) -> int:
        """Bytes of all entries of both generations."""
        return self._weight + self._old_weight

    def _insert(self, key: K, value: V, weight: int) -> None:
        """Add an entry that is in neither generation, and evict the older generation when a limit is reached."""
        if len(self) >= max(self.max_entries // 2, 1):
            self._grow_old()
        if self.max_bytes and self._weight + weight > min(self.max_bytes // 2, self.max_bytes - self._old_weight):
            self._grow_old()
            if weight + self._old_weight > self.max_bytes:
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
        """Remove the bytes of `key` from the count of the older generation and return them."""
        weight = self._old_weights.pop(key, 0)
        self._old_weight -= weight
        return weight

    def _begin(self) -> None:
        self.clear()
        self._weight, self._weights = 0, {}


class BoundedSet(set[K], Generic[K]):
    """Set bounded by the number of members; callers must see to it that members are short.

    The underlying set is the younger generation only. Ask with `has` and not with `in`, which would miss the older
    generation.
    """

    __slots__ = ("_old", "max_entries")

    def __init__(self, max_entries: int) -> None:
        """Create a set of at most `max_entries` members."""
        self.max_entries = max_entries
        self._old: set[K] = set()

    def has(self, member: K) -> bool:
        """Return True if `member` is in the set, and move it into the younger generation."""
        if member in self:
            return True
        if member not in self._old:
            return False
        self.keep(member)
        return True

    def keep(self, member: K) -> None:
        """Add a member, which may evict the older generation."""
        if len(self) >= self.max_entries // 2:
            self._old = set(self)
            self.clear()
        self._old.discard(member)
        self.add(member)

    def discard(self, member: object) -> None:
        """Remove a member from both generations."""
        super().discard(member)
        self._old.discard(member)

    @property
    def count(self) -> int:
        """Number of members in both generations."""
        return len(self) + len(self._old)
