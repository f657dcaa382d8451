"""Objects read from storage because the watch cache was behind, kept until the cache has caught up with them."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from steersman.machinery.values import times
from steersman.storage.cache.cacher import Cacher
from steersman.storage.cache.entry import Entry

SECONDS: Final = 30.0
"""Seconds for which an object is kept if the cache does not catch up sooner: about the longest time of a request."""
_MOST: Final = 1_000
_MOST_BYTES: Final = 8 << 20
"""Limits of kept objects and their bytes. The oldest are evicted, and read again on demand."""


class RecentReads:
    """Objects of one resource that are newer than its watch cache."""

    def __init__(self, cacher: Cacher) -> None:
        self._cacher = cacher
        self._entries: OrderedDict[str, tuple[Entry, float]] = OrderedDict()
        self._size = 0

    def __bool__(self) -> bool:
        return bool(self._entries)

    def put(self, entry: Entry) -> None:
        """Keep an object that was just read."""
        self._forget(entry.key)
        self._entries[entry.key] = entry, times.monotonic()
        self._size += len(entry.body)
        while len(self._entries) > _MOST or self._size > _MOST_BYTES:
            self._forget(next(iter(self._entries)))

    def get(self, key: str) -> Entry | None:
        """Return the object; None if it is not kept, is too old, or the cache has caught up with it."""
        kept = self._entries.get(key)
        if kept is None:
            return None
        entry, since = kept
        if self._cacher.revision < entry.revision and times.monotonic() - since < SECONDS:
            return entry
        self._forget(key)
        return None

    def _forget(self, key: str) -> None:
        kept = self._entries.pop(key, None)
        if kept is not None:
            self._size -= len(kept[0].body)
