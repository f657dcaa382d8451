"""An index of a cache's keys by the value of one field, such as the node of a pod."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from sortedcontainers import SortedList

from steersman.storage.cache.entry import Entry
from steersman.work.single_flight import Flight
from steersman.work.yielding import TimeSlice

logger = logging.getLogger(__name__)

ValueOf = Callable[[Entry], str]
"""A function that returns the value of an entry's field, "" if it has none; it does not raise."""

CLOCK_EVERY: Final = 32
"""Entries after which the clock is looked at."""
_NO_KEYS: Final = SortedList()


class FieldIndex:
    """An index that is built in time slices at first use; until it is complete it gives no answers."""

    def __init__(self, value_of: ValueOf) -> None:
        self._value_of = value_of
        self._values: dict[str, str] = {}
        self._keys: dict[str, SortedList] = {}
        self._filling: Flight[None] | None = None
        self._is_complete = False
        self.is_used = False
        """True after the first use, from which on changes must be reported."""

    def keys(self, value: str, entries: Mapping[str, Entry]) -> SortedList | None:
        """Return the sorted keys of the objects with a value; None until the index is complete. `entries` are the
        cache's.
        """
        if self._is_complete:
            return self._keys.get(value, _NO_KEYS)
        self._begin(entries)
        return None

    def _begin(self, entries: Mapping[str, Entry]) -> Flight[None]:
        if self._filling is None:
            self.is_used = True
            self._filling = Flight(partial(self._fill, entries))
        return self._filling

    async def filled(self, entries: Mapping[str, Entry]) -> None:
        """Return once the index is complete or has failed.

        Requests wait for it, because hundreds of scans meanwhile would leave the index no time.
        """
        if not self._is_complete:
            await self._begin(entries).ended()

    async def _fill(self, entries: Mapping[str, Entry]) -> None:
        try:
            time_slice = TimeSlice()
            for number, key in enumerate(list(entries)):
                entry = entries.get(key)
                if entry is not None and key not in self._values:
                    self._add(key, self._value_of(entry))
                if not number % CLOCK_EVERY:
                    await time_slice.pause_if_over()
        except Exception:
            logger.exception("an index could not be built, so lists scan all objects")
        else:
            self._is_complete = True

    def changed(self, key: str, current: Entry | None) -> None:
        """Record that a key has another object now, or none."""
        if not self.is_used:
            return
        before = self._values.get(key)
        value = None if current is None else self._value_of(current)
        if value == before:
            return
        if before is not None:
            del self._values[key]
            keys = self._keys[before]
            keys.remove(key)
            if not keys:
                del self._keys[before]
        if value is not None:
            self._add(key, value)

    def _add(self, key: str, value: str) -> None:
        keys = self._keys.get(value)
        if keys is None:
            keys = self._keys[value] = SortedList()
        self._values[key] = value
        keys.add(key)

    def clear(self) -> None:
        """Drop the index, until it is needed again."""
        if self._filling is not None:
            self._filling.cancel()
            self._filling = None
            self.is_used = False
        self._values, self._keys = {}, {}
        self._is_complete = False
