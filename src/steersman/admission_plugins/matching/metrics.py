"""What is counted of match conditions, under upstream's names (apiserver `admission/metrics`)."""

from __future__ import annotations

from typing import Final

from steersman.machinery.metrics import Counter, Histogram, Registry

_LABELS: Final = ("kind", "name", "operation", "type")
_BUCKETS: Final = (0.001, 0.005, 0.01, 0.025, 0.1, 0.2, 0.25)


class ConditionMetrics:
    """Counts by the name of what has the conditions, its kind (webhook, policy), and its type (admit, validating,
    validate); durations are in seconds."""

    def __init__(self, registry: Registry) -> None:
        self._durations = Histogram(
            "apiserver_admission_match_condition_evaluation_seconds",
            "How long the match conditions of a webhook or policy took for a request, in seconds", _BUCKETS, _LABELS,
        )  # fmt: skip
        self._errors = Counter(
            "apiserver_admission_match_condition_evaluation_errors_total",
            "Match conditions of webhooks and policies that had no value for a request", _LABELS,
        )  # fmt: skip
        self._exclusions = Counter(
            "apiserver_admission_match_condition_exclusions_total",
            "Requests that webhooks and policies were not asked about as match conditions did not hold", _LABELS,
        )  # fmt: skip
        registry.add(self._durations, self._errors, self._exclusions)

    def observe(
        self, kind: str, name: str, operation: str, type: str, seconds: float, failures: int, *, excluded: bool
    ) -> None:  # fmt: skip
        """Conditions that were evaluated: `failures` of them had no value."""
        labels = (kind, name, operation, type)
        self._durations.observe(seconds, labels)
        if failures:
            self._errors.inc(labels, failures)
        if excluded:
            self._exclusions.inc(labels)
