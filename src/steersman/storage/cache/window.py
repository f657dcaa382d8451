"""The event window: the latest changes of a resource, for resuming watches and for lists of the recent past."""

from __future__ import annotations

from bisect import bisect_right
from operator import attrgetter
from typing import Final

from steersman.storage.cache.entry import Change, Entry

COUNT_KEPT: Final = 100
"""The number of changes that are kept whatever their age, unless they are too large."""
COUNT_LIMIT: Final = 10_000
FRESH_SECONDS: Final = 75.0
"""Changes up to this age are kept, within the other limits; equals upstream's event freshness."""
BYTES_LIMIT: Final = 32 << 20
BYTES_OF_LARGE: Final = 8 << 20
BYTES_OF_EACH: Final = 8 << 10
"""Changes that average more than `BYTES_OF_EACH` have a smaller limit: so few of them are kept that few watches profit,
and others read them from storage.
"""

_REVISION = attrgetter("revision")
_GONE: Final = Change(0, "", None, None, 0.0)


class EventWindow:
    """Changes in revision order. The window has all changes after `start`."""

    def __init__(
        self,
        start: int,
        *,
        count_kept: int = COUNT_KEPT,
        count_limit: int = COUNT_LIMIT,
        bytes_limit: int = BYTES_LIMIT,
        bytes_of_large: int = BYTES_OF_LARGE,
        fresh_seconds: float = FRESH_SECONDS,
    ) -> None:
        self.start = start
        self.size = 0
        """Roughly the bytes that are freed with the changes."""
        self._changes: list[Change] = []
        self._first = 0
        """The index in `_changes` where the window begins; the part before it is removed in bulk."""
        self._count_kept = count_kept
        self._count_limit = count_limit
        self._bytes_limit = bytes_limit
        self._bytes_of_large = min(bytes_of_large, bytes_limit)
        self._fresh_seconds = fresh_seconds

    def __len__(self) -> int:
        return len(self._changes) - self._first

    def add(self, change: Change) -> None:
        """Add the newest change and remove the oldest ones as the limits demand."""
        changes = self._changes
        changes.append(change)
        self.size += change.size
        count = len(changes) - self._first
        stale = change.time - self._fresh_seconds
        while (
            count > self._count_limit
            or (self.size > self._bytes_of_large and self.size > min(self._bytes_limit, count * BYTES_OF_EACH))
            or (count > self._count_kept and changes[self._first].time < stale)
        ):
            oldest = changes[self._first]
            # Frees the change now; the list itself is shortened now and then.
            changes[self._first] = _GONE
            self.start = oldest.revision
            self.size -= oldest.size
            self._first += 1
            count -= 1
        if self._first > 64 and self._first * 2 > len(changes):
            del changes[: self._first]
            self._first = 0

    def since(self, revision: int) -> list[Change]:
        """Return the changes after `revision`, which must not be before `start`, the oldest first."""
        return self._changes[bisect_right(self._changes, revision, lo=self._first, key=_REVISION) :]

    def undo(self, revision: int) -> dict[str, Entry | None]:
        """Return the entry at `revision` of each key that changed since."""
        return {change.key: change.previous for change in reversed(self.since(revision))}
