"""Recorder for events of events.k8s.io: concurrent writes, and series for repeated events (client-go tools/events)."""

from __future__ import annotations

import logging
import socket
from typing import Final

from msgspec import Struct

from steersman.api.core.v1 import ObjectReference
from steersman.api.events.v1 import Event, EventSeries
from steersman.client.client import Client
from steersman.client.event_writer import EventWriter
from steersman.client.events import metadata_of_event
from steersman.client.resources import NEW_EVENTS
from steersman.machinery.values import times
from steersman.work import simulated_time
from steersman.work.bounded_cache import BoundedCache
from steersman.work.periodic import Periodic

logger = logging.getLogger(__name__)

_MAX_QUEUED: Final = 20_000
_WRITERS: Final = 8
_MAX_REMEMBERED: Final = 8192
"""Most remembered events. An eviction keeps at least the newest half."""
_SERIES_TIMEOUT: Final = 360.0
"""Seconds without a repetition after which a series is over, and seconds between two checks for series that are."""
_REFRESH: Final = 1800.0
"""Seconds between two writes of the counts of all series, which also keep the events from expiring."""
_LONGEST_NOTE: Final = 1024


class _RecordedEvent(Struct):
    """A recorded event that may become a series."""

    event: Event
    at: float
    count: int = 1


class SeriesRecorder(EventWriter[tuple[Event, bool]]):
    """Records the events of one component. `start()` begins writing; `await stop()` drops events not yet written."""

    def __init__(self, client: Client, component: str) -> None:
        super().__init__(client, writers=_WRITERS, most=_MAX_QUEUED)
        self._component = component
        self._instance = f"{component}-{socket.gethostname()}"
        self._recorded: BoundedCache[tuple[str, ...], _RecordedEvent] = BoundedCache(_MAX_REMEMBERED)
        self._series: dict[tuple[str, ...], _RecordedEvent] = {}
        """Events that have been repeated, the earliest series first."""
        self._rounds = (
            Periodic("refresh of event series", self._refresh, _REFRESH, is_simulated=True),
            Periodic("end of event series", self._finish_old, _SERIES_TIMEOUT, is_simulated=True),
        )

    def start(self) -> None:
        """Start writing."""
        super().start()
        for each in self._rounds:
            each.start()

    async def stop(self) -> None:
        """Stop writing and drop the events that are still queued."""
        for each in self._rounds:
            await each.stop()
        await super().stop()

    def forget(self) -> None:
        """Forget all recorded events, because the server has lost them: repetitions then start new events."""
        self._recorded.forget()
        self._series.clear()

    def event(
        self,
        regarding: ObjectReference,
        type_: str,
        reason: str,
        action: str,
        note: str,
        *,
        related: ObjectReference | None = None,
    ) -> None:
        """Record an event about `regarding`; `type_` is Normal or Warning."""
        if len(note) > _LONGEST_NOTE:
            note = f"{note[: _LONGEST_NOTE - 4]} ..."
        key = (type_, action, reason, *_reference_key(regarding), *(() if related is None else _reference_key(related)))
        now = simulated_time.time()
        recorded = self._recorded[key]
        if recorded is not None and now - recorded.at < _SERIES_TIMEOUT:
            self._repeat(key, recorded, now)
            return
        self._finish(key)
        event = Event(
            metadata=metadata_of_event(regarding),
            event_time=times.now_micro(),
            reporting_controller=self._component,
            reporting_instance=self._instance,
            action=action,
            reason=reason,
            regarding=regarding,
            related=related,
            note=note,
            type=type_,
        )
        self._recorded.keep(key, _RecordedEvent(event, now))
        self._enqueue_event(event, is_series=False)

    def _repeat(self, key: tuple[str, ...], recorded: _RecordedEvent, now: float) -> None:
        """Count a repetition. The first one is written at once, as the start of a series, others with a refresh or at
        the end of the series.
        """
        recorded.count += 1
        recorded.at = now
        event = recorded.event
        event.series = EventSeries(count=recorded.count, last_observed_time=times.now_micro())
        if key not in self._series:
            if len(self._series) >= _MAX_REMEMBERED:
                self._finish(next(iter(self._series)))
            self._series[key] = recorded
            self._enqueue_event(event, is_series=True)

    def _finish(self, key: tuple[str, ...]) -> None:
        """End a series, if there is one of this key, and write its count."""
        ended = self._series.pop(key, None)
        if ended is not None:
            self._enqueue_event(ended.event, is_series=True)

    async def _finish_old(self) -> None:
        """End all series without a recent repetition."""
        now = simulated_time.time()
        for key, recorded in list(self._series.items()):
            if now - recorded.at >= _SERIES_TIMEOUT:
                self._finish(key)

    async def _refresh(self) -> None:
        """Write the counts of all series."""
        for each in self._series.values():
            self._enqueue_event(each.event, is_series=True)

    def _enqueue_event(self, event: Event, *, is_series: bool) -> None:
        if not self._enqueue((event, is_series)):
            logger.warning("the event queue is full: an event about %s is dropped", event.regarding.name)

    async def _write(self, queued: tuple[Event, bool]) -> None:
        event, is_series = queued
        if is_series and event.series is not None:
            series = {"count": event.series.count, "lastObservedTime": event.series.last_observed_time}
            metadata = event.metadata
            if await self._patch_event(NEW_EVENTS, metadata.name, metadata.namespace, {"series": series}):
                return
        await self._client.create(NEW_EVENTS, event)


def _reference_key(about: ObjectReference) -> tuple[str, ...]:
    return about.namespace, about.name, about.uid, about.resource_version
