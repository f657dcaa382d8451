"""Files with keys, tokens and kubeconfigs: reading with a check of their permissions, and atomic writing for the owner.

A damaged or replaced file is never overwritten: `set_aside` renames it first.
"""

from __future__ import annotations

import contextlib
import logging
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

logger = logging.getLogger(__name__)

_OTHERS_READ: Final = stat.S_IRGRP | stat.S_IROTH
_OTHERS_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH
_MOST: Final = 64 << 20
"""The size limit of every file read here: a device or a wrong file is refused before memory is allocated."""
_COPIED_AT_ONCE: Final = 1 << 20
MOST_OF_CONFIGURATION: Final = 3 << 20
"""The largest size of a configuration file in bytes: the same as of an object."""


def read_private(path: str | Path) -> bytes:
    """Return the contents of a file that nobody else should read; log a warning if others can.

    Raises FileNotFoundError if the path does not exist, and OSError, with a message that names the path, for a dangling
    link, a folder, or anything else that is not a regular file.
    """
    path = Path(path)
    check_regular(path)
    data = path.read_bytes()
    warn_of_access(path)
    return data


def read_bounded(path: Path, most: int = MOST_OF_CONFIGURATION) -> bytes:
    """Return the contents of a file of at most `most` bytes.

    Raises OSError as `check_regular` does, and for a larger file.
    """
    check_regular(path)
    with path.open("rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise OSError(f"{path} is larger than {most} bytes")
    return data


def check_regular(path: Path) -> None:
    """Raise FileNotFoundError if the path does not exist, and OSError unless it leads to a regular file."""
    try:
        status = path.stat()
    except FileNotFoundError:
        if path.is_symlink():
            raise OSError(f"{path} is a link to {os.readlink(path)}, which is not there") from None
        raise
    if not stat.S_ISREG(status.st_mode):
        raise OSError(f"{path} is {'a folder' if stat.S_ISDIR(status.st_mode) else 'not a file'}; a file is expected")
    if status.st_size > _MOST:
        raise OSError(f"{path} has {status.st_size} bytes, too many for any file that is read here")


def warn_of_access(path: Path) -> None:
    """Log a warning if other users (except root) can read or change the file or folder at `path`.

    For a folder only the right to change it matters: secret files in it have modes of their own.
    """
    status = path.stat()
    mode = stat.S_IMODE(status.st_mode)
    if status.st_uid not in (os.geteuid(), 0):
        logger.warning("%s belongs to another user (uid %d), who can read and change it", path, status.st_uid)
    if stat.S_ISDIR(status.st_mode):
        if mode & _OTHERS_WRITE and not mode & stat.S_ISVTX:
            logger.warning("others can replace the files in %s (mode %04o): chmod go-w %s", path, mode, path)
    elif mode & _OTHERS_WRITE:
        logger.warning("others can change %s (mode %04o): chmod 600 %s", path, mode, path)
    elif mode & _OTHERS_READ:
        logger.warning("others can read %s (mode %04o): chmod 600 %s", path, mode, path)


def write_whole(path: Path, data: bytes, mode: int = 0o600) -> None:
    """Replace a file atomically and durably: readers see the old contents or the new ones, also after a power cut.

    The old file stays if the disk is full. Raises OSError.
    """
    temporary = _written_beside(path, data, mode)
    try:
        os.replace(temporary, path)
    except BaseException:
        _unlink(temporary)
        raise
    sync_folder(path.parent)


def write_new(path: Path, data: bytes) -> bool:
    """Create a file atomically, readable only by its owner; return False if the path exists already. Raises OSError."""
    temporary = _written_beside(path, data, 0o600)
    try:
        os.link(temporary, path)
    except FileExistsError:
        return False
    finally:
        _unlink(temporary)
    sync_folder(path.parent)
    return True


def set_aside(path: Path) -> Path:
    """Rename the file at `path` to the first free `NAME.1`, `NAME.2`, ... and return the new path. Raises OSError."""
    number = 1
    while os.path.lexists(aside := path.with_name(f"{path.name}.{number}")):
        number += 1
    path.rename(aside)
    return aside


def put_in_place(draft: Path, path: Path) -> None:
    """Rename a complete file to `path` such that it is there after a power cut, as a whole. Raises OSError."""
    sync_file(draft)
    draft.rename(path)
    sync_folder(path.parent)


def sync_file(path: Path) -> None:
    """Make the contents of a file durable. Raises OSError."""
    with path.open("rb") as file:
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable, so that they survive a power cut. Raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_folders(path: Path, mode: int = 0o700) -> None:
    """Make a folder and its missing parents, all with this mode; the umask can only take bits away.

    Raises OSError.
    """
    missing = []
    for each in (path, *path.parents):
        if os.path.lexists(each):
            break
        missing.append(each)
    for each in reversed(missing):
        each.mkdir(mode, exist_ok=True)
    path.mkdir(mode, exist_ok=True)  # raises FileExistsError if it is not a folder


def make_own_folder(path: Path) -> None:
    """Make a folder (mode 0700) if it does not exist. Raises OSError if it, or the link to it, belongs to another user."""
    try:
        make_folders(path)
    except FileExistsError:
        what = "a link to what is not there" if path.is_symlink() and not path.exists() else "not a folder"
        raise NotADirectoryError(f"{path} is {what}; a folder for the server's data is expected") from None
    check_owner(path)


@contextmanager
def new_in_own_folder(path: Path) -> Iterator[None]:
    """Make a folder as `make_own_folder` does. After an error in the block it goes if it was made here and is empty."""
    is_new = not os.path.lexists(path)
    make_own_folder(path)
    try:
        yield
    except BaseException:
        if is_new:
            with contextlib.suppress(OSError):
                path.rmdir()
        raise


def check_owner(path: Path) -> None:
    """Raise OSError if the file at `path`, or the link there, belongs to another user."""
    for status in (path.lstat(), path.stat()):
        _check_owner(path, status)


def make_private_folder(path: Path) -> None:
    """Make a folder as `make_own_folder` does, and log a warning if others can change it. Raises OSError."""
    make_own_folder(path)
    warn_of_access(path)


def check_own(path: Path) -> None:
    """Raise OSError if `path` is a link or belongs to another user. A missing path passes."""
    with contextlib.suppress(FileNotFoundError):
        status = path.lstat()
        _check_owner(path, status)
        if stat.S_ISLNK(status.st_mode):
            raise OSError(f"{path} is a link to {os.readlink(path)}, which is not followed: put the file itself there")


def open_own(path: Path, flags: int, mode: int = 0o600) -> int:
    """Open a file that belongs to this user or root, without following a link; return its descriptor.

    With O_TRUNC the file is emptied only after these checks. Raises OSError.
    """
    check_own(path)
    descriptor = os.open(path, (flags & ~os.O_TRUNC) | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, mode)
    try:
        status = os.fstat(descriptor)
        _check_owner(path, status)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(f"{path} is not a file; a file is expected")
        os.set_blocking(descriptor, True)
        if flags & os.O_TRUNC:
            os.ftruncate(descriptor, 0)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def read_own(path: Path) -> bytes:
    """Return the contents of a file opened as `open_own` does. Raises FileNotFoundError and OSError."""
    check_regular(path)
    with os.fdopen(open_own(path, os.O_RDONLY), "rb") as file:
        return file.read()


def copy_new(source: Path, target: Path) -> None:
    """Copy a file to a path that does not exist yet (mode 0600). Raises OSError."""
    import shutil  # slow to load, and no start copies a file

    with source.open("rb") as file, os.fdopen(open_own(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb") as copy:
        shutil.copyfileobj(file, copy, _COPIED_AT_ONCE)


def _check_owner(path: Path, status: os.stat_result) -> None:
    if status.st_uid not in (os.geteuid(), 0):
        raise OSError(
            f"{path} belongs to another user (uid {status.st_uid}), who could have put anything there: take another "
            f"folder, or make it yours (chown -R {os.geteuid()})"
        )


def _written_beside(path: Path, data: bytes, mode: int) -> str:
    temporary = str(path.with_name(f".{path.name}.{os.urandom(4).hex()}"))  # `tempfile` is slow to load
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(file.fileno(), mode)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        _unlink(temporary)
        raise
    return temporary


def _unlink(name: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(name)


@contextmanager
def temporary_file(data: bytes) -> Iterator[str]:
    """Give the name of a file with this content, for libraries that read files only. It is gone at the end.

    On Linux the file is in memory: it needs no folder that can be written, and a key in it never reaches a disk.
    Raises OSError.
    """
    if hasattr(os, "memfd_create"):
        with open(os.memfd_create("steersman"), "wb") as file:
            file.write(data)
            file.flush()
            yield f"/proc/self/fd/{file.fileno()}"
    else:
        import tempfile

        with tempfile.NamedTemporaryFile() as named:
            named.write(data)
            named.flush()
            yield named.name
