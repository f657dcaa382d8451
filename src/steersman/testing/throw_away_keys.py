"""Keys and certificates of servers of which nothing is to be left: the servers of a process share them.

To make them costs more than the rest of a start. Whoever gives a folder has keys of its own.
"""

from __future__ import annotations

import os
import tempfile
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
"""A folder that is no disk's, on Linux."""
_made: Final[dict[str, bytes]] = {}
"""By the names of their files."""


def temporary_folder(*, small: bool) -> tempfile.TemporaryDirectory[str]:
    """A folder for a server, with the keys that there are by now. A `small` one is in memory where there is a place.
    Raises OSError."""
    in_memory = small and os.access(_MEMORY, os.W_OK | os.X_OK)
    folder = tempfile.TemporaryDirectory(prefix="steersman-", dir=_MEMORY if in_memory else None)
    for name, content in _made.items():
        write_whole(Path(folder.name, name), content)
    return folder


def keep(folder: str) -> None:
    """Keeps the keys that a server has in its folder for those after it. Raises OSError."""
    for name in _NAMES:
        path = Path(folder, name)
        if name not in _made and path.exists():
            _made[name] = path.read_bytes()
