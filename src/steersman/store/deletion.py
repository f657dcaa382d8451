"""Deletion of an object or a collection: immediate, graceful, or once the finalizers are gone."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any, Final

import msgspec

from steersman.api.meta.v1 import DeleteOptions
from steersman.audit.latencies import STORAGE
from steersman.audit.trail import timed
from steersman.kinds.labels import name_of
from steersman.machinery.errors import status as errors
from steersman.machinery.errors.status import StatusError
from steersman.machinery.large_work.sizes import is_large
from steersman.rest.allocator import Allocator
from steersman.rest.capabilities import CheckDelete, Deleted, Encoded, Item, Listing
from steersman.rest.context import Context
from steersman.storage.cache.entry import Entry
from steersman.store import metadata
from steersman.store.stored_objects import StoredObjects
from steersman.store.uninterrupted import uninterrupted
from steersman.work.offloading import bound, current, mark_large, offload

_ATTEMPTS: Final = 1000
_AT_ONCE: Final = 16
_BYTES_AT_ONCE: Final = 1 << 20
"""The most objects of a collection, and the most bytes of them, that are deleted concurrently."""


async def delete(
    store: StoredObjects[Any], ctx: Context, name: str, options: DeleteOptions, check: CheckDelete | None
) -> Deleted:
    """Delete an object or mark it for deletion. The result tells whether it is gone (or would be, for a dry run).

    Raises StatusError NotFound, Conflict, Invalid, and what `check` raises.
    """
    store.strategy.check_delete(ctx, name)
    _warn(store, ctx, options)
    return await _delete_named(store, ctx, name, options, check, is_listed=False)


def _warn(store: StoredObjects[Any], ctx: Context, options: DeleteOptions) -> None:
    for text in store.strategy.warnings_on_delete(ctx, options):
        ctx.warn(text)


async def _delete_named(
    store: StoredObjects[Any],
    ctx: Context,
    name: str,
    options: DeleteOptions,
    check: CheckDelete | None,
    *,
    is_listed: bool,
) -> Deleted:
    """Delete an object by name. `is_listed` is True if a list of the newest state has just returned the object."""
    key = store.key(ctx.action.namespace, name)
    grace = options.grace_period_seconds
    optimistic = not is_listed and store.is_optimistic(ctx)
    for attempt in range(_ATTEMPTS):
        is_known = optimistic or (is_listed and not attempt)
        entry = await (store.find(key) if is_known else store.newest(key))
        if entry is None:
            if optimistic:
                optimistic = False
                continue
            raise store.not_found(ctx, name)
        options.grace_period_seconds = grace
        try:
            done = await _delete_once(store, ctx, key, entry, options, check)
        except StatusError as error:
            if not optimistic or not await store.is_outdated(key, entry, error):
                raise
            done = None
        if done is not None and done.item is entry and optimistic and await store.is_outdated(key, entry):
            done = None
        if done is not None:
            return done
        optimistic = False
    raise errors.server_timeout(store.resource.group_resource, "delete", 1)


async def _delete_once(
    store: StoredObjects[Any], ctx: Context, key: str, entry: Entry, options: DeleteOptions, check: CheckDelete | None
) -> Deleted | None:
    """Try to delete an object; return None if another write came first."""
    strategy = store.strategy
    if is_large(entry.body):
        mark_large()
    obj = await store.read(ctx, entry, anew=True)
    if check is not None:
        await check(await store.read(ctx, entry))
    graceful, pending = metadata.before_delete(strategy, ctx, obj, options, store.resource.group_kind)
    if pending:
        return Deleted(entry, False)
    finalizers = metadata.collector_finalizers(strategy, obj, options)
    if finalizers is not None:
        obj.metadata.finalizers = finalizers
    kept_by_itself = strategy.begin_delete(ctx, obj)
    has_finalizers = bool(obj.metadata.finalizers)
    if has_finalizers and not graceful and not kept_by_itself:
        metadata.mark_as_deleting(obj.metadata)
    stays = kept_by_itself or has_finalizers or (graceful and bool(options.grace_period_seconds))
    if not stays and not graceful:
        return await _remove(store, ctx, key, entry.revision)
    value = await store.encoded(ctx, obj)
    present = store.kind.present
    if present(value, entry.revision) == entry.body:
        return Deleted(entry, False)
    if ctx.dry_run:
        return Deleted(Encoded(present(value, entry.revision), entry.revision), not stays)
    written = await timed(ctx.audit, STORAGE, store.replace(key, value, entry.revision))
    if written is None:
        return None
    if stays:
        return Deleted(store.item(key, written.mod_revision, value), False)
    # graceful with a grace period of 0: watchers see the marked object first, then its deletion
    return await _remove(store, ctx, key, written.mod_revision)


async def _remove(store: StoredObjects[Any], ctx: Context, key: str, revision: int) -> Deleted | None:
    """Remove the object if its revision is still `revision`; return None if it is not."""
    if ctx.dry_run:
        entry = await store.find(key)
        return None if entry is None else Deleted(Encoded(entry.body, entry.revision), True)
    allocator = store.allocator
    if allocator is None:
        return await _delete_stored(store, ctx, key, revision)
    return await uninterrupted(_remove_with_all(store, allocator, ctx, key, revision))


async def _remove_with_all(
    store: StoredObjects[Any], allocator: Allocator[Any], ctx: Context, key: str, revision: int
) -> Deleted | None:
    """Remove an object as `_remove` does, and release what the allocator reserved for it."""
    removed = await _delete_stored(store, ctx, key, revision)
    if removed is not None:
        await allocator.release(ctx, await offload(store.decode, removed.item))
    return removed


async def _delete_stored(store: StoredObjects[Any], ctx: Context, key: str, revision: int) -> Deleted | None:
    event = await timed(ctx.audit, STORAGE, store.delete_stored(key, revision))
    if event is None:
        return None
    assert event.previous is not None
    body = await offload(store.kind.present, event.previous.value, event.revision)
    return Deleted(Encoded(body, event.revision), True)


async def delete_after_update(store: StoredObjects[Any], ctx: Context, key: str, entry: Entry, new: Any) -> Item | None:
    """Delete an object whose last finalizer an update has removed; return the updated object as the answer.

    Returns None if another write came first.
    """
    if not ctx.dry_run and await _remove(store, ctx, key, entry.revision) is None:
        return None
    return Encoded(await store.unstored(ctx, new, entry.revision), entry.revision)


class _NotReached(Exception):
    """The error of an object in a collection that is skipped because deletion of an earlier object was refused."""


class _Order:
    """The order in which objects of a collection are checked: one after the other, and none after a refused one.

    The work after a check, up to the removal from storage, overlaps with the next check.
    """

    def __init__(self, check: CheckDelete | None) -> None:
        self._check: Final = check
        self._turn: Final = asyncio.Lock()
        self.is_over = False

    async def check(self, obj: Any) -> None:
        """Raise what the check of a single object raises, or _NotReached."""
        async with self._turn:
            if self.is_over:
                raise _NotReached
            if self._check is not None:
                try:
                    await self._check(obj)
                except StatusError:
                    self.is_over = True
                    raise


async def delete_collection(
    store: StoredObjects[Any],
    ctx: Context,
    delete_options: DeleteOptions,
    find: Callable[[], Awaitable[Listing]],
    check: CheckDelete | None,
) -> Listing:
    """Delete the found objects in order, up to the first refused one; objects that are gone already do not matter.

    Raises StatusError 400 if there is something to delete and no namespace in the request.
    """
    _warn(store, ctx, delete_options)
    if store.cacher.undecryptable is not None:
        raise errors.internal(store.cacher.undecryptable)
    listing = await find()
    order = _Order(check)
    # With other servers on the storage, concurrent writes have no defined order, so each is awaited, as upstream does.
    at_once = 1 if store.cacher.has_other_servers else _AT_ONCE
    for batch in _batches(listing.items, at_once):
        work = (_delete_listed(store, ctx, item, delete_options, order) for item in batch)
        for result in await asyncio.gather(*work, return_exceptions=True):
            if result is not None:
                raise result
    return listing


def _batches(items: Sequence[Item], most: int) -> Iterator[Sequence[Item]]:
    start, size = 0, 0
    for at, item in enumerate(items):
        size += len(item.body)
        if at > start and (at - start == most or size > _BYTES_AT_ONCE):
            yield items[start:at]
            start, size = at, len(item.body)
    if start < len(items):
        yield items[start:]


async def _delete_listed(
    store: StoredObjects[Any], ctx: Context, item: Item, options: DeleteOptions, order: _Order
) -> None:
    name = name_of(item.body)
    own = msgspec.structs.replace(ctx)  # it shares the warnings
    try:
        with bound(current().for_user(ctx.user.name)):
            await _delete_named(store, own, name, msgspec.structs.replace(options), order.check, is_listed=True)
    except _NotReached:
        return
    except StatusError as error:
        if error.code != 404:
            order.is_over = True
            raise
