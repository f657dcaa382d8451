"""Lists: which revision they show, which objects they select, and how they go on page by page.

Follows k8s.io/apiserver `storage/cacher` and `storage/etcd3/store.go` for the meaning of resourceVersion.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from time import perf_counter
from typing import Any, Final

from steersman.machinery.errors import field
from steersman.machinery.errors import status as errors
from steersman.machinery.errors.field import quote
from steersman.machinery.selectors import fields, labels
from steersman.rest.capabilities import EXACT, Listing, ListOptions
from steersman.rest.context import Context
from steersman.storage.cache.cacher import Cacher
from steersman.storage.cache.entry import Entry
from steersman.storage.interface import Compacted
from steersman.store import continue_token
from steersman.store.cached_objects import CachedObjects
from steersman.store.selection import Accept

_SLICE: Final = 16
_SLICE_BYTES: Final = 256 << 10
"""Objects, and bytes of them, that are looked at between two looks at the clock."""
_TURN: Final = 0.005
"""Seconds of such work between two turns of the loop."""


def parse_version(text: str, *, plain: bool = False) -> int:
    """The revision of a resourceVersion. Raises StatusError: 400 on lists, a bare 500 (`plain`) elsewhere."""
    if text.isascii() and text.isdigit() and len(text) < 20:
        return int(text)
    error = field.invalid(
        field.Path("resourceVersion"), text, f"strconv.ParseUint: parsing {quote(text)}: invalid syntax"
    )
    if plain:
        raise errors.plain_internal(str(error))
    raise errors.bad_request(f"invalid resource version: {error}")


async def list_items(store: CachedObjects[Any], ctx: Context, options: ListOptions) -> Listing:
    """The list that `options` ask for; see rest.capabilities.Lister."""
    prefix = store.collection(ctx.action.namespace, options.field_selector.requires_exact_match("metadata.name"))
    version = options.resource_version
    if options.continue_token:
        if version not in ("", "0"):
            raise errors.bad_request("specifying resource version is not allowed when using continue")
        return await _continue(store, ctx, prefix, options, limit=0 if version else options.limit)
    if not version:
        await store.wait_current()
        return await _list_now(store, ctx, prefix, options, limit=options.limit)
    revision = parse_version(version)
    if revision and (options.resource_version_match == EXACT or (options.limit and not options.resource_version_match)):
        return await _list_at(store, ctx, prefix, options, revision, "", limit=options.limit, token="")
    if revision:
        await store.wait_fresh(revision)
    return await _list_now(store, ctx, prefix, options, limit=options.limit if revision else 0)


async def _list_now(
    store: CachedObjects[Any], ctx: Context, prefix: str, options: ListOptions, *, limit: int
) -> Listing:  # fmt: skip
    accept = store.accept(ctx, options)
    name = options.field_selector.requires_exact_match("metadata.name")
    cacher = store.cacher
    revision, any_large = cacher.revision, cacher.large > 0
    if name is not None and (prefix != store.prefix or not store.resource.namespaced):
        entry = cacher.get(prefix + name)
        if entry is not None and store.converts:
            (entry,) = await store.seen(ctx, (entry,))
        items = [entry] if entry is not None and (accept is None or accept(entry)) else []
        _count(cacher, len(items), len(items))
        return Listing(items, revision, any_large=any_large)
    if accept is None:
        found, more = cacher.list(prefix, limit=limit)
        _count(cacher, len(found), len(found))
        if not more:
            return Listing(found, revision, any_large=any_large)
        token = continue_token.encode(found[-1].key, prefix, revision)
        return Listing(found, revision, token, cacher.count(prefix) - len(found), any_large)
    found = cacher.candidates(prefix, store.select.value(options))
    if store.converts:
        found = await store.seen(ctx, found)
    items, last = await _select(found, accept, limit, any_large=any_large)
    _count(cacher, len(found), len(items))
    token = continue_token.encode(last, prefix, revision) if last else ""
    return Listing(items, revision, token, any_large=any_large)


def _count(cacher: Cacher, fetched: int, listed: int) -> None:
    counts = cacher.counts
    counts.lists += 1
    counts.fetched += fetched
    counts.listed += listed


async def _select(found: Sequence[Entry], accept: Accept, limit: int, *, any_large: bool) -> tuple[list[Entry], str]:
    """The accepted entries, at most `limit`, and the key of the last of them if others follow."""
    items: list[Entry] = []
    async for entries in in_turns(found, any_large=any_large):
        for entry in entries:
            if accept(entry):
                if limit and len(items) == limit:
                    return items, items[-1].key
                items.append(entry)
    return items, ""


async def accepted(found: Sequence[Entry], accept: Accept, *, any_large: bool) -> list[Entry]:
    """The accepted entries. `any_large`: whether there may be large ones among them (Cacher.large)."""
    return (await _select(found, accept, 0, any_large=any_large))[0]


async def in_turns(found: Sequence[Entry], *, any_large: bool) -> AsyncIterator[Sequence[Entry]]:
    """Entries a few at a time; others have the loop in between whenever the work on them has taken a while."""
    until = perf_counter() + _TURN
    at = 0
    while at < len(found):
        if at and perf_counter() > until:
            await asyncio.sleep(0)
            until = perf_counter() + _TURN
        some = found[at : at + _SLICE]
        if any_large:
            some = _at_most(some, _SLICE_BYTES)
        at += len(some)
        yield some


def _at_most(entries: Sequence[Entry], size: int) -> Sequence[Entry]:
    """The first of them, up to the one with which they have more bytes than `size`."""
    for number, entry in enumerate(entries, 1):
        size -= len(entry.body)
        if size < 0:
            return entries[:number]
    return entries


async def _continue(
    store: CachedObjects[Any], ctx: Context, prefix: str, options: ListOptions, *, limit: int
) -> Listing:
    start, revision = continue_token.decode(options.continue_token, prefix)
    if revision < 0:
        await store.wait_current()
        revision = store.cacher.revision
    token = continue_token.encode(start.rstrip("\0"), prefix, -1)
    return await _list_at(store, ctx, prefix, options, revision, start, limit=limit, token=token)


async def _list_at(
    store: CachedObjects[Any], ctx: Context, prefix: str, options: ListOptions, revision: int, start: str, *,
    limit: int, token: str,
) -> Listing:  # fmt: skip
    """The list as it was at `revision`, from `start` on; `token` goes on inconsistently where that is gone."""
    accept = store.accept(ctx, options)
    cacher = store.cacher
    await store.wait_fresh(revision)
    try:
        found, more = await _entries_at(store, prefix, revision, start, limit if accept is None else 0)
    except Compacted:
        raise (continue_token.expired_page(token) if token else continue_token.expired_list()) from None
    if accept is not None:
        if store.converts:
            found = await store.seen(ctx, found)
        items, last = await _select(found, accept, limit, any_large=True)
        return Listing(items, revision, continue_token.encode(last, prefix, revision) if last else "")
    if not more:
        return Listing(found, revision)
    last = found[-1].key
    remaining = None
    if revision == cacher.revision:
        after, _ = cacher.list(prefix, start=last + "\0")
        remaining = len(after)
    else:
        after, _ = await _entries_at(store, prefix, revision, last + "\0", 0)
        remaining = len(after)
    return Listing(found, revision, continue_token.encode(last, prefix, revision), remaining)


async def _entries_at(
    store: CachedObjects[Any], prefix: str, revision: int, start: str, limit: int
) -> tuple[Sequence[Entry], bool]:
    """From the cache while it remembers that revision, from storage after that. Raises Compacted."""
    cacher = store.cacher
    try:
        if revision == cacher.revision:
            entries, more = cacher.list(prefix, start=start, limit=limit)
        else:
            entries, more = cacher.list_at(revision, prefix, start=start, limit=limit)
    except Compacted:
        pass
    else:
        _count(cacher, len(entries), len(entries))
        return entries, more
    found = await store.range_at(revision, prefix, start=start, limit=limit)
    cacher.counts.stored_lists += 1
    cacher.counts.stored_fetched += len(found.items)
    present = store.kind.present
    entries = [Entry(each.key, present(each.value, each.mod_revision), each.mod_revision) for each in found.items]
    return entries, found.more


EVERYTHING: Final = (labels.Selector(), fields.Selector())
