"""Feeds authorizers from the caches of resources.

Small objects count in the turn of the loop in which they are written. Large ones are read in the worker threads, one
version of each at a time.
"""

from __future__ import annotations

import asyncio
import logging
from asyncio import Event
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from steersman.machinery.large_work.sizes import is_large
from steersman.storage.cache.entry import Entry
from steersman.store.follower import Follower
from steersman.store.store import Store
from steersman.work.offloading import begin_task, offload_if

logger = logging.getLogger(__name__)

K = TypeVar("K")

Put = Callable[[str, str, K | None, Event | None], None]
"""Takes the namespace and name of an object, what is kept of it (None: it is gone), and what tells when a newer version
of it has been read, if there is one."""


@dataclass(eq=False, slots=True)
class _Version:
    """A large object that is yet to be read. `superseded`: it is deleted, or has been replaced by a small one."""

    entry: Entry
    read: Event = field(default_factory=Event)
    is_being_read: bool = False
    superseded: bool = False


class Feed(Generic[K]):
    """Brings the objects of one resource to an authorizer: `make` is what that keeps of one, from its namespace, its
    name and what is stored, in whatever thread; `is_unread` tells that a large one is yet to be read."""

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
        """The versions that are yet to be read."""
        self._reading: dict[tuple[str, str], asyncio.Task[None]] = {}
        self._follower = Follower(store, self._changed)

    def begin(self) -> None:
        """Puts what is stored, and from now on every change."""
        self._follower.begin()

    def _changed(self, namespace: str, name: str, entry: Entry | None) -> None:
        key = (namespace, name)
        if entry is None or not is_large(entry.body):
            self._put(namespace, name, None if entry is None else self._kept(namespace, name, entry), None)
            version = self._newest.pop(key, None)
            if version is not None:
                version.superseded = True
                version.read.set()
            return
        replaced = self._newest.get(key)
        if replaced is None or replaced.is_being_read:
            version = _Version(entry)
        else:  # nobody reads the one that is replaced: those who wait for it wait for this one
            version = _Version(entry, replaced.read)
        self._newest[key] = version
        self._is_unread(namespace, name, version.read)
        if key not in self._reading:
            self._reading[key] = begin_task(self._read(key))

    async def _read(self, key: tuple[str, str]) -> None:
        """Reads the newest version, and what is newer by then.

        One that was replaced while it was read is put all the same: who has waited for it began before the change.
        """
        try:
            while (version := self._newest.get(key)) is not None:
                version.is_being_read = True
                kept = await offload_if(True, self._kept, *key, version.entry)
                if not version.superseded:
                    newest = self._newest[key]
                    if newest is version:
                        del self._newest[key]
                    self._put(*key, kept, None if newest is version else newest.read)
                version.read.set()
        finally:
            del self._reading[key]

    def _kept(self, namespace: str, name: str, entry: Entry) -> K | None:
        """What is kept of an object; one that cannot be read gives nothing, and keeps nobody from being judged by the
        rest."""
        try:
            return self._make(namespace, name, entry.body)
        except Exception:
            logger.exception("%s cannot be read and counts as missing", entry.key)
            return None
