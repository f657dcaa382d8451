"""Files with keys, tokens and kubeconfigs: read with a look at who else can, written whole and for their owner only.

A damaged or replaced file is never written over: `set_aside` gives it another name first.
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
"""No file read here is larger: what is (a device, another file by mistake) is refused before memory is taken."""
_COPIED_AT_ONCE: Final = 1 << 20
MOST_OF_CONFIGURATION: Final = 3 << 20
"""Bytes of a configuration: as many as of an object."""


def read_private(path: str | Path) -> bytes:
    """The contents of a file that nobody else should read; `warn_of_access` tells if somebody can.

    Raises FileNotFoundError if nothing has the name, and OSError, with a message that names the path, for a link to
    nothing, a folder, or anything else that is not a file.
    """
    path = Path(path)
    check_regular(path)
    data = path.read_bytes()
    warn_of_access(path)
    return data


def read_bounded(path: Path, most: int = MOST_OF_CONFIGURATION) -> bytes:
    """The contents of a file of at most so many bytes. Raises OSError, as `check_regular`, also for a larger one."""
    check_regular(path)
    with path.open("rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise OSError(f"{path} is larger than {most} bytes")
    return data


def check_regular(path: Path) -> None:
    """Raises FileNotFoundError if nothing has the name, and OSError unless a readable file is meant by it."""
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
    """Logs a warning if others than this user (and root) can read or change what is at `path`, a file or a folder.

    Of a folder only changes count: what must not be read in it has a mode of its own.
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
    """Replaces the file: a reader sees the old one or the new one, and so does who comes after a power cut.

    The old one stays if the disk is full. Raises OSError.
    """
    temporary = _written_beside(path, data, mode)
    try:
        os.replace(temporary, path)
    except BaseException:
        _unlink(temporary)
        raise
    sync_folder(path.parent)


def write_new(path: Path, data: bytes, mode: int = 0o600) -> bool:
    """Puts a new file there, whole or not at all; False if something has the name by then. Raises OSError."""
    temporary = _written_beside(path, data, mode)
    try:
        os.link(temporary, path)
    except FileExistsError:
        return False
    finally:
        _unlink(temporary)
    sync_folder(path.parent)
    return True


def set_aside(path: Path) -> Path:
    """Renames what is at `path` to the first free `NAME.1`, `NAME.2`, ... and returns the new name. Raises OSError."""
    number = 1
    while os.path.lexists(aside := path.with_name(f"{path.name}.{number}")):
        number += 1
    path.rename(aside)
    return aside


def sync_folder(folder: Path) -> None:
    """Makes names given in a folder last through a power cut. Raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_folders(path: Path, mode: int = 0o700) -> None:
    """Make a folder, and those above it that are missing, all with this mode whatever the umask lets through.

    Raises OSError.
    """
    missing = []
    for each in (path, *path.parents):
        if os.path.lexists(each):
            break
        missing.append(each)
    for each in reversed(missing):
        each.mkdir(mode, exist_ok=True)
    path.mkdir(mode, exist_ok=True)  # raises FileExistsError for what is no folder


def make_own_folder(path: Path) -> None:
    """Make a folder (mode 0700) if there is none. Raises OSError for one, or a link to one, that is another user's."""
    try:
        make_folders(path)
    except FileExistsError:
        what = "a link to what is not there" if path.is_symlink() and not path.exists() else "not a folder"
        raise NotADirectoryError(f"{path} is {what}; a folder for the server's data is expected") from None
    check_owner(path)


def check_owner(path: Path) -> None:
    """Raise OSError if what is at `path`, or a link there, is another user's."""
    for status in (path.lstat(), path.stat()):
        _check_owner(path, status)


def make_private_folder(path: Path) -> None:
    """Make a folder as `make_own_folder`, and warn if others can change it. Raises OSError."""
    make_own_folder(path)
    warn_of_access(path)


def check_own(path: Path) -> None:
    """Raise OSError if what is at `path` is a link, or another user's; nothing has to be there."""
    with contextlib.suppress(FileNotFoundError):
        status = path.lstat()
        _check_owner(path, status)
        if stat.S_ISLNK(status.st_mode):
            raise OSError(f"{path} is a link to {os.readlink(path)}, which is not followed: put the file itself there")


def open_own(path: Path, flags: int, mode: int = 0o600) -> int:
    """Open a file of this user, or root's, without following a link; return its descriptor.

    With O_TRUNC only such a file is emptied. Raises OSError.
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
    """Return the contents of a file as `open_own` opens it. Raises FileNotFoundError, OSError."""
    check_regular(path)
    with os.fdopen(open_own(path, os.O_RDONLY), "rb") as file:
        return file.read()


def copy_new(source: Path, target: Path) -> None:
    """Copy a file to a name that nothing has yet (mode 0600). Raises OSError."""
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
    import tempfile  # slow to load, and a start that changes no file does without

    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
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
