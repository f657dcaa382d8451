"""The store of a kind whose objects may be stored in one version and requested in another.

The cache has every object in its stored version. Objects from the cache are converted to the version of the request,
and objects to be stored are converted to the stored version. So a request works in its own version only, like
upstream's storages of custom resources (one for each version). Conversions for lists and watches are cached with the
cache's entry; a read of a single object converts again, like upstream.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from msgspec.structs import replace

from steersman.api.meta.v1 import DeleteOptions
from steersman.kinds.open import OpenKind, OpenObject
from steersman.machinery.large_work.sizes import is_large
from steersman.machinery.selectors import fields, labels
from steersman.machinery.values import times
from steersman.rest.bound import BoundResource
from steersman.rest.capabilities import (
    Change,
    CheckCreate,
    CheckDelete,
    Deleted,
    Encoded,
    Item,
    Listing,
    ListOptions,
    Sink,
    Updated,
    WatchStart,
)
from steersman.rest.context import Context
from steersman.rest.conversion import Conversion, NotConverted
from steersman.storage.cache.entry import Entry
from steersman.storage.interface import Storage
from steersman.store.converting_sink import ConvertingSink
from steersman.store.selection import Accept, Selection
from steersman.store.storage_errors import not_converted
from steersman.store.store import Store
from steersman.store.watching import watch
from steersman.work.offloading import bound, current, offload, offload_if
from steersman.work.single_flight import SingleFlight, results
from steersman.work.yielding import time_sliced

T = TypeVar("T")
AnItem = TypeVar("AnItem", bound=Item)


class ConvertingStore(Store[OpenObject]):
    """A store with conversion. The resource must have a `conversion`."""

    converts = True

    def __init__(self, bound: BoundResource[OpenObject], storage: Storage) -> None:
        super().__init__(bound, storage)
        resource = bound.resource
        assert resource.conversion is not None
        self._conversion: Conversion = resource.conversion
        self._kinds = {each.version: each for each in self._conversion.kinds.values()}
        stored = self._conversion.kinds[resource.kind.api_version]
        self._stored = stored
        self._selections = {stored.version: self.select}
        for other in resource.other_versions:
            own = replace(resource, kind=other.kind, selectable_fields=other.own_fields or {})
            self._selections[other.version] = Selection(own)
        self._converting: SingleFlight[tuple[int, str], dict[int, bytes]] = SingleFlight(
            outlives_callers=False, name="conversion"
        )
        """Flights of entries being converted, by the identity of the entry and the wanted apiVersion."""
        self._failing: dict[str, float] = {}
        """The times since which lists fail, by the version to which objects cannot be converted."""

    async def stop(self) -> None:
        await super().stop()
        await self._conversion.close()

    def _kind_of(self, ctx: Context) -> OpenKind:
        """Return the kind in the version of a request; the server's own requests use the stored version."""
        return self._kinds.get(ctx.action.version, self._stored)

    # The request's view of objects

    def accept(self, ctx: Context, options: ListOptions, *, keeps: bool = True) -> Accept | None:
        return self._selections[self._kind_of(ctx).version].accept(options, keeps=keeps)

    async def read(self, ctx: Context, entry: Entry, *, anew: bool = False) -> OpenObject:
        (in_request_version,) = await self.converted(self._kind_of(ctx), (entry,), anew=anew)
        return await offload(self._stored.decode, in_request_version.body)

    async def encoded(self, ctx: Context, obj: OpenObject) -> bytes:
        kind = self._kind_of(ctx)
        if kind is self._stored:
            return await super().encoded(ctx, obj)
        value = await offload(kind.value_as_is, obj)
        (converted,) = await self._conversion.convert_values([value], self._stored)
        return await offload(self._conversion.restore_unsaid, obj, converted)

    async def unstored(self, ctx: Context, obj: OpenObject, revision: int) -> bytes:
        kind = self._kind_of(ctx)  # which need not be the kind of the stored version
        value = await offload(kind.value, obj)
        return await offload(kind.present, value, revision)

    async def in_request_version(self, ctx: Context, entries: Sequence[Entry]) -> Sequence[Entry]:
        return await self.converted(self._kind_of(ctx), entries)

    # The verbs

    async def get(self, ctx: Context, name: str, resource_version: str = "") -> Item:
        return await self._answered(ctx, await super().get(ctx, name, resource_version), anew=not resource_version)

    async def list(self, ctx: Context, options: ListOptions) -> Listing:
        if _is_of_storage(options):
            return await self._listed(ctx, options)
        with self._as_of_a_cache(self._kind_of(ctx)):
            return await self._listed(ctx, options)

    async def _listed(self, ctx: Context, options: ListOptions) -> Listing:
        listing = await super().list(ctx, options)
        return replace(listing, items=await self.converted(self._kind_of(ctx), listing.items))

    async def delete_collection(
        self, ctx: Context, delete_options: DeleteOptions, options: ListOptions, check: CheckDelete | None = None
    ) -> Listing:
        """See rest.capabilities.CollectionDeleter. Like upstream, the objects are listed in pages, so from storage."""
        return await self._delete_found(ctx, delete_options, options, check, self._listed)

    @contextmanager
    def _as_of_a_cache(self, kind: OpenKind) -> Iterator[None]:
        """Answer 429 if objects cannot be converted, like upstream, whose cache of this version is not filled then."""
        try:
            yield
        except NotConverted as error:
            since = self._failing.setdefault(kind.version, times.monotonic())
            described = f"{kind.api_version}, Kind={kind.name}"
            raise not_converted(described, error, times.monotonic() - since) from error
        self._failing.pop(kind.version, None)

    async def create(self, ctx: Context, obj: OpenObject, check: CheckCreate | None = None) -> Item:
        return await self._answered(ctx, await super().create(ctx, obj, check))

    async def update(self, ctx: Context, name: str, change: Change) -> Updated:
        item, is_new = await super().update(ctx, name, change)
        return Updated(await self._answered(ctx, item), is_new)

    async def delete(
        self, ctx: Context, name: str, options: DeleteOptions, check: CheckDelete | None = None
    ) -> Deleted:
        item, is_gone = await super().delete(ctx, name, options, check)
        # the answer for a deleted object has its names only
        return Deleted(item if is_gone else await self._answered(ctx, item), is_gone)

    async def _answered(self, ctx: Context, item: Item, *, anew: bool = False) -> Item:
        (in_request_version,) = await self.converted(self._kind_of(ctx), (item,), anew=anew)
        return in_request_version

    async def watch(self, ctx: Context, options: ListOptions, sink: Sink) -> WatchStart:
        if self.is_cold:
            await self.warm()
        kind, accept = self._kind_of(ctx), self.accept(ctx, options)
        converting = ConvertingSink(self, kind, accept, sink)
        name = options.field_selector.requires_exact_match("metadata.name")
        by_name = fields.one_term_equal_selector("metadata.name", name) if name else fields.Selector()
        everything = replace(options, label_selector=labels.Selector(), field_selector=by_name)
        start = converting.begun(await watch(self, ctx, everything, converting, None))
        if start.initial is not None:
            try:
                with self._as_of_a_cache(kind):
                    found = await self.converted(kind, start.initial)
            except BaseException:
                start.handle.cancel()
                raise
            start.initial = found if accept is None else [each for each in found if accept(_entry(each))]
        return start

    # Conversion

    async def converted(self, kind: OpenKind, items: Sequence[AnItem], *, anew: bool = False) -> Sequence[AnItem]:
        """Return items in the version of `kind`; those in other versions are converted together.

        Conversions cached with an entry are used unless `anew`. Raises what the conversion raises.
        """
        version = kind.api_version
        known: dict[int, bytes] = {}
        missing: dict[int, AnItem] = {}
        async for item in time_sliced(items):
            if kind.version_of(item.body) == version:
                continue
            body = None if anew or item.representations is None else item.representations.get(version)
            if body is None:
                missing[id(item)] = item
            else:
                known[id(item)] = body
        if missing:
            known |= await self._converted_once(kind, list(missing.values()))
        if not known:
            return items
        return [_other(item, known[id(item)]) if id(item) in known else item for item in items]

    async def _converted_once(self, kind: OpenKind, items: Sequence[Any]) -> dict[int, bytes]:
        """Return converted bodies by the identity of the items, in a single flight for concurrent callers."""
        by_key = {(id(item), kind.api_version): item for item in items}
        account = current()

        async def convert(keys: Sequence[tuple[int, str]]) -> dict[int, bytes]:
            with bound(account):  # clients cause this work without a limit, so it counts for their account
                return await self._convert(kind, [by_key[key] for key in keys])

        known: dict[int, bytes] = {}
        for each in await results(self._converting.begin_all(by_key, convert)):
            known |= each
        return known

    async def _convert(self, kind: OpenKind, items: Sequence[Any]) -> dict[int, bytes]:
        values = []
        async for item in time_sliced(items):
            values.append(await offload_if(is_large(item.body), self._source(item).value_of, item.body))
        converted = await self._conversion.convert_values(values, kind)
        known: dict[int, bytes] = {}
        async for item, value in time_sliced(zip(items, converted, strict=True)):
            body = kind.at_revision(value, item.revision) if item.revision else kind.body_of(value)
            self.remember(item, kind.api_version, body)
            known[id(item)] = body
        return known

    def _source(self, item: Any) -> OpenKind:
        return self._conversion.kinds.get(self._stored.version_of(item.body), self._stored)


def _is_of_storage(options: ListOptions) -> bool:
    """Return True if upstream lists from storage while its cache is not ready: for pages, unless selectors are used."""
    if options.continue_token:
        return True
    return bool(options.limit) and options.label_selector.empty and options.field_selector.empty


def _other(item: Any, body: bytes) -> Any:
    if isinstance(item, Entry):
        return Entry(item.key, body, item.revision)
    return Encoded(body, item.revision)


def _entry(item: Any) -> Entry:
    assert isinstance(item, Entry)
    return item
