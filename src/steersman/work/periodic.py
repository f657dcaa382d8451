"""Periodic work: rounds of work that a process repeats while it runs, also after a round that failed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import nullcontext, suppress
from typing import NoReturn

from steersman.work import simulated_time
from steersman.work.offloading import begin_task
from steersman.work.upkeep import upkeep

logger = logging.getLogger(__name__)


class Periodic:
    """Work that runs every `interval` seconds, and soon after `wake`, between `start` and `stop`.

    An error in a round is logged and does not end the rounds.
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
        is_simulated: bool = False,
    ) -> None:
        """Configure the work and its interval.

        Args:
            name: Name of the work, for the log and for its task.
            work: Runs one round.
            interval: Seconds between two rounds, or a function that returns them before each pause.
            expected: Errors that are logged as one line with their reason. Other errors are bugs, logged with a
                traceback.
            repeats_line_after: Seconds within which a line equal to the previous one is not logged again.
            is_upkeep: Count the pauses as upkeep (see `work.upkeep`). Pass False if no round may be left out.
            is_simulated: Wait in simulated time (see `work.simulated_time`) instead of the event loop's.
        """
        self._name = name
        self._work = work
        self._interval = interval
        self._expected = expected
        self._repeats_line_after = repeats_line_after
        self._is_upkeep = is_upkeep
        self._timeout = simulated_time.timeout if is_simulated else asyncio.timeout
        self._said = ""
        self._said_at = 0.0
        self._woken = asyncio.Event()
        self._task: asyncio.Task[NoReturn] | None = None

    def start(self) -> None:
        """Start the rounds in a task on the server's account."""
        self._task = begin_task(self.run(), name=self._name)

    def wake(self) -> None:
        """Start a round now; if a round is running, start another after it."""
        self._woken.set()

    async def stop(self) -> None:
        """Cancel the rounds and wait until the task has ended."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    async def run(self) -> NoReturn:
        """Run rounds until cancelled, beginning with a pause."""
        own = asyncio.current_task()
        assert own is not None
        while True:
            await self._pause()
            try:
                await self._work()
            except asyncio.CancelledError:
                if own.cancelling():
                    raise
                # The work waited for something that was cancelled; this task was not.
                logger.exception("%s failed and is tried again", self._name)
            except self._expected as error:
                self._say(str(error.__cause__ or error))
            except Exception:
                logger.exception("%s failed and is tried again", self._name)

    async def _pause(self) -> None:
        seconds = self._interval() if callable(self._interval) else self._interval
        # asyncio.wait_for would lose a cancellation that comes together with the wake, and this task would never end.
        with suppress(TimeoutError), upkeep() if self._is_upkeep else nullcontext():
            async with self._timeout(seconds):
                await self._woken.wait()
        self._woken.clear()

    def _say(self, why: str) -> None:
        now = asyncio.get_running_loop().time()
        if why != self._said or now - self._said_at >= self._repeats_line_after:
            self._said, self._said_at = why, now
            logger.warning("%s failed and is tried again: %s", self._name, why)
