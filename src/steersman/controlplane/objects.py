"""Typed access to stores from inside the server (rest.objects.Objects)."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from time import perf_counter
from typing import Any, Final, TypeVar, cast

from steersman.api.meta.v1 import DeleteOptions
from steersman.endpoints.ownership import stored_field_manager
from steersman.machinery import times
from steersman.machinery.managed_fields import Applier, FieldManager
from steersman.machinery.schema import GroupVersionKind
from steersman.machinery.slow_lane import SlowLane, done, is_large
from steersman.machinery.unstructured import from_unstructured
from steersman.machinery.validation.formats import is_path_segment_name
from steersman.rest.context import Context
from steersman.storage.entry import Entry
from steersman.store.store import Store

T = TypeVar("T")

MANAGER: Final = "kube-apiserver"
"""Who owns the fields that the server itself writes."""

_TURN: Final = 0.004
"""Seconds for which many objects are gone through before others have the loop."""


class StoreObjects:
    """The objects of one store. Writes are owned by the server, as upstream's through its loopback client are."""

    def __init__(self, store: Store[Any]) -> None:
        self._store = store
        self._field_managers: dict[str, FieldManager] = {}

    def _fields(self, subresource: str) -> FieldManager:
        found = self._field_managers.get(subresource)
        if found is None:
            found = self._field_managers[subresource] = stored_field_manager(self._store.resource, subresource)
        return found

    async def get(self, ctx: Context, name: str) -> Any:
        return self._store.decode(await self._store.get(ctx, name))

    def find(self, namespace: str, name: str) -> Any | None:
        if is_path_segment_name(name):
            return None  # nothing can be called that
        entry = self._store.entry(namespace, name)
        return None if entry is None else self._store.encoding.decode(entry.body)

    def known(self, namespace: str, name: str, make: Callable[[Any], T]) -> T | None:
        if is_path_segment_name(name):
            return None  # nothing can be called that
        entry = self._store.entry(namespace, name)
        if entry is None:
            return None
        facts = entry.facts
        if facts is None:
            facts = entry.facts = {}
        elif make in facts:
            return cast(T, facts[make])
        facts[make] = made = make(self._store.encoding.decode(entry.body))
        return made

    def list(self, namespace: str = "") -> Iterator[Any]:
        decode = self._store.encoding.decode
        return (decode(entry.body) for entry in self._entries(namespace))

    async def each_known(
        self, namespace: str, make: Callable[[Any], T], lane: SlowLane
    ) -> AsyncIterator[tuple[str, T]]:
        until = perf_counter() + _TURN
        for entry in self._entries(namespace):
            name = entry.key.rpartition("/")[2]
            if is_large(entry.body):
                yield name, await lane.run(lambda body: make(self._store.encoding.decode(body)), entry.body)
                until = perf_counter() + _TURN
                continue
            facts = entry.facts
            if facts is None:
                facts = entry.facts = {}
            if make not in facts:
                facts[make] = make(self._store.encoding.decode(entry.body))
            yield name, cast(T, facts[make])
            if perf_counter() > until:
                await asyncio.sleep(0)
                until = perf_counter() + _TURN

    def count(self, namespace: str = "") -> int:
        return len(self._entries(namespace))

    def _entries(self, namespace: str) -> Sequence[Entry]:
        prefix = self._store.prefix
        return self._store.cacher.list(f"{prefix}{namespace}/" if namespace else prefix)[0]

    def changed(self) -> int:
        return self._store.cacher.changed

    async def create(self, ctx: Context, obj: Any) -> Any:
        if (default := self._store.resource.default) is not None:
            default(obj)
        obj.metadata.managed_fields = self._fields("").create(obj, MANAGER, times.now())
        return self._store.decode(await self._store.create(ctx, obj))

    async def update(
        self, ctx: Context, name: str, change: Callable[[Any], Any], *,
        subresource: str = "", strategy: Any = None, owned: bool = True,
    ) -> Any:  # fmt: skip
        async def make(old: Any | None) -> Any:
            if not owned:
                return change(old)
            before = await done(ctx.lane, copy.deepcopy, old)
            new = change(old)
            fields = self._fields(subresource)
            new.metadata.managed_fields = await done(ctx.lane, fields.update, new, before, MANAGER, times.now())
            return new

        item, _ = await self._store.update(ctx, name, make, subresource=subresource, strategy=strategy)
        return self._store.decode(item)

    async def apply(
        self, ctx: Context, name: str, configuration: dict[str, Any], manager: str, *, subresource: str = ""
    ) -> Any:
        """Server-side apply of a configuration (plain data with kind and apiVersion) to an object that is there.

        What others own is taken from them. Raises StatusError.
        """
        resource = self._store.resource
        kind = GroupVersionKind(resource.group, resource.version, resource.kind.__name__)
        applier = Applier(self._fields(subresource), kind)

        async def make(old: Any | None) -> Any:
            applied = applier.apply(old, configuration, manager, times.now(), force=True)
            new = old
            if applied.obj is not None:
                new = from_unstructured(resource.kind, applied.obj)
                new.kind = new.api_version = ""
            assert new is not None
            new.metadata.managed_fields = applied.entries
            return new

        item, _ = await self._store.update(ctx, name, make, subresource=subresource)
        return self._store.decode(item)

    async def delete(self, ctx: Context, name: str, options: DeleteOptions | None = None) -> Any:
        item, _ = await self._store.delete(ctx, name, options or DeleteOptions(grace_period_seconds=0))
        return self._store.decode(item)
