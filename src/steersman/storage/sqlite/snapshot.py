"""Snapshots of the file: saved while a server may be writing it, restored while none is.

A snapshot is a file of the same form, of one moment, without compacted history. A checksum file as of sha256sum lies
beside it. All functions block.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from dataclasses import dataclass
from hashlib import file_digest
from pathlib import Path
from typing import Final

from steersman.machinery.private_files import copy_new, put_in_place, sync_file, sync_folder, write_whole
from steersman.storage.interface import StorageFormatError, StorageLocked, StorageUnavailable
from steersman.storage.sqlite.file import (
    FileLock,
    check,
    complete_replacement,
    is_new,
    remove,
    upgrade,
    without_history,
)
from steersman.storage.sqlite.log import Log
from steersman.storage.sqlite.past_writes import revision_at
from steersman.storage.sqlite.salvage import BUMP, replace_damaged

_REPLACED: Final = ".replaced"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The content of a snapshot: its newest revision, its size in bytes, and the SHA-256 of the file."""

    revision: int
    size: int
    digest: str


def save(file: Path, target: Path) -> Snapshot:
    """Write a snapshot of a file, which a server may have open, to `target`, and its checksum beside it.

    Raises StorageFormatError for a damaged file or one of another program, StorageUnavailable, OSError.
    """
    if is_new(file):
        raise StorageFormatError(f"{file} is not there (what is stored in etcd is saved with etcdctl)")
    if target.exists() and target.samefile(file):
        raise StorageFormatError(f"{target} is what is to be saved: a snapshot needs a name of its own")
    draft = target.with_name(target.name + ".part")
    try:
        _copy(file, draft)
        revision = _verified(draft)
        made = Snapshot(revision, draft.stat().st_size, _digest(draft))
        put_in_place(draft, target)
        write_whole(_checksum_of(target), f"{made.digest}  {target.name}\n".encode())
    except sqlite3.Error as error:
        raise StorageUnavailable(f"no snapshot of {file} can be made: {error}") from error
    finally:
        remove(draft)
    return made


def restore(
    snapshot: Path, file: Path, *, bump: int | None = None, replaces: bool = False, checks_digest: bool = True
) -> Snapshot:
    """Replace `file` by a snapshot; a replaced file is kept under another name.

    The new revision is `bump` beyond the newest of both files, and there is no history. So no client has a
    resourceVersion of the future, and older watches get 410. A `bump` of 0 keeps everything as it was saved; None means
    1 if there was a sound file, and BUMP if there was none or it was damaged. Raises StorageLocked while a server has
    the file open, StorageFormatError, StorageUnavailable, OSError.
    """
    if is_new(snapshot):
        raise StorageFormatError(f"{snapshot} is not there")
    digest = _digest(snapshot)
    if checks_digest:
        _check_digest(snapshot, digest)
    lock = FileLock(file)
    draft = file.with_name(file.name + ".restoring")
    try:
        complete_replacement(file)
        before, replaced = 0, not is_new(file)
        if replaced:
            if not replaces:
                raise StorageFormatError(f"{file} already exists; nothing was restored: --replace takes its place")
            before = _revision(file, may_be_unknown=bump is None or bump >= BUMP)
        if bump is None:
            bump = 1 if before else BUMP
        remove(draft)
        copy_new(snapshot, draft)
        try:
            revision = max(_verified(draft), before)
        except StorageFormatError as error:
            raise StorageFormatError(f"{snapshot} is not restored: {error}") from error
        if bump:
            revision += bump
        _prepare(draft, revision if bump else 0)
        sync_file(draft)
        if replaced and not before:
            replace_damaged(file, draft)
        else:
            _keep(file)
            draft.rename(file)
            sync_folder(file.parent)
        return Snapshot(revision, file.stat().st_size, digest)
    except sqlite3.Error as error:
        raise StorageUnavailable(f"{snapshot} cannot be restored: {error}") from error
    finally:
        remove(draft)
        lock.release_or_remove()


def fork(file: Path, target: Path, *, revision: int = 0, seconds: float = 0.0) -> Snapshot:
    """Create the file `target` with the content of `file`, which a server may have open, as of a revision or Unix time.

    It has the history up to then. Until it is complete, `target` does not exist. Raises StorageFormatError for an
    existing target, and a point that is not in history; StorageLocked, StorageUnavailable, OSError.
    """
    if is_new(file):
        raise StorageFormatError(f"{file} is not there (etcd is forked by its own snapshots)")
    lock = FileLock(target)
    draft = target.with_name(target.name + ".restoring")
    try:
        complete_replacement(target)
        if not is_new(target):
            raise StorageFormatError(f"{target} already exists; nothing was forked")
        _copy(file, draft)
        _verified(draft)
        reached = _cut(draft, revision, seconds)
        put_in_place(draft, target)
        return Snapshot(reached, target.stat().st_size, _digest(target))
    except sqlite3.Error as error:
        raise StorageUnavailable(f"{file} cannot be forked: {error}") from error
    finally:
        remove(draft)
        lock.release_or_remove()


def _cut(draft: Path, revision: int, seconds: float) -> int:
    """Remove the writes after a revision or time from a copied file; return its newest revision. Raises
    StorageFormatError.
    """
    with _opened(draft, "rw") as connection:
        upgrade(connection, fills=True)
        log = Log(connection)
        newest, compact, _ = log.revisions()
        wanted = revision or revision_at(log, seconds)
        if not wanted:
            raise StorageFormatError("nobody knows the revision at that time; history has no write of it")
        if wanted < compact:
            raise StorageFormatError(f"revision {wanted} is older than history, which begins at {compact}")
        if wanted > newest:
            raise StorageFormatError(f"revision {wanted} is in the future of {newest}")
        connection.execute("DELETE FROM log WHERE revision > ?", (wanted,))
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return wanted


def _copy(file: Path, draft: Path) -> None:
    """Copy a file of one moment to a new file with the right permissions."""
    remove(draft)
    # SQLite also writes into an empty file.
    os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    _check_log(file)
    with _opened(file, "ro") as source:
        source.execute("VACUUM INTO ?", (str(draft),))


def _opened(path: Path, mode: str) -> contextlib.closing[sqlite3.Connection]:
    uri = f"{path.absolute().as_uri()}?mode={mode}"
    return contextlib.closing(sqlite3.connect(uri, uri=True, isolation_level=None))


def _check_log(file: Path) -> None:
    """Validate a file that no server has open, because reading it would hide what its log has lost.

    Raises StorageFormatError.
    """
    try:
        lock = FileLock(file)
    except StorageLocked:
        return
    try:
        check(file)
    finally:
        lock.release()


def _verified(path: Path) -> int:
    """Return the newest revision of a completely validated file. Raises StorageFormatError, sqlite3.Error."""
    check(path, whole=True)
    with _opened(path, "ro") as connection:
        problem = connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
        if problem != "ok":
            raise StorageFormatError(f"{path} is damaged: {problem}")
        return Log(connection).revisions()[0]


def _revision(file: Path, *, may_be_unknown: bool) -> int:
    """Return the newest revision of a file that is to be replaced, after emptying its log into it.

    Returns 0 for a damaged file if its revision `may_be_unknown`, otherwise raises StorageFormatError. Raises
    StorageUnavailable while another process reads the file.
    """
    try:
        check(file)
        with _opened(file, "rw") as connection:
            revision = Log(connection).revisions()[0]
            if connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
                raise StorageUnavailable(f"{file} is being read by another process; nothing was restored")
            return revision
    except (sqlite3.Error, StorageFormatError) as error:
        if may_be_unknown:
            return 0
        raise StorageFormatError(
            f"{file} is damaged, so nobody knows its newest revision: restore without --bump-revision ({error})"
        ) from error


def _prepare(draft: Path, revision: int) -> None:
    """Prepare a copied snapshot for a server; with a revision, that becomes its newest, without history."""
    with _opened(draft, "rw") as connection:
        upgrade(connection, fills=True)
        if revision:
            without_history(connection, revision)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _keep(file: Path) -> None:
    """Link a file, whose log must be empty, to another name beside its own, which the next file is about to take.

    So there is a complete file of that name whenever this is interrupted.
    """
    kept = file.with_name(file.name + _REPLACED)
    remove(kept)
    with contextlib.suppress(FileNotFoundError):
        os.link(file, kept)
    for suffix in ("-wal", "-shm"):  # they would be wrong for the next file
        file.with_name(file.name + suffix).unlink(missing_ok=True)


def _checksum_of(snapshot: Path) -> Path:
    return snapshot.with_name(snapshot.name + ".sha256")


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def _check_digest(snapshot: Path, digest: str) -> None:
    path = _checksum_of(snapshot)
    try:
        told = path.read_text(errors="replace")[:64]
    except FileNotFoundError:
        raise StorageFormatError(f"{path} is not there, which has the checksum of the snapshot") from None
    if told != digest:
        raise StorageFormatError(f"{snapshot} is damaged: its checksum is {digest}, and {path} says {told}")
