"""Replay of older changes to a watcher, in slices between which the event loop continues."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Final, TypeVar

from steersman.storage.cache.entry import Change, WatchEvent
from steersman.storage.cache.watcher import Drain, Watcher, Watchers, fail

T = TypeVar("T")

SLICE: Final = 200
SLICE_BYTES: Final = 256 << 10
"""Events, and bytes of objects, that a replay delivers in one turn of the event loop."""


async def replay(watchers: Watchers, watcher: Watcher, changes: Iterable[Change], drain: Drain | None) -> None:
    """Deliver changes, and the events that arrive meanwhile, in slices; then switch the watcher to live events."""

    def announce(change: Change) -> int:
        watchers.announce_to(watcher, change)
        return change.size + (0 if change.current is None else len(change.current.body))

    def deliver(event: WatchEvent) -> int:
        watcher.deliver_replayed(event)
        return len(event.entry.body)

    try:
        await _in_slices(changes, announce, drain)
        while watcher.held:
            await _in_slices(watcher.take_held(), deliver, drain)
    except Exception as error:
        watcher.replay = None
        fail(watcher, error)
        return
    watcher.release()
    watcher.replay = None


async def _in_slices(items: Iterable[T], deliver: Callable[[T], int], drain: Drain | None) -> None:
    """Pass each item to `deliver`, which returns the bytes of its objects; pause after each slice, and at the end."""
    count = size = 0
    for item in items:
        size += deliver(item)
        count += 1
        if count == SLICE or size > SLICE_BYTES:
            count = size = 0
            await _pause(drain)
    await _pause(drain)


async def _pause(drain: Drain | None) -> None:
    """Yield to the event loop, and let a watcher process its events."""
    await asyncio.sleep(0)
    if drain is not None:
        await drain()
