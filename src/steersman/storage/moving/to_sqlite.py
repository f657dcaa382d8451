"""Copying an etcd cluster into a SQLite file.

Keys, values and revisions stay the same, so clients continue where they were. History does not: watches from before the
copy get a 410. The file is created under another name and renamed when it is complete.
"""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from pathlib import Path
from typing import Final

from steersman.machinery.private_files import put_in_place
from steersman.machinery.values import times
from steersman.storage.etcd.messages import Stored
from steersman.storage.interface import StorageFormatError, StorageUnavailable
from steersman.storage.moving import rows
from steersman.storage.moving.cluster import Cluster
from steersman.storage.moving.rows import Digest, Moved
from steersman.storage.moving.to_etcd import Report
from steersman.storage.sqlite.file import FileLock, complete_replacement, connect, create, is_new, remove
from steersman.storage.sqlite.log import insertion, with_checksum

_CACHE_KIB: Final = 4096
_REPORT_INTERVAL: Final = 5_000


async def copy_to_sqlite(cluster: Cluster, file: Path, report: Report) -> Moved:
    """Copy everything below the root as of one revision, and read it back for comparison. `report` is called with
    progress messages.

    Raises StorageLocked while a server uses the file, StorageFormatError if the file exists or etcd has no keys,
    StorageUnavailable and OSError.
    """
    lock = FileLock(file)
    draft = file.with_name(file.name + ".copying")
    try:
        complete_replacement(file)
        if not is_new(file):
            raise StorageFormatError(f"{file} already exists; nothing was copied")
        await cluster.check()
        remove(draft)
        create(draft)
        with contextlib.closing(connect(draft, cache_kib=_CACHE_KIB, durable=False)) as connection:
            moved = await _copy(cluster, connection, report)
        await asyncio.to_thread(put_in_place, draft, file)
        return moved
    except sqlite3.Error as error:
        raise StorageUnavailable(f"{file} cannot be made: {error}") from error
    finally:
        remove(draft)
        lock.release_or_remove()


async def _copy(cluster: Cluster, connection: sqlite3.Connection, report: Report) -> Moved:
    revision, has_keys, marked = await cluster.state()
    if marked:
        raise StorageFormatError("the copy below --etcd-prefix is incomplete; nothing was copied")
    if not has_keys:
        raise StorageFormatError(f"below {cluster.root} etcd has no keys, nothing was copied: is --etcd-prefix right?")
    writer = _Writer(connection, revision)
    reported = 0
    leases: dict[int, int] = {}
    async for page in cluster.pages(revision):
        for each in page:
            if each.lease and each.lease not in leases:
                leases[each.lease] = int(times.unix_now()) + await cluster.seconds_left(each.lease)
        await asyncio.to_thread(writer.add, [(cluster.inner(each.key), each) for each in page], leases)
        if writer.digest.keys - reported >= _REPORT_INTERVAL:
            reported = writer.digest.keys
            report(f"{reported} keys")
    await asyncio.to_thread(writer.finish)
    report(f"reading {writer.digest.keys} keys back")
    if await asyncio.to_thread(rows.digest, connection) != writer.digest:
        raise StorageUnavailable("the keys that were read back differ from the copied ones; nothing was put in place")
    await asyncio.to_thread(connection.execute, "PRAGMA wal_checkpoint(TRUNCATE)")
    return Moved(writer.digest.keys, writer.digest.size, writer.newest)


class _Writer:
    """Writes keys to a new file. Its methods block and raise sqlite3.Error."""

    def __init__(self, connection: sqlite3.Connection, revision: int) -> None:
        self._connection = connection
        self.newest = revision
        """A revision not below that of any row."""
        self._taken: set[int] = set()
        self.digest = Digest()

    def add(self, page: list[tuple[str, Stored]], leases: dict[int, int]) -> None:
        """Add a page of keys. `leases` has the expiry of each lease in Unix seconds."""
        made = []
        for key, each in page:
            revision = each.mod_revision
            if revision in self._taken:  # keys of one transaction share a revision, but rows cannot
                revision = self.newest = self.newest + 1
            self._taken.add(revision)
            row = (revision, key, each.value, each.create_revision, 0, leases.get(each.lease, 0))
            made.append(with_checksum(row))
            self.digest.add(key, each.value)
        self._connection.execute("BEGIN IMMEDIATE")
        self._connection.executemany(insertion(1), made)
        self._connection.execute("COMMIT")

    def finish(self) -> None:
        """Record that there is no history."""
        self._connection.execute("UPDATE meta SET compact_revision = ?, compacted_revision = ?", (self.newest,) * 2)
