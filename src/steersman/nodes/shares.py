"""CPU time and memory of simulated programs, shared by namespace whatever the programs are run for.

A program runs for one time slice at a time. One slice runs in each iteration of the event loop, and namespaces are
served in rotation, however many programs each has. A namespace whose programs have used more than its share is slowed
down to a fraction of a core.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import Final

from steersman.net.time_slices import SLICE

_AT_ONCE: Final = 10.0
"""Seconds of CPU time that the programs of a namespace may use in a burst."""
_RATE: Final = 0.5
"""Fraction of a core that the programs of a namespace may use continuously."""
_LONGEST: Final = 1.0
"""Seconds between two checks of a program that waits for its namespace's share."""
_MEMORY: Final = 64 << 20
"""Bytes that the programs of a namespace may buffer."""

_FEW: Final = 256
"""Shares from which on unused ones are dropped."""


class Shares:
    """Shares of all namespaces; all nodes use one object."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self.clock = clock
        self.left = SLICE
        """Seconds that programs may still run in this iteration of the event loop."""
        self._shares: dict[str, Share] = {}
        self._most = _FEW
        self._waiting: deque[Share] = deque()
        """Shares with programs that wait for a slice."""
        self._scheduled = False

    def for_namespace(self, namespace: str) -> Share:
        """Return the share of a namespace."""
        share = self._shares.get(namespace)
        if share is None:
            if len(self._shares) >= self._most:
                self._shares = {name: each for name, each in self._shares.items() if not each.is_unused}
                self._most = max(_FEW, 2 * len(self._shares))
            share = self._shares[namespace] = Share(self)
        return share

    def charge(self, seconds: float) -> None:
        """Count seconds that a program has run in this iteration of the event loop."""
        self.left -= seconds
        self._schedule()

    def wait(self, share: Share) -> None:
        """Queue a share, one of whose programs waits for a slice."""
        self._waiting.append(share)
        self._schedule()

    @property
    def is_free(self) -> bool:
        """True if a program may run at once."""
        return self.left > 0 and not self._waiting

    def _schedule(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._begin)

    def _begin(self) -> None:
        """Begin an iteration of the event loop: let the next waiting program run."""
        self._scheduled = False
        self.left = SLICE
        while self._waiting:
            share = self._waiting.popleft()
            if share.wake():
                break
        if self._waiting:
            self._schedule()


class Share:
    """CPU time and memory of the programs of one namespace."""

    def __init__(self, shares: Shares) -> None:
        self._shares = shares
        self._credit = _AT_ONCE
        self._credited = asyncio.get_running_loop().time()
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._memory = _MEMORY

    # Memory

    def reserve(self, size: int) -> bool:
        """Reserve `size` bytes. Return False if fewer are left."""
        if size > self._memory:
            return False
        self._memory -= size
        return True

    def release(self, size: int) -> None:
        """Give back reserved bytes."""
        self._memory += size

    # Time

    async def wait_for_slice(self, *, waits: bool = True) -> None:
        """Wait until a program of the namespace may run for a slice.

        With `waits` False, as for a kubelet's own work, that holds even while the namespace has used more than its
        share.
        """
        if waits and self._debt() > 0:
            await self._recovered()
        if self._shares.is_free:
            return
        mine: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(mine)
        if len(self._waiting) == 1:
            self._shares.wait(self)
        await mine

    async def _recovered(self) -> None:
        """Wait until the namespace has used no more than its share."""
        debt = self._debt()
        while debt > 0:
            await asyncio.sleep(min(debt / _RATE, _LONGEST))
            debt = self._debt()

    def wake(self) -> bool:
        """Give a slice to the first waiting program. Return False if none waits any more."""
        while self._waiting:
            mine = self._waiting.popleft()
            if not mine.done():
                mine.set_result(None)
                if self._waiting:
                    self._shares.wait(self)
                return True
        return False

    def charge(self, seconds: float) -> None:
        """Charge the namespace with seconds that a program has run."""
        self._credit -= seconds
        self._shares.charge(seconds)

    @property
    def is_unused(self) -> bool:
        """True if the share is unused, so that it can be dropped."""
        return self._debt() <= -_AT_ONCE and self._memory == _MEMORY and not self._waiting

    @property
    def clock(self) -> Callable[[], float]:
        """Clock that measures the run time of programs, in seconds."""
        return self._shares.clock

    def _debt(self) -> float:
        now = asyncio.get_running_loop().time()
        self._credit = min(_AT_ONCE, self._credit + (now - self._credited) * _RATE)
        self._credited = now
        return -self._credit


class Slices:
    """Time slices of one program. Each step of it runs between `await begin()` and `end()`."""

    __slots__ = ("_began", "_left", "_share", "_waits")

    def __init__(self, share: Share, *, waits: bool = True) -> None:
        self._share = share
        self._waits = waits
        self._left = 0.0
        self._began = 0.0

    async def begin(self) -> None:
        """Wait until the program may run on: not at all while its slice lasts."""
        if self._left <= 0:
            await self._share.wait_for_slice(waits=self._waits)
            self._left = SLICE
        self._began = self._share.clock()

    def end(self) -> None:
        """Charge the time of a step."""
        spent = self._share.clock() - self._began
        self._left -= spent
        self._share.charge(spent)

    def end_slice(self) -> None:
        """End the current slice, as the program has waited for something else."""
        self._left = 0.0
