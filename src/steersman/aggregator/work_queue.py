"""Work on named things, each by itself, tried again later when it fails (client-go's rate limited queues)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

logger = logging.getLogger(__name__)


class TryAgain(Exception):
    """The work could not be done now; the text is for the log."""


class WorkQueue:
    """Does `work` for the keys that are added; it says in how many seconds a key is to be worked on again, if at all.

    After a failure the wait is `first` seconds, and twice as long after each that follows, up to `longest`. At most
    `workers` keys are worked on at once. A key that is added while it is worked on has its turn again.
    """

    def __init__(
        self, name: str, work: Callable[[str], Awaitable[float | None]], *, workers: int, first: float, longest: float
    ) -> None:  # fmt: skip
        self._name = name
        self._work = work
        self._room = asyncio.Semaphore(workers)
        self._first = first
        self._longest = longest
        self._failures: dict[str, int] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._running: dict[str, asyncio.Task[None]] = {}
        self._again: set[str] = set()
        self._has_begun = False

    def start(self) -> None:
        """Begins with what was added before."""
        self._has_begun = True
        again, self._again = self._again, set()
        for key in again:
            self.add(key)

    async def stop(self) -> None:
        """Returns once nothing is worked on any more."""
        self._has_begun = False
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        running = list(self._running.values())
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    def add(self, key: str) -> None:
        """Has the key worked on, now."""
        if (timer := self._timers.pop(key, None)) is not None:
            timer.cancel()
        if not self._has_begun or key in self._running:
            self._again.add(key)
            return
        task = asyncio.get_running_loop().create_task(self._run(key), name=f"{self._name}: {key}")
        self._running[key] = task
        task.add_done_callback(lambda _: self._over(key))

    def add_after(self, key: str, seconds: float) -> None:
        """Has the key worked on later; sooner if that was said before."""
        if not self._has_begun:
            self._again.add(key)
        elif key not in self._timers and key not in self._running:
            self._timers[key] = asyncio.get_running_loop().call_later(seconds, self.add, key)

    def forget(self, key: str) -> None:
        """Does not work on the key any more, unless it is added again; what failed of it counts for nothing."""
        if (timer := self._timers.pop(key, None)) is not None:
            timer.cancel()
        self._again.discard(key)
        self._failures.pop(key, None)

    def has_failed(self, key: str) -> bool:
        """Whether the latest work on the key was in vain."""
        return key in self._failures

    async def _run(self, key: str) -> None:
        async with self._room:
            wait: float | None
            try:
                wait = await self._work(key)
                self._failures.pop(key, None)
            except Exception as error:
                if isinstance(error, TryAgain):
                    logger.info("%s: %s: %s", self._name, key, error)
                else:
                    logger.exception("%s: %s failed and is tried again", self._name, key)
                failures = self._failures.get(key, 0)
                self._failures[key] = failures + 1
                wait = min(self._first * 2.0 ** min(failures, 40), self._longest)
        del self._running[key]
        if key in self._again:
            self._again.discard(key)
            self.add(key)
        elif wait is not None and self._has_begun:
            self._timers[key] = asyncio.get_running_loop().call_later(wait, self.add, key)

    def _over(self, key: str) -> None:
        task = self._running.get(key)
        if task is not None and task.done():  # it was cancelled
            del self._running[key]
