"""Who may work how long in one turn of the loop, so that what one client sends does not keep the others waiting."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import ClassVar, Final, Generic, Protocol, TypeVar
from weakref import WeakKeyDictionary, proxy

T = TypeVar("T")

SLICE: Final = 0.002
"""Seconds that connections with more input than that takes may work in one turn of the loop, all together."""
_TURN: Final = 0.006
_FEW: Final = 8
"""Seconds for which what has just come is worked on in a turn of the loop, once it has come to so many connections."""
_SHORT_SLICE: Final = 0.0002
"""The same for what has just come to one connection, while others have work left over."""


class InSlices(Generic[T]):
    """Has `do` work on what is handed to it, in the order it came, for a slice of each turn. `clock` tells seconds."""

    __slots__ = ("_do", "_end", "_loop", "_scheduled", "_waiting", "clock", "count")

    def __init__(
        self, loop: asyncio.AbstractEventLoop, do: Callable[[T], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._loop = loop
        self._do = do
        self._waiting: deque[T] = deque()
        self._scheduled = False
        self._end = 0.0
        """Of the slice of this turn."""
        self.clock = clock
        self.count = 0
        """Turns of the loop in which something was worked on."""

    def _work(self, item: T) -> None:
        self._do(item)

    def later(self, item: T) -> None:
        """Has `item` worked on once, in a turn to come."""
        self._waiting.append(item)
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._run)

    def _run(self) -> None:
        self.count += 1
        waiting = self._waiting
        end = self._end = self.clock() + SLICE
        try:
            for _ in range(len(waiting)):
                self._work(waiting.popleft())
                if self.clock() >= end:
                    break
        finally:
            self._scheduled = bool(waiting)
            if waiting:
                self._loop.call_soon(self._run)


class Beginner(Protocol):
    """A request that has come."""

    def begin(self) -> None:
        """Works on it until it has to wait."""
        ...


class Starts(InSlices[Beginner]):
    """Begins on requests in turn: clients in this process send hundreds at once, all of one turn of the loop."""

    __slots__ = ("__weakref__",)
    _all: ClassVar[WeakKeyDictionary[asyncio.AbstractEventLoop, Starts]] = WeakKeyDictionary()

    @classmethod
    def of(cls, loop: asyncio.AbstractEventLoop) -> Starts:
        """Those of a loop, which all clients on it share."""
        found = cls._all.get(loop)
        if found is None:
            # a proxy, or the loop would be kept by what is kept for it
            found = cls._all[loop] = cls(proxy(loop), lambda item: item.begin())
        return found


class Worker(Protocol):
    """A connection with input left over."""

    def go_on(self) -> None:
        """Works on until `Turns.over`; if input is left then, it comes again with `Turns.later`."""
        ...


class Turns(InSlices[Worker]):
    """Gives connections their time in turn."""

    __slots__ = ("_begun", "_turn_end", "_until")

    def __init__(self, loop: asyncio.AbstractEventLoop, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(loop, lambda item: item.go_on(), clock)
        self._until = 0.0
        self._begun = 0
        self._turn_end = 0.0
        """When as much was done in this turn of the loop as may be; 0.0 while that does not matter."""

    def spent(self) -> bool:
        """Whether so much was done in this turn of the loop that what has come to one more connection is to be put off.
        It is asked for all that comes, so that the end of a turn is looked out for only now and then."""
        if self._turn_end:
            return self.clock() >= self._turn_end
        self._begun += 1
        if self._begun >= _FEW:
            self._turn_end = self.clock() + (SLICE if self._waiting else _TURN)
            self._loop.call_soon(self._turn_ended)
        return False

    def _turn_ended(self) -> None:
        self._begun = 0
        self._turn_end = 0.0

    def begin(self) -> None:
        """Called by a connection when it begins on what has come, and sees that there is more than one step to do."""
        self._until = self.clock() + (_SHORT_SLICE if self._waiting else SLICE)

    def over(self) -> bool:
        """Whether the time is up; asked between two steps."""
        return self.clock() >= self._until

    def _work(self, item: Worker) -> None:
        self._until = self._end
        super()._work(item)
