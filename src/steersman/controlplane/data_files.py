"""The files in the data folder, and whose they may be."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from steersman.machinery.private_files import check_own, check_owner

FILE: Final = "steersman.db"
"""What is stored."""
FILES: Final = (
    "sa.key",
    "ca.key",
    "ca.crt",
    "apiserver.key",
    "apiserver.crt",
    "admin.key",
    "admin.crt",
    "certificates.json",
    "admin.kubeconfig",
    "up.pid",
    "up.log",
    "etcd.lock",
    "etcd.claim",
    "cluster-authorities.crt",
    "definitions.json",
)
"""Names of all others. What is kept beside FILE has names that begin with it."""


def has_data(folder: Path) -> bool:
    """Return True if a server has stored something in a folder, or made keys."""
    return any(os.path.lexists(folder / name) for name in (FILE, "ca.key"))


def check_files(folder: Path) -> None:
    """Raise OSError for a folder of another user, and if a file in it is another user's or a link.

    Keys in such a folder may be known to others, and what is written through a link may be anything. Nothing has to be
    there.
    """
    if not folder.is_dir():
        return
    check_owner(folder)
    for name in os.listdir(folder):
        if name in FILES or name.startswith(FILE):
            check_own(folder / name)
