"""Reads of a resource's objects: from the watch cache, by key, decoded by their kind."""

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
"""Namespaces that upstream does not accept in keys."""
_INTERNAL_ERROR: Final = 500
_READ_KEPT: Final = 50_000
"""The most objects of a resource for which lists keep what selectors have read: some 1.5 KB each."""

T = TypeVar("T")


class CachedObjects(Generic[T]):
    """The read side of a resource's store: keys, the watch cache, and fallbacks to storage."""

    converts = False
    """True if requests may see entries in another version than the stored one (`in_request_version`)."""

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
        self.has_own_storage = False
        """True if the objects are in a separate storage, whose revisions cannot be compared with those of requests
        (Context.newest).
        """
        self._thread = get_ident()
        self._filling: Flight[None] | None = None
        self.is_cold = True
        """True until the cache is first needed."""

    async def start(self) -> None:
        """Fill the cache, unless it is filled already; otherwise that happens on first use.

        A cache with an unreadable object is not ready, which does not affect other resources. Raises
        StorageUnavailable; the caller may retry then.
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
        """Fill the cache on first use. Raises StatusError 429."""
        if self.kind.is_cold:
            await offload_if(True, self.kind.warm)
        await available(self.start())

    async def stop(self) -> None:
        """Stop the cache and its watches."""
        self.is_cold = False
        filling, self._filling = self._filling, None
        if filling is not None and not filling.is_over:
            filling.cancel()
            await filling.ended()
        await self.cacher.stop()

    def key(self, namespace: str, name: str) -> str:
        """Return the storage key of an object. Raises StatusError 400 for a missing namespace or an invalid name."""
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
        """Return the key prefix of a namespace's objects, or of all. Raises StatusError 500 for the namespaces `.` and
        `..`.

        `name` is the name of a single requested object, for the error message.
        """
        if not namespace or not self.resource.namespaced:
            return self.prefix
        if namespace in _NO_KEYS:
            raise self._invalid_key(f"{namespace}/{name}" if name and not is_path_segment_name(name) else namespace)
        return f"{self.prefix}{namespace}/"

    def _invalid_key(self, below: str) -> StatusError:
        return errors.plain_internal(f"invalid key: {quote(self.prefix.removeprefix(KEYS) + below)}")

    def remember(self, item: Item, kind: object, encoded: bytes) -> None:
        """Cache another encoding of an entry of the watch cache, within the cache's limits.

        Only the thread that created the store may do so: encodings from worker threads are not cached.
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
        """Return the object from storage, for use while the cache is behind, or not ready because of an object that
        cannot be decrypted.

        Raises StatusError 500 if this object cannot be decrypted or decoded, 429 if storage is unavailable.
        """
        try:
            entry = await self.storage.get(key)
            if entry is None:
                return None
            if entry.value.startswith(SEALED):
                raise Unreadable(key, "identity transformer tried to read encrypted data")
        except Unreadable as error:
            raise errors.internal(error.why) from error
        except Undecodable as error:
            raise not_decoded(error) from error
        except StorageUnavailable as error:
            raise not_ready(error) from error
        return Entry(key, self.kind.present(entry.value, entry.mod_revision), entry.mod_revision)

    async def find(self, key: str) -> Entry | None:
        """Return an object from the cache, None if it does not exist.

        Raises StatusError 429 while the cache is not ready, and 500 as `stored` does.
        """
        return self.cacher.get(key) if self.cacher.undecryptable is None else await self.stored(key)

    async def newest(self, key: str) -> Entry | None:
        """Return an object's newest state, whoever wrote it, None if it does not exist.

        Reads from storage if the cache does not become current in time. Raises StatusError 429, and 500 as `stored`
        does.
        """
        cacher = self.cacher
        if cacher.undecryptable is not None or not (cacher.is_current or await self.becomes_current()):
            return await self.stored(key)
        return cacher.get(key)

    def decode(self, item: Item) -> T:
        """Return a new copy of an item's object."""
        return self.kind.decode(item.body)

    def qualified(self, ctx: Context) -> GroupResource:
        """Return the group and resource as in the request, because events are in two groups."""
        resource = self.resource.group_resource
        group = ctx.action.group
        if group and group != resource.group and self.resource.other_versions:
            return GroupResource(group, resource.resource)
        return resource

    def not_found(self, ctx: Context, name: str) -> StatusError:
        """Return the StatusError NotFound for an object, with the group of the request."""
        return errors.not_found(self.qualified(ctx), name)

    def accept(self, ctx: Context, options: ListOptions, *, keeps: bool = True) -> Accept | None:
        """Return a predicate on entries, as the request sees them, for these options; None if they select everything.

        See Selection.accept for `keeps`.
        """
        return self.select.accept(options, keeps=keeps)

    def accept_for_scan(self, ctx: Context, options: ListOptions) -> Accept | None:
        """Return the predicate for a scan of all entries, which does not keep what it reads if there are too many."""
        return self.accept(ctx, options, keeps=self.cacher.count(self.prefix) <= _READ_KEPT)

    async def in_request_version(self, ctx: Context, entries: Sequence[Entry]) -> Sequence[Entry]:
        """Return the entries in the version of the request. Raises StatusError."""
        return entries

    async def wait_until_current(self) -> None:
        """Wait until the cache has all committed writes of all servers. Raises StatusError 429, 504."""
        if not self.cacher.is_current:
            await available(self.cacher.wait_until_current())

    def is_optimistic(self, ctx: Context) -> bool:
        """Return True if a write may start from the cache, although another server may have written since.

        Storage refuses to replace anything but the newest revision. If a request ends without a write, its result is
        verified by `is_outdated`. Upstream does the same (`GuaranteedUpdate`), because most writes have no competitor.
        """
        return not (self.cacher.is_current or ctx.dry_run)

    async def is_outdated(self, key: str, entry: Entry, error: StatusError | None = None) -> bool:
        """Return True if another write came before a request that used this entry and ended without a write of its own.

        `error` is the error with which the request ended, if any. Raises StatusError as `newest` does.
        """
        if error is not None and error.code >= _INTERNAL_ERROR:
            return False  # the failure does not depend on the object
        newest = await self.newest(key)
        return newest is None or newest.revision != entry.revision

    def is_newest_for(self, ctx: Context) -> bool:
        """Return True if the cache is known to have everything that was committed before the request arrived."""
        if self.cacher.is_current:
            return True
        if not ctx.newest or self.has_own_storage or self.cacher.revision < ctx.newest:
            return False
        self.cacher.counts.consistent += 1
        return True

    async def becomes_current(self) -> bool:
        """Return True once the cache has all committed writes, False if that takes too long. Raises StatusError 429."""
        return self.cacher.is_current or await available(self.cacher.becomes_current())

    async def wait_fresh(self, revision: int) -> None:
        """Wait until the cache has reached `revision`. Raises StatusError 429, and 504 if that takes too long."""
        if self.cacher.revision < revision:
            await available(self.cacher.wait_fresh(revision))

    def range_at(self, revision: int, prefix: str, *, start: str, limit: int, count: bool = False) -> Awaitable[Range]:
        """Return a range of storage at a revision. Raises Compacted, StatusError 429, 504."""
        return available(self.storage.range(prefix, start=start, limit=limit, revision=revision, count=count))

    def item(self, key: str, revision: int, value: bytes) -> Item:
        """Return the item of a value just written: the cache's entry, or a new item if it has changed again already."""
        entry = self.cacher.peek(key)  # the cache may have been stopped
        if entry is not None and entry.revision == revision:
            return entry
        return Encoded(self.kind.present(value, revision), revision)
