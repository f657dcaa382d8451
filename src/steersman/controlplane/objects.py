"""Typed access to stores for code inside the server (rest.objects.Objects).

The cache of a kind served later, such as a custom one, may not be filled yet; async methods fill it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any, Final, TypeVar, cast

from steersman.api.meta.v1 import DeleteOptions
from steersman.controlplane.recent_reads import RecentReads
from steersman.endpoints.ownership import stored_field_manager
from steersman.machinery.large_work.sizes import is_large
from steersman.machinery.managed_fields import Applier, FieldManager
from steersman.machinery.values import times
from steersman.rest.capabilities import Change, Item, ListOptions
from steersman.rest.context import Context
from steersman.rest.conversion import run_with_conversions
from steersman.rest.objects import Reading
from steersman.storage.cache.entry import Entry
from steersman.store.listing import in_turns, stored_now
from steersman.store.store import Store
from steersman.work.offloading import bound, current, offload, offload_if
from steersman.work.single_flight import SingleFlight
from steersman.work.yielding import time_sliced

T = TypeVar("T")

MANAGER: Final = "kube-apiserver"
"""Manager of the fields that the server itself writes."""

_MUCH: Final = 64 << 10
"""Bytes of all objects of a namespace above which work on all of them counts as long."""


class StoreObjects:
    """The objects of one store. The server owns the fields that it writes, as upstream's loopback client does."""

    def __init__(self, store: Store[Any]) -> None:
        self._store = store
        self._field_managers: dict[str, FieldManager] = {}
        self._being_read: SingleFlight[tuple[Entry, Reading[Any]], Any] = SingleFlight()
        self._ahead = RecentReads(store.cacher)

    def _fields(self, subresource: str) -> FieldManager:
        manager = self._field_managers.get(subresource)
        if manager is None:
            manager = self._field_managers[subresource] = stored_field_manager(self._store.resource, subresource)
        return manager

    async def get(self, ctx: Context, name: str) -> Any:
        """Return an object as the GET verb does, decoded. Raises StatusError NotFound."""
        item = await self._store.get(ctx, name)
        return await self._whole(item)

    async def get_item(self, ctx: Context, name: str) -> Item:
        """Return an item as a GET with resourceVersion 0 does. Raises StatusError NotFound."""
        return await self._store.get(ctx, name, "0")

    async def list_items(self, ctx: Context, options: ListOptions) -> Sequence[Item]:
        """Return the items of one page of a list. Raises StatusError."""
        return (await self._store.list(ctx, options)).items

    async def wait_until_current(self) -> None:
        """Fill the cache if it is not, then wait until it is current. Raises StatusError 429, 504."""
        if self._store.is_cold:
            await self._store.warm()
        await self._store.wait_until_current()

    async def try_wait_until_current(self) -> bool:
        """Fill the cache if it is not, then wait until it is current; return False on a timeout. Raises StatusError
        429.
        """
        if self._store.is_cold:
            await self._store.warm()
        return await self._store.becomes_current()

    async def refresh(self, namespace: str, name: str) -> None:
        """Wait until the cache is current; if it does not become so, read the object from storage and keep it until the
        cache has it.
        """
        if "/" in namespace + name or await self.try_wait_until_current():
            return
        entry = await self._store.stored(self._key(namespace, name))
        if entry is not None:
            self._ahead.put(entry)

    async def get_cached(self, namespace: str, name: str) -> Any | None:
        """Return the decoded object from the filled cache, None if there is none."""
        if self._store.is_cold:
            await self._store.warm()
        entry = self._entry(namespace, name)
        return None if entry is None else await self._whole(entry)

    async def _whole(self, item: Item) -> Any:
        return await offload_if(is_large(item.body), self._store.decode, item)

    async def iterate_cached(self, namespace: str = "") -> AsyncIterator[tuple[Any, bool]]:
        """Yield each object of the filled cache, decoded, with True if it is large."""
        if self._store.is_cold:
            await self._store.warm()
        entries = self._entries(namespace)
        async for some in in_turns(entries, any_large=self._store.cacher.large > 0):
            for entry in some:
                much = is_large(entry.body)
                yield await offload_if(much, self._store.decode, entry), much

    def _entry(self, namespace: str, name: str) -> Entry | None:
        if "/" in name:  # no object's name contains a slash, but a key might match
            return None
        key = self._key(namespace, name) if namespace else self._store.prefix + name
        entry = self._store.cacher.get(key)
        return self._ahead.get(key) if entry is None and self._ahead else entry

    def _key(self, namespace: str, name: str) -> str:
        prefix = self._store.prefix
        return f"{prefix}{namespace}/{name}" if namespace else prefix + name

    def is_cached(self, namespace: str, name: str) -> bool:
        """Return True if the object is in the cache, or was read ahead of it by `refresh`."""
        return self._entry(namespace, name) is not None

    def names(self, namespace: str = "") -> Iterator[tuple[str, str]]:
        """Yield namespace ("" for a cluster-scoped object) and name of every object, from the cache's keys."""
        for entry in self._entries(namespace):
            found, _, name = entry.key.removeprefix(self._store.prefix).rpartition("/")
            yield found, name

    def read_cached(self, namespace: str, name: str, reading: Reading[T]) -> T | None:
        """Return the projection, which is kept with the cached entry; None without such an object."""
        entry = self._entry(namespace, name)
        if entry is None:
            return None
        facts = entry.facts
        if facts is not None and reading in facts:  # taken without a further call: every write asks for its namespace
            return facts[reading]  # type: ignore[return-value]
        return self._read(entry, reading)

    def _read(self, entry: Entry, reading: Reading[T]) -> T:
        facts = entry.facts
        if facts is not None and reading in facts:
            return cast(T, facts[reading])
        return self._keep(entry, reading, self._read_body(entry.body, reading))

    def _read_body(self, body: bytes, reading: Reading[T]) -> T:
        return reading.make(self._store.kind.partial_decoder(reading.paths)(body))

    def _keep(self, entry: Entry, reading: Reading[T], made: T) -> T:
        if entry.facts is None:
            entry.facts = {}
        entry.facts[reading] = made
        return made

    def read_all_cached(self, namespace: str, reading: Reading[T]) -> list[T]:
        """Return the projections of all objects, all read on this thread without a pause."""
        return [self._read(entry, reading) for entry in self._entries(namespace)]

    async def read_all(self, namespace: str, reading: Reading[T]) -> list[T]:
        """Return the projections of all objects in time slices; large objects are read in worker threads."""
        if self._store.is_cold:
            await self._store.warm()
        return await self._read_each(self._entries(namespace), reading)

    async def read_stored(self, namespace: str, reading: Reading[T]) -> tuple[list[T], bool]:
        """Return the projections of all objects in storage, and True if work on all of them takes long. Raises
        StatusError 429, 500.
        """
        entries = await stored_now(self._store, self._prefix(namespace))
        return await self._read_each(entries, reading), _are_much(entries)

    async def _read_each(self, entries: Sequence[Entry], reading: Reading[T]) -> list[T]:
        objects: list[T] = []
        async for entry in time_sliced(entries):
            if entry.facts is not None and reading in entry.facts:
                objects.append(cast(T, entry.facts[reading]))
            elif is_large(entry.body):
                objects.append(await self._read_beside(entry, reading))
            else:
                objects.append(self._read(entry, reading))
        return objects

    async def _read_beside(self, entry: Entry, reading: Reading[T]) -> T:
        """Read in a worker thread, in single flight."""
        made: T = await self._being_read.do(
            (entry, reading), lambda: offload_if(True, self._read_body, entry.body, reading)
        )
        return self._keep(entry, reading, made)

    def takes_long(self, namespace: str) -> bool:
        """Return True if an object is large, or all together have more than 64 KiB."""
        return _are_much(self._entries(namespace))

    def list(self, namespace: str = "") -> Iterator[Any]:
        """Return an iterator of all objects of a namespace, or of all, decoded on this thread: not for requests."""
        decode = self._store.kind.decode
        return (decode(entry.body) for entry in self._entries(namespace))

    async def iterate_current(self, namespace: str, reading: Reading[T]) -> AsyncIterator[tuple[str, T]]:
        """Yield name and projection of each object of the cache if it is current, else of storage. Raises StatusError."""
        if await self.try_wait_until_current():
            entries = self._entries(namespace)
        else:
            entries = await stored_now(self._store, self._prefix(namespace))
        async for entry in time_sliced(entries):
            name = entry.key.rpartition("/")[2]
            if is_large(entry.body):
                yield name, await offload_if(True, self._read_body, entry.body, reading)
            else:
                yield name, self._read(entry, reading)

    def count(self, namespace: str = "") -> int:
        """Return the number of objects in the cache."""
        return len(self._entries(namespace))

    def _entries(self, namespace: str) -> Sequence[Entry]:
        return self._store.cacher.list(self._prefix(namespace))[0]

    def _prefix(self, namespace: str) -> str:
        return f"{self._store.prefix}{namespace}/" if namespace else self._store.prefix

    def change_count(self) -> int:
        """Return the number of changes that the cache has seen."""
        return self._store.cacher.changed

    def subscribe(self, changed: Callable[[], None]) -> None:
        """Call `changed` at each change of the cache."""
        self._store.cacher.follow(changed)

    def is_empty(self) -> bool:
        """Return True if the cache is current and has no objects."""
        cacher = self._store.cacher
        return cacher.is_current and cacher.is_empty

    async def create(self, ctx: Context, obj: Any, *, manager: str = MANAGER) -> Any:
        """Apply the defaults, make `manager` the owner of all fields, and create the object. Raises StatusError."""
        self._store.kind.default(obj)
        obj.metadata.managed_fields = self._fields("").create(obj, manager, times.now())
        with bound(current().for_user(ctx.user.name)):
            return await self._whole(await self._store.create(ctx, obj))

    async def update(
        self,
        ctx: Context,
        name: str,
        change: Callable[[Any], Any],
        *,
        subresource: str = "",
        strategy: Any = None,
        owned: bool = True,
        manager: str = MANAGER,
    ) -> Any:
        """Replace the object by `change(current)`; with `owned`, `manager` becomes the owner of changed fields. Raises
        StatusError.
        """

        async def make(old: Any | None) -> Any:
            new = change(None if old is None else await offload(self._store.kind.copy, old))
            if owned:
                fields = self._fields(subresource)
                new.metadata.managed_fields = await run_with_conversions(fields.update, new, old, manager, times.now())
            return new

        change_of = Change(make, subresource=subresource, strategy=strategy)
        with bound(current().for_user(ctx.user.name)):
            return await self._whole((await self._store.update(ctx, name, change_of)).item)

    async def apply(
        self,
        ctx: Context,
        name: str,
        configuration: dict[str, Any],
        manager: str,
        *,
        subresource: str = "",
        uid: str = "",
    ) -> Any:
        """Apply a configuration (plain data with kind and apiVersion) to an existing object, with this `uid` if given.

        Conflicts with other managers are forced. Raises StatusError.
        """
        kind = self._store.kind
        applier = Applier(self._fields(subresource))

        async def make(old: Any | None) -> Any:
            applied = await run_with_conversions(applier.apply, old, configuration, manager, times.now(), force=True)
            if applied.obj is None:
                new = kind.copy(old)
            else:
                new = kind.from_plain(applied.obj).obj
                new.kind = new.api_version = ""
            new.metadata.managed_fields = applied.entries
            return new

        with bound(current().for_user(ctx.user.name)):
            updated = await self._store.update(ctx, name, Change(make, uid=uid, subresource=subresource))
            return await self._whole(updated.item)

    async def delete(self, ctx: Context, name: str, options: DeleteOptions | None = None) -> Any:
        """Delete an object as the DELETE verb does, by default without a grace period. Raises StatusError."""
        with bound(current().for_user(ctx.user.name)):
            item, _ = await self._store.delete(ctx, name, options or DeleteOptions(grace_period_seconds=0))
            return await self._whole(item)


def _are_much(entries: Sequence[Entry]) -> bool:
    """Return True if work on all of these entries takes long."""
    size = 0
    for entry in entries:
        size += len(entry.body)
        if size > _MUCH or is_large(entry.body):
            return True
    return False
