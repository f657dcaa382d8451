"""Recent and running traces of requests, for /debug/requests: a ring of the last ones, and subscribers.

Requests are traced while a client reads them, and for a minute after.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

from steersman.tracing.readers import EveryRequest, Readers
from steersman.tracing.trace import Trace, current_recorder

KEPT: Final = 500
"""Most traces in the ring."""
KEPT_MARKS: Final = 60_000
"""Most marks (starts, ends, events and attributes of steps) of all kept traces that have many of them."""
_MANY_MARKS: Final = 360
LINGER: Final = 60.0
"""Seconds after the last read during which requests are still traced."""
LEAST_ID: Final = 4
"""Least characters of the end of an id by which a trace is found."""
PATH: Final = "/debug/requests"

Subscriber = Callable[[Trace, bool], None]


def leave_out() -> None:
    """Leave the request that is being answered out of the traces, as it is a reader's."""
    if (recorder := current_recorder()) is not None:
        recorder.trace.readers = ()


class RequestTraces:
    """The reader of traces (tracing.readers) behind /debug/requests."""

    def __init__(self, readers: Readers, *, always: bool = False) -> None:
        """With `always`, requests are traced from the start and for ever."""
        self._readers = readers
        self._ring: deque[Trace] = deque(maxlen=KEPT)
        self._large: deque[tuple[Trace, int]] = deque()
        self._marks = 0
        self._subscribers: tuple[Subscriber, ...] = ()
        self._detailed = 0
        self._always = always
        self._remove: Callable[[], None] | None = readers.add(self) if always else None
        self._timer: asyncio.TimerHandle | None = None

    # tracing.readers.Reader

    least_seconds = 0.0
    wants_all = True
    reads_spans = False
    reads_changes = False

    def wants(self, trace: Trace) -> bool:
        """Return True: every request is shown, except for those of the readers themselves (`leave_out`)."""
        return True

    def opened(self, trace: Trace) -> None:
        """Do nothing: a watch is kept at its end."""

    def ended(self, trace: Trace) -> None:
        """Keep a trace, and pass it to the subscribers."""
        self._ring.append(trace)
        if trace.branch_count or len(trace.marks) > _MANY_MARKS:
            self._bound(trace)
        for each in self._subscribers:
            each(trace, False)

    def _bound(self, trace: Trace) -> None:
        """Forget the steps of the oldest traces with many marks, if there are too many of them."""
        large = self._large
        large.append((trace, trace.size))
        self._marks += large[-1][1]
        while self._marks > KEPT_MARKS and len(large) > 1:
            oldest, size = large.popleft()
            oldest.dropped += size
            oldest.marks = []
            self._marks -= size

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

    def subscribe(self, subscriber: Subscriber, *, in_detail: bool = False) -> Callable[[], None]:
        """Call `subscriber` with each trace that ends, until the returned function is called.

        With `in_detail` it is called at the beginning of a watch, too, with True, and traces have the fields that
        writes have changed.
        """
        if in_detail:
            remove = self._readers.add(EveryRequest(subscriber))
            self._detailed += 1
            self.touch()

            def leave() -> None:
                remove()
                self._detailed -= 1
                self.touch()

            return leave
        self._subscribers = (*self._subscribers, subscriber)
        self.touch()

        def leave_at_end() -> None:
            self._subscribers = tuple(each for each in self._subscribers if each is not subscriber)
            self.touch()

        return leave_at_end

    @property
    def subscriber_count(self) -> int:
        """Number of subscribers."""
        return len(self._subscribers) + self._detailed

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
        if self.subscriber_count or self._remove is None:
            return
        self._remove()
        self._remove = None
        self._ring.clear()
        self._large.clear()
        self._marks = 0
