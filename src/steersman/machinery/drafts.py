"""Drafts of files: hidden files beside the ones that they replace once they are complete.

A draft is locked while its process lives, so that the next process removes the drafts of processes that were killed.
"""

from __future__ import annotations

import errno
import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final

_SUFFIX: Final = ".draft"
_NO_LOCKS: Final = frozenset({errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS})
"""Errors of file systems without locks, on which the drafts of killed processes stay."""


@contextmanager
def draft_of(path: Path) -> Iterator[BinaryIO]:
    """Yield a file that only its owner can read. Once the block has ended without an error, its contents are on disk and
    it replaces `path`.

    Raises OSError.
    """
    _remove_dead(path)
    draft, file = _new(path)
    with file:
        try:
            yield file
            file.flush()
            os.fsync(file.fileno())
            os.replace(draft, path)
        except BaseException:
            with suppress(FileNotFoundError):
                os.unlink(draft)
            raise


def _new(path: Path) -> tuple[Path, BinaryIO]:
    """Return a new draft and its path. Another process may remove it before it is locked: then make another one."""
    while True:
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=_prefix(path), suffix=_SUFFIX)
        file = os.fdopen(descriptor, "wb")
        _lock(descriptor, waits=True)
        if _is_at(Path(name), descriptor):
            return Path(name), file
        file.close()


def _prefix(path: Path) -> str:
    return f".{path.name}."


def _remove_dead(path: Path) -> None:
    """Remove the drafts of `path` whose processes have ended."""
    prefix = _prefix(path)
    for each in path.parent.iterdir():
        if not (each.name.startswith(prefix) and each.name.endswith(_SUFFIX)):
            continue
        try:
            descriptor = os.open(each, os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:  # it has just become the file, or is something else: of another user, a link, a folder, a pipe
            continue
        try:
            if _lock(descriptor, waits=False) and _is_at(each, descriptor):
                each.unlink()
        finally:
            os.close(descriptor)


def _lock(descriptor: int, *, waits: bool) -> bool:
    """Lock a file. Return False if another process has it locked, or the file system has no locks. Raises OSError."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX if waits else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno in _NO_LOCKS:
            return False
        raise
    return True


def _is_at(path: Path, descriptor: int) -> bool:
    """Return True if `path` is the open file."""
    try:
        return os.path.samestat(os.lstat(path), os.fstat(descriptor))
    except FileNotFoundError:
        return False
