"""The database file: locking, validation and creation.

A file of another program, a damaged file, or one with a newer schema is never written to. No new file is created where
traces of an old one exist: an empty file, a write-ahead log without its file, a dangling link.
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

from steersman.machinery.go.strings import trim_space
from steersman.machinery.private_files import open_own, put_in_place, sync_folder, warn_of_access
from steersman.storage.interface import StorageDamaged, StorageFormatError, StorageLocked, StorageUnavailable
from steersman.storage.sqlite import wal
from steersman.storage.sqlite.log import Log, with_checksum

logger = logging.getLogger(__name__)

APPLICATION_ID: Final = 0x53544D4E
"""The text `STMN`, at byte 68 of the file's header."""
SCHEMA_VERSION: Final = 3
"""SQLite's user_version, at byte 60 of the header."""
_WITHOUT_CHECKSUMS: Final = 1
"""The schema version whose rows have no checksum."""

_MAGIC: Final = b"SQLite format 3\x00"
_HEADER_SIZE: Final = 100
_PAGE_SIZE: Final = 4096
_PIECE: Final = 1 << 20
_UPGRADE_CACHE_KIB: Final = 4096
FULL_CHECK_LIMIT: Final = 4 << 20
"""Files up to this size are checked completely when opened (some 2 ms a MiB), larger ones only at the edges."""
FILLED_LIMIT: Final = 64 << 20
"""Rows of files up to this size get missing checksums when the schema is upgraded."""

_SCHEMA: Final = (
    # One row for every write, with the revision as its rowid. A NULL value is a delete. `expires` is in Unix seconds, 0
    # for never. `checksum` is that of `checksums.row_checksum`, NULL in rows of a version without checksums. `record` is
    # that of `origins.encode_record`, NULL in rows that were written without history.
    """CREATE TABLE log (
        revision INTEGER PRIMARY KEY,
        key TEXT NOT NULL,
        value BLOB,
        create_revision INTEGER NOT NULL,
        prev_revision INTEGER NOT NULL,
        expires INTEGER NOT NULL,
        checksum INTEGER,
        record TEXT
    )""",
    "CREATE INDEX log_key ON log (key, revision)",
    "CREATE INDEX log_expires ON log (expires) WHERE expires > 0",
    # `compact_revision` is the oldest readable revision, `compacted_revision` the revision up to which rows are
    # removed.
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
    """The error of a damaged file of this server."""


_SIBLINGS: Final = ("-journal", "-wal", "-shm")


class FileLock:
    """An exclusive lock on a file beside the database, held until this process releases it or dies."""

    def __init__(self, path: Path) -> None:
        """Acquire the lock. Raises StorageLocked if another process has it."""
        self._path: Final = path
        self._name: Final = path.with_name(path.name + ".lock")
        self._descriptor = self._locked(path)
        while not self._is_at_its_name():  # its last holder has removed it in the meantime
            os.close(self._descriptor)
            self._descriptor = self._locked(path)
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, str(os.getpid()).encode(), 0)

    def _locked(self, path: Path) -> int:
        descriptor = open_own(self._name, os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = trim_space(os.pread(descriptor, 20, 0).decode("ascii", "replace"))
            os.close(descriptor)
            raise StorageLocked(f"{path} is in use by another process ({holder or 'unknown'})") from None
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    def _is_at_its_name(self) -> bool:
        """Return True if the locked file still has its name: else another process may lock a new file of the name."""
        try:
            return os.path.samestat(os.fstat(self._descriptor), os.stat(self._name))
        except FileNotFoundError:
            return False

    def release(self) -> None:
        """Release the lock. The lock file stays."""
        os.close(self._descriptor)

    def release_or_remove(self) -> None:
        """Release the lock, and remove the lock file if there is no database: for databases that may not be made."""
        if not self._path.exists():
            self._name.unlink(missing_ok=True)
        self.release()


def connect(path: Path, *, cache_kib: int, durable: bool = True) -> sqlite3.Connection:
    """Return a connection in autocommit mode that may be passed between threads (used by one at a time).

    Commits that are not `durable` are left to the operating system to be written to disk at some time.
    """
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, cached_statements=256)
    connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'OFF'}")
    connection.execute(f"PRAGMA cache_size = -{cache_kib}")
    return connection


def prepare(path: Path, *, durable: bool = True) -> bool:
    """Create the file if it does not exist, otherwise validate it and upgrade its schema.

    Returns True if each row has been verified. If the file is not `durable`, commits lost by its log only cause a
    warning. The caller must hold the lock. Raises StorageFormatError, OSError, and StorageUnavailable if the disk is
    full.
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
    os.close(os.open(path, os.O_RDWR | os.O_CLOEXEC))  # SQLite would open a file without write permission read-only
    try:
        # Closing the connection copies all of the log into the file and removes the log. So frames of a torn commit do
        # not stay behind later commits, where they would be taken for acknowledged ones.
        with contextlib.closing(connect(path, cache_kib=_UPGRADE_CACHE_KIB, durable=durable)) as connection:
            upgrade(connection, fills=path.stat().st_size <= FILLED_LIMIT)
    except sqlite3.Error as error:
        raise StorageUnavailable(f"{path} cannot be brought to schema {SCHEMA_VERSION}: {error}") from error
    return whole


def upgrade(connection: sqlite3.Connection, *, fills: bool) -> None:
    """Upgrade a file to the present schema in one transaction; with `fills` present rows get checksums.

    Raises sqlite3.Error.
    """
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version == SCHEMA_VERSION:
        return
    connection.create_function("row_checksum", 6, lambda *row: with_checksum(row)[6], deterministic=True)
    connection.execute("BEGIN IMMEDIATE")
    try:
        if version == _WITHOUT_CHECKSUMS:
            connection.execute("ALTER TABLE log ADD COLUMN checksum INTEGER")
            if fills:
                connection.execute(
                    "UPDATE log SET checksum = "
                    "row_checksum(revision, key, value, create_revision, prev_revision, expires)"
                )
        connection.execute("ALTER TABLE log ADD COLUMN record TEXT")
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def keep_log(path: Path) -> None:
    """Rewrite the write-ahead log with its own content and sync it, before anybody reads it. Raises StorageUnavailable.

    The caller must hold the lock. The process that wrote the log may have ended before a sync, or because a sync
    failed. In the latter case the kernel takes unwritten pages for written ones, and shows them until the power fails.
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
    """Return True if the file does not exist yet.

    Raises StorageFormatError if its header is not ours, if it is empty, or if its write-ahead log exists without it.
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
        # This server renames complete files into place, so an empty file is the remainder of a damaged one.
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
    """Return the name of a complete file that is about to replace the one at `path`."""
    return path.with_name(path.name + ".next")


def complete_replacement(path: Path) -> None:
    """Finish an interrupted replacement of the file, if the old file has been renamed already.

    A replacement that was interrupted earlier is dropped. A log without a file is left to `is_new`, which refuses it.
    The caller must hold the lock. Raises OSError.
    """
    if not os.path.lexists(next_of(path)):
        return
    if os.path.lexists(path):
        remove(next_of(path))
    elif not _size(wal.log_of(path)):
        # these belong to the old file, and would be taken for the new one's
        for left in (wal.log_of(path), wal.index_of(path)):
            left.unlink(missing_ok=True)
        next_of(path).rename(path)
        sync_folder(path.parent)


def _size(path: Path) -> int:
    """Return the size of a file in bytes, 0 if it does not exist."""
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
    """Remove a file and SQLite's files beside it. Raises OSError."""
    for suffix in ("", *_SIBLINGS):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def create(path: Path) -> None:
    """Create the file under another name and rename it into place, so that an incomplete file is never visible."""
    draft = path.with_name(path.name + ".new")
    remove(draft)
    for suffix in _SIBLINGS:  # only files without content or committed writes: see is_new
        # An index of a log, or a log without a write, is useless without its file, and must not be taken for the new
        # one's.
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
    put_in_place(draft, path)


def check(path: Path, *, whole: bool = False, durable: bool = True) -> bool:
    """Validate the file, as far as possible within milliseconds, or completely if `whole`.

    Returns True if each row was verified. If the file is not `durable`, commits lost by its log only cause a warning.
    The caller must hold the lock. Raises StorageFormatError, or DamagedFile for a file of this server, and leaves
    everything unchanged then.
    """
    size = path.stat().st_size
    log = wal.log_of(path)
    with path.open("rb") as file:
        header = file.read(_HEADER_SIZE)
    page_size = int.from_bytes(header[16:18], "big")
    pages = int.from_bytes(header[28:32], "big")
    # If there is a log to be replayed, a checkpoint may have been interrupted between the header and the pages.
    if pages * page_size > size and not _size(log):
        raise DamagedFile(f"{path} is damaged: {size} bytes of {pages * page_size}")
    index = wal.index_of(path)
    kept = index.read_bytes() if index.exists() else b""
    try:
        # Read-only: this neither checkpoints the log nor repairs anything.
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
    """Return the columns of the table of rows. Raises sqlite3.Error."""
    return {row[1] for row in connection.execute("PRAGMA table_info(log)")}


def without_history(connection: sqlite3.Connection, revision: int) -> None:
    """Reduce the file to the present values of the keys, at this revision. Raises sqlite3.Error."""
    connection.execute("BEGIN IMMEDIATE")
    connection.execute(
        "DELETE FROM log WHERE value IS NULL OR EXISTS "
        "(SELECT 1 FROM log n WHERE n.key = log.key AND n.revision > log.revision)"
    )
    connection.execute("UPDATE meta SET compact_revision = ?, compacted_revision = ?", (revision, revision))
    connection.execute("COMMIT")


def advice(path: Path) -> str:
    """Return the end of a message with advice about a damaged file."""
    folder = path.absolute().parent
    return (
        f"; nothing was changed. `steersman storage check --data-dir {folder}` says what is sound. Put a copy in its "
        f"place (`steersman storage restore FILE --replace --data-dir {folder}`), or go on without what is lost "
        f"(`steersman storage check --accept-data-loss --data-dir {folder}`)"
    )


def _put_back(index: Path, kept: bytes) -> None:
    """Restore the index of a log, which SQLite has rebuilt: the old one tells which commits there were."""
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
    # The ends of the table and of its index, where the last writes are.
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
    """Raise StorageFormatError unless exactly the expected tables and indexes exist, without triggers or views."""
    expected = _expected_schema()
    found = {}
    columns = "CAST(type AS BLOB), CAST(name AS BLOB), CAST(sql AS BLOB)"  # a damaged text need not be UTF-8
    for row in connection.execute(f"SELECT {columns} FROM sqlite_schema"):
        kind, name, sql = (bytes(each or b"").decode(errors="replace") for each in row)
        if (kind, name) not in expected:
            raise StorageFormatError(f"{path} has the {kind} {name}, which no version of this server ever made")
        found[kind, name] = _squeezed(sql)
    for (kind, name), texts in expected.items():
        if found.get((kind, name)) not in texts:
            what = "differs" if (kind, name) in found else "is missing"
            raise DamagedFile(f"{path} is damaged: the {kind} {name} {what}")


@cache
def _expected_schema() -> dict[tuple[str, str], set[str]]:
    """Return the possible definitions of each table and index: in all versions of the schema."""
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        for statement in _SCHEMA:
            connection.execute(statement)
        made = connection.execute("SELECT type, name, sql FROM sqlite_schema").fetchall()
    texts = {(kind, name): _squeezed(sql) for kind, name, sql in made}
    older = ("", ",recordTEXT", ",checksumINTEGER,recordTEXT")
    return {each: {text.replace(f"{added})", ")") for added in older} for each, text in texts.items()}


def _squeezed(sql: str | None) -> str:
    """Return a statement without white space, because SQLite's versions differ in that for added columns."""
    return "".join((sql or "").split())
