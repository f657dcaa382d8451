"""Feeds the RBAC authorizer from the caches of its four resources."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from steersman.authorization.rbac import RbacAuthorizer
from steersman.storage.entry import Entry, WatchEvent
from steersman.storage.interface import StorageUnavailable
from steersman.store.store import Store

logger = logging.getLogger(__name__)

Set = Callable[[str, str, Any | None], None]


def feed(authorizer: RbacAuthorizer, stores: Callable[[str, str], Store[Any]]) -> None:
    """Puts what is stored into the authorizer, and from now on every change."""
    group = "rbac.authorization.k8s.io"
    sets: dict[str, Set] = {
        "clusterroles": lambda _, name, obj: authorizer.set_cluster_role(name, obj),
        "clusterrolebindings": lambda _, name, obj: authorizer.set_cluster_role_binding(name, obj),
        "roles": authorizer.set_role,
        "rolebindings": authorizer.set_role_binding,
    }
    for plural, put in sets.items():
        _Follower(stores(group, plural), put).begin()


class _Follower:
    """Keeps one kind of the authorizer's objects as they are stored."""

    def __init__(self, store: Store[Any], put: Set) -> None:
        self._store = store
        self._put = put
        self._known: set[tuple[str, str]] = set()
        self._waiting: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Puts everything there is, takes away what has gone, and follows from there; later if nothing can be read."""
        cacher, prefix = self._store.cacher, self._store.prefix
        if not cacher.ready:
            self._waiting = asyncio.get_running_loop().create_task(self._begin_again())
            return
        found, _ = cacher.list(prefix)
        cacher.watch(prefix, after_revision=None, deliver=self._deliver, closed=self._closed)
        before, self._known = self._known, set()
        for entry in found:
            self._take(entry, gone=False)
        for namespace, name in before - self._known:
            self._put(namespace, name, None)

    def _deliver(self, event: WatchEvent) -> None:
        self._take(event.entry, gone=event.type == "DELETED")

    def _take(self, entry: Entry, *, gone: bool) -> None:
        """What cannot be read grants nothing, and keeps nobody from being judged by the rest."""
        namespace, name = namespace_and_name(entry.key, self._store.prefix)
        obj = None
        if gone:
            self._known.discard((namespace, name))
        else:
            self._known.add((namespace, name))
            try:
                obj = self._store.encoding.decode(entry.body)
            except Exception:
                logger.exception("%s cannot be read and counts as missing", entry.key)
        self._put(namespace, name, obj)

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
    return namespace, name
