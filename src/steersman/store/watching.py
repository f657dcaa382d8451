"""Watches: their first revision and their events."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from steersman.rest.capabilities import ListOptions, Sink, WatchStart
from steersman.rest.context import Context
from steersman.storage.cache.cacher import FRESH_TIMEOUT
from steersman.storage.interface import Compacted
from steersman.store import listing
from steersman.store.cached_objects import CachedObjects
from steersman.store.selection import Accept
from steersman.store.storage_errors import StorageNotReady, end_of_watch, not_ready, too_old

logger = logging.getLogger(__name__)


async def _wait_until_current(store: CachedObjects[Any], ctx: Context) -> None:
    """Wait until the cache is current, up to FRESH_TIMEOUT seconds.

    After that the watch starts with the cache as it is, and missing changes follow as events.
    """
    if store.is_newest_for(ctx):
        return
    try:
        async with asyncio.timeout(FRESH_TIMEOUT):
            await store.becomes_current()
    except (TimeoutError, StorageNotReady) as error:
        logger.info("a watch on %s starts before the cache is current: %s", store.prefix, error)


async def watch(
    store: CachedObjects[Any], ctx: Context, options: ListOptions, sink: Sink, accept: Accept | None
) -> WatchStart:
    """Start a watch of the objects that `accept` selects; see rest.capabilities.Watcher.

    Without a version, at "0", or with sendInitialEvents, it starts with the present objects, at the requested version
    or a later one. Otherwise the version may be ahead of the cache, and only later events are delivered. Snapshot and
    subscription are made without a yield to the event loop, so that no event is missed or repeated. The snapshot is
    filtered afterwards.
    """
    name = options.field_selector.requires_exact_match("metadata.name")
    prefix = store.collection(ctx.action.namespace, name)
    target = prefix + name if name and (ctx.action.namespace or not store.resource.namespaced) else prefix
    version = options.resource_version
    revision = listing.parse_version(version, plain=True) if version else 0
    cacher = store.cacher
    value = None if accept is None else store.select.value(options)

    def closed(error: Exception) -> None:
        sink.failed(end_of_watch(error, revision, cacher.revision))

    if version and revision:
        if options.send_initial_events:
            await store.wait_fresh(revision)
    elif not version and options.send_initial_events:
        if not store.is_newest_for(ctx):
            await store.wait_until_current()
    elif not version:
        await _wait_until_current(store, ctx)
    if options.send_initial_events or (options.send_initial_events is None and not revision):
        await cacher.indexed(value)
        now = cacher.revision
        candidates = cacher.candidates(prefix, value)
        if target != prefix:
            candidates = [entry for entry in candidates if entry.key == target]
        failures: list[Exception] = []

        def failed(error: Exception) -> None:
            failures.append(error)
            closed(error)

        handle = cacher.watch(
            target, after_revision=now, accept=accept, value=value, deliver=sink.deliver, closed=failed
        )
        if accept is not None:
            # Events that arrive meanwhile wait in the sink until the initial objects are sent.
            try:
                candidates = await listing.accepted(
                    candidates, store.accept_for_scan(ctx, options) or accept, any_large=cacher.large > 0
                )
            except BaseException:
                handle.cancel()
                raise
            if failures:
                raise end_of_watch(failures[0], revision, now) or not_ready(failures[0])
        return WatchStart(candidates, now, handle, lambda: cacher.delivered, lambda: cacher.changed)
    after = revision or cacher.revision
    try:
        handle = cacher.watch(
            target,
            after_revision=after,
            accept=accept,
            value=value,
            deliver=sink.deliver,
            closed=closed,
            drain=sink.drain,
        )
    except Compacted as error:
        raise too_old(after, error.revision) from None
    return WatchStart(
        None, after, handle, lambda: cacher.delivered if handle.replay is None else None, lambda: cacher.changed
    )
