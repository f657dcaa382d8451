"""The past of a cache: what there was at those revisions that somebody reads page by page, or has asked for."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Final

from steersman.storage.cache.entry import Entry
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

    def keep(self, revision: int, present: SortedEntries) -> None:
        """Keeps what there is now, at a revision."""
        if revision not in self._kept:
            self._keep(revision, present.fork())

    def undo(self, revision: int, present: SortedEntries, undone: Mapping[str, Entry | None]) -> SortedEntries:
        """What there was at a revision, from what there is now and what each key held then that has changed since."""
        past = present.fork()
        for key, entry in undone.items():
            if entry is not None:
                past.put(entry)
            else:
                past.discard(key)
        self._keep(revision, past)
        return past

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

    def _keep(self, revision: int, entries: SortedEntries) -> None:
        self._kept[revision] = (entries, self._replaced)
        if len(self._kept) > MOST:
            self._kept.popitem(last=False)

    def _let_go(self) -> None:
        least = self._replaced - BYTES_LIMIT
        for revision in [each for each, (_, before) in self._kept.items() if before < least]:
            del self._kept[revision]
