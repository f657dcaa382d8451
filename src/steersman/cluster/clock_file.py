"""`clock.json` in a data folder: seconds by which the cluster's clock is ahead of the real time, for the next start."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Annotated, Final

import msgspec

from steersman.cluster.clock import FURTHEST
from steersman.machinery.private_files import read_bounded, write_whole

logger = logging.getLogger(__name__)

_MOST: Final = 1024
"""Bytes of the file."""


class _Kept(msgspec.Struct, rename="camel"):
    ahead_seconds: Annotated[float, msgspec.Meta(ge=-FURTHEST, le=2 * FURTHEST)]


class ClockFile:
    """The file in a folder."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "clock.json"

    def read(self) -> float:
        """Return the seconds that were written; 0 without a file, and with a warning for a damaged one."""
        try:
            return msgspec.json.decode(read_bounded(self._path, _MOST), type=_Kept).ahead_seconds
        except FileNotFoundError:
            return 0.0
        except (OSError, msgspec.DecodeError) as error:
            logger.warning("%s: %s; the clock of the cluster begins with the real time", self._path, error)
            return 0.0

    def write(self, ahead: float) -> None:
        """Write the seconds; an error is logged."""
        try:
            write_whole(self._path, msgspec.json.encode(_Kept(round(ahead, 3))) + b"\n")
        except OSError as error:
            logger.warning("%s: %s; the next start may begin with an earlier time", self._path, error)
