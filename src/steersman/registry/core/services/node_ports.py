"""Ports on nodes, given to Services out of one range: in memory, rebuilt from the stored services.

The lower part of the range is kept for ports that are asked for by number (KEP-3668); other ports come from the rest
at random, and from the lower part only once that is full.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from typing import Final

ALLOCATED: Final = "provided port is already allocated"
FULL: Final = "range is full"

_DRY_RUN_FIRST: Final = 32_769
"""What a dry run answers for a port that it would allocate."""


class PortError(Exception):
    """A port cannot be had; the text says why."""


def static_band(size: int) -> int:
    """How many ports of a range of `size` are left for those that are asked for by number."""
    return 0 if size <= 16 else min(max(16, size // 32), 128)


class NodePorts:
    """The ports in use. `load` gives those of the stored services, when they are first needed and for repairs."""

    def __init__(self, ports: range, load: Callable[[], Iterable[int]]) -> None:
        self._ports = ports
        self._band = static_band(len(ports))
        self._load = load
        self._used: set[int] = set()
        self.loaded = False

    def __contains__(self, port: int) -> bool:
        return port in self._in_use()

    def allocate(self, port: int) -> None:
        """Takes this port. Raises PortError."""
        if port not in self._ports:
            valid = f"{self._ports.start}-{self._ports.stop - 1}"
            raise PortError(f"provided port is not in the valid range. The range of valid ports is {valid}")
        if port in self._in_use():
            raise PortError(ALLOCATED)
        self._used.add(port)

    def allocate_next(self) -> int:
        """Takes any free port. Raises PortError."""
        used = self._in_use()
        for band in (self._ports[self._band :], self._ports[: self._band]):
            start = random.randrange(len(band)) if band else 0
            for index in range(len(band)):
                port = band[(start + index) % len(band)]
                if port not in used:
                    used.add(port)
                    return port
        raise PortError(FULL)

    def release(self, port: int) -> None:
        """Gives a port back."""
        self._in_use().discard(port)

    def repair(self) -> None:
        """Reads again what is in use: frees what leaked and takes what another server gave away."""
        self._used = {port for port in self._load() if port in self._ports}
        self.loaded = True

    def _in_use(self) -> set[int]:
        if not self.loaded:
            self.repair()
        return self._used


class PortOperation:
    """What one request does to the ports: taken at once, given back when it is committed, undone if it is not."""

    def __init__(self, ports: NodePorts, *, dry_run: bool) -> None:
        self._ports = ports
        self._dry_run = dry_run
        self._taken: list[int] = []
        self._released: list[int] = []

    def allocate(self, port: int) -> None:
        """Takes this port. Raises PortError."""
        if not self._dry_run:
            self._ports.allocate(port)
        elif port in self._ports or port in self._taken:
            raise PortError(ALLOCATED)
        self._taken.append(port)

    def allocate_next(self) -> int:
        """Takes any free port; a dry run answers with numbers beyond the usual range. Raises PortError."""
        port = max(self._taken, default=_DRY_RUN_FIRST - 1) + 1 if self._dry_run else self._ports.allocate_next()
        self._taken.append(port)
        return port

    def release_later(self, port: int) -> None:
        """Gives a port back if the request is committed."""
        self._released.append(port)

    def finish(self, *, committed: bool) -> None:
        """Makes the operation final, or undoes it."""
        if self._dry_run:
            return
        for port in self._released if committed else self._taken:
            self._ports.release(port)
