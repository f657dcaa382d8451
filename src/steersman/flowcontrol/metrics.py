"""Metrics of priority and fairness, computed from the levels' counts at each scrape (`util/flowcontrol/metrics`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from steersman.flowcontrol.counts import DURATIONS, LENGTHS, SEATS, WATCHES, SchemaCounts
from steersman.flowcontrol.demand import TimeHistogram
from steersman.flowcontrol.fairness import Fairness
from steersman.flowcontrol.level import DEMAND_RATIOS, REQUEST_RATIOS, SEAT_RATIOS, Level
from steersman.flowcontrol.seat_seconds import SCALE
from steersman.machinery.metrics import Computed, ComputedHistogram, Labels, Registry

_PREFIX: Final = "apiserver_flowcontrol_"
_LEVEL: Final = ("priority_level",)
_SCHEMA: Final = ("priority_level", "flow_schema")

_Values = Iterable[tuple[Labels, float]]
_AllSeries = Iterable[tuple[Labels, Sequence[float]]]


def register_metrics(registry: Registry, fairness: Fairness) -> None:
    """Register the metrics of all levels. Raises ValueError at a second call."""
    for add in (_of_schemas, _of_levels, _of_time):
        add(registry, fairness)


def _each(fairness: Fairness) -> Iterator[tuple[Labels, Level, SchemaCounts]]:
    for name, level in fairness.levels.items():
        for schema, counts in level.counts.items():
            yield (name, schema), level, counts


def _of_schemas(registry: Registry, fairness: Fairness) -> None:
    def gauge(name: str, stability: str, help_text: str, read: Callable[[SchemaCounts], float]) -> None:
        values = lambda: [(labels, read(counts)) for labels, _, counts in _each(fairness)]  # noqa: E731
        registry.add(Computed("gauge", _PREFIX + name, f"[{stability}] {help_text}", _SCHEMA, values))

    def counter(name: str, stability: str, help_text: str, labels: Labels, values: Callable[[], _Values]) -> None:
        registry.add(Computed("counter", _PREFIX + name, f"[{stability}] {help_text}", labels, values))

    def histogram(
        name: str,
        stability: str,
        help_text: str,
        buckets: tuple[float, ...],
        labels: Labels,
        values: Callable[[], _AllSeries],
    ) -> None:
        text = f"[{stability}] {help_text}"
        registry.add(ComputedHistogram(_PREFIX + name, text, buckets, labels, values))

    def rejected() -> _Values:
        for labels, _, counts in _each(fairness):
            for reason, count in counts.rejected.items():
                yield (*labels, reason), count

    def waits() -> _AllSeries:
        for labels, level, counts in _each(fairness):
            if not level.is_exempt:
                yield (*labels, "true"), counts.wait_series()
                if any(counts.without_queue):
                    yield (*labels, "false"), counts.without_queue

    def executions() -> _AllSeries:
        for labels, _, counts in _each(fairness):
            for kind, series in (("regular", counts.regular), ("watch", counts.watch)):
                if any(series):
                    yield (*labels, kind), series

    def some(read: Callable[[SchemaCounts], Sequence[float]]) -> Callable[[], _AllSeries]:
        def values() -> _AllSeries:
            for labels, _, counts in _each(fairness):
                if any(series := read(counts)):
                    yield labels, series

        return values

    def queue_lengths() -> _AllSeries:
        for labels, level, counts in _each(fairness):
            if level.queuing.queues:
                yield labels, counts.length_series()

    counter(
        "rejected_requests_total",
        "BETA",
        "Number of requests rejected by API Priority and Fairness subsystem",
        (*_SCHEMA, "reason"),
        rejected,
    )
    counter(
        "dispatched_requests_total",
        "BETA",
        "Number of requests executed by API Priority and Fairness subsystem",
        _SCHEMA,
        lambda: [(labels, counts.dispatched) for labels, _, counts in _each(fairness)],
    )
    counter(
        "request_dispatch_no_accommodation_total",
        "ALPHA",
        "Number of times a dispatch attempt resulted in a non accommodation due to lack of available seats",
        _SCHEMA,
        lambda: [(labels, each.unaccommodated) for labels, _, each in _each(fairness) if each.unaccommodated],
    )
    gauge(
        "current_inqueue_requests",
        "BETA",
        "Number of requests currently pending in queues of the API Priority and Fairness subsystem",
        lambda counts: counts.queued,
    )
    gauge(
        "current_inqueue_seats",
        "ALPHA",
        "Number of seats currently pending in queues of the API Priority and Fairness subsystem",
        lambda counts: counts.queued_seats,
    )
    gauge(
        "current_executing_requests",
        "BETA",
        "Number of requests in initial (for a WATCH) or any (for a non-WATCH) execution stage in the API Priority "
        "and Fairness subsystem",
        lambda counts: counts.executing,
    )
    gauge(
        "current_executing_seats",
        "BETA",
        "Concurrency (number of seats) occupied by the currently executing (initial stage for a WATCH, any stage "
        "otherwise) requests in the API Priority and Fairness subsystem",
        lambda counts: counts.executing_seats,
    )
    histogram(
        "request_wait_duration_seconds",
        "BETA",
        "Length of time a request spent waiting in its queue",
        DURATIONS,
        (*_SCHEMA, "execute"),
        waits,
    )
    histogram(
        "request_execution_seconds",
        "ALPHA",
        "Duration of initial stage (for a WATCH) or any (for a non-WATCH) stage of request execution in the API "
        "Priority and Fairness subsystem",
        DURATIONS,
        (*_SCHEMA, "type"),
        executions,
    )
    histogram(
        "request_queue_length_after_enqueue",
        "ALPHA",
        "Length of queue in the API Priority and Fairness subsystem, as seen by each request after it is enqueued",
        LENGTHS,
        _SCHEMA,
        queue_lengths,
    )
    histogram(
        "work_estimated_seats",
        "ALPHA",
        "Number of estimated seats (maximum of initial and final seats) associated with requests in API Priority "
        "and Fairness",
        SEATS,
        _SCHEMA,
        some(SchemaCounts.seat_series),
    )
    histogram(
        "watch_count_samples",
        "ALPHA",
        "count of watchers for mutating requests in API Priority and Fairness",
        WATCHES,
        _SCHEMA,
        some(SchemaCounts.watch_series),
    )


def _of_levels(registry: Registry, fairness: Fairness) -> None:
    def gauge(name: str, stability: str, help_text: str, read: Callable[[Level], float]) -> None:
        values = lambda: [((name,), read(level)) for name, level in fairness.levels.items()]  # noqa: E731
        registry.add(Computed("gauge", _PREFIX + name, f"[{stability}] {help_text}", _LEVEL, values))

    gauge(
        "nominal_limit_seats",
        "BETA",
        "Nominal number of execution seats configured for each priority level",
        lambda level: level.limits.nominal,
    )
    gauge(
        "lower_limit_seats",
        "ALPHA",
        "Configured lower bound on number of execution seats available to each priority level",
        lambda level: level.limits.least,
    )
    gauge(
        "upper_limit_seats",
        "ALPHA",
        "Configured upper bound on number of execution seats available to each priority level",
        lambda level: level.limits.most,
    )
    gauge(
        "demand_seats_high_watermark",
        "ALPHA",
        "High watermark, over last adjustment period, of demand_seats",
        lambda level: level.demand.highest,
    )
    gauge(
        "demand_seats_average",
        "ALPHA",
        "Time-weighted average, over last adjustment period, of demand_seats",
        lambda level: level.demand.average,
    )
    gauge(
        "demand_seats_stdev",
        "ALPHA",
        "Time-weighted standard deviation, over last adjustment period, of demand_seats",
        lambda level: level.demand.deviation,
    )
    gauge("demand_seats_smoothed", "ALPHA", "Smoothed seat demands", lambda level: level.demand.smoothed)
    gauge("target_seats", "ALPHA", "Seat allocation targets", lambda level: level.target)
    gauge(
        "current_limit_seats",
        "ALPHA",
        "current derived number of execution seats available to each priority level",
        lambda level: level.current,
    )
    gauge("current_r", "ALPHA", "R(time of last change)", lambda level: level.seats.r / SCALE)
    gauge("dispatch_r", "ALPHA", "R(time of last dispatch)", lambda level: level.seats.dispatch_r / SCALE)
    gauge("latest_s", "ALPHA", "S(most recently dispatched request)", lambda level: level.seats.served_r / SCALE)

    def bounds(*, discounted: bool) -> Callable[[], _Values]:
        def values() -> _Values:
            for name, level in fairness.levels.items():
                found = level.seats.next_bounds(discounted=discounted)
                if found is not None:
                    yield (name, "min"), found[0] / SCALE
                    yield (name, "max"), found[1] / SCALE

        return values

    registry.add(
        Computed(
            "gauge",
            _PREFIX + "next_s_bounds",
            "[ALPHA] min and max, over queues, of S(oldest waiting request in queue)",
            (*_LEVEL, "bound"),
            bounds(discounted=False),
        ),
        Computed(
            "gauge",
            _PREFIX + "next_discounted_s_bounds",
            "[ALPHA] min and max, over queues, of S(oldest waiting request in queue) - estimated work in progress",
            (*_LEVEL, "bound"),
            bounds(discounted=True),
        ),
        Computed(
            "gauge",
            _PREFIX + "seat_fair_frac",
            "[ALPHA] Fair fraction of server's concurrency to allocate to each priority level that can use it",
            (),
            lambda: [((), fairness.fair_fraction)],
        ),
    )


def _of_time(registry: Registry, fairness: Fairness) -> None:
    """Register upstream's observations at the end of every nanosecond: the nanoseconds of a ratio in each bucket."""

    def histogram(
        name: str,
        help_text: str,
        buckets: tuple[float, ...],
        labels: Labels,
        read: Callable[[Level], Iterable[tuple[Labels, TimeHistogram]]],
    ) -> None:
        def values() -> _AllSeries:
            for name, level in fairness.levels.items():
                level.bring_up_to_date()
                for more, found in read(level):
                    yield (*more, name), found.series

        text = f"EXPERIMENTAL: [ALPHA] Observations, at the end of every nanosecond, of {help_text}"
        registry.add(ComputedHistogram(_PREFIX + name, text, buckets, labels, values))

    histogram(
        "priority_level_seat_utilization",
        "utilization of seats for any stage of execution (but only initial stage for WATCHes)",
        SEAT_RATIOS,
        ("phase", *_LEVEL),
        lambda level: [(("executing",), level.seat_ratios)],
    )
    histogram(
        "priority_level_request_utilization",
        "number of requests (as a fraction of the relevant limit) waiting or in any stage of execution (but only "
        "initial stage for WATCHes)",
        REQUEST_RATIOS,
        ("phase", *_LEVEL),
        lambda level: [(("executing",), level.executing_ratios), (("waiting",), level.waiting_ratios)],
    )
    histogram(
        "demand_seats",
        "(the number of seats each priority level could use) / (nominal number of seats for that level)",
        DEMAND_RATIOS,
        _LEVEL,
        lambda level: [((), level.demand_ratios)],
    )
