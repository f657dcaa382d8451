"""Comparison of a watch cache with storage, key by key (k8s.io/apiserver `storage/cacher`, DetectCacheInconsistency).

Upstream compares digests of both at one revision. Here they are compared in parts, each at the cache's revision of that
moment. So neither side must be kept, and a mismatch names the key.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from time import perf_counter
from typing import Final

from steersman.storage.cache.cacher import Cacher
from steersman.storage.interface import Compacted, FutureRevision, StorageUnavailable
from steersman.storage.keys import after

logger = logging.getLogger(__name__)

KeysAt = Callable[[str, str, int, int], Awaitable[tuple[Sequence[tuple[str, int]], bool]]]
"""A function (prefix, start, limit, revision) that returns the keys under the prefix from the start on, each with the
revision of its last write, in order, and True if more follow. Raises what storage raises.
"""

PART: Final = 250
"""Keys that are compared in one turn of the event loop, in a few milliseconds."""
_ATTEMPTS: Final = 3
"""Attempts at a part, if there are so many writes meanwhile that the cache no longer has the older revision."""
_REST: Final = 4
"""The pause before the next part, as a multiple of the time that the last part took."""


class Mismatch(Exception):
    """The error of a cache that differs from storage at a revision."""


async def check(cacher: Cacher, keys_at: KeysAt) -> None:
    """Compare all keys of a cache, and the revisions of their last writes, with storage.

    The result is counted in `Counts.checks`. A cache that differs is reloaded, and its watches end as after a
    compaction.
    """
    if not cacher.ready:
        return
    loaded = cacher.counts.initializations
    try:
        await _compare(cacher, keys_at, loaded)
    except Mismatch as error:
        cacher.counts.checks["failure"] += 1
        logger.error("the cache of %s differs from storage and is reloaded: %s", cacher.prefix, error)
        cacher.start_over(Compacted(cacher.revision))
    except (StorageUnavailable, Compacted, FutureRevision) as error:
        cacher.counts.checks["error"] += 1
        logger.warning("the cache of %s could not be compared with storage: %s", cacher.prefix, error)
    else:
        if _is_same(cacher, loaded):
            cacher.counts.checks["success"] += 1


def _is_same(cacher: Cacher, loaded: int) -> bool:
    """Return True if the cache has not been reloaded since."""
    return cacher.ready and cacher.counts.initializations == loaded


async def _compare(cacher: Cacher, keys_at: KeysAt, loaded: int) -> None:
    start, more, attempts = "", True, _ATTEMPTS
    while more and _is_same(cacher, loaded):
        revision = cacher.revision
        try:
            stored, more_stored = await keys_at(cacher.prefix, start, PART, revision)
            if not _is_same(cacher, loaded):
                return
            began = perf_counter()
            _compare_part(cacher, revision, start, stored, more=more_stored)
        except Compacted:
            attempts -= 1
            if not attempts:
                raise
            continue
        more, attempts = more_stored, _ATTEMPTS
        if more:
            start = after(stored[-1][0])
            await asyncio.sleep(_REST * (perf_counter() - began))


def _compare_part(cacher: Cacher, revision: int, start: str, stored: Sequence[tuple[str, int]], *, more: bool) -> None:
    """Compare one part. Raises Mismatch, Compacted."""
    limit = len(stored) if more else len(stored) + 1  # one more than there should be, to notice surplus entries
    entries, _ = cacher.list_at(revision, cacher.prefix, start=start, limit=limit)
    cached = [(entry.key, entry.revision) for entry in entries]
    if cached == list(stored):
        return
    for ours, theirs in zip([*cached, None], [*stored, None], strict=False):
        if ours != theirs:
            raise Mismatch(f"at revision {revision} the cache has {_shown(ours)}, storage has {_shown(theirs)}")


def _shown(found: tuple[str, int] | None) -> str:
    return "nothing" if found is None else f"{found[0]} of revision {found[1]}"
