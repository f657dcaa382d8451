"""The objects of a resource as they are written: with a strategy, and with what stands beside it."""

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
    """See the module. Of a write that lost against another one the methods give None; they raise StatusError 500.

    What is stored ends with a newline, as upstream's does."""

    def __init__(self, bound: BoundResource[T], storage: Storage) -> None:
        super().__init__(bound, storage)
        self.strategy: Strategy[T] = bound.strategy
        self.substrategies: Mapping[str, Strategy[T]] = bound.substrategies
        self.allocator: Allocator[T] | None = bound.allocator
        self.suballocators: Mapping[str, Allocator[T]] = bound.suballocators
        self.inquiries: Mapping[str, Inquiry[T]] = bound.inquiries
        """By subresource, "" for the resource itself."""
        self.ttl = bound.ttl

    def read(self, ctx: Context, entry: Entry, *, anew: bool = False) -> Awaitable[T]:
        """The object of an entry as the request is to work on it, its own copy.

        Where it is converted for that, and has been before, it is again only if `anew`. Raises StatusError.
        """
        return offload(self.kind.decode, entry.body)

    def encoded(self, ctx: Context, obj: T) -> Awaitable[bytes]:
        """The value to store for an object that the request has worked on. Raises StatusError."""
        return offload(self.kind.value, obj)

    async def unstored(self, ctx: Context, obj: T, revision: int) -> bytes:
        """The body of an object that the request has worked on and that is not stored, as it is answered."""
        value = await self.encoded(ctx, obj)
        return await offload(self.kind.present, value, revision)

    def replace(self, key: str, value: bytes, revision: int) -> Awaitable[KeyValue | None]:
        """Stores a value instead of the one of this revision."""
        return committed(self.storage.update(key, value + b"\n", expected_revision=revision, ttl=self.ttl))

    def take_away(self, key: str, revision: int) -> Awaitable[Event | None]:
        """Deletes the value of this revision."""
        return committed(self.storage.delete(key, expected_revision=revision))
