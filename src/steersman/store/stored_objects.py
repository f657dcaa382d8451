"""Writes of a resource's objects, with a strategy, allocators and inquiries."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import TypeVar

from steersman.rest.allocator import Allocator, Inquiry
from steersman.rest.bound import BoundResource
from steersman.rest.context import Context
from steersman.rest.strategy import Strategy
from steersman.storage.cache.entry import Entry
from steersman.storage.interface import Event, KeyValue, Storage
from steersman.store.cached_objects import CachedObjects
from steersman.store.storage_errors import committed
from steersman.work.offloading import offload

T = TypeVar("T")


class StoredObjects(CachedObjects[T]):
    """The write side of a resource's store. Its methods return None for a lost race and raise StatusError 500.

    Stored values end with a newline, like upstream's.
    """

    def __init__(self, bound: BoundResource[T], storage: Storage) -> None:
        super().__init__(bound, storage)
        self.strategy: Strategy[T] = bound.strategy
        self.substrategies: Mapping[str, Strategy[T]] = bound.substrategies
        self.allocator: Allocator[T] | None = bound.allocator
        self.suballocators: Mapping[str, Allocator[T]] = bound.suballocators
        self.inquiries: Mapping[str, Inquiry[T]] = bound.inquiries
        """Inquiries by subresource, "" for the resource itself."""
        self.ttl = bound.ttl

    def read(self, ctx: Context, entry: Entry, *, anew: bool = False) -> Awaitable[T]:
        """Return a new copy of an entry's object in the version of the request.

        An object that must be converted is converted again only if `anew`. Raises StatusError.
        """
        return offload(self.kind.decode, entry.body)

    def encoded(self, ctx: Context, obj: T) -> Awaitable[bytes]:
        """Return the value to be stored for an object in the version of the request. Raises StatusError."""
        return offload(self.kind.value, obj)

    async def unstored(self, ctx: Context, obj: T, revision: int) -> bytes:
        """Return the served body of an object in the version of the request that is not stored."""
        value = await self.encoded(ctx, obj)
        return await offload(self.kind.present, value, revision)

    def replace(self, key: str, value: bytes, revision: int) -> Awaitable[KeyValue | None]:
        """Replace the value of this revision."""
        return committed(self.storage.update(key, value + b"\n", expected_revision=revision, ttl=self.ttl))

    def delete_stored(self, key: str, revision: int) -> Awaitable[Event | None]:
        """Delete the value of this revision."""
        return committed(self.storage.delete(key, expected_revision=revision))
