"""Configuration files that are reloaded while a server runs: authentication, authorization, encryption."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

from steersman.controlplane.periodic import periodic
from steersman.controlplane.reload_metrics import ReloadMetrics
from steersman.work.followed_files import Stamp, stamp

logger = logging.getLogger(__name__)

_YOUNG: Final = 2_000_000_000
"""Nanoseconds within which two writes of a file may leave the same modification time."""


class Unusable(Exception):
    """A configuration file that cannot be used; the text is the log line.

    A `transient` error is retried at the next check, another one after the next change of the file.
    """

    def __init__(self, text: str, *, transient: bool = False) -> None:
        super().__init__(text)
        self.is_transient: Final = transient


class FollowedConfiguration:
    """A file that is checked every `interval` seconds from `start` to `stop`, and applied when it has changed.

    The previous configuration stays while the file cannot be used. `metrics` count both outcomes.
    """

    def __init__(
        self,
        name: str,
        path: Path,
        data: bytes,
        *,
        read: Callable[[Path], bytes],
        take: Callable[[bytes], Awaitable[bool]],
        metrics: ReloadMetrics,
        interval: float,
        refused: Callable[[], None] | None = None,
    ) -> None:
        """Follow a file that held `data` at the start.

        `read` is called in a thread. `take` applies new data, and returns False if their meaning is unchanged. Both
        raise Unusable; `refused` is called after that.
        """
        self._path = path
        self._data = data
        self._read = read
        self._apply = take
        self._metrics = metrics
        self._refused = refused
        self._last_stamp: tuple[Stamp | None] | None = None
        """Stamp of the file as last processed, in a tuple; None if the file must be checked again."""
        self._periodic = periodic(name, self._check, interval)

    def start(self) -> None:
        """Start checking the file."""
        self._periodic.start()

    async def stop(self) -> None:
        """Stop checking the file."""
        await self._periodic.stop()

    def wake(self) -> None:
        """Check the file now."""
        self._periodic.wake()

    async def _check(self) -> None:
        now = stamp(self._path)
        if self._last_stamp == (now,):
            return
        self._last_stamp = None
        try:
            await self._read_and_take()
        except Unusable as error:
            self._metrics.failed()
            if self._refused is not None:
                self._refused()
            logger.error("%s", error)
            if error.is_transient:
                return
        if now is None or time.time_ns() - now[0] >= _YOUNG:
            self._last_stamp = (now,)

    async def _read_and_take(self) -> None:
        """Read the file and apply it if it has changed. Raises Unusable."""
        data = await asyncio.to_thread(self._read, self._path)
        if data == self._data:
            return
        try:
            is_new = await self._apply(data)
        except Unusable as error:
            if not error.is_transient:
                self._data = data
            raise
        self._data = data
        if is_new:
            self._metrics.succeeded(data)
