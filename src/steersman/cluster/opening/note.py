"""A note in the data folder of a cluster that began with a dump, for its later starts."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

from steersman.machinery.private_files import read_bounded, write_whole

_NAME: Final = "opened.json"


class Note(msgspec.Struct, rename="camel", kw_only=True):
    """Facts about an opened cluster."""

    complete: bool = False
    """False while the objects are being stored."""
    service_range: str = ""
    pod_range: str = ""


def read_note(folder: Path) -> Note | None:
    """Return the note in a data folder, None without one. Raises OSError."""
    try:
        return msgspec.json.decode(read_bounded(folder / _NAME), type=Note)
    except FileNotFoundError:
        return None
    except msgspec.MsgspecError as error:
        raise OSError(f"{folder / _NAME}: {error}") from None


def write_note(folder: Path, note: Note) -> None:
    """Write the note durably. Raises OSError."""
    write_whole(folder / _NAME, msgspec.json.encode(note))
