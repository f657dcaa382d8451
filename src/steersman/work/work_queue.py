"""Work queue of keys: each key is worked on once however often it is added, if wanted later or after a back-off.

Follows client-go's `util/workqueue`: a key that is added while it is worked on is worked on again after that, and never
twice at once.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Hashable, Iterable
from functools import partial
from time import monotonic
from typing import Any, Final, Generic, TypeVar

from steersman.work import simulated_time
from steersman.work.backoff import Backoff
from steersman.work.offloading import begin_task

K = TypeVar("K", bound=Hashable)

logger = logging.getLogger(__name__)

BASE_DELAY: Final = 0.005
"""Seconds before the first retry of a key that failed (client-go DefaultTypedControllerRateLimiter)."""
MAX_DELAY: Final = 1000.0
"""Longest wait in seconds before a retry."""
SLICE: Final = 0.002
"""Seconds for which the keys of one queue are worked on in one iteration of the event loop."""


class TryLater(Exception):
    """A key cannot be worked on now, for a reason that is not a bug. The text is for the log."""


class WorkQueue(Generic[K]):
    """Queue of keys with a back-off for keys that fail (client-go TypedRateLimitingInterface).

    `start` starts tasks that work on the keys, and `stop` ends them. Keys that are added earlier wait for the start.
    """

    def __init__(self, *, base_delay: float = BASE_DELAY, max_delay: float = MAX_DELAY) -> None:
        """Create a queue. A failed key is retried after `base_delay` seconds, doubled each time up to `max_delay`."""
        self._backoff = Backoff(base_delay, max_delay)
        self._ready: deque[K] = deque()
        self._dirty: set[K] = set()
        self._working: set[K] = set()
        self._failures: dict[K, int] = {}
        self._timers: dict[K, tuple[float, simulated_time.Timer]] = {}
        """Due time in simulated time, and timer, by key; handles of uvloop do not tell their time."""
        self._running: asyncio.Task[None] | None = None
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._idle_waiters: list[asyncio.Future[None]] = []
        """Futures of callers that wait until the queue is idle."""
        self._slice_end: float | None = None
        """End of the queue's slice of this iteration of the event loop; None before the iteration's first key."""

    def __len__(self) -> int:
        """Return the number of keys that are ready to be worked on."""
        return len(self._ready)

    @property
    def idle(self) -> bool:
        """True if no key is ready or worked on. Keys may still be due later."""
        return not self._dirty and not self._working

    def add(self, key: K) -> None:
        """Add a key to be worked on as soon as possible."""
        if key in self._dirty:
            return
        self._dirty.add(key)
        if key not in self._working:
            self._put(key)

    def add_after(self, key: K, seconds: float) -> None:
        """Add a key after `seconds`. Of several times given for one key, the earliest counts."""
        if seconds <= 0:
            self.add(key)
            return
        due = simulated_time.time() + seconds
        known = self._timers.get(key)
        if known is not None:
            if known[0] <= due:
                return
            known[1].cancel()
        self._timers[key] = due, simulated_time.call_at(due, self._due, key)

    def retry(self, key: K) -> None:
        """Add a key that failed after its back-off, which grows with each failure."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        self.add_after(key, self._backoff.wait(failures))

    def retries(self, key: K) -> int:
        """Return the number of failures of a key since it was forgotten."""
        return self._failures.get(key, 0)

    def forget(self, key: K) -> None:
        """Forget the failures of a key, so that its next failure counts as the first."""
        self._failures.pop(key, None)

    def discard(self, key: K) -> None:
        """Remove a key and forget its failures. Work on it that is in progress goes on."""
        self.forget(key)
        known = self._timers.pop(key, None)
        if known is not None:
            known[1].cancel()
        if key in self._dirty:
            self._dirty.discard(key)
            if key not in self._working:
                self._ready.remove(key)
        self._notify_if_idle()

    async def wait_until_idle(self) -> None:
        """Wait until the queue is `idle`."""
        if not self.idle:
            waiter = asyncio.get_running_loop().create_future()
            self._idle_waiters.append(waiter)
            await waiter

    async def get(self) -> K:
        """Wait for the next key and return it. The caller calls `done` when it has worked on the key."""
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
        """Mark the work on a key as ended. If the key was added meanwhile, it becomes ready again."""
        self._working.discard(key)
        if key in self._dirty:
            self._put(key)
        self._notify_if_idle()

    def start(
        self,
        reconcile: Callable[[K], Awaitable[float | None]],
        failed: Callable[[K, Exception], None] | None = None,
        *,
        name: str,
        workers: int,
    ) -> None:
        """Start `run` in a task on the server's account; `stop` ends it."""
        self._running = begin_task(self.run(reconcile, failed, name=name, workers=workers), name=name)

    async def stop(self) -> None:
        """Cancel the work, wait until no key is worked on, and forget keys that are due later."""
        if self._running is not None:
            self._running.cancel()
            await asyncio.wait([self._running])
        self._close()

    async def run(
        self,
        reconcile: Callable[[K], Awaitable[float | None]],
        failed: Callable[[K, Exception], None] | None = None,
        *,
        name: str,
        workers: int,
    ) -> None:
        """Call `reconcile` for each key, in `workers` tasks at once, until cancelled.

        `reconcile` may return seconds after which its key is added again. If it raises, the key is retried and `failed`
        is called; the default for `failed` logs the error.
        """
        failed = failed or partial(_log, name)
        try:
            async with asyncio.TaskGroup() as group:
                for number in range(workers):
                    group.create_task(self._work(reconcile, failed), name=f"{name} {number}")
        finally:
            self._close()

    async def _work(
        self, reconcile: Callable[[K], Awaitable[float | None]], failed: Callable[[K, Exception], None]
    ) -> None:
        own = asyncio.current_task()
        assert own is not None
        while not own.cancelling():  # cancelled work may have raised an error of its own instead of CancelledError
            key = await self.get()
            try:
                await self._wait_for_slice()
                retry_after = await reconcile(key)
            except asyncio.CancelledError as error:
                if own.cancelling():
                    raise
                failed(
                    key, _cancellation_error(error)
                )  # `reconcile` waited for something that was cancelled; this task was not
                self.retry(key)
            except Exception as error:
                failed(key, error)
                self.retry(key)
            else:
                self.forget(key)
                if retry_after is not None:
                    self.add_after(key, retry_after)
            finally:
                self.done(key)

    async def _wait_for_slice(self) -> None:
        """Wait for an iteration of the event loop in which this queue has not used up its slice.

        Without this, work that never waits would be done for all keys in one iteration.
        """
        while self._slice_end is not None and monotonic() >= self._slice_end:  # noqa: ASYNC110 - waits for an iteration
            await asyncio.sleep(0)
        if self._slice_end is None:
            self._slice_end = monotonic() + SLICE
            asyncio.get_running_loop().call_soon(self._end_of_iteration)

    def _end_of_iteration(self) -> None:
        self._slice_end = None

    def _close(self) -> None:
        for _, timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def _put(self, key: K) -> None:
        self._ready.append(key)
        self._wake()

    def _notify_if_idle(self) -> None:
        if self._idle_waiters and self.idle:
            for waiter in self._idle_waiters:
                if not waiter.done():
                    waiter.set_result(None)
            self._idle_waiters.clear()

    def _wake(self) -> None:
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return

    def _due(self, key: K) -> None:
        del self._timers[key]
        self.add(key)


class WorkQueues:
    """Several work queues that are asked together, at each step of a clock."""

    def __init__(self, queues: Iterable[WorkQueue[Any]]) -> None:
        self._keys = [keys for each in queues for keys in (each._dirty, each._working)]

    @property
    def idle(self) -> bool:
        """True if all queues are `idle`."""
        return not any(self._keys)


def _cancellation_error(error: asyncio.CancelledError) -> RuntimeError:
    """Return an error for the log that is caused by the cancellation."""
    runtime_error = RuntimeError("an awaited task has been cancelled")
    runtime_error.__cause__ = error
    return runtime_error


def _log(name: str, key: object, error: Exception) -> None:
    if isinstance(error, TryLater):
        logger.info("%s: %s: %s", name, key, error)
    else:
        logger.error("%s: %s failed and is tried again", name, key, exc_info=error)
