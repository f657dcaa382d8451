"""Feeds of authorizers from the watch caches of resources.

Small objects take effect in the same iteration of the event loop as the write. Large ones are decoded in worker
threads, at most one version of each object at a time.
"""

from __future__ import annotations

import asyncio
import logging
from asyncio import Event
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from msgspec import Struct, field

from steersman.machinery.large_work.sizes import is_large
from steersman.storage.cache.entry import Entry
from steersman.store.follower import Follower
from steersman.store.store import Store
from steersman.work.offloading import begin_task, offload_if

logger = logging.getLogger(__name__)

K = TypeVar("K")

Put = Callable[[str, str, K | None, Event | None], None]
"""Callback with the namespace and name of an object, its decoded form (None: deleted), and an event that is set once a
newer version has been decoded (None: there is no newer version).
"""


class _Version(Struct, eq=False):
    """A large object that waits for decoding. `superseded`: it was deleted, or replaced by a small version."""

    entry: Entry
    read: Event = field(default_factory=Event)
    is_being_read: bool = False
    superseded: bool = False


class Feed(Generic[K]):
    """Feed of one resource's objects to an authorizer.

    `make` decodes an object from its namespace, its name and its stored value, in any thread. `is_unread` is called
    when a large object waits for decoding, with the event that is set once it has been decoded.
    """

    def __init__(
        self,
        store: Store[Any],
        make: Callable[[str, str, bytes], K],
        put: Put[K],
        is_unread: Callable[[str, str, Event], None],
    ) -> None:
        self._make = make
        self._put = put
        self._is_unread = is_unread
        self._newest: dict[tuple[str, str], _Version] = {}
        """Newest versions that wait for decoding, by namespace and name."""
        self._reading: dict[tuple[str, str], asyncio.Task[None]] = {}
        self._follower = Follower(store, self._changed)

    def begin(self) -> None:
        """Pass on all stored objects, and every change from now on."""
        self._follower.begin()

    def _changed(self, namespace: str, name: str, entry: Entry | None) -> None:
        key = (namespace, name)
        if entry is None or not is_large(entry.body):
            self._put(namespace, name, None if entry is None else self._decoded(namespace, name, entry), None)
            version = self._newest.pop(key, None)
            if version is not None:
                version.superseded = True
                version.read.set()
            return
        replaced = self._newest.get(key)
        if replaced is None or replaced.is_being_read:
            version = _Version(entry)
        else:  # the replaced version is not being decoded: waiters for it wait for this one
            version = _Version(entry, replaced.read)
        self._newest[key] = version
        self._is_unread(namespace, name, version.read)
        if key not in self._reading:
            self._reading[key] = begin_task(self._read(key))

    async def _read(self, key: tuple[str, str]) -> None:
        """Decode the newest version of an object, and newer ones that arrive meanwhile.

        A version that is replaced during its decoding is passed on nevertheless: its waiters came before the change.
        """
        try:
            while (version := self._newest.get(key)) is not None:
                version.is_being_read = True
                kept = await offload_if(True, self._decoded, *key, version.entry)
                if not version.superseded:
                    newest = self._newest[key]
                    if newest is version:
                        del self._newest[key]
                    self._put(*key, kept, None if newest is version else newest.read)
                version.read.set()
        finally:
            del self._reading[key]

    def _decoded(self, namespace: str, name: str, entry: Entry) -> K | None:
        """Return the decoded form of an object, None if it cannot be decoded: one bad object must not block
        authorization.
        """
        try:
            return self._make(namespace, name, entry.body)
        except Exception:
            logger.exception("decoding %s failed; it counts as missing", entry.key)
            return None
