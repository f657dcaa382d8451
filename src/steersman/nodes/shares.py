"""CPU time and memory that simulated programs share: those of a namespace have a share, whatever they are run for.

A program runs for a slice at a time, and one slice at a time is run in a turn of the event loop; namespaces come in
turn, whatever number of programs each has. A namespace whose programs have used more than its share is slowed down to
a fraction of a core.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import Final

from steersman.net.turns import SLICE

_AT_ONCE: Final = 10.0
"""Seconds of CPU time that programs of a namespace may use at once."""
_RATE: Final = 0.5
"""The fraction of a core that they may use all the time."""
_LONGEST: Final = 1.0
"""Seconds after which a program that waits for its namespace's share looks again."""
_MEMORY: Final = 64 << 20
"""Bytes that programs of a namespace may buffer."""

_FEW: Final = 256
"""Shares after which those that nobody uses are forgotten."""


class Shares:
    """Shares of all namespaces; one for all nodes."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self.clock = clock
        self.left = SLICE
        """Seconds that programs may still run in this turn of the loop."""
        self._shares: dict[str, Share] = {}
        self._most = _FEW
        self._waiting: deque[Share] = deque()
        """Shares of which programs wait for a slice."""
        self._scheduled = False

    def of(self, namespace: str) -> Share:
        """The share of a namespace."""
        found = self._shares.get(namespace)
        if found is None:
            if len(self._shares) >= self._most:
                self._shares = {name: each for name, each in self._shares.items() if not each.is_whole}
                self._most = max(_FEW, 2 * len(self._shares))
            found = self._shares[namespace] = Share(self)
        return found

    def spent(self, seconds: float) -> None:
        """A program has run in this turn of the loop."""
        self.left -= seconds
        self._schedule()

    def wait(self, share: Share) -> None:
        """A program of a share waits for a slice."""
        self._waiting.append(share)
        self._schedule()

    @property
    def is_free(self) -> bool:
        """Whether a program may run at once."""
        return self.left > 0 and not self._waiting

    def _schedule(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._begin)

    def _begin(self) -> None:
        """A turn of the loop."""
        self._scheduled = False
        self.left = SLICE
        while self._waiting:
            share = self._waiting.popleft()
            if share.wake():
                break
        if self._waiting:
            self._schedule()


class Share:
    """CPU time and memory of one namespace's programs."""

    def __init__(self, shares: Shares) -> None:
        self._shares = shares
        self._credit = _AT_ONCE
        self._credited = asyncio.get_running_loop().time()
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._memory = _MEMORY

    # Memory

    def take(self, size: int) -> bool:
        """Return False where so many bytes are not left."""
        if size > self._memory:
            return False
        self._memory -= size
        return True

    def give(self, size: int) -> None:
        """Give back bytes that were taken."""
        self._memory += size

    # Time

    async def turn(self, *, waits: bool = True) -> None:
        """Return when a program of the namespace may run for a slice.

        Without `waits`, as for a kubelet's own work, that is also while the namespace has used more than its share.
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
        """Return when the namespace has used no more than its share."""
        debt = self._debt()
        while debt > 0:
            await asyncio.sleep(min(debt / _RATE, _LONGEST))
            debt = self._debt()

    def wake(self) -> bool:
        """Give the first that waits its slice; False where nobody waits any more."""
        while self._waiting:
            mine = self._waiting.popleft()
            if not mine.done():
                mine.set_result(None)
                if self._waiting:
                    self._shares.wait(self)
                return True
        return False

    def spent(self, seconds: float) -> None:
        """A program has run for so long."""
        self._credit -= seconds
        self._shares.spent(seconds)

    @property
    def is_whole(self) -> bool:
        """Whether nothing of it is used."""
        return self._debt() <= -_AT_ONCE and self._memory == _MEMORY and not self._waiting

    @property
    def clock(self) -> Callable[[], float]:
        """Seconds, by which it is measured how long programs run."""
        return self._shares.clock

    def _debt(self) -> float:
        now = asyncio.get_running_loop().time()
        self._credit = min(_AT_ONCE, self._credit + (now - self._credited) * _RATE)
        self._credited = now
        return -self._credit


class Slices:
    """Slices of one program: each step of it stands between `await begin()` and `end()`."""

    __slots__ = ("_began", "_left", "_share", "_waits")

    def __init__(self, share: Share, *, waits: bool = True) -> None:
        self._share = share
        self._waits = waits
        self._left = 0.0
        self._began = 0.0

    async def begin(self) -> None:
        """Return when the program may run on: at once, while its slice lasts."""
        if self._left <= 0:
            await self._share.turn(waits=self._waits)
            self._left = SLICE
        self._began = self._share.clock()

    def end(self) -> None:
        """A step is over."""
        spent = self._share.clock() - self._began
        self._left -= spent
        self._share.spent(spent)

    def has_waited(self) -> None:
        """Something was waited for, after which the program is to have its turn again."""
        self._left = 0.0
