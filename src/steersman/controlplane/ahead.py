"""Objects that were read from storage because the cache is behind, until the cache has them."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from steersman.machinery.values import times
from steersman.storage.cache.cacher import Cacher
from steersman.storage.cache.entry import Entry

SECONDS: Final = 30.0
"""For which what was read counts, if the cache does not come that far sooner: as long as a request may take, about."""
_MOST: Final = 1_000
_MOST_BYTES: Final = 8 << 20
"""Objects that are kept, and bytes of them; of more the oldest are forgotten, and read again when asked for."""


class Ahead:
    """What the cache of one resource does not have yet."""

    def __init__(self, cacher: Cacher) -> None:
        self._cacher = cacher
        self._entries: OrderedDict[str, tuple[Entry, float]] = OrderedDict()
        self._size = 0

    def __bool__(self) -> bool:
        return bool(self._entries)

    def put(self, entry: Entry) -> None:
        """Keeps an object as it was just read."""
        self._forget(entry.key)
        self._entries[entry.key] = entry, times.monotonic()
        self._size += len(entry.body)
        while len(self._entries) > _MOST or self._size > _MOST_BYTES:
            self._forget(next(iter(self._entries)))

    def get(self, key: str) -> Entry | None:
        """The object, None for one that the cache would have by now, or that was read too long ago."""
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
