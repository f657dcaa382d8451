"""Recent and running traces of requests, for /debug/requests: a ring of the last ones, and subscribers.

Requests are traced while a client reads them, and for a minute after.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

from steersman.tracing.readers import Readers
from steersman.tracing.trace import Trace

KEPT: Final = 500
"""Most traces in the ring."""
KEPT_STEPS: Final = 20_000
"""Most steps and events of all traces in the ring."""
LINGER: Final = 60.0
"""Seconds after the last read during which requests are still traced."""
LEAST_ID: Final = 4
"""Least characters of the end of an id by which a trace is found."""
PATH: Final = "/debug/requests"

Subscriber = Callable[[Trace], None]


class RequestTraces:
    """The reader of traces (tracing.readers) behind /debug/requests."""

    def __init__(self, readers: Readers, *, always: bool = False) -> None:
        """With `always`, requests are traced from the start and for ever."""
        self._readers = readers
        self._ring: deque[Trace] = deque()
        self._steps = 0
        self._subscribers: tuple[Subscriber, ...] = ()
        self._always = always
        self._remove: Callable[[], None] | None = readers.add(self) if always else None
        self._timer: asyncio.TimerHandle | None = None

    # tracing.readers.Reader

    least_seconds = 0.0
    reads_filters = True

    def wants(self, trace: Trace) -> bool:
        """Return True: every request is shown, except for those of the readers themselves (see `ended`)."""
        return True

    def ended(self, trace: Trace) -> None:
        """Keep a trace, and pass it to the subscribers."""
        if trace.facts["path"].startswith(PATH):
            return
        self._keep(trace)
        for each in self._subscribers:
            each(trace)

    def _keep(self, trace: Trace) -> None:
        ring = self._ring
        ring.append(trace)
        self._steps += _size(trace)
        while len(ring) > KEPT or (self._steps > KEPT_STEPS and len(ring) > 1):
            self._steps -= _size(ring.popleft())

    # Clients

    def recent(self) -> list[Trace]:
        """Return the kept traces, the oldest first; requests are traced from now on."""
        self.touch()
        return list(self._ring)

    def find(self, trace_id: str) -> Trace | None:
        """Return the newest kept trace whose id is or ends with `trace_id`, None if there is none.

        Requests are traced from now on.
        """
        self.touch()
        newest = tuple(reversed(self._ring))
        exact = (each for each in newest if each.id == trace_id)
        ending = (each for each in newest if len(trace_id) >= LEAST_ID and each.id.endswith(trace_id))
        return next(exact, None) or next(ending, None)

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        """Call `subscriber` with each trace that ends, until the returned function is called."""
        self._subscribers = (*self._subscribers, subscriber)
        self.touch()

        def leave() -> None:
            self._subscribers = tuple(each for each in self._subscribers if each is not subscriber)
            self.touch()

        return leave

    @property
    def subscriber_count(self) -> int:
        """Number of subscribers."""
        return len(self._subscribers)

    def touch(self) -> None:
        """Trace requests from now on, until nobody has read for LINGER seconds."""
        if self._always:
            return
        if self._remove is None:
            self._remove = self._readers.add(self)
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(LINGER, self._rest)

    def _rest(self) -> None:
        """Stop tracing and forget all traces, unless there are subscribers."""
        self._timer = None
        if self._subscribers or self._remove is None:
            return
        self._remove()
        self._remove = None
        self._ring.clear()
        self._steps = 0


def _size(trace: Trace) -> int:
    return len(trace.steps) + trace.event_count
