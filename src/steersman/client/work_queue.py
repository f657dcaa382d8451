"""What is to be done: each thing once, however often it is asked for; later, or with growing waits, where wanted."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Hashable
from time import monotonic
from typing import Final, Generic, TypeVar

from steersman.net.turns import SLICE

K = TypeVar("K", bound=Hashable)

BASE_DELAY: Final = 0.005
MAX_DELAY: Final = 1000.0
"""Seconds before a thing that failed is tried again: at first, doubled each time, and at most (client-go
DefaultTypedControllerRateLimiter)."""


class WorkQueue(Generic[K]):
    """A queue of keys (client-go TypedRateLimitingInterface). One that is being worked on waits for its end."""

    def __init__(self, *, base_delay: float = BASE_DELAY, max_delay: float = MAX_DELAY) -> None:
        self._base_delay = base_delay
        self._max_delay = max_delay
        self._ready: deque[K] = deque()
        self._dirty: set[K] = set()
        self._working: set[K] = set()
        self._failures: dict[K, int] = {}
        self._timers: dict[K, tuple[float, asyncio.TimerHandle]] = {}
        """When keys fall due, on the loop's clock; handles of uvloop do not tell."""
        self._tasks: list[asyncio.Task[None]] = []
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._turn_end: float | None = None
        """When keys have been worked on for a slice in this turn of the event loop; None before the first."""

    def __len__(self) -> int:
        """How many are ready."""
        return len(self._ready)

    @property
    def idle(self) -> bool:
        """Whether nothing is ready and nothing is worked on; some may be due later."""
        return not self._dirty and not self._working

    def add(self, key: K) -> None:
        """Has a key worked on as soon as may be."""
        if key in self._dirty:
            return
        self._dirty.add(key)
        if key not in self._working:
            self._put(key)

    def add_after(self, key: K, seconds: float) -> None:
        """The same after some time; of several times of one key the earliest counts."""
        if seconds <= 0:
            self.add(key)
            return
        loop = asyncio.get_running_loop()
        due = loop.time() + seconds
        known = self._timers.get(key)
        if known is not None:
            if known[0] <= due:
                return
            known[1].cancel()
        self._timers[key] = due, loop.call_at(due, self._due, key)

    def retry(self, key: K) -> None:
        """Has a key that failed tried again, later each time."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        self.add_after(key, min(self._base_delay * 2 ** min(failures, 60), self._max_delay))

    def retries(self, key: K) -> int:
        """How often a key has failed since it was forgotten."""
        return self._failures.get(key, 0)

    def forget(self, key: K) -> None:
        """The next failure of a key is its first."""
        self._failures.pop(key, None)

    async def get(self) -> K:
        """The next key, which the caller gives back by `done`."""
        while not self._ready:
            waiter = asyncio.get_running_loop().create_future()
            self._waiting.append(waiter)
            try:
                await waiter
            except asyncio.CancelledError:
                if waiter.done() and not waiter.cancelled():
                    self._wake()
                raise
        key = self._ready.popleft()
        self._dirty.discard(key)
        self._working.add(key)
        return key

    def done(self, key: K) -> None:
        """A key is worked on no more; if it was added meanwhile, it is ready again."""
        self._working.discard(key)
        if key in self._dirty:
            self._put(key)

    async def _turn(self) -> None:
        """Return in a turn of the event loop in which keys of this queue have not been worked on for a slice, as looks
        that never wait would have one turn for all keys together."""
        while self._turn_end is not None and monotonic() >= self._turn_end:  # noqa: ASYNC110 - turns are waited for
            await asyncio.sleep(0)
        if self._turn_end is None:
            self._turn_end = monotonic() + SLICE
            asyncio.get_running_loop().call_soon(self._turned)

    def _turned(self) -> None:
        self._turn_end = None

    async def work(self, see_to: Callable[[K], Awaitable[None]], failed: Callable[[K, Exception], None]) -> None:
        """Has keys seen to, one after the other, until the task is cancelled. One whose look has failed, which `failed`
        is told of, is tried again."""
        own = asyncio.current_task()
        assert own is not None
        while not own.cancelling():  # what a look does at its end may have failed meanwhile, and that is what it raised
            key = await self.get()
            try:
                await self._turn()
                await see_to(key)
            except Exception as error:
                failed(key, error)
                self.retry(key)
            else:
                self.forget(key)
            finally:
                self.done(key)

    def start(
        self, see_to: Callable[[K], Awaitable[None]], failed: Callable[[K, Exception], None], *, name: str, workers: int
    ) -> None:  # fmt: skip
        """Begin `workers` tasks that `work`; `stop` ends them."""
        self._tasks = [
            asyncio.create_task(self.work(see_to, failed), name=f"{name} {number}") for number in range(workers)
        ]

    async def stop(self) -> None:
        """Return once no task of `start` works any more; forget what is due later."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        self.close()

    def close(self) -> None:
        """Forgets what is due later."""
        for _, timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def _put(self, key: K) -> None:
        self._ready.append(key)
        self._wake()

    def _wake(self) -> None:
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return

    def _due(self, key: K) -> None:
        del self._timers[key]
        self.add(key)
