"""Names of the files in the data folder, and the check of their owners."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from steersman.machinery.private_files import check_own, check_owner

FILE: Final = "steersman.db"
"""Name of the storage file."""
FILES: Final = (
    "sa.key",
    "ca.key",
    "ca.crt",
    "apiserver.key",
    "apiserver.crt",
    "admin.key",
    "admin.crt",
    "certificates.json",
    "clock.json",
    "admin.kubeconfig",
    "up.pid",
    "up.log",
    "etcd.lock",
    "etcd.claim",
    "cluster-authorities.crt",
    "definitions.json",
    "opened.json",
)
"""Names of all other files. Files that accompany FILE have names that begin with it."""


def has_data(folder: Path) -> bool:
    """Return True if a server has stored data or made keys in a folder."""
    return any(os.path.lexists(folder / name) for name in (FILE, "ca.key"))


def check_files(folder: Path) -> None:
    """Raise OSError for a folder of another user, and if a file in it is another user's or a link.

    Others may know the keys in such a folder, and a write through a link may change any file. A missing folder or file
    is no error.
    """
    if not folder.is_dir():
        return
    check_owner(folder)
    for name in os.listdir(folder):
        if name in FILES or name.startswith(FILE):
            check_own(folder / name)
