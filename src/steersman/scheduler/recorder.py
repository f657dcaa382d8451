"""Events of events.k8s.io about pods, written side by side; what repeats becomes a series (client-go tools/events)."""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from collections import OrderedDict, deque
from dataclasses import dataclass
from typing import Final

from steersman.api.core.v1 import ObjectReference, Pod
from steersman.api.events.v1 import Event, EventSeries
from steersman.api.meta.v1 import ObjectMeta
from steersman.client.client import STRATEGIC_MERGE_PATCH, Client
from steersman.client.errors import is_not_found
from steersman.client.events import reference
from steersman.client.resources import NEW_EVENTS, PODS
from steersman.client.transport import Unreachable
from steersman.machinery.errors.status import StatusError
from steersman.machinery.values import times

logger = logging.getLogger(__name__)

_QUEUED: Final = 20_000
_WRITERS: Final = 8
_MOST_KNOWN: Final = 4096
_FINISHED: Final = 360.0
"""Seconds after which an event is not continued any more."""
_TRIES: Final = 12
_WAIT: Final = 10.0
_LONGEST_NOTE: Final = 1024


@dataclass(slots=True)
class _Told:
    """An event that may become a series."""

    event: Event
    at: float
    count: int = 1
    is_series: bool = False


class EventRecorder:
    """`start`, then tell; `await stop()` ends without what has not been written."""

    def __init__(self, client: Client, component: str) -> None:
        self._client = client
        self._component = component
        self._instance = f"{component}-{socket.gethostname()}"
        self._waiting: deque[tuple[Event, bool]] = deque()
        self._writing = 0
        self._wake = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._told: OrderedDict[tuple[str, ...], _Told] = OrderedDict()

    def start(self) -> None:
        """Begins to write."""
        self._tasks = [asyncio.create_task(self._write_all(), name="scheduler events") for _ in range(_WRITERS)]

    async def stop(self) -> None:
        """Ends."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    @property
    def idle(self) -> bool:
        """Whether everything is written."""
        return not self._waiting and not self._writing

    def forget(self) -> None:
        """Begins to count anew: what was told is gone from the server."""
        self._told.clear()

    def event(self, pod: Pod, type_: str, reason: str, action: str, note: str, *, related: Pod | None = None) -> None:
        """Says something of a pod; `type_` is Normal or Warning."""
        if len(note) > _LONGEST_NOTE:
            note = f"{note[: _LONGEST_NOTE - 4]} ..."
        regarding = reference(PODS, pod)
        other = None if related is None else reference(PODS, related)
        key = (type_, action, reason, *_parts(regarding), *(() if other is None else _parts(other)))
        now = asyncio.get_running_loop().time()
        told = self._told.get(key)
        if told is not None and now - told.at < _FINISHED:
            self._continue(told, now)
            return
        event = Event(
            metadata=ObjectMeta(
                name=f"{pod.metadata.name}.{time.time_ns():x}", namespace=pod.metadata.namespace or "default"
            ),
            event_time=times.now_micro(),
            reporting_controller=self._component,
            reporting_instance=self._instance,
            action=action,
            reason=reason,
            regarding=regarding,
            related=other,
            note=note,
            type=type_,
        )
        self._told[key] = _Told(event, now)
        if len(self._told) > _MOST_KNOWN:
            self._told.popitem(last=False)
        self._put(event, is_series=False)

    def _continue(self, told: _Told, now: float) -> None:
        """Upstream writes the second of a series, and what it comes to at its end."""
        told.count += 1
        told.at = now
        event = told.event
        event.series = EventSeries(count=told.count, last_observed_time=times.now_micro())
        if not told.is_series:
            told.is_series = True
            self._put(event, is_series=True)

    def _put(self, event: Event, *, is_series: bool) -> None:
        if len(self._waiting) >= _QUEUED:
            logger.warning("too many events: one about %s is left out", event.regarding.name)
            return
        self._waiting.append((event, is_series))
        self._wake.set()

    async def _write_all(self) -> None:
        while True:
            while self._waiting:
                event, is_series = self._waiting.popleft()
                self._writing += 1
                try:
                    await self._write_somehow(event, is_series=is_series)
                finally:
                    self._writing -= 1
            self._wake.clear()
            await self._wake.wait()

    async def _write_somehow(self, event: Event, *, is_series: bool) -> None:
        for _ in range(_TRIES):
            try:
                await self._write(event, is_series=is_series)
            except StatusError as error:
                expected = error.code in (403, 404)  # its namespace is being deleted, or gone
                logger.log(logging.DEBUG if expected else logging.WARNING, "an event was refused: %s", error)
            except Unreachable as error:
                logger.warning("an event cannot be written yet: %s", error)
                await asyncio.sleep(_WAIT)
                continue
            return

    async def _write(self, event: Event, *, is_series: bool) -> None:
        if is_series and event.series is not None:
            series = {"count": event.series.count, "lastObservedTime": event.series.last_observed_time}
            metadata = event.metadata
            try:
                await self._client.patch(
                    NEW_EVENTS, metadata.name, metadata.namespace, {"series": series}, media=STRATEGIC_MERGE_PATCH
                )
            except StatusError as error:
                if not is_not_found(error):
                    raise
            else:
                return
        await self._client.create(NEW_EVENTS, event)


def _parts(about: ObjectReference) -> tuple[str, ...]:
    return about.namespace, about.name, about.uid, about.resource_version
