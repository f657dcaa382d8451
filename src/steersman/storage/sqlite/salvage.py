"""Examination of a damaged file, and its replacement by a new file with all undamaged rows.

The new file gets every row with a valid checksum. Intact pages count wherever they are, also pages of the log behind
the damage at which SQLite stops. The damaged file is kept. All functions block.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from steersman.machinery.private_files import copy_new, sync_file, sync_folder
from steersman.storage.interface import StorageDamaged, StorageFormatError, StorageLocked, StorageUnavailable
from steersman.storage.sqlite import wal
from steersman.storage.sqlite.file import (
    DamagedFile,
    FileLock,
    check,
    columns_of,
    complete_replacement,
    connect,
    create,
    is_new,
    keep_log,
    next_of,
    remove,
    without_history,
)
from steersman.storage.sqlite.log import Log, Row, check_row, insertion, with_checksum

BUMP: Final = 1_000_000
"""The number of revisions that are skipped if the newest revision is unknown."""
_CACHE_KIB: Final = 4096
_AT_ONCE: Final = 1000


@dataclass(frozen=True, slots=True)
class Examined:
    """A sound file: its newest revision, its number of rows, and the number of rows without a checksum.

    `in_use` is True if a server has it open; then its log was not examined.
    """

    revision: int
    rows: int
    unchecked: int
    in_use: bool


@dataclass(frozen=True, slots=True)
class Salvaged:
    """The result of a salvage: the new file's revision, its number of keys, the names of lost rows, and the damaged
    file's new path.
    """

    revision: int
    keys: int
    lost: tuple[str, ...]
    aside: Path


def examine(file: Path) -> Examined:
    """Examine a whole file, which a server may have open. Raises DamagedFile, StorageFormatError, OSError."""
    if is_new(file) and not next_of(file).exists():
        raise StorageFormatError(f"{file} is not there")
    try:
        lock = FileLock(file)
    except StorageLocked:
        return _counted(file, in_use=True)
    try:
        complete_replacement(file)
        check(file, whole=True)
        return _counted(file, in_use=False)
    finally:
        lock.release()


def _counted(file: Path, *, in_use: bool) -> Examined:
    with contextlib.closing(connect(file, cache_kib=_CACHE_KIB)) as connection:
        connection.execute("PRAGMA query_only = ON")
        try:
            problem = connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
            if problem != "ok":
                raise DamagedFile(f"{file} is damaged: {problem}")
            has_checksums = "checksum" in columns_of(connection)
            log = Log(connection)
            if has_checksums:
                log.check_all()
            rows, unchecked = connection.execute(
                f"SELECT count(*), {'total(checksum IS NULL)' if has_checksums else 'count(*)'} FROM log"
            ).fetchone()
            return Examined(log.revisions()[0], rows, int(unchecked), in_use)
        except (sqlite3.Error, StorageDamaged) as error:
            raise DamagedFile(f"{file} is damaged: {error}") from error


def salvage(file: Path) -> Salvaged:
    """Replace a damaged file by a new one with all its sound rows, and keep the damaged one under another name.

    Revisions continue far beyond the known ones, and there is no history. So no revision is used twice, and older
    watches get 410. Raises StorageLocked while a server has the file open, StorageFormatError, StorageUnavailable,
    OSError.
    """
    lock = FileLock(file)
    source, draft = (file.with_name(file.name + suffix) for suffix in (".salvaging", ".salvaged"))
    try:
        complete_replacement(file)
        if is_new(file):
            raise StorageFormatError(f"{file} is not there")
        keep_log(file)
        for each in (source, draft):
            remove(each)
        _copy_with_log(file, source)
        create(draft)
        lost = _copy_rows(source, draft)
        with contextlib.closing(connect(draft, cache_kib=_CACHE_KIB)) as connection:
            revision = Log(connection).revisions()[0] + BUMP
            without_history(connection, revision)
            keys = connection.execute("SELECT count(*) FROM log").fetchone()[0]
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        sync_file(draft)
        return Salvaged(revision, keys, tuple(lost), replace_damaged(file, draft))
    except sqlite3.Error as error:
        raise StorageUnavailable(f"nothing can be made of {file}: {error}") from error
    finally:
        for each in (source, draft):
            remove(each)
        lock.release()


def replace_damaged(file: Path, draft: Path) -> Path:
    """Replace a damaged file by a complete file that is on disk, and return the damaged file's new path.

    If this is interrupted at any point, the next start finds one of both files, or refuses a log without its file.
    Raises OSError.
    """
    draft.rename(next_of(file))
    sync_folder(file.parent)
    aside = _set_aside(file)
    complete_replacement(file)
    return aside


def _set_aside(file: Path) -> Path:
    """Rename a file and its log to the first free name `NAME.damaged`, `NAME.damaged.1`, ... and return the new path.

    The file is renamed first: a log without its file is refused, while a file without its log would be taken as
    complete.
    """
    number, aside = 0, file.with_name(f"{file.name}.damaged")
    while os.path.lexists(aside):
        number += 1
        aside = file.with_name(f"{file.name}.damaged.{number}")
    file.rename(aside)
    with contextlib.suppress(FileNotFoundError):
        wal.log_of(file).rename(wal.log_of(aside))
    wal.index_of(file).unlink(missing_ok=True)
    sync_folder(file.parent)
    return aside


def _copy_with_log(file: Path, target: Path) -> None:
    """Copy a file and apply each intact page of its log."""
    copy_new(file, target)
    try:
        log = wal.log_of(file).open("rb")
    except FileNotFoundError:
        return
    with log, target.open("rb+") as copy:
        descriptor = log.fileno()
        if not wal.has_frames(descriptor):
            return
        size = wal.page_size(descriptor)
        waiting: dict[int, int] = {}
        pages = 0
        for frame in _whole_frames(descriptor):
            waiting[frame.page] = frame.number
            if not frame.pages:
                continue
            for page, number in waiting.items():  # pages of an incomplete commit are left out
                copy.seek((page - 1) * size)
                copy.write(wal.page_at(descriptor, number))
            waiting.clear()
            pages = frame.pages
        if pages:
            copy.flush()
            os.ftruncate(copy.fileno(), max(pages * size, size))


def _whole_frames(descriptor: int) -> Iterator[wal.Frame]:
    """Yield the intact frames of an open log that belong to its present cycle."""
    before = wal.first_checksum(descriptor)
    salts = wal.salts(descriptor)
    for frame in wal.frames(descriptor):
        if frame.salts == salts and wal.is_whole(descriptor, frame, before):
            yield frame
        before = frame.checksum


def _copy_rows(source: Path, draft: Path) -> list[str]:
    """Copy the sound rows, and return the names of the others."""
    lost: list[str] = []
    with (
        contextlib.closing(connect(source, cache_kib=_CACHE_KIB)) as old,
        contextlib.closing(connect(draft, cache_kib=_CACHE_KIB, durable=False)) as new,
    ):
        old.execute("PRAGMA query_only = ON")
        checksum = "checksum" if "checksum" in columns_of(old) else "NULL"
        new.execute("BEGIN IMMEDIATE")
        for revision in _revisions(old):
            row = _row(old, revision, checksum)
            if isinstance(row, str):
                lost.append(row)
            else:
                new.execute(insertion(1), with_checksum(row))
        with contextlib.suppress(sqlite3.DatabaseError, TypeError):
            compacted = old.execute("SELECT compact_revision FROM meta").fetchone()[0]
            new.execute("UPDATE meta SET compact_revision = ?", (int(compacted),))
        new.execute("COMMIT")
    return lost


def _revisions(connection: sqlite3.Connection) -> list[int]:
    """Return the revisions of all rows that can be found, by table and index, each read from both ends."""
    found: set[int] = set()
    for statement in (
        "SELECT revision FROM log NOT INDEXED ORDER BY revision",
        "SELECT revision FROM log NOT INDEXED ORDER BY revision DESC",
        "SELECT revision FROM log INDEXED BY log_key WHERE key >= '' ORDER BY key",
        "SELECT revision FROM log INDEXED BY log_key WHERE key >= '' ORDER BY key DESC",
    ):
        with contextlib.suppress(sqlite3.DatabaseError):
            cursor = connection.execute(statement)
            while rows := cursor.fetchmany(_AT_ONCE):
                found.update(row[0] for row in rows if isinstance(row[0], int))
    return sorted(each for each in found if each > 0)


def _row(connection: sqlite3.Connection, revision: int, checksum: str) -> Row | str:
    """Return a row if it is sound, else its name."""
    name = f"revision {revision}"
    try:
        found = connection.execute(
            "SELECT revision, CAST(key AS BLOB), value, create_revision, prev_revision, expires, "
            f"{checksum} FROM log NOT INDEXED WHERE revision = ?",
            (revision,),
        ).fetchone()
        if found is None:  # the index has a row that the table does not have
            return name
        key = found[1].decode()
        name = f"{key!r} at {name}"
        row = (found[0], key, *found[2:])
        check_row(row)
        if row[2] is not None and not isinstance(row[2], bytes):
            return name
        return row[:6]
    except (sqlite3.DatabaseError, StorageDamaged, ValueError, TypeError, AttributeError):
        return name
