"""Follows what is stored of a resource, for parts of the server that act on it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from sys import intern
from typing import Any

from steersman.storage.cache.entry import Entry, WatchEvent
from steersman.storage.interface import StorageUnavailable
from steersman.store.store import Store

Changed = Callable[[str, str, Entry | None], None]
"""Namespace, name, and what is stored now: None if it is gone. Called on the loop; must not block, nor raise."""


class Follower:
    """Tells of every object there is, and from then on of every change, whatever happens to the cache."""

    def __init__(self, store: Store[Any], changed: Changed, *, key: str = "") -> None:
        """With `key` it follows that one object only."""
        self._store = store
        self._changed = changed
        self._target = key or store.prefix
        self._known: dict[tuple[str, str], tuple[str, str]] = {}
        """Each by itself: who follows is always told of an object by the same texts, and keeps them once."""
        self._waiting: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Tells of everything there is, and of what has gone since last time; later if nothing can be read."""
        cacher = self._store.cacher
        if not cacher.ready:
            self._waiting = asyncio.get_running_loop().create_task(self._begin_again())
            return
        found = self._found()
        cacher.watch(self._target, after_revision=None, deliver=self._deliver, closed=self._closed, prompt=True)
        before, self._known = self._known, {}
        for entry in found:
            self._take(entry, gone=False)
        for namespace, name in before.keys() - self._known.keys():
            self._changed(namespace, name, None)

    def _found(self) -> list[Entry]:
        cacher = self._store.cacher
        if self._target != self._store.prefix:
            entry = cacher.get(self._target)
            return [] if entry is None else [entry]
        return list(cacher.list(self._target)[0])

    def _deliver(self, event: WatchEvent) -> None:
        self._take(event.entry, gone=event.type == "DELETED")

    def _take(self, entry: Entry, *, gone: bool) -> None:
        key = namespace_and_name(entry.key, self._store.prefix)
        if gone:
            self._known.pop(key, None)
        else:
            key = self._known.setdefault(key, key)
        self._changed(*key, None if gone else entry)

    def _closed(self, error: Exception) -> None:
        """The cache starts over, or stops for good (StorageUnavailable)."""
        if not isinstance(error, StorageUnavailable):
            self._waiting = asyncio.get_running_loop().create_task(self._begin_again())

    async def _begin_again(self) -> None:
        await self._store.cacher.wait_until_ready()
        self.begin()


def namespace_and_name(key: str, prefix: str) -> tuple[str, str]:
    """The namespace ("" without one) and the name of a stored object, from its key."""
    namespace, _, name = key.removeprefix(prefix).rpartition("/")
    return intern(namespace), name
