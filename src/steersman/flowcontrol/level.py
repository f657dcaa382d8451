"""A priority level: its seats and queues, its limits of borrowing and lending, and its counts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec import Struct

from steersman.api.flowcontrol.v1 import PriorityLevelConfiguration, PriorityLevelConfigurationSpec
from steersman.flowcontrol.counts import SchemaCounts
from steersman.flowcontrol.demand import Demand, Period, State, TimeHistogram, summed_up
from steersman.flowcontrol.estimates import most_seats
from steersman.flowcontrol.queue_set import Later, QueueSet, Queuing
from steersman.flowcontrol.shuffle_sharding import can_deal

EXEMPT: Final = "exempt"
CATCH_ALL: Final = "catch-all"

SEAT_RATIOS: Final = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0)
REQUEST_RATIOS: Final = (0.0, 0.001, 0.003, 0.01, 0.03, 0.1, 0.25, 0.5, 0.75, 1.0)
DEMAND_RATIOS: Final = (0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.4, 1.7, 2.0, 2.8, 4.0, 6.0)
_MOST_SCHEMAS: Final = 2_000
"""Number of flow schemas with counts above which unused ones are dropped."""


class Limits(Struct, frozen=True):
    """Limits in seats: a level's nominal share, and the least and most that sharing may leave it."""

    nominal: int = 0
    least: int = 0
    most: int = 0


def queuing_of(name: str, spec: PriorityLevelConfigurationSpec) -> Queuing | None:
    """Return the queuing of a level; None for an inconsistent spec, which is treated as a missing level."""
    is_exempt = spec.type == "Exempt"
    limited = spec.limited
    if (spec.type == "Limited") != (limited is not None) or is_exempt != (spec.exempt is not None):
        return None
    if is_exempt != (name == EXEMPT):
        return None
    if limited is None:
        return Queuing(exempt=True)
    queuing = limited.limit_response.queuing
    if (limited.limit_response.type == "Reject") != (queuing is None):
        return None
    if queuing is None or queuing.queues <= 0:
        return Queuing()
    if not can_deal(queuing.queues, queuing.hand_size):
        return None
    return Queuing(queuing.queues, queuing.hand_size, queuing.queue_length_limit)


def shares_of(spec: PriorityLevelConfigurationSpec) -> int:
    """Return the shares of a level in the server's seats."""
    if spec.limited is not None:
        return spec.limited.nominal_concurrency_shares or 0
    return (spec.exempt.nominal_concurrency_shares or 0) if spec.exempt is not None else 0


def limits_of(spec: PriorityLevelConfigurationSpec, seats: int, all_shares: int) -> Limits:
    """Return a level's nominal seats, rounded up, and its limits after lending and borrowing."""
    shares = shares_of(spec)
    nominal = -(-seats * shares // all_shares) if all_shares else 0
    lent = borrowed = None
    if spec.limited is not None:
        lent, borrowed = spec.limited.lendable_percent, spec.limited.borrowing_limit_percent
    elif spec.exempt is not None:
        lent = spec.exempt.lendable_percent
    most = nominal + (seats if borrowed is None else _percent(nominal, borrowed))
    return Limits(nominal, nominal - _percent(nominal, lent or 0), most)


def _percent(seats: int, percent: int) -> int:
    """Return a percentage of seats, rounded half up."""
    return (2 * seats * percent + 100) // 200


class Level:
    """A priority level; it exists while it is configured, and after that until it is idle."""

    def __init__(self, configuration: PriorityLevelConfiguration, clock: Callable[[], float], later: Later) -> None:
        self.name = configuration.metadata.name
        self.configuration = configuration
        self.queuing = Queuing()
        self.seats = QueueSet(clock, later)
        self.seats.full = self._collect
        self.is_quiescing = False
        self.limits = Limits()
        self.current = 0
        """Present number of seats."""
        self.most_seats = 0
        """Limit of seats of one request; 0 for no limit of its own."""
        self.demand = Demand()
        self.target = 0.0
        self.counts: dict[str, SchemaCounts] = {}
        """Counts by flow schema."""
        self._period: dict[State, float] = {}
        self._denominators = (1.0, 1.0, 1.0)
        self.seat_ratios = TimeHistogram(SEAT_RATIOS)
        self.executing_ratios = TimeHistogram(REQUEST_RATIOS)
        self.waiting_ratios = TimeHistogram(REQUEST_RATIOS)
        self.demand_ratios = TimeHistogram(DEMAND_RATIOS)

    @property
    def is_exempt(self) -> bool:
        """True if requests of this level never wait."""
        return self.queuing.exempt

    def counts_of(self, schema: str) -> SchemaCounts:
        """Return the counts of a flow schema at this level."""
        counts = self.counts.get(schema)
        if counts is None:
            if len(self.counts) >= _MOST_SCHEMAS:
                self.counts = {name: each for name, each in self.counts.items() if not each.is_unused}
            counts = self.counts[schema] = SchemaCounts()
        return counts

    def update(self, configuration: PriorityLevelConfiguration, queuing: Queuing) -> None:
        """Apply another configuration of the same level."""
        self.configuration = configuration
        self.queuing = queuing
        self.is_quiescing = False

    def set_limits(self, limits: Limits) -> None:
        """Set the limits of seats."""
        self.limits = limits
        if self.queuing.queues:
            self.most_seats = most_seats(limits.nominal, self.queuing.hand)

    def set_current(self, seats: int, denominator: int) -> None:
        """Set the present number of seats; `denominator` is the base of ratios in metrics."""
        self._collect()
        queuing = self.queuing
        waiting = max(queuing.length or self.seats.queuing.length, 1) * max(queuing.queues, 1)
        self._denominators = (float(denominator), float(waiting), float(denominator))
        self.current = seats
        self.seats.configure(queuing, seats)

    def end_period(self) -> None:
        """End a period: update the demand, by which the next seats are allocated."""
        self.seats.settle()
        self._collect()
        period: Period = summed_up(self._period, self.seats.state)
        self._period = {}
        self.demand.update(period)

    def bring_up_to_date(self) -> None:
        """Update the histograms up to now."""
        self.seats.settle()
        self._collect()

    def _collect(self) -> None:
        """Move the seconds spent in each state into the period and the histograms."""
        spent, self.seats.seconds_by_state = self.seats.seconds_by_state, {}
        seats, waiting, demand = self._denominators
        for state, seconds in spent.items():
            executing, taken, queued, wanted = state
            coarse = (0, taken + wanted, 0, 0)
            self._period[coarse] = self._period.get(coarse, 0.0) + seconds
            self.seat_ratios.add(taken / seats, seconds)
            self.executing_ratios.add(executing / seats, seconds)
            self.waiting_ratios.add(queued / waiting, seconds)
            self.demand_ratios.add((taken + wanted) / demand, seconds)
