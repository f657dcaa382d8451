"""Paths in simulated containers."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from typing import Final

from steersman.nodes.shell.effects import Work, World

_OF_IMAGES: Final = ("/app", "/data", "/etc", "/home", "/lib", "/mnt", "/opt", "/run", "/srv", "/usr", "/var")
"""Folders in which images have folders of their own, whose content is not known."""
_NOT_OF_IMAGES: Final = ("/dev", "/proc", "/run/secrets", "/sys", "/tmp", "/var/run/secrets")
"""Folders in which images have no files."""
_MOST_LEVELS: Final = 64
_AT_ONCE: Final = 256
"""Paths that are processed between two effects."""


def absolute(world: World, path: str) -> str:
    """Return the normalized absolute path, with links resolved except in its last part."""
    return world.resolved(logical(world, path), last=False)


def logical(world: World, path: str) -> str:
    """Return the normalized absolute path, without resolving links."""
    joined = posixpath.normpath(posixpath.join(world.folder, path))
    return "/" + joined.lstrip("/")


def may_be_folder(world: World, path: str) -> bool:
    """Return True for a folder, and for a path that may be a folder of the image."""
    return world.is_folder(path) or (
        world.read(path) is None and any(path == each or path.startswith(f"{each}/") for each in _OF_IMAGES)
    )


def may_be_of_image(world: World, path: str) -> bool:
    """Return True for a path that does not exist here, but may exist in the image."""
    return world.has_image and not any(
        path == each or path.startswith(f"{each.rstrip('/')}/") for each in (*world.mounts, *_NOT_OF_IMAGES)
    )


def make_folder(world: World, path: str) -> Work[bool]:
    """Create a folder and its missing parents. Return False if no space is left."""
    missing: list[str] = []
    while len(missing) < _MOST_LEVELS and not world.is_folder(path):
        missing.append(path)
        path = posixpath.dirname(path)
        yield from world.spend(files=2 * world.many_files)
    for each in reversed(missing):
        if not world.put(each.rstrip("/") + "/", b""):
            return False
        yield from world.spend(files=2 * world.many_files)
    return True


def below(world: World, folder: str) -> Iterator[str]:
    """Yield the paths of files and folders below a folder; paths of folders end with a slash."""
    start = folder.rstrip("/") + "/"
    for path in world.files:
        if path.startswith(start) and path != start:
            yield path
    for path in world.folders:
        if path.startswith(start) and path != start:
            yield path + "/"


def tree(world: World, folder: str) -> Work[list[str]]:
    """Return all paths below a folder in order, with intermediate folders; paths of folders have no slash at the end.

    Folders more than 64 levels deep are left out.
    """
    start = folder.rstrip("/") + "/"
    paths: set[str] = set()
    for number, path in enumerate(tuple(below(world, folder))):
        if not number % _AT_ONCE:
            yield from world.spend(lines=4 * _AT_ONCE)
        place = path.rstrip("/")
        for _ in range(_MOST_LEVELS):
            if place in paths or not place.startswith(start):
                break
            paths.add(place)
            place = posixpath.dirname(place)
    return sorted(paths)


def entries(world: World, folder: str) -> list[str]:
    """Return the names in a folder."""
    start = len(folder.rstrip("/")) + 1
    return sorted({path[start:].partition("/")[0] for path in below(world, folder)} - {""})
