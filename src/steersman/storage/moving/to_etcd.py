"""Copying a SQLite file into an etcd cluster.

Keys and values stay the same, byte for byte, and keys expire at the same time as before. Revisions do not stay the
same: etcd's revision is first raised above the file's, and only then is anything stored. Therefore every
resourceVersion that a client may still have is older than all objects, denotes no other state of an object than the one
it was read in, and is never in the future. Finally etcd is compacted to the revision of the completed copy, so watches
from before get a 410, and clients list again, as they do after `etcdutl snapshot restore --bump-revision
--mark-compacted`.

An incomplete copy is marked by the first key below the root. Servers refuse to start on it, and the next copy starts
over.
"""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from steersman.machinery.values import times
from steersman.storage.interface import StorageFormatError, StorageUnavailable
from steersman.storage.moving import rows
from steersman.storage.moving.cluster import Cluster, run_concurrently
from steersman.storage.moving.rows import Digest, Moved, Row
from steersman.storage.sqlite.file import FileLock, connect, is_new, prepare
from steersman.storage.sqlite.log import Log

MOST_BUMPS: Final = 5_000_000
"""The most writes to raise etcd's revision above the file's."""
_BUMPS_AT_ONCE: Final = 512
_COMPACT_EVERY: Final = 20_000
_REPORT_INTERVAL: Final = 5_000
_CACHE_KIB: Final = 4096

Report = Callable[[str], None]


async def copy_to_etcd(file: Path, cluster: Cluster, report: Report) -> Moved:
    """Copy everything and read it back for comparison. `report` is called with progress messages.

    Raises StorageLocked while a server uses the file, StorageFormatError if there are already keys below the root,
    StorageUnavailable and OSError.
    """
    if is_new(file):
        raise StorageFormatError(f"{file} is not there")
    lock = FileLock(file)
    try:
        prepare(file)
        with contextlib.closing(connect(file, cache_kib=_CACHE_KIB)) as connection:
            return await _copy(connection, cluster, report)
    except sqlite3.Error as error:
        raise StorageUnavailable(f"{file} cannot be read: {error}") from error
    finally:
        lock.release()


async def _copy(connection: sqlite3.Connection, cluster: Cluster, report: Report) -> Moved:
    await cluster.check()
    newest, _, _ = Log(connection).revisions()
    revision, has_keys, marked = await cluster.state()
    if has_keys and not marked:
        raise StorageFormatError(
            f"etcd already has keys below {cluster.root}, nothing was copied: use another --etcd-prefix or delete them"
        )
    if newest - revision > MOST_BUMPS:
        raise StorageFormatError(
            f"the file is at revision {newest}, etcd at {revision}, which is more than {MOST_BUMPS} writes apart: "
            f"start with an etcd restored from a snapshot with etcdutl --bump-revision {newest} --mark-compacted"
        )
    await cluster.claim(marked)
    if marked:
        report("starting over after an incomplete copy")
        await cluster.clear()
    await _bump(cluster, await cluster.mark(), newest, report)
    copied = await _copy_rows(connection, cluster, report)
    reached, _, _ = await cluster.state()
    report(f"reading {copied.keys} keys back")
    if await _digest(cluster, reached) != copied:
        raise StorageUnavailable("the keys that were read back differ from the copied ones; servers do not start on it")
    await cluster.compact(reached)
    return Moved(copied.keys, copied.size, await cluster.unmark())


async def _bump(cluster: Cluster, revision: int, newest: int, report: Report) -> None:
    """Write until etcd's revision is above `newest`."""
    compacted = revision
    if newest > revision:
        report(f"bringing etcd from revision {revision} beyond {newest}")
    while revision <= newest:
        count = min(_BUMPS_AT_ONCE, newest + 1 - revision)
        revision = await run_concurrently([cluster.mark] * count)
        if revision - compacted >= _COMPACT_EVERY:
            await cluster.compact(revision)
            compacted = revision
            report(f"etcd is at revision {revision}")


async def _copy_rows(connection: sqlite3.Connection, cluster: Cluster, report: Report) -> Digest:
    """Copy all rows and return their digest."""
    total = await asyncio.to_thread(rows.count, connection)
    copied = Digest()
    pages = rows.pages(connection)
    reported = 0
    while page := await asyncio.to_thread(next, pages, None):
        now = int(times.unix_now())
        lasting = [row for row in page if not 0 < row.expires <= now]
        await run_concurrently([partial(_store, cluster, row, now) for row in lasting])
        for row in lasting:
            if not row.expires:  # keys that expire may be gone when everything is read back
                copied.add(row.key, row.value)
        if copied.keys - reported >= _REPORT_INTERVAL:
            reported = copied.keys
            report(f"{reported} of {total} keys")
    return copied


async def _store(cluster: Cluster, row: Row, now: int) -> int:
    return await cluster.store(row.key, row.value, row.expires - now if row.expires else 0)


async def _digest(cluster: Cluster, revision: int) -> Digest:
    digest = Digest()
    async for page in cluster.pages(revision):
        for each in page:
            if not each.lease:
                digest.add(cluster.inner(each.key), each.value)
    return digest
