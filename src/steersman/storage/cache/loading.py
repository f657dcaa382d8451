"""Loading of a cache's objects in time slices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from steersman.machinery.large_work.sizes import is_large
from steersman.storage.cache.entry import Entry
from steersman.storage.cache.sorted_entries import SortedEntries
from steersman.storage.interface import KeyValue, Undecodable, Unreadable
from steersman.work.yielding import TimeSlice

_LOOK: Final = 64
"""Objects after which the clock is looked at."""


class Loaded:
    """The objects loaded so far, with the number of large ones and the total bytes, as `Cacher` counts them."""

    def __init__(self) -> None:
        self.entries: dict[str, Entry] = {}
        self.ordered = SortedEntries()
        self.large = self.size = 0

    async def read(self, items: Sequence[KeyValue], entry_of: Callable[[KeyValue], Entry]) -> None:
        """Add stored objects in key order, after all present ones. Raises Undecodable, Unreadable."""
        time_slice = TimeSlice()
        for at in range(0, len(items), _LOOK):
            some: list[Entry] = []
            for item in items[at : at + _LOOK]:
                try:
                    some.append(entry_of(item))
                except Unreadable:
                    raise
                except Exception as error:
                    raise Undecodable(item.key, str(error)) from error
            self._add(some)
            await time_slice.pause_if_over()

    def _add(self, some: Sequence[Entry]) -> None:
        self.ordered.append(some)
        for entry in some:
            self.entries[entry.key] = entry
            self.size += len(entry.body)
            self.large += is_large(entry.body)
