"""Metrics of conversion webhooks, with upstream's names (apiextensions-apiserver `conversion/metrics.go`)."""

from __future__ import annotations

from typing import Final

from steersman.machinery.metrics import Counter, Histogram, Registry

_LATENCY: Final = tuple(0.001 * 2**number for number in range(15))
_BUCKETS: Final = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 45.0, 60.0)


class ConversionMetrics:
    """Counts and durations in seconds of webhook requests, in total and by definition and versions."""

    def __init__(self, registry: Registry) -> None:
        outcome = ("result", "failure_type")
        self._requests = Counter(
            "apiserver_conversion_webhook_request_total",
            "Counter for conversion webhook requests with success/failure and failure error type",
            outcome,
        )
        self._durations = Histogram(
            "apiserver_conversion_webhook_duration_seconds", "Conversion webhook request latency", _BUCKETS, outcome
        )
        self._by_definition = Histogram(
            "apiserver_crd_conversion_webhook_duration_seconds",
            "CRD webhook conversion duration in seconds",
            _LATENCY,
            ("crd_name", "from_version", "to_version", "succeeded"),
        )
        registry.add(self._requests, self._durations, self._by_definition)

    def succeeded(self, definition: str, source: str, target: str, seconds: float) -> None:
        """Record a request with a usable answer."""
        self._count(("success", ""), seconds)
        self._by_definition.observe(seconds, (definition, source, target, "true"))

    def failed(self, definition: str, source: str, target: str, seconds: float, failure: str) -> None:
        """Record a request without a usable answer; `failure` is upstream's name for its type."""
        self._count(("failure", failure), seconds)
        self._by_definition.observe(seconds, (definition, source, target, "false"))

    def _count(self, outcome: tuple[str, str], seconds: float) -> None:
        self._requests.inc(outcome)
        self._durations.observe(seconds, outcome)
