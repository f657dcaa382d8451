"""Queue of events to be written to a server: the base of both event recorders."""

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
    """Writes queued events in order with `writers` tasks. When `most` events wait, further events are dropped."""

    def __init__(self, client: Client, *, writers: int, most: int) -> None:
        self._client = client
        self._writers = writers
        self._max_queued = most
        self._waiting: deque[T] = deque()
        self._writing = 0
        self._wake = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Start the writing tasks."""
        self._tasks = [asyncio.create_task(self._write_all(), name="events") for _ in range(self._writers)]

    async def stop(self) -> None:
        """Stop the writing tasks and drop the events that are still queued."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    @property
    def idle(self) -> bool:
        """Return True if every event has been written."""
        return not self._waiting and not self._writing

    def _enqueue(self, event: T) -> bool:
        """Queue an event. Return False if the queue is full."""
        if len(self._waiting) >= self._max_queued:
            return False
        self._waiting.append(event)
        self._wake.set()
        return True

    @abstractmethod
    async def _write(self, event: T) -> None:
        """Write an event. Raises StatusError if the server refuses it, Unreachable if the write is to be retried."""

    async def _patch_event(self, resource: APIResource[Any], name: str, namespace: str, patch: dict[str, Any]) -> bool:
        """Patch a written event. Return False if the event no longer exists. Raises StatusError, Unreachable."""
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
                    await self._write_with_retries(event)
                finally:
                    self._writing -= 1
            self._wake.clear()
            await self._wake.wait()

    async def _write_with_retries(self, event: T) -> None:
        for _ in range(_TRIES):
            try:
                await self._write(event)
            except StatusError as error:
                expected = error.code in (403, 404)  # the event's namespace is being deleted, or is gone
                logger.log(logging.DEBUG if expected else logging.WARNING, "the server refused an event: %s", error)
            except Unreachable as error:
                logger.warning("an event cannot be written, it is retried: %s", error)
                await asyncio.sleep(_WAIT)
                continue
            return
