"""Observers of the servers of a process of tests, which follow each from its start, or from its reset, to its end."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from steersman.controlplane.control_plane import ControlPlane
    from steersman.faults.fault_set import FaultSet

Observer = Callable[["ControlPlane", "FaultSet"], Callable[[], None]]
"""Function that begins to follow a server, by its control plane and its faults, and returns what ends that."""

_observers: Final[list[Observer]] = []


def add_observer(observer: Observer) -> Callable[[], None]:
    """Follow all servers that start from now on. Return the function that ends this for later servers."""
    _observers.append(observer)
    return lambda: _observers.remove(observer)


class Observation:
    """All observers of one server."""

    def __init__(self) -> None:
        self._ends = ExitStack()

    def begin(self, plane: ControlPlane, faults: FaultSet) -> None:
        """Let all observers follow a server. Raises what they raise, and then ends."""
        try:
            for each in _observers:
                self._ends.callback(each(plane, faults))
        except BaseException:
            self.end()
            raise

    def end(self) -> None:
        """Let the observers end."""
        self._ends.close()
