"""Metrics of the availability of APIServices."""

from __future__ import annotations

from collections.abc import Iterator

from steersman.machinery.metrics import Computed, Counter, Labels, Registry


class AvailabilityMetrics:
    """The availability of APIServices, and the number of times each became unavailable."""

    def __init__(self, registry: Registry) -> None:
        self.available: dict[str, bool] = {}
        """Availability by name of the APIService."""
        self.unavailable = Counter(
            "aggregator_unavailable_apiservice_total",
            "[ALPHA] Counter of APIServices which are marked as unavailable broken down by APIService name and reason.",
            ("name", "reason"),
        )
        registry.add(
            self.unavailable,
            Computed(
                "gauge",
                "aggregator_unavailable_apiservice",
                "[ALPHA] Gauge of APIServices which are marked as unavailable broken down by APIService name.",
                ("name",),
                self._gauge,
            ),
        )

    def _gauge(self) -> Iterator[tuple[Labels, float]]:
        return (((name,), not is_available) for name, is_available in self.available.items())
