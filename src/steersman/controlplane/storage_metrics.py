"""Metrics of stored objects and watch caches, computed at each scrape, with upstream's names.

Follows k8s.io/apiserver `storage/etcd3/metrics` and `storage/cacher/metrics`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from steersman.machinery.identity.schema import GroupResource
from steersman.machinery.metrics import Computed, ComputedHistogram, Labels, Metric, Registry
from steersman.storage.cache.cacher import Cacher
from steersman.storage.cache.counts import READ_WAITS
from steersman.storage.interface import Storage
from steersman.storage.refusals import Operation, Refusals
from steersman.store.store import Store

_BY_RESOURCE: Final = ("group", "resource")
_VERSION_DIGITS: Final = 10**15
_ON_ERROR: Final = "In case of a fetching error, the value will be -1."

Value = Callable[[Cacher], float]

_COUNTERS: Final[tuple[tuple[str, str, Value], ...]] = (
    (
        "apiserver_storage_events_received_total",
        "[BETA] Number of etcd events received split by kind.",
        lambda cacher: cacher.counts.events,
    ),
    (
        "apiserver_storage_decode_errors_total",
        "[ALPHA] Number of stored object decode errors split by object type",
        lambda cacher: cacher.counts.undecodable,
    ),
    (
        "apiserver_storage_list_total",
        "[ALPHA] Number of LIST requests served from storage",
        lambda cacher: cacher.counts.stored_lists,
    ),
    (
        "apiserver_storage_list_fetched_objects_total",
        "[ALPHA] Number of objects read from storage in the course of serving a LIST request",
        lambda cacher: cacher.counts.stored_fetched,
    ),
    (
        "apiserver_storage_list_evaluated_objects_total",
        "[ALPHA] Number of objects tested in the course of serving a LIST request from storage",
        lambda cacher: cacher.counts.stored_fetched,
    ),
    (
        "apiserver_storage_list_returned_objects_total",
        "[ALPHA] Number of objects returned for a LIST request from storage",
        lambda cacher: cacher.counts.stored_fetched,
    ),
    (
        "apiserver_watch_cache_events_received_total",
        "[ALPHA] Counter of events received in watch cache broken by resource type.",
        lambda cacher: cacher.counts.events,
    ),
    (
        "apiserver_watch_cache_events_dispatched_total",
        "[ALPHA] Counter of events dispatched in watch cache broken by resource type.",
        lambda cacher: cacher.counts.events,
    ),
    (
        "apiserver_watch_cache_initializations_total",
        "[ALPHA] Counter of watch cache initializations broken by resource type.",
        lambda cacher: cacher.counts.initializations,
    ),
    (
        "apiserver_cache_list_returned_objects_total",
        "[ALPHA] Number of objects returned for a LIST request from watch cache",
        lambda cacher: cacher.counts.listed,
    ),
)
"""Counters by resource; as upstream, a series appears once it is not 0."""
_BY_INDEX: Final[tuple[tuple[str, str, Value], ...]] = (
    (
        "apiserver_cache_list_total",
        "[ALPHA] Number of LIST requests served from watch cache",
        lambda cacher: cacher.counts.lists,
    ),
    (
        "apiserver_cache_list_fetched_objects_total",
        "[ALPHA] Number of objects read from watch cache in the course of serving a LIST request",
        lambda cacher: cacher.counts.fetched,
    ),
)
_GAUGES: Final[tuple[tuple[str, str, Value], ...]] = (
    (
        "apiserver_watch_cache_resource_version",
        "[ALPHA] Current resource version of watch cache broken by resource type. This is truncated to the 15 least "
        "significant digits.",
        lambda cacher: cacher.revision % _VERSION_DIGITS,
    ),
)
_OF_OBJECTS: Final[tuple[tuple[str, str, Value], ...]] = (
    (
        "apiserver_resource_objects",
        f"[ALPHA] Number of stored objects at the time of last check split by kind. {_ON_ERROR}",
        lambda cacher: cacher.count(cacher.prefix),
    ),
    (
        "apiserver_resource_size_estimate_bytes",
        "[ALPHA] Estimated size of stored objects in database. Estimate is based on sum of last observed sizes of "
        f"serialized objects. {_ON_ERROR}",
        lambda cacher: cacher.size,
    ),
)
_STORED_OBJECTS: Final = (
    "[STABLE] (Deprecated since 1.34.0) [DEPRECATED, consider using apiserver_resource_objects instead] Number of "
    f"stored objects at the time of last check split by kind. {_ON_ERROR}"
)


def install_storage_metrics(
    registry: Registry, stores: Iterable[Store[Any]], *, counts_objects: bool, file: Path | None
) -> None:
    """Register the metrics.

    `counts_objects` is False for `--etcd-count-metric-poll-period=0`; `file` is the storage file, if there is one.
    """

    def read(value: Value, *more: str, zero: bool = True) -> Callable[[], Iterator[tuple[Labels, float]]]:
        def values() -> Iterator[tuple[Labels, float]]:
            for cacher, counted in _filled(stores):
                number = value(cacher)
                if number or zero:
                    yield (counted.group, *more, counted.resource), number

        return values

    def storage_objects() -> Iterator[tuple[Labels, float]]:
        return (((str(counted),), cacher.count(cacher.prefix)) for cacher, counted in _filled(stores))

    def consistent_reads() -> Iterator[tuple[Labels, float]]:
        for cacher, counted in _filled(stores):
            counts = cacher.counts
            for success, fallback, number in (
                ("true", "false", counts.consistent),
                ("true", "true", counts.bypassed),
                ("false", "false", counts.inconsistent),
            ):
                if number:
                    yield (counted.group, counted.resource, success, fallback), number

    def consistency_checks() -> Iterator[tuple[Labels, float]]:
        for cacher, counted in _filled(stores):
            for status, number in cacher.counts.checks.items():
                if number:
                    yield (counted.group, counted.resource, status), number

    def read_waits() -> Iterator[tuple[Labels, list[float]]]:
        for cacher, counted in _filled(stores):
            if any(cacher.counts.read_waits):
                yield (counted.group, counted.resource), cacher.counts.read_waits

    made: list[Metric] = [
        Computed(
            "counter",
            "apiserver_watch_cache_consistent_read_total",
            "[ALPHA] Counter for consistent reads from cache.",
            (*_BY_RESOURCE, "success", "fallback"),
            consistent_reads,
        ),
        Computed(
            "counter",
            "apiserver_storage_consistency_checks_total",
            "[ALPHA] Counter for status of consistency checks between etcd and watch cache",
            (*_BY_RESOURCE, "status"),
            consistency_checks,
        ),
        ComputedHistogram(
            "apiserver_watch_cache_read_wait_seconds",
            "[ALPHA] Histogram of time spent waiting for a watch cache to become fresh.",
            READ_WAITS,
            _BY_RESOURCE,
            read_waits,
        ),
    ]
    made += [Computed("counter", name, text, _BY_RESOURCE, read(of, zero=False)) for name, text, of in _COUNTERS]
    by_index = ("group", "index", "resource")
    made += [Computed("counter", name, text, by_index, read(of, "", zero=False)) for name, text, of in _BY_INDEX]
    made += [Computed("gauge", name, text, _BY_RESOURCE, read(of)) for name, text, of in _GAUGES]
    if counts_objects:
        made += [Computed("gauge", name, text, _BY_RESOURCE, read(of)) for name, text, of in _OF_OBJECTS]
        made.append(Computed("gauge", "apiserver_storage_objects", _STORED_OBJECTS, ("resource",), storage_objects))
    if file is not None:
        made.append(
            Computed(
                "gauge",
                "apiserver_storage_size_bytes",
                "[STABLE] Size of the storage database file physically allocated in bytes.",
                ("storage_cluster_id",),
                lambda: _size(file),
            )
        )
    registry.add(*made)


def install_refusals(registry: Registry, storages: Sequence[Storage]) -> None:
    """Register the metrics of requests refused by storages."""

    def each() -> Iterator[tuple[Refusals, Labels]]:
        for storage in storages:
            yield storage.refusals.reads, (Operation.READ,)
            yield storage.refusals.writes, (Operation.WRITE,)

    def totals() -> Iterator[tuple[Labels, float]]:
        sums: Counter[Labels] = Counter()
        for refusals, labels in each():
            sums[labels] += refusals.total
        return iter(sums.items())

    def ongoing() -> Iterator[tuple[Labels, float]]:
        refusing: dict[Labels, float] = {}
        for refusals, labels in each():
            refusing[labels] = max(refusing.get(labels, 0), refusals.wrong() is not None)
        return iter(refusing.items())

    registry.add(
        Computed(
            "counter",
            "steersman_storage_refused_requests_total",
            "Requests that storage refused for its own state: a full disk, a damaged file, no connection.",
            ("operation",),
            totals,
        ),
        Computed(
            "gauge",
            "steersman_storage_refuses",
            "1 while storage refuses what is asked of it.",
            ("operation",),
            ongoing,
        ),
    )


def _size(file: Path) -> list[tuple[Labels, float]]:
    try:
        return [(("sqlite-0",), file.stat().st_size)]
    except FileNotFoundError:
        return []


def _filled(stores: Iterable[Store[Any]]) -> Iterator[tuple[Cacher, GroupResource]]:
    """Return the filled watch caches with their resources."""
    return ((store.cacher, store.resource.group_resource) for store in stores if store.cacher.ready)
