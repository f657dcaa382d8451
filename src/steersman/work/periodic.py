"""Periodic work: what a process does again and again while it runs, whatever comes of one round."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import nullcontext, suppress
from typing import NoReturn

from steersman.work.offloading import begin_task
from steersman.work.upkeep import upkeep

logger = logging.getLogger(__name__)


class Periodic:
    """Work that is done every `interval` seconds, and soon after `wake`, from `start` to `stop`.

    An error that a round raises is logged, and the next round comes in its time.
    """

    def __init__(
        self,
        name: str,
        work: Callable[[], Awaitable[object]],
        interval: float | Callable[[], float],
        *,
        expected: tuple[type[Exception], ...] = (),
        repeats_line_after: float = 0.0,
        is_upkeep: bool = True,
    ) -> None:
        """Set what is done, and when.

        `interval` may be a function, which is asked before each pause. Of errors that are `expected` a line says why;
        others are faults of the program, and logged with where they came from. A line that says the same as the one
        before is left out for `repeats_line_after` seconds. Pauses are those of upkeep (see `work.upkeep`) unless it
        matters that every round is done.
        """
        self._name = name
        self._work = work
        self._interval = interval
        self._expected = expected
        self._repeats_line_after = repeats_line_after
        self._is_upkeep = is_upkeep
        self._said = ""
        self._said_at = 0.0
        self._woken = asyncio.Event()
        self._task: asyncio.Task[NoReturn] | None = None

    def start(self) -> None:
        """Begin to `run`, on the account of the server."""
        self._task = begin_task(self.run(), name=self._name)

    def wake(self) -> None:
        """Have the work done now, or again if it is being done."""
        self._woken.set()

    async def stop(self) -> None:
        """Return once nothing of it runs any more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    async def run(self) -> NoReturn:
        """Do the work until this is cancelled; it begins with a pause."""
        own = asyncio.current_task()
        assert own is not None
        while True:
            await self._pause()
            try:
                await self._work()
            except asyncio.CancelledError:
                if own.cancelling():
                    raise
                logger.exception("%s failed and is tried again", self._name)  # what it waited for was cancelled
            except self._expected as error:
                self._say(str(error.__cause__ or error))
            except Exception:
                logger.exception("%s failed and is tried again", self._name)

    async def _pause(self) -> None:
        seconds = self._interval() if callable(self._interval) else self._interval
        # asyncio.wait_for would lose a cancellation that comes with the wake, and then nothing ended this task.
        with suppress(TimeoutError), upkeep() if self._is_upkeep else nullcontext():
            async with asyncio.timeout(seconds):
                await self._woken.wait()
        self._woken.clear()

    def _say(self, why: str) -> None:
        now = asyncio.get_running_loop().time()
        if why != self._said or now - self._said_at >= self._repeats_line_after:
            self._said, self._said_at = why, now
            logger.warning("%s failed and is tried again: %s", self._name, why)
