"""Replay of older changes to a watcher, in slices between which the event loop continues."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Final

from steersman.storage.cache.entry import Change
from steersman.storage.cache.watcher import Drain, Watcher, Watchers, fail

SLICE: Final = 200
SLICE_BYTES: Final = 256 << 10
"""Events, and bytes of objects, that a replay delivers in one turn of the event loop."""


async def replay(watchers: Watchers, watcher: Watcher, changes: Iterable[Change], drain: Drain | None) -> None:
    """Deliver changes, and the events that arrive meanwhile, in slices; then switch the watcher to live events."""
    try:
        await _deliver_changes(watchers, watcher, changes, drain)
        while watcher.held:
            await _deliver_held(watcher, drain)
    except Exception as error:
        watcher.replay = None
        fail(watcher, error)
        return
    watcher.release()
    watcher.replay = None


async def _deliver_changes(
    watchers: Watchers, watcher: Watcher, changes: Iterable[Change], drain: Drain | None
) -> None:
    count = size = 0
    for change in changes:
        watchers.announce_to(watcher, change)
        count += 1
        size += change.size + (0 if change.current is None else len(change.current.body))
        if count == SLICE or size > SLICE_BYTES:
            count = size = 0
            await _pause(drain)
    await _pause(drain)


async def _deliver_held(watcher: Watcher, drain: Drain | None) -> None:
    count = size = 0
    for event in watcher.take_held():
        watcher.deliver_replayed(event)
        count += 1
        size += len(event.entry.body)
        if count == SLICE or size > SLICE_BYTES:
            count = size = 0
            await _pause(drain)
    await _pause(drain)


async def _pause(drain: Drain | None) -> None:
    """Yield to the event loop, and let a watcher process its events."""
    await asyncio.sleep(0)
    if drain is not None:
        await drain()
