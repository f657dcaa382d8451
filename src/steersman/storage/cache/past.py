"""The past of a cache: what there was at those revisions that somebody reads page by page, or has asked for."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from steersman.storage.cache.sorted_entries import SortedEntries

MOST: Final = 16
"""Revisions that are kept; the one that was read least recently is let go."""
BYTES_LIMIT: Final = 32 << 20
"""Bytes of objects that have been replaced or deleted since, up to which a revision is kept."""


class Past:
    """Entries as they were at some revisions. Entries that are still there are shared with those of now."""

    def __init__(self) -> None:
        self._kept: OrderedDict[int, tuple[SortedEntries, int]] = OrderedDict()
        """By revision, with how much had been replaced then."""
        self._replaced = 0

    def replaced(self, size: int) -> None:
        """So many bytes of an object are held by nothing but what is kept here."""
        self._replaced += size
        if self._kept:
            self._let_go()

    def keep(self, revision: int, entries: SortedEntries, *, is_own: bool = False) -> None:
        """Keeps what there is at a revision: a fork of what is given, unless that is there for nothing else."""
        if revision not in self._kept:
            self._kept[revision] = (entries if is_own else entries.fork(), self._replaced)
            if len(self._kept) > MOST:
                self._kept.popitem(last=False)

    def at(self, revision: int) -> SortedEntries | None:
        """What there was at a revision, if that is kept."""
        found = self._kept.get(revision)
        if found is None:
            return None
        self._kept.move_to_end(revision)
        return found[0]

    def forget(self) -> None:
        """Lets go of everything."""
        self._kept.clear()

    def _let_go(self) -> None:
        least = self._replaced - BYTES_LIMIT
        for revision in [each for each, (_, before) in self._kept.items() if before < least]:
            del self._kept[revision]
