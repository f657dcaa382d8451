"""Throw-away keys and certificates, which servers without a folder of their own share within a process.

Creating keys costs more than the rest of a start. A server with a given folder has keys of its own.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

from steersman.machinery.private_files import write_whole

_NAMES: Final = (
    "sa.key",
    "ca.crt",
    "ca.key",
    "apiserver.crt",
    "apiserver.key",
    "admin.crt",
    "admin.key",
    "certificates.json",
)
_MEMORY: Final = "/dev/shm"
"""Folder in memory, on Linux."""
_made: Final[dict[str, bytes]] = {}
"""Contents of the created files, by name."""


_parents: Final[list[Path]] = []
"""Folders in which new temporary folders are made, the last one first."""


def temporary_folders_in(parent: Path) -> Callable[[], None]:
    """Let new temporary folders be in `parent`, which somebody removes even if this process is killed.

    Return the function that ends this.
    """
    _parents.append(parent)
    return lambda: _parents.remove(parent)


def temporary_folder(*, small: bool) -> tempfile.TemporaryDirectory[str]:
    """Return a temporary folder for a server, with the keys created so far. A `small` one is in memory if possible.

    Raises OSError.
    """
    in_memory = small and os.access(_MEMORY, os.W_OK | os.X_OK)
    usual = _MEMORY if in_memory else None
    folder = tempfile.TemporaryDirectory(prefix="steersman-", dir=_parents[-1] if _parents else usual)
    for name, content in _made.items():
        write_whole(Path(folder.name, name), content)
    return folder


def keep(folder: str) -> None:
    """Remember the keys in a server's folder for later servers. Raises OSError."""
    for name in _NAMES:
        path = Path(folder, name)
        if name not in _made and path.exists():
            _made[name] = path.read_bytes()
