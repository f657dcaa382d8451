"""The seats of one priority level and the queues of waiting requests: fair queuing for server requests.

Follows k8s.io/apiserver `util/flowcontrol/fairqueuing/queueset`. A flow hashes to a few queues, and a request joins the
one of them with the least work waiting. Virtual time R grows by the seat-seconds that each nonempty queue gets. Each
queue knows the virtual time at which its next request would begin if all queues were served concurrently in equal
parts; the request that would end first gets the next seat. When a request ends, the difference between its actual and
its guessed duration is charged to its queue.

Nothing here waits, and time comes only from `clock`: a waiting request is notified by `decided` of its ticket.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Final, Protocol

import msgspec
from msgspec import Struct

from steersman.flowcontrol.demand import State
from steersman.flowcontrol.seat_seconds import SCALE, seat_seconds

GUESSED_SECONDS: Final = 0.003
"""Assumed seconds of a request until its duration is known."""
_GUESSED_SEAT: Final = seat_seconds(1, GUESSED_SECONDS)
_NOT_YET: Final = -1.0
_IN_VAIN: Final = -2.0
_MOST_STATES: Final = 256
_KEPT: Final = 1024
"""Number of queues that are kept when they are empty; of up to ten million, others exist only while they are used."""


class Queuing(Struct, frozen=True):
    """Queuing of a level: `queues` of at most `length` requests, of which a flow may use `hand`.

    Without queues, requests without a seat are refused. `exempt`: every request gets a seat.
    """

    queues: int = 0
    hand: int = 0
    length: int = 0
    exempt: bool = False


class Later(Protocol):
    """Function that calls `work` after so many seconds."""

    def __call__(self, seconds: float, work: Callable[[], object], /) -> object: ...


class Counts(Protocol):
    """Interface for counting the requests of one flow schema at a level."""

    at_once: int
    """Requests that got a seat without waiting in a queue."""
    unqueued: int
    """Requests that got a seat at a level without queues."""
    executing: int
    executing_seats: int
    queued: int
    queued_seats: int

    def joined(self, length: int) -> None:
        """Count a request that has joined a queue; `length` includes the request."""
        ...

    def not_accommodated(self) -> None:
        """Count a failed dispatch: the next request needs more seats than are free."""
        ...

    def refused(self, reason: str) -> None:
        """Count a request that was refused or gave up."""
        ...


class Ticket(msgspec.Struct, eq=False):
    """A request from its arrival until its seats are free. Times are the clock's.

    `started` is negative for a request without a seat: it is waiting, or gave up. `width` is the number of its seats,
    the larger of `initial` (during execution) and `final` (for `linger` seconds after its answer). `work` is charged in
    advance; `arrived_r` is the virtual time of arrival.
    """

    counts: Counts
    queue: Queue | None
    arrived: float
    arrived_r: int
    started: float
    width: int
    about: Any
    """Data for dumps, which may refer to the ticket; None once the request is in no dump any more."""
    initial: int = 1
    final: int = 0
    linger: float = 0.0
    work: int = _GUESSED_SEAT
    decided: Callable[[], None] | None = None


class Queue:
    """Requests of one or more flows, in order of arrival."""

    __slots__ = ("executing", "index", "next_r", "seats", "waiting", "work_waiting")

    def __init__(self, index: int) -> None:
        self.index = index
        self.waiting: deque[Ticket] = deque()
        self.executing: set[Ticket] = set()
        self.seats = 0
        """Seats occupied by requests of this queue."""
        self.next_r = 0
        self.work_waiting = 0

    @property
    def is_idle(self) -> bool:
        """True if no request waits or executes."""
        return not self.waiting and not self.executing


class QueueSet:
    """The seats and queues of one priority level. `limit` is the number of seats; a request may exceed it when
    alone.
    """

    def __init__(self, clock: Callable[[], float], later: Later) -> None:
        self._clock = clock
        self._later = later
        self.queuing = Queuing()
        self.limit = 0
        self.queues: dict[int, Queue] = {}
        """Queues in use, and some empty ones."""
        self.without_queue: set[Ticket] = set()
        self.r = 0
        self.dispatch_r = self.served_r = 0
        """Virtual time of the last dispatch, and the virtual start time of the dispatched request."""
        self._kept = 0
        """Queues below this index are kept when they are empty."""
        self._robin = 0
        self._joined = 0
        self._active = 0
        """Number of queues that are not idle."""
        self._last = clock()
        self.executing = self.seats = self.waiting = self.seats_waiting = 0
        self.dispatched = self.rejected = self.cancelled = 0
        self.seconds_by_state: dict[State, float] = {}
        """Seconds in each state since the owner last took this dict."""
        self.full: Callable[[], None] | None = None
        """Callback for when `spent` has many states; the owner should take it."""

    # Configuration

    def configure(self, queuing: Queuing, limit: int) -> None:
        """Set queues and seats. Surplus queues are removed when idle; waiting requests are dispatched to new seats."""
        self._sync()
        if not queuing.queues:
            queuing = Queuing(0, self.queuing.hand, self.queuing.length, queuing.exempt)
        self.queuing = queuing
        self.limit = limit
        self._kept = min(queuing.queues, _KEPT)
        self._dispatch()

    @property
    def is_idle(self) -> bool:
        """True if no request waits or executes."""
        return not self.waiting and not self.executing

    @property
    def state(self) -> State:
        """The present state: executing requests, occupied seats, queued requests, seats that these need."""
        return self.executing, self.seats, self.waiting, self.seats_waiting

    def settle(self) -> None:
        """Account for the time until now in `spent` and R."""
        self._sync()

    # Requests

    def start(
        self,
        counts: Counts,
        hand: tuple[int, ...],
        about: Any,
        now: float,
        initial: int = 1,
        final: int = 0,
        linger: float = 0.0,
    ) -> Ticket | None:
        """Start a request that arrived at `now`; return its ticket, with a seat or waiting in a queue of the flow's
        `hand`.

        Returns None if it is refused: no seat is free, and the queue is full. The caller must `finish` a ticket with a
        seat.
        """
        if now > self._last:
            self._pass(now)
        else:
            now = self._last  # the caller was delayed
        width = initial if initial >= final else final
        queuing = self.queuing
        if queuing.queues:
            queue = self._chosen(hand) if self.waiting else self._first(hand)
            ticket = Ticket(counts, queue, now, self.r, _NOT_YET, width, about)
            if width != 1 or final:
                _widen(ticket, initial, final, linger)
            if self.waiting or self.seats + width > self.limit:
                return self._enqueued(ticket, queue)
            if not queue.executing:
                queue.next_r = self.r
                self._active += 1
            counts.at_once += 1
            self._serve(ticket, queue, now)
            return ticket
        if not queuing.exempt and not self._accommodates(width):
            self.rejected += 1
            counts.refused("concurrency-limit")
            return None
        ticket = Ticket(counts, None, now, self.r, now, width, about)
        if width != 1 or final:
            _widen(ticket, initial, final, linger)
        self.without_queue.add(ticket)
        counts.unqueued += 1
        self.executing += 1
        self.seats += width
        self.dispatched += 1
        counts.executing += 1
        counts.executing_seats += width
        return ticket

    def _first(self, hand: tuple[int, ...]) -> Queue:
        """Return the next queue of the hand; no request waits in any queue."""
        index = hand[self._joined % len(hand)]
        self._joined += 1
        queue = self.queues.get(index)
        if queue is None:
            queue = self.queues[index] = Queue(index)
        return queue

    def _chosen(self, hand: tuple[int, ...]) -> Queue:
        """Return the queue of the hand with the least work waiting; ties go to different queues in turn."""
        offset = self._joined % len(hand)
        self._joined += 1
        queues = self.queues
        index = min(
            hand[offset:] + hand[:offset],
            key=lambda each: 0 if (queue := queues.get(each)) is None else queue.work_waiting,
        )
        queue = queues.get(index)
        if queue is None:
            queue = queues[index] = Queue(index)
        return queue

    def _enqueued(self, ticket: Ticket, queue: Queue) -> Ticket | None:
        counts = ticket.counts
        length = len(queue.waiting)
        if self.seats >= self.limit and length >= self.queuing.length:
            self.rejected += 1
            counts.refused("queue-full")
            self._forget(queue)
            return None
        if queue.is_idle:
            queue.next_r = self.r
            self._active += 1
        queue.waiting.append(ticket)
        queue.work_waiting += ticket.work
        self._waits(ticket, 1)
        counts.joined(length + 1)
        self._bound(queue)
        self._dispatch()
        return ticket

    def _waits(self, ticket: Ticket, by: int) -> None:
        self.waiting += by
        self.seats_waiting += by * ticket.width
        counts = ticket.counts
        counts.queued += by
        counts.queued_seats += by * ticket.width

    def _serve(self, ticket: Ticket, queue: Queue, now: float) -> None:
        """Give a seat to a request that waits in no queue any more."""
        if ticket.final > self.limit:
            _narrow(ticket, self.limit)
        width, counts = ticket.width, ticket.counts
        self._robin = queue.index
        ticket.started = now
        queue.executing.add(ticket)
        queue.seats += width
        self.dispatch_r, self.served_r = self.r, queue.next_r
        queue.next_r += ticket.work
        self.executing += 1
        self.seats += width
        self.dispatched += 1
        counts.executing += 1
        counts.executing_seats += width

    def finish(self, ticket: Ticket) -> float:
        """Free the seats of a request, at once or after its linger time, and dispatch others; return its execution
        seconds.
        """
        now = self._clock()
        if now > self._last:
            self._pass(now)
        took = now - ticket.started
        ticket.about = None
        counts, queue, width = ticket.counts, ticket.queue, ticket.width
        self.executing -= 1
        counts.executing -= 1
        if queue is None:
            self.without_queue.discard(ticket)
        else:
            executing = queue.executing
            executing.discard(ticket)
            queue.next_r -= round(ticket.initial * (GUESSED_SECONDS - took) * SCALE)
            if queue.waiting:
                self._bound(queue)
            elif not executing:
                self._active -= 1
        if ticket.linger > 0.0:
            self._later(ticket.linger, lambda: self._end_linger(ticket))
        else:
            self.seats -= width
            counts.executing_seats -= width
            if queue is not None:
                queue.seats -= width
                if queue.index >= self._kept:
                    self._forget(queue)
        if self.waiting:
            self._dispatch()
        return took

    def _end_linger(self, ticket: Ticket) -> None:
        """Free the seats of an answered request whose linger time is over."""
        self._sync()
        self._free(ticket)
        self._dispatch()

    def _free(self, ticket: Ticket) -> None:
        width, queue = ticket.width, ticket.queue
        self.seats -= width
        ticket.counts.executing_seats -= width
        if queue is not None:
            queue.seats -= width
            self._forget(queue)

    def _forget(self, queue: Queue) -> None:
        """Remove an empty queue, unless its index is low enough to be kept."""
        if queue.index >= self._kept and queue.is_idle and not queue.seats:
            self.queues.pop(queue.index, None)

    def give_up(self, ticket: Ticket) -> bool:
        """End the waiting of a request that timed out or was cancelled; return False if it has a seat by now."""
        if ticket.started != _NOT_YET:
            return False
        self._sync()
        ticket.started = _IN_VAIN
        ticket.about = ticket.decided = None
        queue = ticket.queue
        assert queue is not None
        queue.waiting.remove(ticket)
        queue.work_waiting -= ticket.work
        if queue.is_idle:
            self._active -= 1
        self._waits(ticket, -1)
        self._bound(queue)
        self.rejected += 1
        self.cancelled += 1
        ticket.counts.refused("time-out")
        self._forget(queue)
        self._dispatch()
        return True

    # Fair queuing

    def _sync(self) -> None:
        now = self._clock()
        if now > self._last:
            self._pass(now)

    def _pass(self, now: float) -> None:
        """Advance R and `spent` to the time `now`, for the state since the last call."""
        seconds = now - self._last
        self._last = now
        spent = self.seconds_by_state
        seats, wanted = self.seats, self.seats_waiting
        state = (self.executing, seats, self.waiting, wanted)
        try:
            spent[state] += seconds
        except KeyError:
            spent[state] = seconds
            if len(spent) > _MOST_STATES and self.full is not None:
                self.full()
        active = self._active
        if active:
            taken, limit = seats + wanted, self.limit
            self.r += round((taken if taken < limit else limit) / active * seconds * SCALE)

    def _accommodates(self, width: int) -> bool:
        if self.queuing.exempt:
            return True
        if width > self.limit:
            return self.executing == 0
        return self.seats + width <= self.limit

    def _dispatch(self) -> None:
        """Dispatch as many waiting requests as possible, in fair order."""
        while self.waiting and self.seats < self.limit:
            queue = self._next_queue()
            ticket = queue.waiting[0]
            if not self._accommodates(ticket.width):
                ticket.counts.not_accommodated()
                return
            queue.waiting.popleft()
            queue.work_waiting -= ticket.work
            self._waits(ticket, -1)
            self._serve(ticket, queue, self._last)
            self._bound(queue)
            decided, ticket.decided = ticket.decided, None
            if decided is not None:
                decided()

    def _next_queue(self) -> Queue:
        """Return the queue whose first request would end first; ties go to the first queue after the last served
        one.
        """
        behind, many = self._robin + 1, max(self.queuing.queues, len(self.queues), 1)
        return min(
            (queue for queue in self.queues.values() if queue.waiting),
            key=lambda queue: (queue.next_r + queue.waiting[0].work, (queue.index - behind) % many),
        )

    def next_bounds(self, *, discounted: bool) -> tuple[int, int] | None:
        """Return the least and greatest virtual start time of all queues' first requests; None if no request waits.

        `discounted` subtracts the guessed work in progress of each queue.
        """
        bounds = [
            queue.next_r - (queue.seats * _GUESSED_SEAT if discounted else 0)
            for queue in self.queues.values()
            if queue.waiting
        ]
        return (min(bounds), max(bounds)) if bounds else None

    def _bound(self, queue: Queue) -> None:
        """Limit a queue's unused share: a request's virtual start time is at least its virtual arrival time."""
        if queue.waiting and queue.next_r < queue.waiting[0].arrived_r:
            queue.next_r = queue.waiting[0].arrived_r


def _widen(ticket: Ticket, initial: int, final: int, linger: float) -> None:
    ticket.initial, ticket.final, ticket.linger = initial, final, linger
    ticket.work = seat_seconds(initial, GUESSED_SECONDS) + seat_seconds(final, linger)


def _narrow(ticket: Ticket, limit: int) -> None:
    """Spread the final seats of a request that exceed the limit over a longer linger time."""
    ticket.linger *= ticket.final / limit
    ticket.final = limit
    ticket.width = max(ticket.initial, limit)
