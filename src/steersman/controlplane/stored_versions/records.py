"""What servers on one store say of themselves, and what may be stored there: keys that no API is served from.

Each server has a key of its own, which vanishes a while after the server has. One more key is of the store: in which
versions objects of each resource may lie there. It only forgets a version once nothing is stored in it any more.
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
"""Seconds for which a server counts as running after it has said so."""

_API_VERSION: Final = "storedversions.steersman/v1"
_ATTEMPTS: Final = 20

T = TypeVar("T")


class Server(msgspec.Struct, kw_only=True, omit_defaults=False):
    """A server, by resource (`plural.group`): the versions it can read, and the one it writes, once that is agreed."""

    kind: str = "Server"
    api_version: str = msgspec.field(name="apiVersion", default=_API_VERSION)
    version: str
    """Of the program."""
    reads: dict[str, list[str]]
    writes: dict[str, str]


class Store(msgspec.Struct, kw_only=True, omit_defaults=False):
    """By resource, the versions in which objects may be stored. `changes` counts when anybody came to write another."""

    kind: str = "Store"
    api_version: str = msgspec.field(name="apiVersion", default=_API_VERSION)
    changes: int = 0
    versions: dict[str, list[str]] = {}


class Records:
    """All methods raise what storage raises, and ValueError for what is there and cannot be read."""

    def __init__(self, storage: Storage, name: str) -> None:
        self._storage = storage
        self.name: Final = name
        """Of this server."""

    async def announce(self, server: Server) -> None:
        """Has this server count as running, and be as it says, for `TTL` seconds from now."""
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
        raise ValueError(f"{key} is written too often by others")

    async def leave(self) -> None:
        """Has it count no more."""
        current = await self._storage.get(SERVERS + self.name)
        if current is None:
            return
        try:
            await self._storage.delete(current.key, expected_revision=current.mod_revision)
        except Conflict as lost:
            if lost.current is not None:
                raise ValueError(f"{current.key} is written by others") from None

    async def servers(self) -> Mapping[str, Server]:
        """All that run, by name, this one too."""
        found = (await self._storage.range(SERVERS)).items
        return {each.key.removeprefix(SERVERS): _read(each, Server) for each in found}

    async def store(self) -> tuple[Store, int]:
        """What may be stored, and the revision at which that was written last, 0 where it never was."""
        found = await self._storage.get(STORE)
        return (Store(), 0) if found is None else (_read(found, Store), found.mod_revision)

    async def change(self, change: Callable[[Store], None]) -> None:
        """Changes it; again, if another was quicker."""
        for _ in range(_ATTEMPTS):
            store, revision = await self.store()
            change(store)
            if await self._put(store, revision):
                return
        raise ValueError(f"{STORE} is written too often by others")

    async def forget(self, resource: str, kept: str, revision: int) -> int:
        """Says that all objects of a resource are stored in one version, unless anything was said since a revision.
        Gives the revision of that, 0 if it was not said."""
        store, found = await self.store()
        if found != revision:
            return 0
        store.versions[resource] = [kept]
        return await self._put(store, revision)

    async def _put(self, store: Store, revision: int) -> int:
        """The revision of it, 0 if another was quicker."""
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
