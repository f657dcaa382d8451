"""Work that a server does again and again while it runs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress

from steersman.machinery.errors.status import StatusError
from steersman.net.upkeep import upkeep
from steersman.storage.interface import StorageUnavailable

logger = logging.getLogger(__name__)


class Periodic:
    """Does `work` every `interval` seconds, and soon after `wake`. What it raises is logged; it is tried again."""

    def __init__(self, name: str, work: Callable[[], Awaitable[None]], interval: float) -> None:
        self._name = name
        self._work = work
        self._interval = interval
        self._woken = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begins with a pause of one interval."""
        self._task = asyncio.get_running_loop().create_task(self._run(), name=self._name)

    def wake(self) -> None:
        """Has the work done now, or again if it is being done."""
        self._woken.set()

    async def stop(self) -> None:
        """Returns once nothing of it runs any more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    async def _run(self) -> None:
        while True:
            # asyncio.wait_for would lose a cancellation that comes with the wake, and then nothing ended this task.
            with suppress(TimeoutError), upkeep():  # the interval is over
                async with asyncio.timeout(self._interval):
                    await self._woken.wait()
            self._woken.clear()
            try:
                await self._work()
            except (StatusError, StorageUnavailable) as error:
                logger.warning("%s failed and is tried again: %s", self._name, error.__cause__ or error)
            except Exception:
                logger.exception("%s failed and is tried again", self._name)
