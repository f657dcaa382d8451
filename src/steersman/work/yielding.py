"""Yielding: a coroutine with much to do gives the event loop back after each time slice.

Use `async for item in time_sliced(items)`, or a `TimeSlice` where there is no loop over items. Both count time, not
items: a slice lasts some milliseconds, then others have the event loop. Time for which the coroutine waits is not
counted, as others have the loop meanwhile.

Slices of concurrent loops do not add up: one slice for users runs in each iteration of the event loop. Users (of the
accounts of `work.offloading`) are served in rotation, and the loops of one user in the order of their arrival. One
slice of the server's own work runs in addition. So a hundred slow lists delay a request no longer than one, and an
index that all of them need is built meanwhile.

Nothing is held between two slices. A coroutine that is cancelled or raises there has nothing to release.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable
from time import monotonic
from typing import ClassVar, Final, TypeVar
from weakref import WeakKeyDictionary

from steersman.work.offloading import SERVER, Account, current

T = TypeVar("T")

BEGINNING: Final = 0.0005
"""Seconds that a coroutine may work before the event loop's iteration is checked; after twice that it waits for a
slice."""
SLICE: Final = 0.004
"""Seconds that a slice lasts."""


class TimeSlice:
    """Time slice in which a coroutine may work before others have the event loop. It starts when it is created."""

    __slots__ = ("_number", "_until")

    def __init__(self) -> None:
        self._number = -1
        """Iteration of the event loop in which the slice started, as `_Pace` counts; -1 if not known."""
        self._until = monotonic() + BEGINNING

    async def pause_if_over(self) -> None:
        """Yield to the event loop if the slice is over. Call it between two short parts of the work."""
        if monotonic() < self._until:
            return
        pace = _Pace.of(asyncio.get_running_loop())
        number = pace.number()
        if number != self._number:  # others have had the event loop since the slice started, or that is not known
            self._number, self._until = number, monotonic() + BEGINNING
            return
        await pace.next_slice(1, current().user)
        self._number, self._until = pace.number(), monotonic() + SLICE


async def time_sliced(items: Iterable[T]) -> AsyncIterator[T]:
    """Yield `items`, and let others have the event loop whenever a time slice is over."""
    pass_through = TimeSlice()
    for item in items:
        if monotonic() >= pass_through._until:  # checked here, as awaiting for each item costs more
            await pass_through.pause_if_over()
        yield item


async def next_slice(per_iteration: int = 1, account: Account | None = None) -> None:
    """Wait for one of the slices of which `per_iteration` run in each iteration of the event loop.

    Meant for work that comes in slices by itself, such as pieces of a list. `account` is the account of the work, if it
    is not the one that is bound to the context.
    """
    await _Pace.of(asyncio.get_running_loop()).next_slice(per_iteration, (account or current()).user)


def run_in_slices(some: Callable[[], bool], seconds: float = SLICE) -> None:
    """Call `some` until it returns False, beginning at once, for about `seconds` in each iteration of the event loop.

    Meant for callbacks, which cannot await. `some` is called at least once in each iteration.
    """
    until = monotonic() + seconds
    while some():
        if monotonic() >= until:
            asyncio.get_running_loop().call_soon(run_in_slices, some, seconds)
            return


class IterationGate:
    """Gate that lets `per_iteration` tasks pass in each iteration of the event loop.

    Each does little between two passes.

    The tasks of one user pass in the order of their arrival, and users are served in rotation.
    """

    __slots__ = ("_left", "_per_iteration", "_scheduled", "_waiting")

    def __init__(self, per_iteration: int) -> None:
        self._per_iteration = self._left = per_iteration
        self._scheduled = False
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        """Waiting tasks by user; the user to be served next comes first."""

    async def pass_through(self, user: str = SERVER) -> None:
        """Wait until the caller may pass: not at all while fewer than `per_iteration` have passed in this iteration."""
        loop = asyncio.get_running_loop()
        if not self._scheduled:
            self._scheduled = True
            loop.call_soon(self._begin, loop)
        if self._left:
            self._left -= 1
            return
        mine: asyncio.Future[None] = loop.create_future()
        self._waiting.setdefault(user, deque()).append(mine)
        await mine

    def _begin(self, loop: asyncio.AbstractEventLoop) -> None:
        """Let waiting tasks pass at the start of an iteration of the event loop."""
        self._left = self._per_iteration
        while self._left and (mine := self._next()) is not None:
            mine.set_result(None)
            self._left -= 1
        self._scheduled = self._left < self._per_iteration
        if self._scheduled:
            loop.call_soon(self._begin, loop)

    def _next(self) -> asyncio.Future[None] | None:
        """Remove and return the next task that still waits, or None."""
        while self._waiting:
            user = next(iter(self._waiting))
            line = self._waiting.pop(user)
            while line:
                mine = line.popleft()
                if not mine.done():
                    if line:
                        self._waiting[user] = line  # behind the other users
                    return mine
        return None


class _Pace:
    """Gates for slices of one event loop, and a counter of the loop's iterations."""

    __slots__ = ("_gates", "_is_counting", "_number")

    _all: ClassVar[WeakKeyDictionary[asyncio.AbstractEventLoop, _Pace]] = WeakKeyDictionary()

    def __init__(self) -> None:
        self._gates: dict[tuple[int, bool], IterationGate] = {}
        """Gates by the number of slices in one iteration, and whether they are for the server's own work."""
        self._number = 0
        self._is_counting = False

    @classmethod
    def of(cls, loop: asyncio.AbstractEventLoop) -> _Pace:
        found = cls._all.get(loop)
        if found is None:
            found = cls._all[loop] = cls()
        return found

    def number(self) -> int:
        """Return a number for the current iteration. Iterations are counted only after each call of this method."""
        if not self._is_counting:
            self._is_counting = True
            asyncio.get_running_loop().call_soon(self._count)
        return self._number

    def _count(self) -> None:
        self._number += 1
        self._is_counting = False

    async def next_slice(self, per_iteration: int, user: str) -> None:
        key = per_iteration, user == SERVER
        gate = self._gates.get(key)
        if gate is None:
            gate = self._gates[key] = IterationGate(per_iteration)
        await gate.pass_through(user)
