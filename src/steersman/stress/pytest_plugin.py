"""Plugin for pytest by which the servers of fixtures take part in a search, as those of `steersman envtest` do.

The plugin of the fixtures loads it in a process that has the environment variable FOLDER.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from steersman.stress.drop_in import FOLDER, Notes
from steersman.testing.observers import add_observer
from steersman.testing.throw_away_keys import temporary_folders_in

if TYPE_CHECKING:
    import pytest

    from steersman.controlplane.control_plane import ControlPlane
    from steersman.faults.fault_set import FaultSet


def pytest_configure(config: pytest.Config) -> None:
    """Let all servers of this process take part until pytest ends."""
    config.add_cleanup(take_part(Path(os.environ[FOLDER])))


def take_part(folder: Path) -> Callable[[], None]:
    """Let servers that start from now on take part in the run of a folder. Return what ends that for later servers.

    Their files are in the folder, so that a killed program leaves none.
    """
    ends = ExitStack()
    ends.callback(temporary_folders_in(folder))
    ends.callback(add_observer(partial(_observe, folder)))
    return ends.close


def _observe(folder: Path, plane: ControlPlane, faults: FaultSet) -> Callable[[], None]:
    """Let the faults of a run happen in a server, and note its points. Return what ends that. Raises OSError."""
    notes = Notes(folder, faults)
    notes.attach(plane)

    def end() -> None:
        faults.interceptor = None
        notes.close()

    return end
