"""Past states of a cache at revisions that are being read page by page or have been requested."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from steersman.storage.cache.sorted_entries import SortedEntries

MOST: Final = 16
"""The most revisions that are kept; the least recently read one is evicted."""
BYTES_LIMIT: Final = 32 << 20
"""A revision is evicted once this many bytes of objects have been replaced or deleted since."""


class PastStates:
    """Entries as they were at some revisions. Unchanged entries are shared with the present."""

    def __init__(self) -> None:
        self._kept: OrderedDict[int, tuple[SortedEntries, int]] = OrderedDict()
        """The entries by revision, with the total of replaced bytes at that time."""
        self._replaced = 0

    def replaced(self, size: int) -> None:
        """Record that only past revisions still refer to an object of this many bytes."""
        self._replaced += size
        if self._kept:
            self._evict()

    def keep(self, revision: int, entries: SortedEntries, *, is_own: bool = False) -> None:
        """Keep the entries at a revision: a fork of them, or the given object itself if it is used for nothing else."""
        if revision not in self._kept:
            self._kept[revision] = (entries if is_own else entries.fork(), self._replaced)
            if len(self._kept) > MOST:
                self._kept.popitem(last=False)

    def at(self, revision: int) -> SortedEntries | None:
        """Return the entries at a revision, None if they are not kept."""
        found = self._kept.get(revision)
        if found is None:
            return None
        self._kept.move_to_end(revision)
        return found[0]

    def clear(self) -> None:
        """Evict all revisions."""
        self._kept.clear()

    def _evict(self) -> None:
        least = self._replaced - BYTES_LIMIT
        for revision in [each for each, (_, before) in self._kept.items() if before < least]:
            del self._kept[revision]
