"""Shared by tests of the watch cache: objects as it shows them, selections of them, a watcher that keeps its events."""

from __future__ import annotations

import asyncio
from typing import Any

from steersman.storage.cache.cacher import Cacher
from steersman.storage.cache.entry import Entry, WatchEvent
from steersman.storage.cache.window import EventWindow

PODS = "/registry/pods/"


def present(value: bytes, revision: int) -> bytes:
    return b"%s@%d" % (value, revision)


def body_at(body: bytes, revision: int) -> bytes:
    return present(body.rpartition(b"@")[0], revision)


class Log:
    """A watcher that collects its events as (type, key, body, revision)."""

    def __init__(self) -> None:
        self.events: list[tuple[str, str, bytes, int]] = []
        self.errors: list[Exception] = []

    def deliver(self, event: WatchEvent) -> None:
        self.events.append((event.type, event.entry.key, event.entry.body, event.revision))
        assert event.entry.revision == event.revision

    def closed(self, error: Exception) -> None:
        self.errors.append(error)

    @property
    def short(self) -> list[tuple[str, bytes]]:
        return [(type_, body) for type_, _, body, _ in self.events]


async def caught_up(cacher: Cacher, *watchers: Any) -> None:
    """Returns once the watchers' replays are over."""
    for watcher in watchers:
        if watcher.replay is not None:
            await asyncio.gather(watcher.replay, return_exceptions=True)


class Window:
    """Makes event windows with small limits."""

    def __init__(self, **limits: int) -> None:
        self._limits = limits

    def __call__(self, start: int) -> EventWindow:
        return EventWindow(start, fresh_seconds=0, **self._limits)


def odd(entry: Entry) -> bool:
    """A selection that objects enter and leave: those whose value ends in an odd digit."""
    return entry.body.partition(b"@")[0][-1] % 2 == 1
