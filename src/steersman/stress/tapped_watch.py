"""Body of a watch whose events are points of a run, where it may be held back, closed or expired."""

from __future__ import annotations

import asyncio
from typing import Final, Protocol

from steersman.faults.intercepted_watch import MOST_HELD, InterceptedWatch, events_of
from steersman.faults.interception import OpenWatch
from steersman.machinery.errors.status import expired
from steersman.machinery.values.times import monotonic
from steersman.stress.objects import WatchedEvent, event_in
from steersman.stress.point import EVENTS, Kind, Point

_LONGEST: Final = 5.0
"""Seconds for which events are held back at most, unless a watch shall stay behind for longer."""
_BETWEEN: Final = 0.05


class Events(Protocol):
    """Receiver of events."""

    hold: float
    last_request: float

    def event(self, watch: Point, event: WatchedEvent) -> Kind | None:
        """Record an event of a watch, and return the fault that happens to it."""
        ...


class TappedWatch(InterceptedWatch):
    """Body of a watch that shows each event to a tap before it is passed on."""

    def __init__(self, tap: Events, point: Point, inner: OpenWatch) -> None:
        super().__init__(inner)
        self._tap = tap
        self._point = point
        self._held: list[bytes] = []
        self._held_bytes = 0
        self._kind: Kind | None = None
        """Fault in progress."""
        self._is_ending = False
        """True once the watch ends by a fault: its last event is passed on."""
        self._timer: asyncio.TimerHandle | None = None
        self._until = 0.0

    def closed(self) -> None:
        """Release everything at the end of the answer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._held.clear()
        super().closed()

    def write(self, data: bytes) -> None:
        """Pass on events, or keep them for later."""
        if self._writer is None:
            return
        if self._is_ending:
            self._writer.write(data)
            return
        for event in events_of(data):
            self._pass_on(event)

    # Faults

    def _pass_on(self, data: bytes) -> None:
        assert self._writer is not None
        event = event_in(data)
        kind = self._tap.event(self._point, event) if event.type in EVENTS and event.name else None
        if kind is not None and self._kind is None:
            self._begin(kind)
        if self._kind is None:
            self._writer.write(data)
        elif self._kind is Kind.STALE:
            self._held.append(data)
            self._held_bytes += len(data)
            if self._held_bytes > MOST_HELD:
                self._writer.abort()

    def _begin(self, kind: Kind) -> None:
        """Begin a fault: events are held back or lost from now on."""
        loop = asyncio.get_running_loop()
        self._kind = kind
        if kind is Kind.CLOSED:
            loop.call_soon(self._end_early)  # not amid the initial events
            return
        now = monotonic()
        self._tap.last_request = now
        self._until = now + max(_LONGEST, self._tap.hold)
        self._timer = loop.call_later(self._tap.hold, self._go_on)

    def _go_on(self) -> None:
        """Go on once the operator has sent no request for a while."""
        now = monotonic()
        idle_at = min(self._tap.last_request + self._tap.hold, self._until)
        if now < idle_at:
            wait = max(idle_at - now, _BETWEEN)
            self._timer = asyncio.get_running_loop().call_later(wait, self._go_on)
            return
        if self._kind is Kind.EXPIRED:
            self._end_early()
            return
        self._kind = None
        held, self._held, self._held_bytes = self._held, [], 0
        for each in held:
            if self._writer is not None:
                self._writer.write(each)

    def _end_early(self) -> None:
        """End the watch, with the error 410 if it has expired."""
        if self._writer is None or self._is_ending:
            return
        self._is_ending = True
        if self._kind is Kind.EXPIRED:
            self._inner.failed(expired("too old resource version"))
        else:
            self._inner.finish()
