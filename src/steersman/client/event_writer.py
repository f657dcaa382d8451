"""A queue of events that are written to a server; both recorders stand on it."""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections import deque
from typing import Any, Final, Generic, TypeVar

from steersman.client.api_resource import APIResource
from steersman.client.client import STRATEGIC_MERGE_PATCH, Client
from steersman.client.errors import ignoring, is_not_found
from steersman.client.transport import Unreachable
from steersman.machinery.errors.status import StatusError

logger = logging.getLogger(__name__)

T = TypeVar("T")

_TRIES: Final = 12
_WAIT: Final = 10.0


class EventWriter(ABC, Generic[T]):
    """Writes events in their order, `writers` at a time; `most` wait, others are left out."""

    def __init__(self, client: Client, *, writers: int, most: int) -> None:
        self._client = client
        self._writers = writers
        self._most = most
        self._waiting: deque[T] = deque()
        self._writing = 0
        self._wake = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Begin to write."""
        self._tasks = [asyncio.create_task(self._write_all(), name="events") for _ in range(self._writers)]

    async def stop(self) -> None:
        """End without what has not been written."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    @property
    def idle(self) -> bool:
        """True if everything is written."""
        return not self._waiting and not self._writing

    def _put(self, event: T) -> bool:
        """Queue an event. Return False if too many wait."""
        if len(self._waiting) >= self._most:
            return False
        self._waiting.append(event)
        self._wake.set()
        return True

    @abstractmethod
    async def _write(self, event: T) -> None:
        """Write an event. Raises StatusError if it is refused, Unreachable if it is to be tried again."""

    async def _change(self, resource: APIResource[Any], name: str, namespace: str, patch: dict[str, Any]) -> bool:
        """Patch an event that was written; return False if it is gone. Raises StatusError, Unreachable."""
        with ignoring(is_not_found):
            await self._client.patch(resource, name, namespace, patch, media=STRATEGIC_MERGE_PATCH)
            return True
        return False

    async def _write_all(self) -> None:
        while True:
            while self._waiting:
                event = self._waiting.popleft()
                self._writing += 1
                try:
                    await self._write_somehow(event)
                finally:
                    self._writing -= 1
            self._wake.clear()
            await self._wake.wait()

    async def _write_somehow(self, event: T) -> None:
        for _ in range(_TRIES):
            try:
                await self._write(event)
            except StatusError as error:
                expected = error.code in (403, 404)  # its namespace is being deleted, or gone
                logger.log(logging.DEBUG if expected else logging.WARNING, "an event was refused: %s", error)
            except Unreachable as error:
                logger.warning("an event cannot be written yet: %s", error)
                await asyncio.sleep(_WAIT)
                continue
            return
