"""The end of what a cache has held: very many entries are freed, and very many watchers told, in turns of the loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Final

from steersman.storage.cache.entry import Entry
from steersman.storage.cache.sorted_entries import SortedEntries
from steersman.storage.cache.watcher import Watcher

_TURN: Final = 0.003
"""Seconds between two turns of the loop."""
_ENDED: Final = 32
"""Watchers that are told of their end between two looks at the clock."""


def end_all(watchers: list[Watcher], error: Exception) -> None:
    """Ends watchers, which are told nothing any more; the list becomes empty as they are."""
    _in_turns(partial(_end_some, watchers, error))


def forget_all(ordered: SortedEntries, entries: dict[str, Entry]) -> None:
    """Frees entries, which nobody is to be shown any more."""
    _in_turns(partial(_forget_some, ordered, entries))


def _in_turns(some: Callable[[], bool]) -> None:
    """Calls a function until there is no more to do for it, others having the loop in between."""
    until = perf_counter() + _TURN
    while some():
        if perf_counter() > until:
            asyncio.get_running_loop().call_soon(_in_turns, some)
            return


def _end_some(watchers: list[Watcher], error: Exception) -> bool:
    for watcher in watchers[-_ENDED:]:
        watcher.end(error)
    del watchers[-_ENDED:]
    return bool(watchers)


def _forget_some(ordered: SortedEntries, entries: dict[str, Entry]) -> bool:
    chunk = ordered.take_chunk()
    for entry in chunk:
        entries.pop(entry.key, None)
    return bool(chunk)
