"""Time slices of connections in each iteration of the event loop, so that one client's input does not block the
others.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import ClassVar, Final, Generic, Protocol, TypeVar
from weakref import WeakKeyDictionary, proxy

T = TypeVar("T")

SLICE: Final = 0.002
"""Seconds that connections with more input than fits may work in one iteration of the event loop, all together."""
_INPUT_SLICE: Final = 0.006
_FEW: Final = 8
"""Number of connections with new input in one iteration of the event loop from which on the time for them is
limited.
"""
_SHORT_SLICE: Final = 0.0002
"""Seconds for the new input of one connection while other connections have input left over."""


class SlicedQueue(Generic[T]):
    """Work queue that calls `do` for each item, in order, for one time slice per iteration of the event loop.

    `clock` returns seconds.
    """

    __slots__ = ("_do", "_end", "_loop", "_scheduled", "_waiting", "clock", "count")

    def __init__(
        self, loop: asyncio.AbstractEventLoop, do: Callable[[T], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._loop = loop
        self._do = do
        self._waiting: deque[T] = deque()
        self._scheduled = False
        self._end = 0.0
        """End of this iteration's time slice."""
        self.clock = clock
        self.count = 0
        """Number of iterations of the event loop in which items were processed."""

    def _work(self, item: T) -> None:
        self._do(item)

    def enqueue(self, item: T) -> None:
        """Queue `item` to be processed once, in a later iteration of the event loop."""
        self._waiting.append(item)
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._run)

    def _run(self) -> None:
        self.count += 1
        waiting, clock = self._waiting, self.clock
        end = self._end = clock() + SLICE
        left = len(waiting)
        try:
            while left:
                self._work(waiting.popleft())
                left -= 1
                if left and clock() >= end:
                    break
        finally:
            self._scheduled = bool(waiting)
            if waiting:
                self._loop.call_soon(self._run)


class PendingRequest(Protocol):
    """A request that has arrived."""

    def begin(self) -> None:
        """Process the request until it has to wait."""
        ...


class RequestQueue(SlicedQueue[PendingRequest]):
    """Work queue for the start of in-process requests: clients may send hundreds in one iteration of the event loop."""

    __slots__ = ("__weakref__",)
    _all: ClassVar[WeakKeyDictionary[asyncio.AbstractEventLoop, RequestQueue]] = WeakKeyDictionary()

    @classmethod
    def for_loop(cls, loop: asyncio.AbstractEventLoop) -> RequestQueue:
        """Return the queue of an event loop, shared by all in-process clients on it."""
        queue = cls._all.get(loop)
        if queue is None:
            # a proxy: a strong reference in the value would keep the weak key alive
            queue = cls._all[loop] = cls(proxy(loop), lambda item: item.begin())
        return queue


class PendingInput(Protocol):
    """A connection with input left over."""

    def go_on(self) -> None:
        """Process input until `InputQueue.is_slice_over`; if input is left then, queue itself again with `InputQueue.enqueue`."""
        ...


class InputQueue(SlicedQueue[PendingInput]):
    """Work queue of connections with input left over, and the time limits for new input."""

    __slots__ = ("_begun", "_until", "input_deadline")

    def __init__(self, loop: asyncio.AbstractEventLoop, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(loop, lambda item: item.go_on(), clock)
        self._until = 0.0
        self._begun = 0
        self.input_deadline = 0.0
        """Time at which new input must wait for the next iteration; 0.0 while there is no limit."""

    def is_iteration_over(self) -> bool:
        """Return True if new input must be postponed, as this iteration of the event loop has used up its time.

        Called for all input, so that the clock is read only when many connections have input.
        """
        if self.input_deadline:
            return self.clock() >= self.input_deadline
        self._begun += 1
        if self._begun >= _FEW:
            self.input_deadline = self.clock() + (SLICE if self._waiting else _INPUT_SLICE)
            self._loop.call_soon(self._reset_deadline)
        return False

    def _reset_deadline(self) -> None:
        self._begun = 0
        self.input_deadline = 0.0

    def start_slice(self) -> None:
        """Start the time slice of a connection that finds more than one step to do."""
        self._until = self.clock() + (_SHORT_SLICE if self._waiting else SLICE)

    def is_slice_over(self) -> bool:
        """Return True if the time slice is over. Called between two steps."""
        return self.clock() >= self._until

    def _work(self, item: PendingInput) -> None:
        self._until = self._end
        self._do(item)
