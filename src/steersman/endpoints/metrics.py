"""Metrics of the endpoints, with upstream's names (k8s.io/apiserver `endpoints/metrics`)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from steersman.machinery.go.strings import to_upper
from steersman.machinery.metrics import REQUEST_DURATIONS, Computed, Counter, Gauge, Histogram, Labels, Registry
from steersman.work.bounded_cache import BoundedCache

if TYPE_CHECKING:
    from steersman.endpoints.request_info import RequestInfo
    from steersman.machinery.identity.action import Action

_SIZES: Final = tuple(float(1000 * 10**power) for power in range(7))
_BODY_SIZES: Final = tuple(50000.0 + 50000 * step for step in range(31))
_IMPERSONATION_DURATIONS: Final = tuple(0.001 * 2**power for power in range(15))
_REQUEST: Final = ("verb", "dry_run", "group", "version", "resource", "subresource", "scope", "component")
_COUNTED: Final = ("verb", "dry_run", "group", "version", "resource", "subresource", "scope", "component", "code")
_VERBS: Final = {
    "get": "GET",
    "list": "LIST",
    "watch": "WATCH",
    "create": "POST",
    "update": "PUT",
    "patch": "PATCH",
    "delete": "DELETE",
    "deletecollection": "DELETECOLLECTION",
    "proxy": "CONNECT",
}
_KNOWN_METHODS: Final = frozenset({"get", "put", "post", "patch", "delete", "head", "options", "connect", "trace"})
_CONNECTED: Final = frozenset({"attach", "exec", "proxy", "portforward"})


_MOST_LABELS: Final = 4_096


class Answers:
    """Cached series of one set of labels; `by_code` are the counters by status code."""

    __slots__ = ("by_code", "duration", "sizes")

    def __init__(self, duration: list[float], sizes: list[float]) -> None:
        self.by_code: Final[dict[int, list[float]]] = {}
        self.duration: Final = duration
        self.sizes: Final = sizes


class RequestMetrics:
    """Metrics of requests and their answers."""

    def __init__(self, registry: Registry) -> None:
        self.total = Counter(
            "apiserver_request_total",
            "[STABLE] Counter of apiserver requests broken out for each verb, dry run value, group, version, "
            "resource, scope, component, and HTTP response code.",
            _COUNTED,
        )
        self.duration = Histogram(
            "apiserver_request_duration_seconds",
            "[STABLE] Response latency distribution in seconds for each verb, dry run value, group, version, "
            "resource, subresource, scope and component.",
            REQUEST_DURATIONS,
            _REQUEST,
        )
        self.sizes = Histogram(
            "apiserver_response_sizes",
            "[STABLE] Response size distribution in bytes for each group, version, verb, resource, subresource, "
            "scope and component.",
            _SIZES,
            ("verb", "group", "version", "resource", "subresource", "scope", "component"),
        )
        self.body_sizes = Histogram(
            "apiserver_request_body_size_bytes",
            "[ALPHA] Apiserver request body size in bytes broken out by resource and verb.",
            _BODY_SIZES,
            ("group", "resource", "verb"),
        )
        self.long_running = Gauge(
            "apiserver_longrunning_requests",
            "[STABLE] Gauge of all active long-running apiserver requests broken out by verb, group, version, "
            "resource, scope and component. Not all requests are tracked this way.",
            ("verb", "group", "version", "resource", "subresource", "scope", "component"),
        )
        self.watch_events = Counter(
            "apiserver_watch_events_total",
            "[ALPHA] Number of events sent in watch clients",
            ("group", "version", "resource"),
        )
        self.terminations = Counter(
            "apiserver_request_terminations_total",
            "[ALPHA] Number of requests which apiserver terminated in self-defense.",
            ("verb", "group", "version", "resource", "subresource", "scope", "component", "code"),
        )
        self.deprecated = Gauge(
            "apiserver_requested_deprecated_apis",
            "[STABLE] Gauge of deprecated APIs that have been requested, broken out by API group, version, resource, "
            "subresource, and removed_release.",
            ("group", "version", "resource", "subresource", "removed_release"),
        )
        self.authentications = Counter(
            "authenticated_user_requests",
            "[ALPHA] Counter of authenticated requests broken out by username.",
            ("username",),
        )
        self.authentication_attempts = Counter(
            "authentication_attempts", "[ALPHA] Counter of authenticated attempts.", ("result",)
        )
        self.authorization_attempts = Counter(
            "authorization_attempts_total",
            "[ALPHA] Counter of authorization attempts broken down by result. It can be either 'allowed', 'denied', "
            "'no-opinion' or 'error'.",
            ("result",),
        )
        by_mode = ("mode", "decision")
        self.impersonations = Histogram(
            "apiserver_impersonation_attempts_duration_seconds",
            "[ALPHA] Latency of impersonation attempts in seconds split by mode and decision.",
            _IMPERSONATION_DURATIONS,
            by_mode,
        )
        self.impersonations_total = Counter(
            "apiserver_impersonation_attempts_total",
            "[ALPHA] Total number of impersonation attempts split by mode and decision.",
            by_mode,
        )
        registry.add(
            self.impersonations,
            self.impersonations_total,
            self.total,
            self.duration,
            self.sizes,
            self.body_sizes,
            self.long_running,
            self.watch_events,
            self.terminations,
            self.deprecated,
            self.authentications,
            self.authentication_attempts,
            self.authorization_attempts,
        )
        self._registry = registry
        self._answers: BoundedCache[Labels, Answers] = BoundedCache(_MOST_LABELS)
        self._bodies: BoundedCache[Labels, list[float]] = BoundedCache(_MOST_LABELS)
        self.served: Callable[[RequestInfo], Action] = _action
        """Function that returns the action to use in labels. For a request without a route it must not contain names
        from the path, as clients can send any number of different ones.
        """

    def count_inflight(self, running: Callable[[], tuple[int, int]]) -> None:
        """Register the gauge of read-only and mutating requests in flight."""

        def read() -> list[tuple[Labels, float]]:
            reading, mutating = running()
            return [(("readOnly",), reading), (("mutating",), mutating)]

        self._registry.add(
            Computed(
                "gauge",
                "apiserver_current_inflight_requests",
                "[STABLE] Maximal number of currently used inflight request limit of this apiserver per request kind in "
                "last second.",
                ("request_kind",),
                read,
            )
        )

    def answered(self, labels: Labels, code: int, seconds: float, size: int | None) -> None:
        """Count an answer; `size` is the size of its body in bytes, None if unknown."""
        answers = self._answers[labels]
        if answers is None:
            answers = Answers(self.duration.series(labels), self.sizes.series(labels[:1] + labels[2:]))
            self._answers.keep(labels, answers)
        total = answers.by_code.get(code)
        if total is None:
            total = answers.by_code[code] = self.total.series((*labels, str(code)))
        total[0] += 1
        duration = answers.duration
        duration[bisect_left(REQUEST_DURATIONS, seconds)] += 1
        duration[-1] += seconds
        if size is not None:
            sizes = answers.sizes
            sizes[bisect_left(_SIZES, size)] += 1
            sizes[-1] += size

    def received(self, action: Action, size: int) -> None:
        """Count a request body of `size` bytes."""
        labels = action.group, action.resource, action.verb
        series = self._bodies[labels]
        if series is None:
            series = self.body_sizes.series(labels)
            self._bodies.keep(labels, series)
        series[bisect_left(_BODY_SIZES, size)] += 1
        series[-1] += size

    def labels(self, info: RequestInfo, *, dry_run: bool) -> Labels:
        """Return the values of a request's labels, cached with its info, which equal requests share.

        Labels name only served resources; the labels of other requests are not cached.
        """
        known = info.labels
        if known and not dry_run:
            return known
        named = self.served(info)
        labels = self._make_labels(info, named, dry_run=dry_run)
        if named is info.action and not dry_run:
            info.labels = labels
        return labels

    @staticmethod
    def _make_labels(info: RequestInfo, named: Action, *, dry_run: bool) -> Labels:
        action = info.action
        if not info.resource_request:
            verb = to_upper(action.verb) if action.verb in _KNOWN_METHODS else "OTHER"
            return (verb, "", "", "", "", "", "", "apiserver")
        scope = "cluster"
        if info.authorized_action.name or action.verb == "create":
            scope = "resource"
        elif action.namespace:
            scope = "namespace"
        verb = "CONNECT" if action.subresource in _CONNECTED else _VERBS.get(action.verb, "OTHER")
        return (
            verb,
            "All" if dry_run else "",
            named.group,
            named.version,
            named.resource,
            named.subresource,
            scope,
            "apiserver",
        )


def _action(info: RequestInfo) -> Action:
    return info.action
