"""Typed access to stores from inside the server (registry.services.Objects)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from steersman.api.meta.v1 import DeleteOptions
from steersman.rest.context import Context
from steersman.store.store import Store


class StoreObjects:
    """The objects of one store."""

    def __init__(self, store: Store[Any]) -> None:
        self._store = store

    async def get(self, ctx: Context, name: str) -> Any:
        return self._store.decode(await self._store.get(ctx, name))

    def find(self, namespace: str, name: str) -> Any | None:
        entry = self._store.entry(namespace, name)
        return None if entry is None else self._store.encoding.decode(entry.body)

    def list(self, namespace: str = "") -> Iterator[Any]:
        prefix = self._store.prefix
        found, _ = self._store.cacher.list(f"{prefix}{namespace}/" if namespace else prefix)
        decode = self._store.encoding.decode
        return (decode(entry.body) for entry in found)

    def changed(self) -> int:
        """The revision of the last change of any of them."""
        return self._store.cacher.changed

    async def create(self, ctx: Context, obj: Any) -> Any:
        return self._store.decode(await self._store.create(ctx, obj))

    async def update(
        self, ctx: Context, name: str, change: Callable[[Any], Any], *, subresource: str = "", strategy: Any = None
    ) -> Any:
        async def make(old: Any | None) -> Any:
            return change(old)

        item, _ = await self._store.update(ctx, name, make, subresource=subresource, strategy=strategy)
        return self._store.decode(item)

    async def delete(self, ctx: Context, name: str, options: DeleteOptions | None = None) -> Any:
        item, _ = await self._store.delete(ctx, name, options or DeleteOptions(grace_period_seconds=0))
        return self._store.decode(item)
