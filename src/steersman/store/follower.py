"""Observation of a resource's stored objects, for server components that act on them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from sys import intern
from typing import Any

from steersman.storage.cache.entry import Entry, WatchEvent
from steersman.storage.interface import StorageUnavailable
from steersman.store.store import Store

Changed = Callable[[str, str, Entry | None], None]
"""A function that takes namespace, name, and the stored entry (None for a deleted object). Called on the event loop; it
must neither block nor raise.
"""


class Follower:
    """A subscriber to every present object and all changes, which survives restarts of the cache."""

    def __init__(self, store: Store[Any], changed: Changed, *, key: str = "") -> None:
        """Take the store and the callback. With `key` only that object is observed."""
        self._store = store
        self._changed = changed
        self._target = key or store.prefix
        self._known: dict[tuple[str, str], tuple[str, str]] = {}
        """The known keys, each stored once: the callback always gets the same text objects for an object."""
        self._waiting: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Report all present objects, and those deleted since the last time.

        Happens later if nothing can be read at present.
        """
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
        """Restart when the cache restarts; StorageUnavailable means that it has stopped for good."""
        if not isinstance(error, StorageUnavailable):
            self._waiting = asyncio.get_running_loop().create_task(self._begin_again())

    async def _begin_again(self) -> None:
        await self._store.cacher.wait_until_ready()
        self.begin()


def namespace_and_name(key: str, prefix: str) -> tuple[str, str]:
    """Return the namespace ("" without one) and the name of a stored object, from its key."""
    namespace, _, name = key.removeprefix(prefix).rpartition("/")
    return intern(namespace), name
