"""The objects of a resource as they are read: out of a cache, by keys, decoded by their kind."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from threading import get_ident
from typing import Final, Generic, TypeVar

from steersman.kinds.kind import Kind
from steersman.machinery.errors import status as errors
from steersman.machinery.errors.field import quote
from steersman.machinery.errors.status import StatusError
from steersman.machinery.identity.schema import GroupResource, go_package
from steersman.machinery.validation.formats import is_path_segment_name
from steersman.machinery.values import times
from steersman.rest.bound import BoundResource
from steersman.rest.capabilities import Encoded, Item, ListOptions
from steersman.rest.context import Context
from steersman.rest.resource import KEYS
from steersman.storage.cache.cacher import Cacher
from steersman.storage.cache.entry import Entry
from steersman.storage.interface import (
    SEALED,
    Range,
    Storage,
    StorageUnavailable,
    Undecodable,
    Unreadable,
)
from steersman.store.selection import Accept, Selection
from steersman.store.storage_errors import available, not_decoded, not_decrypted, not_ready
from steersman.work.offloading import offload_if
from steersman.work.single_flight import Flight

_NO_KEYS: Final = frozenset({".", ".."})
"""Namespaces that upstream makes no keys of."""
_INTERNAL_ERROR: Final = 500
_READ_KEPT: Final = 50_000
"""Objects of a resource up to which lists keep what selectors have read of them: some 1.5 KB each."""

T = TypeVar("T")


class CachedObjects(Generic[T]):
    """See the module."""

    converts = False
    """Whether requests may see entries otherwise than they are stored (`seen`)."""

    def __init__(self, bound: BoundResource[T], storage: Storage) -> None:
        self.resource = resource = bound.resource
        self.storage = storage
        self.kind: Kind[T] = resource.kind
        self.prefix = resource.key_prefix
        self.select = Selection(resource)
        self.cacher = Cacher(
            storage,
            self.prefix,
            present=self.kind.present,
            body_at=self.kind.body_at,
            unavailable=self._unavailable,
            value_of=self.select.value_of,
        )
        self.is_apart = False
        """Whether it lies in a storage of its own, of whose revisions those of requests (Context.newest) are none."""
        self._thread = get_ident()
        self._filling: Flight[None] | None = None
        self.is_cold = True
        """Whether nobody has needed the cache yet."""

    async def start(self) -> None:
        """Fills the cache, once; otherwise that is done on first use.

        One that holds an unreadable object is not ready, and costs no other resource anything. Raises
        StorageUnavailable; it may be tried again then.
        """
        if self._filling is None or self._filling.has_failed:
            self._filling = Flight(self.cacher.start)
        filling = self._filling
        await filling.ended()
        if filling.is_cancelled:
            raise StorageUnavailable("the cache is stopped")
        await filling
        self.is_cold = False

    async def warm(self) -> None:
        """Fills the cache when it is first used. Raises StatusError 429."""
        if self.kind.is_cold:
            await offload_if(True, self.kind.warm)
        await available(self.start())

    async def stop(self) -> None:
        """Ends the cache and its watches."""
        self.is_cold = False
        filling, self._filling = self._filling, None
        if filling is not None and not filling.is_over:
            filling.cancel()
            await filling.ended()
        await self.cacher.stop()

    def key(self, namespace: str, name: str) -> str:
        """Where an object is stored. Raises StatusError 400 without a namespace where one is needed."""
        if not namespace and self.resource.namespaced:
            raise errors.bad_request("Namespace parameter required.")
        if ("/" in name or "%" in name or name in (".", "..")) and (wrong := is_path_segment_name(name)):
            raise errors.bad_request(f'Name parameter invalid: "{name}": {";".join(wrong)}')
        if not self.resource.namespaced:
            return self.prefix + name
        if namespace in _NO_KEYS:
            raise self._invalid_key(f"{namespace}/{name}")
        return f"{self.prefix}{namespace}/{name}"

    def collection(self, namespace: str, name: str | None = None) -> str:
        """The prefix of the keys of a namespace's objects, or of all. Raises StatusError 500 for `.` and `..`.

        `name` is the one object that is asked for, as the error says if it may be one's name.
        """
        if not namespace or not self.resource.namespaced:
            return self.prefix
        if namespace in _NO_KEYS:
            raise self._invalid_key(f"{namespace}/{name}" if name and not is_path_segment_name(name) else namespace)
        return f"{self.prefix}{namespace}/"

    def _invalid_key(self, below: str) -> StatusError:
        return errors.plain_internal(f"invalid key: {quote(self.prefix.removeprefix(KEYS) + below)}")

    def remember(self, item: Item, kind: object, encoded: bytes) -> None:
        """Keeps another encoding with an item of the cache, within the cache's bound.

        The cache belongs to the thread that made the store: what is encoded in the worker threads is not kept.
        """
        if isinstance(item, Entry) and get_ident() == self._thread:
            self.cacher.remember(item, kind, encoded)

    def _unavailable(self, why: str) -> StatusError:
        error = self.cacher.undecryptable
        if error is None:
            return not_ready(why)
        kind = self.kind
        go_type = "unstructured.Unstructured" if kind.is_open else f"{go_package(kind.group)}.{kind.name}"
        return not_decrypted(go_type, error, times.monotonic() - self.cacher.unready_since)

    async def stored(self, key: str) -> Entry | None:
        """The object as it is stored, while the cache is not ready as another one cannot be decrypted, or is behind.

        Raises StatusError 500 for one that cannot be decrypted itself.
        """
        try:
            found = await self.storage.get(key)
            if found is None:
                return None
            if found.value.startswith(SEALED):
                raise Unreadable(key, "identity transformer tried to read encrypted data")
        except Unreadable as error:
            raise errors.internal(error.why) from error
        except Undecodable as error:
            raise not_decoded(error) from error
        except StorageUnavailable as error:
            raise not_ready(error) from error
        return Entry(key, self.kind.present(found.value, found.mod_revision), found.mod_revision)

    async def find(self, key: str) -> Entry | None:
        """The object, None if there is none. Raises StatusError 429 while that cannot be told, 500 (`stored`)."""
        return self.cacher.get(key) if self.cacher.undecryptable is None else await self.stored(key)

    async def newest(self, key: str) -> Entry | None:
        """The object as it is now, whoever wrote it, None if there is none; out of storage where the cache does not
        come to have everything in time. Raises StatusError 429, 500 (`stored`)."""
        cacher = self.cacher
        if cacher.undecryptable is not None or not (cacher.is_current or await self.catches_up()):
            return await self.stored(key)
        return cacher.get(key)

    def decode(self, item: Item) -> T:
        """The object of an item, the caller's own copy."""
        return self.kind.decode(item.body)

    def qualified(self, ctx: Context) -> GroupResource:
        """The resource as the request names it; events are in two groups."""
        resource = self.resource.group_resource
        group = ctx.action.group
        if group and group != resource.group and self.resource.other_versions:
            return GroupResource(group, resource.resource)
        return resource

    def not_found(self, ctx: Context, name: str) -> StatusError:
        return errors.not_found(self.qualified(ctx), name)

    def accept(self, ctx: Context, options: ListOptions, *, keeps: bool = True) -> Accept | None:
        """A test of entries, as the request sees them, for these options; None if they select everything. See
        Selection.accept."""
        return self.select.accept(options, keeps=keeps)

    def accept_of_many(self, ctx: Context, options: ListOptions) -> Accept | None:
        """The same to look through all entries: what is read of them is not kept where they are too many."""
        return self.accept(ctx, options, keeps=self.cacher.count(self.prefix) <= _READ_KEPT)

    async def seen(self, ctx: Context, entries: Sequence[Entry]) -> Sequence[Entry]:
        """The entries as the request sees them, in its version. Raises StatusError."""
        return entries

    async def wait_current(self) -> None:
        """Waits until the cache has everything that is committed, anywhere. Raises StatusError 429, 504."""
        if not self.cacher.is_current:
            await available(self.cacher.wait_current())

    def is_optimistic(self, ctx: Context) -> bool:
        """Whether a write may begin with what the cache has, though others may have written since.

        Storage refuses to replace what is not the newest; where a request ends without writing, what it has concluded
        is held against `is_overtaken`. That is upstream's order too (`GuaranteedUpdate`), as most writes are the only
        ones on their object.
        """
        return not (self.cacher.is_current or ctx.dry_run)

    async def is_overtaken(self, key: str, entry: Entry, error: StatusError | None = None) -> bool:
        """Whether another write came before a request that has gone by this entry and ended without a write of its own,
        with this error if there is one. Raises StatusError (`newest`)."""
        if error is not None and error.code >= _INTERNAL_ERROR:
            return False  # what failed is not the object
        newest = await self.newest(key)
        return newest is None or newest.revision != entry.revision

    def is_newest_for(self, ctx: Context) -> bool:
        """Return True if the cache is known to have everything that was committed before the request came."""
        if self.cacher.is_current:
            return True
        if not ctx.newest or self.is_apart or self.cacher.revision < ctx.newest:
            return False
        self.cacher.counts.consistent += 1
        return True

    async def catches_up(self) -> bool:
        """Whether the cache comes to have everything that is committed, in time. Raises StatusError 429."""
        return self.cacher.is_current or await available(self.cacher.catches_up())

    async def wait_fresh(self, revision: int) -> None:
        """Waits until the cache is at `revision`. Raises StatusError 504 if that does not come about, 429."""
        if self.cacher.revision < revision:
            await available(self.cacher.wait_fresh(revision))

    def range_at(self, revision: int, prefix: str, *, start: str, limit: int, count: bool = False) -> Awaitable[Range]:
        """What storage had at a revision. Raises Compacted, StatusError 429, 504."""
        return available(self.storage.range(prefix, start=start, limit=limit, revision=revision, count=count))

    def item(self, key: str, revision: int, value: bytes) -> Item:
        """What was just written: the cached entry unless it has changed again already."""
        entry = self.cacher.peek(key)  # the cache may have been ended meanwhile
        if entry is not None and entry.revision == revision:
            return entry
        return Encoded(self.kind.present(value, revision), revision)
