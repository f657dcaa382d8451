"""Paths in simulated containers."""

from __future__ import annotations

import posixpath
from typing import Final

from steersman.nodes.shell.effects import World

_STEP_FILES: Final = 16
"""Files whose folders are found in one step."""


def absolute(world: World, path: str) -> str:
    """A path from the root, cleaned."""
    joined = posixpath.normpath(posixpath.join(world.folder, path))
    return "/" + joined.lstrip("/")


def folders_of(world: World) -> set[str]:
    """The folders that there are: those of every container, and those of its files."""
    world.steps += len(world.files) // _STEP_FILES
    found = set(world.folders)
    for path in world.files:
        while (path := posixpath.dirname(path)) not in found:
            found.add(path)
    return found
