"""A note in the data folder of a cluster that began with a dump, for its later starts."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import msgspec

from steersman.machinery.private_files import open_own, write_whole

_NAME: Final = "opened.json"
_MOST: Final = 4096
"""Bytes of a note."""


class Note(msgspec.Struct, rename="camel", kw_only=True):
    """Facts about an opened cluster."""

    complete: bool = False
    """False while the objects are being completed and stored."""
    service_range: str = ""
    pod_range: str = ""


def read_note(folder: Path) -> Note | None:
    """Return the note in a data folder, None without one. Raises OSError, also for a link and a file of others."""
    try:
        with os.fdopen(open_own(folder / _NAME, os.O_RDONLY), "rb") as file:
            return msgspec.json.decode(file.read(_MOST), type=Note)
    except FileNotFoundError:
        return None
    except msgspec.MsgspecError as error:
        raise OSError(f"{folder / _NAME}: {error}") from None


def write_note(folder: Path, note: Note) -> None:
    """Write the note durably. Raises OSError."""
    write_whole(folder / _NAME, msgspec.json.encode(note))


def remove_note(folder: Path) -> None:
    """Remove the note: nothing was stored. Raises OSError."""
    (folder / _NAME).unlink()
