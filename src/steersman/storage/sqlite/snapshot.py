"""Snapshots of the file: taken while a server writes it, and put in its place while none does.

A snapshot is a file of the same form, of one moment, without history that was given up. Beside it lies its checksum, as
sha256sum writes it. All of this blocks.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from dataclasses import dataclass
from hashlib import file_digest
from pathlib import Path
from typing import Final

from steersman.machinery.private_files import copy_new, sync_folder, write_whole
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
from steersman.storage.sqlite.salvage import BUMP, replace_damaged

_REPLACED: Final = ".replaced"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What is in a snapshot: its newest revision, its size in bytes, and the SHA-256 of the file."""

    revision: int
    size: int
    digest: str


def save(file: Path, target: Path) -> Snapshot:
    """Writes a snapshot of a file, which a server may have open, to `target` and its checksum beside it.

    Raises StorageFormatError for a file that is not ours or is damaged, StorageUnavailable, OSError.
    """
    if is_new(file):
        raise StorageFormatError(f"{file} is not there (what is stored in etcd is saved with etcdctl)")
    if target.exists() and target.samefile(file):
        raise StorageFormatError(f"{target} is what is to be saved: a snapshot needs a name of its own")
    draft = target.with_name(target.name + ".part")
    remove(draft)
    # SQLite writes into an empty file as well, which has the right access from the start.
    os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    try:
        _check_log(file)
        with _opened(file, "ro") as source:
            source.execute("VACUUM INTO ?", (str(draft),))
        revision = _verified(draft)
        made = Snapshot(revision, draft.stat().st_size, _digest(draft))
        with draft.open("rb") as written:
            os.fsync(written.fileno())
        draft.rename(target)
        write_whole(_checksum_of(target), f"{made.digest}  {target.name}\n".encode())
    except sqlite3.Error as error:
        raise StorageUnavailable(f"no snapshot of {file} can be made: {error}") from error
    finally:
        remove(draft)
    return made


def restore(
    snapshot: Path, file: Path, *, bump: int | None = None, replaces: bool = False, checks_digest: bool = True
) -> Snapshot:
    """Puts a snapshot in the place of `file`; what was there is kept under another name, if it is to be replaced.

    Its revision is `bump` beyond the newest that the snapshot and what was there have, and there is no history: no
    client has a resourceVersion of the future, and watches from before are told so (410). 0 leaves all as it was saved;
    None is 1 where something was there, and BUMP where nothing was or what was there is damaged.
    Raises StorageLocked while a server has the file, StorageFormatError, StorageUnavailable, OSError.
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
                raise StorageFormatError(f"{file} is there already; nothing was restored: --replace takes its place")
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
        with draft.open("rb") as made:
            os.fsync(made.fileno())
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
        lock.release()


def _opened(path: Path, mode: str) -> contextlib.closing[sqlite3.Connection]:
    uri = f"{path.absolute().as_uri()}?mode={mode}"
    return contextlib.closing(sqlite3.connect(uri, uri=True, isolation_level=None))


def _check_log(file: Path) -> None:
    """Checks a file that no server has open: reading it would hide what its log has lost. Raises StorageFormatError."""
    try:
        lock = FileLock(file)
    except StorageLocked:
        return
    try:
        check(file)
    finally:
        lock.release()


def _verified(path: Path) -> int:
    """The newest revision of a file in which all is as it should be. Raises StorageFormatError, sqlite3.Error."""
    check(path, whole=True)
    with _opened(path, "ro") as connection:
        problem = connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
        if problem != "ok":
            raise StorageFormatError(f"{path} is damaged: {problem}")
        return Log(connection).revisions()[0]


def _revision(file: Path, *, may_be_unknown: bool) -> int:
    """The newest of a file that is to be replaced, which has all there is afterwards, and its log nothing.

    0 for a damaged file, whose newest revision nobody knows, if it `may_be_unknown`, else StorageFormatError is raised.
    Raises StorageUnavailable while a snapshot of it is made.
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
    """Makes a copy of a snapshot what a server opens; with a revision, that is its newest and there is no history."""
    with _opened(draft, "rw") as connection:
        upgrade(connection, fills=True)
        if revision:
            without_history(connection, revision)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _keep(file: Path) -> None:
    """Gives a file whose log is empty, if there is one, another name beside its own, which the next one takes then.

    So whenever this is cut off, there is a whole file of that name.
    """
    kept = file.with_name(file.name + _REPLACED)
    remove(kept)
    with contextlib.suppress(FileNotFoundError):
        os.link(file, kept)
    for suffix in ("-wal", "-shm"):  # of the next one they would be wrong
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
