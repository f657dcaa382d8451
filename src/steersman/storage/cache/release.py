"""Release of a cache's content: many entries are freed, and many watchers are ended, in slices of the event loop."""

from __future__ import annotations

from functools import partial
from typing import Final

from steersman.storage.cache.entry import Entry
from steersman.storage.cache.sorted_entries import SortedEntries
from steersman.storage.cache.watcher import Watcher
from steersman.work.yielding import run_in_slices

_TURN: Final = 0.003
"""Seconds of a slice of the event loop."""
_ENDED: Final = 32
"""Watchers that are ended between two checks of the clock."""


def end_watchers(watchers: list[Watcher], error: Exception) -> None:
    """End watchers, which get no more events; the list is emptied in the process."""
    run_in_slices(partial(_end_some, watchers, error), _TURN)


def free_entries(ordered: SortedEntries, entries: dict[str, Entry]) -> None:
    """Free entries that are no longer visible."""
    run_in_slices(partial(_free_some, ordered, entries), _TURN)


def _end_some(watchers: list[Watcher], error: Exception) -> bool:
    for watcher in watchers[-_ENDED:]:
        watcher.end(error)
    del watchers[-_ENDED:]
    return bool(watchers)


def _free_some(ordered: SortedEntries, entries: dict[str, Entry]) -> bool:
    chunk = ordered.take_chunk()
    for entry in chunk:
        entries.pop(entry.key, None)
    return bool(chunk)
