"""Lists: their revision, the selection of objects, and paging.

Follows k8s.io/apiserver `storage/cacher` and `storage/etcd3/store.go` for the meaning of resourceVersion.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from steersman.machinery.errors import field
from steersman.machinery.errors import status as errors
from steersman.machinery.errors.go_numbers import NumError, parse_uint
from steersman.rest.capabilities import EXACT, Listing, ListOptions
from steersman.rest.context import Context
from steersman.storage.cache.cacher import Cacher
from steersman.storage.cache.entry import Entry
from steersman.storage.interface import Compacted, KeyValue
from steersman.storage.keys import after
from steersman.store import continue_token
from steersman.store.cached_objects import CachedObjects
from steersman.store.selection import Accept
from steersman.store.storage_errors import available
from steersman.work.yielding import TimeSlice, time_sliced

SLICE: Final = 16
_SLICE_BYTES: Final = 256 << 10
"""The number of objects, and their bytes, that are processed between two checks of the clock."""
_FIRST_PART: Final = 500
_PART: Final = 5_000
_PART_BYTES: Final = 4 << 20
"""The size of the first part read from storage, the largest size of later parts, and the number of bytes that
determines their size.
"""


def parse_version(text: str, *, plain: bool = False) -> int:
    """Parse a resourceVersion. Raises StatusError: 400 for lists, a bare 500 (`plain`) elsewhere."""
    try:
        return parse_uint(text)
    except NumError as error:
        words = partial(_no_version, text, error.with_traceback(None), plain=plain)
    code, reason = (500, "") if plain else (400, "BadRequest")
    raise errors.LateStatusError(code, reason, words, details_present=False)


def _no_version(text: str, why: NumError, *, plain: bool) -> str:
    error = field.invalid(field.Path("resourceVersion"), text, str(why))
    return str(error) if plain else f"invalid resource version: {error}"


async def list_items(store: CachedObjects[Any], ctx: Context, options: ListOptions) -> Listing:
    """Return the list that `options` request; see rest.capabilities.Lister."""
    prefix = store.collection(ctx.action.namespace, options.field_selector.requires_exact_match("metadata.name"))
    version = options.resource_version
    if ctx.as_of and not store.has_own_storage:
        limit = 0 if version == "0" else options.limit
        return await _list_at(store, ctx, prefix, options, ctx.as_of, "", limit=limit, token="")
    if options.continue_token:
        return await _continue(store, ctx, prefix, options, limit=0 if version else options.limit)
    if not version:
        if store.is_newest_for(ctx) or await store.becomes_current():
            return await _list_now(store, ctx, prefix, options, limit=options.limit)
        newest = await available(store.storage.current_revision())
        return await _list_at(store, ctx, prefix, options, newest, "", limit=options.limit, token="")
    revision = parse_version(version)
    if revision and (options.resource_version_match == EXACT or (options.limit and not options.resource_version_match)):
        await store.wait_fresh(revision)
        return await _list_at(store, ctx, prefix, options, revision, "", limit=options.limit, token="")
    if revision:
        await store.wait_fresh(revision)
    return await _list_now(store, ctx, prefix, options, limit=options.limit if revision else 0)


async def get_at(store: CachedObjects[Any], ctx: Context, name: str, revision: int) -> Entry:
    """Return an object as it was at a revision. Raises StatusError 404, and 410 if the revision is compacted."""
    key = store.key(ctx.action.namespace, name)
    try:
        page = await _page_at(store, key, revision, "", 1, counts=False)
    except Compacted:
        raise continue_token.expired_list() from None
    if not page.entries or page.entries[0].key != key:
        raise store.not_found(ctx, name)
    return page.entries[0]


async def _list_now(
    store: CachedObjects[Any], ctx: Context, prefix: str, options: ListOptions, *, limit: int
) -> Listing:
    accept = store.accept_for_scan(ctx, options)
    name = options.field_selector.requires_exact_match("metadata.name")
    cacher = store.cacher
    value = None if accept is None else store.select.value(options)
    await cacher.indexed(value)
    revision, any_large = cacher.revision, cacher.large > 0
    if name is not None and (prefix != store.prefix or not store.resource.namespaced):
        entry = cacher.get(prefix + name)
        if entry is not None and store.converts:
            (entry,) = await store.in_request_version(ctx, (entry,))
        items = [entry] if entry is not None and (accept is None or accept(entry)) else []
        _count(cacher, len(items), len(items))
        return Listing(items, revision, any_large=any_large)
    if accept is None:
        cached, more = cacher.list(prefix, limit=limit)
        _count(cacher, len(cached), len(cached))
        if not more:
            return Listing(cached, revision, any_large=any_large)
        token = continue_token.encode(cached[-1].key, prefix, revision)
        return Listing(cached, revision, token, cacher.count(prefix) - len(cached), any_large)
    cached = cacher.candidates(prefix, value)
    if store.converts:
        cached = await store.in_request_version(ctx, cached)
    items, last = await _select(cached, accept, limit, any_large=any_large)
    _count(cacher, len(cached), len(items))
    token = continue_token.encode(last, prefix, revision) if last else ""
    return Listing(items, revision, token, any_large=any_large)


def _count(cacher: Cacher, fetched: int, listed: int) -> None:
    counts = cacher.counts
    counts.lists += 1
    counts.fetched += fetched
    counts.listed += listed


async def _select(found: Sequence[Entry], accept: Accept, limit: int, *, any_large: bool) -> tuple[list[Entry], str]:
    """Return the accepted entries, at most `limit`, and the key of the last one if others follow."""
    items: list[Entry] = []
    async for entries in in_turns(found, any_large=any_large):
        for entry in entries:
            if accept(entry):
                if limit and len(items) == limit:
                    return items, items[-1].key
                items.append(entry)
    return items, ""


async def accepted(found: Sequence[Entry], accept: Accept, *, any_large: bool) -> list[Entry]:
    """Return the accepted entries. `any_large` tells whether some of them may be large (Cacher.large)."""
    return (await _select(found, accept, 0, any_large=any_large))[0]


async def in_turns(found: Sequence[Entry], *, any_large: bool) -> AsyncIterator[Sequence[Entry]]:
    """Yield the entries in small slices, with a yield to the event loop after each time slice."""
    time_slice = TimeSlice()
    at = 0
    while at < len(found):
        if at:
            await time_slice.pause_if_over()
        some = found[at : at + SLICE]
        if any_large:
            some = _at_most(some, _SLICE_BYTES)
        at += len(some)
        yield some


def _at_most(entries: Sequence[Entry], size: int) -> Sequence[Entry]:
    """Return the first entries, up to the one with which they exceed `size` bytes."""
    for number, entry in enumerate(entries, 1):
        size -= len(entry.body)
        if size < 0:
            return entries[:number]
    return entries


async def _continue(
    store: CachedObjects[Any], ctx: Context, prefix: str, options: ListOptions, *, limit: int
) -> Listing:
    start, revision = continue_token.decode(options.continue_token, prefix)
    if options.resource_version not in ("", "0"):
        raise errors.bad_request("specifying resource version is not allowed when using continue")
    if revision < 0:
        await store.wait_until_current()
        revision = store.cacher.revision
    await store.wait_fresh(revision)
    token = continue_token.encode(start.rstrip("\0"), prefix, -1)
    return await _list_at(store, ctx, prefix, options, revision, start, limit=limit, token=token)


async def _list_at(
    store: CachedObjects[Any],
    ctx: Context,
    prefix: str,
    options: ListOptions,
    revision: int,
    start: str,
    *,
    limit: int,
    token: str,
) -> Listing:
    """Return the list as it was at `revision`, from `start` on.

    Raises 410 with `token`, which continues inconsistently, if the revision is compacted.
    """
    accept = store.accept_for_scan(ctx, options)
    try:
        if accept is None:
            page = await _page_at(store, prefix, revision, start, limit, counts=True)
        else:
            page = await _page_at(store, prefix, revision, start, 0, counts=False)
    except Compacted:
        raise (continue_token.expired_page(token) if token else continue_token.expired_list()) from None
    entries = page.entries
    if accept is not None:
        if store.converts:
            entries = await store.in_request_version(ctx, entries)
        items, last = await _select(entries, accept, limit, any_large=True)
        return Listing(items, revision, continue_token.encode(last, prefix, revision) if last else "")
    if not page.more:
        return Listing(entries, revision)
    return Listing(entries, revision, continue_token.encode(entries[-1].key, prefix, revision), page.remaining)


class _Page(NamedTuple):
    """Entries of a page, a flag for more that follow, and the number of these if it was requested."""

    entries: Sequence[Entry]
    more: bool
    remaining: int | None


async def _page_at(
    store: CachedObjects[Any], prefix: str, revision: int, start: str, limit: int, *, counts: bool
) -> _Page:
    """Return a page from the cache if it still has that revision, else from storage. Raises Compacted."""
    cacher = store.cacher
    if revision <= cacher.revision:
        try:
            await cacher.recall(revision)
            entries, more = cacher.list_at(revision, prefix, start=start, limit=limit)
        except Compacted:
            pass
        else:
            _count(cacher, len(entries), len(entries))
            remaining = cacher.count_at(revision, prefix, after(entries[-1].key)) if more and counts else None
            return _Page(entries, more, remaining)
    return await _stored_page(store, prefix, revision, start, limit, counts=counts)


async def _stored_page(
    store: CachedObjects[Any], prefix: str, revision: int, start: str, limit: int, *, counts: bool
) -> _Page:
    """Return a page from storage, read in parts of about `_PART_BYTES`. Raises Compacted."""
    entries: list[Entry] = []
    total: int | None = None
    wanted = _FIRST_PART
    while True:
        if limit:
            wanted = min(wanted, limit - len(entries))
        part = await store.range_at(revision, prefix, start=start, limit=wanted, count=counts and total is None)
        if counts and total is None:
            total = part.count
        size = await _present(store, part.items, entries)
        store.cacher.counts.stored_lists += 1
        store.cacher.counts.stored_fetched += len(part.items)
        if not part.more or len(entries) == limit:
            return _Page(entries, part.more, None if total is None else total - len(entries))
        start = after(part.items[-1].key)
        wanted = max(1, min(_PART, _PART_BYTES * len(part.items) // max(size, 1)))


async def stored_now(store: CachedObjects[Any], prefix: str) -> Sequence[Entry]:
    """Return the objects stored under a prefix, independent of the cache.

    Raises StatusError 429, 500, and 410 if storage was compacted meanwhile.
    """
    revision = await available(store.storage.current_revision())
    try:
        return (await _stored_page(store, prefix, revision, "", 0, counts=False)).entries
    except Compacted:
        raise continue_token.expired_list() from None


async def _present(store: CachedObjects[Any], items: Sequence[KeyValue], entries: list[Entry]) -> int:
    """Append stored values to `entries` in the served form; return their size in bytes. Yields to the event loop."""
    present = store.kind.present
    size = 0
    async for each in time_sliced(items):
        entries.append(Entry(each.key, present(each.value, each.mod_revision), each.mod_revision))
        size += len(each.value)
    return size
