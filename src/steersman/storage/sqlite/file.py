"""The file: who may open it, what must be in it, how it comes to be.

A file that is not ours, is damaged, or is of a newer schema is never written to. Nothing is made anew where there are
signs of a store before: an empty file, a log of writes without its file, a link to nothing.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import sqlite3
from functools import cache
from pathlib import Path
from typing import Final

from steersman.machinery.private_files import open_own, sync_folder, warn_of_access
from steersman.storage.interface import StorageDamaged, StorageFormatError, StorageLocked, StorageUnavailable
from steersman.storage.sqlite import wal
from steersman.storage.sqlite.log import Log, with_checksum

logger = logging.getLogger(__name__)

APPLICATION_ID: Final = 0x53544D4E
"""`STMN`, at byte 68 of the file's header."""
SCHEMA_VERSION: Final = 2
"""SQLite's user_version, at byte 60 of the header."""
_WITHOUT_CHECKSUMS: Final = 1
"""The version whose rows have no checksum."""

_MAGIC: Final = b"SQLite format 3\x00"
_HEADER_SIZE: Final = 100
_PAGE_SIZE: Final = 4096
_PIECE: Final = 1 << 20
_UPGRADE_CACHE_KIB: Final = 4096
FULL_CHECK_LIMIT: Final = 4 << 20
"""Files up to this size are checked whole at every opening (some 2 ms a MiB), larger ones at their seams."""
FILLED_LIMIT: Final = 64 << 20
"""Rows of files up to this size are given the checksums that a version before did not write."""

_SCHEMA: Final = (
    # One row for every write, its rowid the revision. A NULL value is a delete. `expires` is in Unix seconds, 0: never.
    # `checksum` is that of `checksums.row_checksum`, NULL in rows that a version without checksums has written.
    """CREATE TABLE log (
        revision INTEGER PRIMARY KEY,
        key TEXT NOT NULL,
        value BLOB,
        create_revision INTEGER NOT NULL,
        prev_revision INTEGER NOT NULL,
        expires INTEGER NOT NULL,
        checksum INTEGER
    )""",
    "CREATE INDEX log_key ON log (key, revision)",
    "CREATE INDEX log_expires ON log (expires) WHERE expires > 0",
    # `compact_revision` is the oldest revision that can be read, `compacted_revision` how far its rows are gone.
    """CREATE TABLE meta (
        id INTEGER PRIMARY KEY CHECK (id = 0),
        compact_revision INTEGER NOT NULL,
        compacted_revision INTEGER NOT NULL
    )""",
    "INSERT INTO meta VALUES (0, 0, 0)",
    f"PRAGMA application_id = {APPLICATION_ID}",
    f"PRAGMA user_version = {SCHEMA_VERSION}",
)


class DamagedFile(StorageFormatError):
    """A file that is ours, and is not what was written."""


_SIBLINGS: Final = ("-journal", "-wal", "-shm")


class FileLock:
    """An exclusive lock on a sibling of the file, held by this process until it lets go or dies."""

    def __init__(self, path: Path) -> None:
        """Takes the lock. Raises StorageLocked if another has it."""
        name = path.with_name(path.name + ".lock")
        self._descriptor = open_own(name, os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(self._descriptor, 20, 0).decode("ascii", "replace").strip()
            os.close(self._descriptor)
            raise StorageLocked(f"{path} is in use by another process ({holder or 'unknown'})") from None
        except BaseException:
            os.close(self._descriptor)
            raise
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, str(os.getpid()).encode(), 0)

    def release(self) -> None:
        """Lets go. The lock file stays: removing it would let two processes hold two files of one name."""
        os.close(self._descriptor)


def connect(path: Path, *, cache_kib: int, durable: bool = True) -> sqlite3.Connection:
    """A connection in autocommit mode that may pass between threads (one at a time).

    Unless its commits are `durable` they are left to the system to put on the disk, when it likes.
    """
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, cached_statements=256)
    connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'OFF'}")
    connection.execute(f"PRAGMA cache_size = -{cache_kib}")
    return connection


def prepare(path: Path, *, durable: bool = True) -> bool:
    """Makes the file if there is none, or else checks that it is sound and ours, and brings it to the present schema.

    Returns True if each row is known to be what was written. Unless the file was `durable`, commits that its log has
    lost are warned of. To be called with the lock held. Raises StorageFormatError, OSError, and StorageUnavailable if
    the disk is full.
    """
    complete_replacement(path)
    if is_new(path):
        try:
            create(path)
        except sqlite3.Error as error:
            raise StorageUnavailable(f"{path} cannot be made: {error}") from error
        return True
    try:
        whole = check(path, durable=durable)
    except DamagedFile as error:
        raise StorageFormatError(f"{error}{advice(path)}") from error
    warn_of_access(path)
    os.close(os.open(path, os.O_RDWR | os.O_CLOEXEC))  # SQLite would open what it may not write to read only
    try:
        # When it is closed, all of the log is in the file and the log is gone: frames that a torn commit has left do
        # not lie behind later commits, where they would be taken for acknowledged ones.
        with contextlib.closing(connect(path, cache_kib=_UPGRADE_CACHE_KIB, durable=durable)) as connection:
            upgrade(connection, fills=path.stat().st_size <= FILLED_LIMIT)
    except sqlite3.Error as error:
        raise StorageUnavailable(f"{path} cannot be brought to schema {SCHEMA_VERSION}: {error}") from error
    return whole


def upgrade(connection: sqlite3.Connection, *, fills: bool) -> None:
    """Brings a file to the present schema in one transaction, with checksums for the rows there are if it `fills` them.

    Raises sqlite3.Error.
    """
    if connection.execute("PRAGMA user_version").fetchone()[0] == SCHEMA_VERSION:
        return
    connection.create_function("row_checksum", 6, lambda *row: with_checksum(row)[6], deterministic=True)
    connection.execute("BEGIN IMMEDIATE")
    try:
        connection.execute("ALTER TABLE log ADD COLUMN checksum INTEGER")
        if fills:
            connection.execute(
                "UPDATE log SET checksum = row_checksum(revision, key, value, create_revision, prev_revision, expires)"
            )
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def keep_log(path: Path) -> None:
    """Writes the log of writes over itself and syncs it, before anybody reads what is in it.

    To be called with the lock held. Who wrote it may have ended before it was synced, or because a sync failed: then
    the kernel takes for written what is not on the disk, and shows it until the power goes. Raises StorageUnavailable.
    """
    log = path.with_name(path.name + "-wal")
    try:
        with os.fdopen(open_own(log, os.O_RDWR), "rb+", buffering=0) as file:
            at = 0
            while piece := os.pread(file.fileno(), _PIECE, at):
                at += os.pwrite(file.fileno(), piece, at)
            os.fsync(file.fileno())
    except FileNotFoundError:
        return
    except OSError as error:
        raise StorageUnavailable(f"{log} cannot be kept: {error.strerror or error}") from error


def is_new(path: Path) -> bool:
    """Whether there is no file yet.

    Raises StorageFormatError if its header is not ours, if it is empty, or if its log of writes is there without it.
    """
    logs = [path.with_name(path.name + suffix) for suffix in ("-wal", "-journal")]
    kept = "".join(f"; its last writes are in {log}, which was left as it is" for log in logs if _size(log))
    try:
        if path.exists() and not path.is_file():
            raise StorageFormatError(f"{path} is {'a folder' if path.is_dir() else 'not a file'}; a file is expected")
        with path.open("rb") as file:
            header = file.read(_HEADER_SIZE)
    except FileNotFoundError:
        if kept:
            raise StorageFormatError(
                f"{path} is missing{kept}: put the file back, or move the log away to begin with an empty store"
            ) from None
        return True
    if not header:
        # This server moves a complete file into place, so an empty one is what is left of it.
        raise StorageFormatError(
            f"{path} is empty{kept}: put back a copy, or move away what is there to begin with an empty store"
        )
    if len(header) < _HEADER_SIZE or not header.startswith(_MAGIC):
        raise StorageFormatError(f"{path} is not a SQLite file")
    if int.from_bytes(header[68:72], "big") != APPLICATION_ID:
        raise StorageFormatError(f"{path} is a SQLite file of another application")
    _check_version(path, int.from_bytes(header[60:64], "big"))
    return False


def next_of(path: Path) -> Path:
    """Return the name of a whole file that is about to take the place of the one at `path`."""
    return path.with_name(path.name + ".next")


def complete_replacement(path: Path) -> None:
    """Finish a replacement of the file that was cut off after the old file had got another name.

    A replacement that was cut off before is forgotten. With a log but no file, nothing is done: `is_new` refuses that.
    To be called with the lock held. Raises OSError.
    """
    if not os.path.lexists(next_of(path)):
        return
    if os.path.lexists(path):
        remove(next_of(path))
    elif not _size(wal.log_of(path)):
        for left in (wal.log_of(path), wal.index_of(path)):  # of the old file: they would be taken for the new one's
            left.unlink(missing_ok=True)
        next_of(path).rename(path)
        sync_folder(path.parent)


def _size(path: Path) -> int:
    """The bytes of a file, 0 if there is none."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _check_version(path: Path, version: int) -> None:
    if version > SCHEMA_VERSION:
        raise StorageFormatError(
            f"{path} was written by a newer version (schema {version}, this version reads {SCHEMA_VERSION})"
        )
    if version < _WITHOUT_CHECKSUMS:
        raise StorageFormatError(f"{path} has schema {version}, which no version ever wrote")


def remove(path: Path) -> None:
    """Removes a file, and what SQLite keeps beside it. Raises OSError."""
    for suffix in ("", *_SIBLINGS):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def create(path: Path) -> None:
    """Builds the file under another name and moves it into place, so that a half-made one is never seen."""
    draft = path.with_name(path.name + ".new")
    remove(draft)
    for suffix in _SIBLINGS:  # only those without a byte or a write: see is_new
        # An index of a log, or a log without a write, says nothing without the file, and must not be taken for its own.
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    os.close(open_own(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL))
    with contextlib.closing(sqlite3.connect(draft, isolation_level=None)) as connection:
        connection.execute(f"PRAGMA page_size = {_PAGE_SIZE}")
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        connection.execute("BEGIN IMMEDIATE")
        for statement in _SCHEMA:
            connection.execute(statement)
        connection.execute("COMMIT")
        connection.execute("PRAGMA journal_mode = WAL")
    with draft.open("rb") as file:
        os.fsync(file.fileno())
    draft.rename(path)
    sync_folder(path.parent)


def check(path: Path, *, whole: bool = False, durable: bool = True) -> bool:
    """Checks that the file is sound, as far as can be told in milliseconds unless it is to be checked `whole`.

    Returns True if each row was checked. Unless the file is `durable`, commits that its log has lost are warned of. To
    be called with the lock held. Raises StorageFormatError, DamagedFile if it is ours, and then all is as it was.
    """
    size = path.stat().st_size
    log = wal.log_of(path)
    with path.open("rb") as file:
        header = file.read(_HEADER_SIZE)
    page_size = int.from_bytes(header[16:18], "big")
    pages = int.from_bytes(header[28:32], "big")
    # With a log of writes to play back, a checkpoint may have been cut off between the header and the pages.
    if pages * page_size > size and not _size(log):
        raise DamagedFile(f"{path} is damaged: {size} bytes of {pages * page_size}")
    index = wal.index_of(path)
    kept = index.read_bytes() if index.exists() else b""
    try:
        # Read only: neither plays the WAL into the file nor repairs anything.
        with contextlib.closing(
            sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None)
        ) as connection:
            if connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
                raise StorageFormatError(f"{path} is a SQLite file of another application")
            lost = wal.lost_commits(path, wal.parse_index(kept), wal.read_index(path))
            if lost and durable:
                raise DamagedFile(lost)
            if lost:
                logger.warning("%s, as after a power cut with --unsafe-no-fsync", lost)
            return _check_contents(path, connection, whole=whole or size <= FULL_CHECK_LIMIT)
    except sqlite3.Error as error:
        _put_back(index, kept)
        raise DamagedFile(f"{path} is damaged: {error}") from error
    except StorageFormatError:
        _put_back(index, kept)
        raise


def columns_of(connection: sqlite3.Connection) -> set[str]:
    """Returns the columns of the table of rows. Raises sqlite3.Error."""
    return {row[1] for row in connection.execute("PRAGMA table_info(log)")}


def without_history(connection: sqlite3.Connection, revision: int) -> None:
    """Leaves the file with what the keys hold now, at this revision. Raises sqlite3.Error."""
    connection.execute("BEGIN IMMEDIATE")
    connection.execute(
        "DELETE FROM log WHERE value IS NULL OR EXISTS "
        "(SELECT 1 FROM log n WHERE n.key = log.key AND n.revision > log.revision)"
    )
    connection.execute("UPDATE meta SET compact_revision = ?, compacted_revision = ?", (revision, revision))
    connection.execute("COMMIT")


def advice(path: Path) -> str:
    """Return what can be done about a damaged file, to go on a message with."""
    folder = path.absolute().parent
    return (
        f"; nothing was changed. `steersman storage check --data-dir {folder}` says what is sound. Put a copy in its "
        f"place (`steersman storage restore FILE --replace --data-dir {folder}`), or go on without what is lost "
        f"(`steersman storage check --accept-data-loss --data-dir {folder}`)"
    )


def _put_back(index: Path, kept: bytes) -> None:
    """Puts the index of a log back, which SQLite has made anew: it says which commits there were."""
    if kept:
        with index.open("rb+", buffering=0) as file:
            file.write(kept)


def _check_contents(path: Path, connection: sqlite3.Connection, *, whole: bool) -> bool:
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    _check_version(path, version)
    _check_schema(path, connection)
    if whole:
        problem = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        if problem != "ok":
            raise DamagedFile(f"{path} is damaged: {problem}")
    meta = connection.execute("SELECT compact_revision, compacted_revision FROM meta WHERE id = 0").fetchone()
    if meta is None or not 0 <= meta[1] <= meta[0]:
        raise DamagedFile(f"{path} is damaged: no account of what was compacted")
    # The ends of the table and of its index, where the last writes were.
    for edge in ("min", "max"):
        row = connection.execute(f"SELECT key, revision FROM log WHERE revision = (SELECT {edge}(revision) FROM log)")
        found = row.fetchone()
        if (
            found
            and not connection.execute(
                "SELECT 1 FROM log INDEXED BY log_key WHERE key = ? AND revision = ?", found
            ).fetchone()
        ):
            raise DamagedFile(f"{path} is damaged: revision {found[1]} is not in the index")
    if not whole or version == _WITHOUT_CHECKSUMS:
        return False
    try:
        Log(connection).check_all()
    except StorageDamaged as error:
        raise DamagedFile(f"{path}: {error}") from error
    return True


def _check_schema(path: Path, connection: sqlite3.Connection) -> None:
    """Raises StorageFormatError unless all tables and indexes are there, and nothing that could run by itself."""
    expected = _expected_schema()
    found = {}
    for kind, name, sql in connection.execute("SELECT type, name, sql FROM sqlite_schema"):
        if (kind, name) not in expected:
            raise StorageFormatError(f"{path} has the {kind} {name}, which no version of this server ever made")
        found[kind, name] = _squeezed(sql)
    for (kind, name), texts in expected.items():
        if found.get((kind, name)) not in texts:
            what = "differs" if (kind, name) in found else "is missing"
            raise DamagedFile(f"{path} is damaged: the {kind} {name} {what}")


@cache
def _expected_schema() -> dict[tuple[str, str], set[str]]:
    """Returns the texts that the tables and indexes may have, of this version and the one without checksums."""
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        for statement in _SCHEMA:
            connection.execute(statement)
        made = connection.execute("SELECT type, name, sql FROM sqlite_schema").fetchall()
    texts = {(kind, name): _squeezed(sql) for kind, name, sql in made}
    return {each: {text, text.replace(",checksumINTEGER)", ")")} for each, text in texts.items()}


def _squeezed(sql: str | None) -> str:
    """Returns a statement without white space, which versions of SQLite write as they like where a column is added."""
    return "".join((sql or "").split())
