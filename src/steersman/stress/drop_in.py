"""The part of a search in servers that test suites start: those of `steersman envtest`, and of fixtures of pytest.

The folder in the environment variable FOLDER has the faults of the run (`task.json`). Each server there notes its points
in a file of its own, a line of JSON each.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from steersman.authentication.user import COMPONENTS
from steersman.faults.fault import Met
from steersman.faults.fault_set import FaultSet
from steersman.machinery.identity.action import Action
from steersman.machinery.limited_log import LimitedLog
from steersman.machinery.private_files import write_whole
from steersman.stress.point import PlannedFault
from steersman.stress.tap import MOST_POINTS, Seen, Tap, without_locks
from steersman.stress.touch import NAME, client_of, touch

if TYPE_CHECKING:
    from steersman.controlplane.control_plane import ControlPlane

_log: Final = LimitedLog(logging.getLogger(__name__))
FOLDER: Final = "STEERSMAN_STRESS_FOLDER"
"""Environment variable with the folder of a run."""
_TASK: Final = "task.json"
_POINTS: Final = "points-*.jsonl"
_HITS: Final = "hits-*.jsonl"
_MOST_FILES: Final = 1_000
"""Servers of one run whose points are read."""


class Task(msgspec.Struct, frozen=True):
    """Faults of a run, and its times in seconds."""

    faults: list[PlannedFault] = []
    delay: float = 0.0
    hold: float = 0.5


def is_of_clients(met: Met) -> bool:
    """Return True for a request of a user's client, not of the server itself."""
    return met.user != NAME and not met.user.startswith(COMPONENTS)


class Notes:
    """Faults of a server, whose points and hits are written to files. Raises OSError."""

    def __init__(self, folder: Path, fault_set: FaultSet | None = None) -> None:
        task = msgspec.json.decode((folder / _TASK).read_bytes(), type=Task)
        self._name: Final = f"{time.time_ns():020}-{os.getpid()}.jsonl"  # in the order of the servers' starts
        self._folder: Final = folder
        self._points = (folder / f"points-{self._name}").open("ab", buffering=0)
        self._left = MOST_POINTS
        """Points that are still noted."""
        self._is_closed = False
        self._plane: ControlPlane | None = None
        self.fault_set = FaultSet() if fault_set is None else fault_set
        """Faults for the server."""
        self._tap = Tap(
            task.faults,
            is_subject=is_of_clients,
            touch=self._touch,
            delay=task.delay,
            hold=task.hold,
            reported=self._note,
            happened=self._note_hit,
        )
        self.fault_set.interceptor = self._tap

    def attach(self, plane: ControlPlane) -> None:
        """Let conflicts happen in this control plane."""
        self._plane = plane

    def close(self) -> None:
        """Note nothing more; requests that are not over yet go on."""
        self._is_closed = True
        self._points.close()

    async def _touch(self, action: Action, name: str) -> None:
        assert self._plane is not None
        await touch(client_of(self._plane), action, name)

    def _note(self, seen: Seen) -> None:
        """Write a point; without space for it requests go on."""
        if self._is_closed or not self._left:
            return
        self._left -= 1
        try:
            self._points.write(msgspec.json.encode(seen) + b"\n")
        except OSError as error:
            _log.warning("points", "points of steersman stress are missing: %s", error)

    def _note_hit(self, fault: PlannedFault) -> None:
        """Write a fault that happens to a file that only servers with faults have."""
        try:
            with (self._folder / f"hits-{self._name}").open("ab") as file:
                file.write(msgspec.json.encode(fault) + b"\n")
        except OSError as error:
            _log.warning("hits", "faults of steersman stress are missing: %s", error)


def write_task(folder: Path, task: Task) -> None:
    """Write the faults of a run into an empty folder. Raises OSError."""
    write_whole(folder / _TASK, msgspec.json.encode(task))


def read_points(folder: Path) -> list[Seen]:
    """Return the points that all servers have noted, in the order of the servers' starts. Raises OSError."""
    return without_locks([msgspec.json.decode(line, type=Seen) for line in _lines(folder, _POINTS)])


def read_hits(folder: Path) -> list[PlannedFault]:
    """Return the faults that have happened in all servers. Raises OSError."""
    return [msgspec.json.decode(line, type=PlannedFault) for line in _lines(folder, _HITS)]


def _lines(folder: Path, pattern: str) -> Iterator[bytes]:
    """Yield the complete lines of files, at most MOST_POINTS."""
    left = MOST_POINTS
    for file in sorted(folder.glob(pattern))[:_MOST_FILES]:
        if not left:
            return
        *complete, _ = file.read_bytes().split(b"\n")
        yield from complete[:left]
        left -= min(left, len(complete))
