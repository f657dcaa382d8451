"""A SQLite file into an etcd cluster.

Keys and values stay as they are, byte for byte; what expires, does so when it would have. Revisions do not stay: those
of etcd are brought beyond that of the file first, and only then is anything stored, so that every resourceVersion that
a client may still have is older than any there is, names no state of an object but the one it was read in, and none is
in the future. In the end etcd is compacted to where the copy was complete: watches from before are told so (410), and
clients list anew, as they do after `etcdutl snapshot restore --bump-revision --mark-compacted`.

As long as it is not complete, a key tells so that is the first below the root: servers do not start on that, and the
next copy begins anew.
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
from steersman.storage.moving.cluster import Cluster, side_by_side
from steersman.storage.moving.rows import Digest, Moved, Row
from steersman.storage.sqlite.file import FileLock, connect, is_new, prepare
from steersman.storage.sqlite.log import Log

MOST_BUMPS: Final = 5_000_000
"""Writes, at most, that bring the revision of etcd beyond that of the file."""
_BUMPS_AT_ONCE: Final = 512
_COMPACT_EVERY: Final = 20_000
_TOLD_EVERY: Final = 5_000
_CACHE_KIB: Final = 4096

Tell = Callable[[str], None]


async def copy_to_etcd(file: Path, cluster: Cluster, tell: Tell) -> Moved:
    """Copies all there is, and reads it back; `tell` is told how far it has come.

    Raises StorageLocked while a server has the file, StorageFormatError if there is something below the root already,
    StorageUnavailable, OSError.
    """
    if is_new(file):
        raise StorageFormatError(f"{file} is not there")
    lock = FileLock(file)
    try:
        prepare(file)
        with contextlib.closing(connect(file, cache_kib=_CACHE_KIB)) as connection:
            return await _copy(connection, cluster, tell)
    except sqlite3.Error as error:
        raise StorageUnavailable(f"{file} cannot be read: {error}") from error
    finally:
        lock.release()


async def _copy(connection: sqlite3.Connection, cluster: Cluster, tell: Tell) -> Moved:
    await cluster.check()
    newest, _, _ = Log(connection).revisions()
    revision, has_keys, marked = await cluster.state()
    if has_keys and not marked:
        raise StorageFormatError(
            f"below {cluster.root} etcd has keys already, nothing was copied: take another --etcd-prefix or delete them"
        )
    if newest - revision > MOST_BUMPS:
        raise StorageFormatError(
            f"the file is at revision {newest}, etcd at {revision}, which is more than {MOST_BUMPS} writes apart: "
            f"begin with an etcd restored from a snapshot with etcdutl --bump-revision {newest} --mark-compacted"
        )
    await cluster.claim(marked)
    if marked:
        tell("a copy that was cut off is begun anew")
        await cluster.clear()
    await _bump(cluster, await cluster.mark(), newest, tell)
    copied = await _copy_rows(connection, cluster, tell)
    reached, _, _ = await cluster.state()
    tell(f"reading {copied.keys} keys back")
    if await _digest(cluster, reached) != copied:
        raise StorageUnavailable("what was read back is not what was copied; servers do not start on it")
    await cluster.compact(reached)
    return Moved(copied.keys, copied.size, await cluster.unmark())


async def _bump(cluster: Cluster, revision: int, newest: int, tell: Tell) -> None:
    """Writes until the revision is beyond `newest`."""
    compacted = revision
    if newest > revision:
        tell(f"bringing etcd from revision {revision} beyond {newest}")
    while revision <= newest:
        count = min(_BUMPS_AT_ONCE, newest + 1 - revision)
        revision = await side_by_side([cluster.mark] * count)
        if revision - compacted >= _COMPACT_EVERY:
            await cluster.compact(revision)
            compacted = revision
            tell(f"etcd is at revision {revision}")


async def _copy_rows(connection: sqlite3.Connection, cluster: Cluster, tell: Tell) -> Digest:
    """The digest of what was copied."""
    total = await asyncio.to_thread(rows.count, connection)
    copied = Digest()
    pages = rows.pages(connection)
    told = 0
    while page := await asyncio.to_thread(next, pages, None):
        now = int(times.unix_now())
        lasting = [row for row in page if not 0 < row.expires <= now]
        await side_by_side([partial(_store, cluster, row, now) for row in lasting])
        for row in lasting:
            if not row.expires:  # others may be gone when it is read back
                copied.add(row.key, row.value)
        if copied.keys - told >= _TOLD_EVERY:
            told = copied.keys
            tell(f"{told} of {total} keys")
    return copied


async def _store(cluster: Cluster, row: Row, now: int) -> int:
    return await cluster.store(row.key, row.value, row.expires - now if row.expires else 0)


async def _digest(cluster: Cluster, revision: int) -> Digest:
    found = Digest()
    async for page in cluster.pages(revision):
        for each in page:
            if not each.lease:
                found.add(cluster.inner(each.key), each.value)
    return found
