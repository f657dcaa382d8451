"""A manual clock with timers, and requests to a queue set without a server."""

from __future__ import annotations

import heapq
from collections.abc import Callable

from steersman.flowcontrol.counts import SchemaCounts
from steersman.flowcontrol.queue_set import QueueSet, Queuing, Ticket
from steersman.flowcontrol.shuffle_sharding import deal, flow_hash


class Hand:
    """A clock that starts at 0, with timers."""

    def __init__(self) -> None:
        self.now = 0.0
        self._due: list[tuple[float, int, Callable[[], object]]] = []

    def clock(self) -> float:
        return self.now

    def later(self, seconds: float, work: Callable[[], object]) -> None:
        heapq.heappush(self._due, (self.now + seconds, len(self._due), work))

    def move(self, seconds: float) -> None:
        """Advance the clock; timers run at their time."""
        end = self.now + seconds
        while self._due and self._due[0][0] <= end:
            self.now, _, work = heapq.heappop(self._due)
            work()
        self.now = end


class Requests:
    """Requests to one queue set, by the name of their flow."""

    def __init__(self, queuing: Queuing, limit: int) -> None:
        self.hand = Hand()
        self.counts = SchemaCounts()
        self.seats = QueueSet(self.hand.clock, self.hand.later)
        self.seats.configure(queuing, limit)

    def send(self, flow: str = "", initial: int = 1, final: int = 0, linger: float = 0.0) -> Ticket | None:
        queuing = self.seats.queuing
        hand = deal(queuing.queues, queuing.hand, flow_hash("schema", flow)) if queuing.queues else ()
        return self.seats.start(self.counts, hand, flow, self.hand.now, initial, final, linger)

    def seated(self, flow: str = "", initial: int = 1, final: int = 0, linger: float = 0.0) -> Ticket:
        """Return a ticket that has a seat."""
        ticket = self.send(flow, initial, final, linger)
        assert ticket is not None
        assert ticket.started >= 0
        return ticket

    def queued(self, flow: str = "", initial: int = 1) -> Ticket:
        """Return a ticket that waits in a queue."""
        ticket = self.send(flow, initial)
        assert ticket is not None
        assert ticket.started < 0
        return ticket
