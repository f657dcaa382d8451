"""Records about servers and stored versions on one store: keys outside every API.

Each server has a key, which expires some time after the server has gone. One more key belongs to the store: the
versions, by resource, in which objects may be stored. A version is removed from it only when no object is stored in
that version any more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeVar

import msgspec

from steersman.rest.resource import KEYS
from steersman.storage.interface import Conflict, KeyExists, KeyValue, Storage

PREFIX: Final = f"{KEYS}/steersman.stored-versions/"
SERVERS: Final = f"{PREFIX}servers/"
STORE: Final = f"{PREFIX}store"
TTL: Final = 60
"""Seconds for which a server counts as running after an announcement."""

_API_VERSION: Final = "storedversions.steersman/v1"
_ATTEMPTS: Final = 20

T = TypeVar("T")


class Server(msgspec.Struct, kw_only=True, omit_defaults=False):
    """A server; by resource (`plural.group`) the versions that it can read, and the one that it writes, once agreed."""

    kind: str = "Server"
    api_version: str = msgspec.field(name="apiVersion", default=_API_VERSION)
    version: str
    """Version of the program."""
    reads: dict[str, list[str]]
    writes: dict[str, str]


class Store(msgspec.Struct, kw_only=True, omit_defaults=False):
    """Versions in which objects may be stored, by resource. `changes` counts the additions."""

    kind: str = "Store"
    api_version: str = msgspec.field(name="apiVersion", default=_API_VERSION)
    changes: int = 0
    versions: dict[str, list[str]] = {}


class Records:
    """Access to the records. All methods raise the storage's errors, and ValueError for malformed records."""

    def __init__(self, storage: Storage, name: str) -> None:
        self._storage = storage
        self.name: Final = name
        """Name of this server."""

    async def announce(self, server: Server) -> None:
        """Announce this server's record for the next `TTL` seconds."""
        key, value = SERVERS + self.name, msgspec.json.encode(server)
        current = await self._storage.get(key)
        for _ in range(_ATTEMPTS):
            try:
                if current is None:
                    await self._storage.create(key, value, ttl=TTL)
                else:
                    await self._storage.update(key, value, expected_revision=current.mod_revision, ttl=TTL)
            except (KeyExists, Conflict) as lost:
                current = lost.current
                continue
            return
        raise ValueError(f"{key}: too many concurrent writes by others")

    async def leave(self) -> None:
        """Withdraw the announcement."""
        current = await self._storage.get(SERVERS + self.name)
        if current is None:
            return
        try:
            await self._storage.delete(current.key, expected_revision=current.mod_revision)
        except Conflict as lost:
            if lost.current is not None:
                raise ValueError(f"{current.key} is written by others") from None

    async def servers(self) -> Mapping[str, Server]:
        """Return all running servers by name, this one included."""
        items = (await self._storage.range(SERVERS)).items
        return {each.key.removeprefix(SERVERS): _read(each, Server) for each in items}

    async def store(self) -> tuple[Store, int]:
        """Return the store's record and its revision; an empty record and 0 if it was never written."""
        stored = await self._storage.get(STORE)
        return (Store(), 0) if stored is None else (_read(stored, Store), stored.mod_revision)

    async def change(self, change: Callable[[Store], None]) -> None:
        """Change the store's record; retried if another server was faster."""
        for _ in range(_ATTEMPTS):
            store, revision = await self.store()
            change(store)
            if await self._put(store, revision):
                return
        raise ValueError(f"{STORE}: too many concurrent writes by others")

    async def forget(self, resource: str, kept: str, revision: int) -> int:
        """Record that all objects of a resource are stored in version `kept`, unless the record has changed since
        `revision`.

        Returns the new revision, 0 if nothing was recorded.
        """
        store, found = await self.store()
        if found != revision:
            return 0
        store.versions[resource] = [kept]
        return await self._put(store, revision)

    async def _put(self, store: Store, revision: int) -> int:
        """Write the store's record; return its revision, 0 if another server was faster."""
        value = msgspec.json.encode(store)
        try:
            if not revision:
                return (await self._storage.create(STORE, value)).mod_revision
            return (await self._storage.update(STORE, value, expected_revision=revision)).mod_revision
        except (KeyExists, Conflict):
            return 0


def _read(stored: KeyValue, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(stored.value, type=kind)
    except msgspec.MsgspecError as error:
        raise ValueError(f"{stored.key} cannot be read: {error}") from error
