"""Metrics of admission webhooks, policies and match conditions, with upstream's names (apiserver `admission/metrics`).

Durations are in seconds.
"""

from __future__ import annotations

from typing import Final

from steersman.machinery.metrics import Counter, Histogram, Registry

_LABELS: Final = ("kind", "name", "operation", "type")
_CONDITION_BUCKETS: Final = (0.001, 0.005, 0.01, 0.025, 0.1, 0.2, 0.25)
_CALL_BUCKETS: Final = (0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 10.0, 25.0)
_HIGHEST_CODE: Final = 600


class ConditionMetrics:
    """Metrics of match conditions.

    Labels are the name of the webhook or policy, its kind (webhook, policy), and its type (admit, validating,
    validate).
    """

    def __init__(self, registry: Registry) -> None:
        self._durations = Histogram(
            "apiserver_admission_match_condition_evaluation_seconds",
            "Duration of evaluating the match conditions of a webhook or policy, in seconds",
            _CONDITION_BUCKETS,
            _LABELS,
        )
        self._errors = Counter(
            "apiserver_admission_match_condition_evaluation_errors_total",
            "Match conditions of webhooks and policies whose evaluation failed",
            _LABELS,
        )
        self._exclusions = Counter(
            "apiserver_admission_match_condition_exclusions_total",
            "Requests skipped by webhooks and policies because match conditions were not met",
            _LABELS,
        )
        registry.add(self._durations, self._errors, self._exclusions)

    def observe(
        self, kind: str, name: str, operation: str, type: str, seconds: float, failures: int, *, excluded: bool
    ) -> None:
        """Count one evaluation of match conditions, of which `failures` had errors; `seconds` is its duration."""
        labels = (kind, name, operation, type)
        self._durations.observe(seconds, labels)
        if failures:
            self._errors.inc(labels, failures)
        if excluded:
            self._exclusions.inc(labels)


class WebhookMetrics:
    """Metrics of webhook calls by the webhook's name; `type` is admit or validating."""

    def __init__(self, registry: Registry) -> None:
        self._durations = Histogram(
            "apiserver_admission_webhook_admission_duration_seconds",
            "Duration of admission webhook calls, in seconds, by name, operation, type and outcome",
            _CALL_BUCKETS,
            ("name", "operation", "rejected", "type"),
        )
        self._requests = Counter(
            "apiserver_admission_webhook_request_total",
            "Calls of admission webhooks, by name, operation, type, HTTP status code (at most 600) and outcome",
            ("code", "name", "operation", "rejected", "type"),
        )
        self._rejections = Counter(
            "apiserver_admission_webhook_rejection_count",
            "Requests rejected by admission webhooks, by name, operation, type, error and code (at most 600)",
            ("error_type", "name", "operation", "rejection_code", "type"),
        )
        self._fail_open = Counter(
            "apiserver_admission_webhook_fail_open_count",
            "Failed calls of admission webhooks that were ignored, by name and type",
            ("name", "type"),
        )
        registry.add(self._durations, self._requests, self._rejections, self._fail_open)

    def observe(self, name: str, type: str, operation: str, seconds: float, code: int, *, rejected: bool) -> None:
        """Count a call with its duration and the HTTP status code."""
        outcome = "true" if rejected else "false"
        self._durations.observe(seconds, (name, operation, outcome, type))
        self._requests.inc((str(min(code, _HIGHEST_CODE)), name, operation, outcome, type))

    def count_rejection(self, name: str, type: str, operation: str, error_type: str, code: int) -> None:
        """Count a call that refused the request; `error_type` is upstream's term for the cause."""
        self._rejections.inc((error_type, name, operation, str(min(code, _HIGHEST_CODE)), type))

    def count_fail_open(self, name: str, type: str) -> None:
        """Count a failed call that was ignored because of the failure policy."""
        self._fail_open.inc((name, type))


_POLICY_BUCKETS: Final = (0.0000005, 0.001, 0.01, 0.1, 1.0)
_MUTATION_LABELS: Final = ("error_type", "policy", "policy_binding")
_VALIDATION_LABELS: Final = ("enforcement_action", *_MUTATION_LABELS)


class PolicyMetrics:
    """Metrics of admission policies, by policy and binding."""

    def __init__(self, registry: Registry) -> None:
        self._validated = Counter(
            "apiserver_validating_admission_policy_check_total",
            "Validations of policies other than plain passes, by policy, binding, error and enforcement action",
            _VALIDATION_LABELS,
        )
        self._validating = Histogram(
            "apiserver_validating_admission_policy_check_duration_seconds",
            "Duration of these validations, in seconds",
            _POLICY_BUCKETS,
            _VALIDATION_LABELS,
        )
        self._mutated = Counter(
            "apiserver_mutating_admission_policy_check_total",
            "Mutations by policies, by policy, binding and error",
            _MUTATION_LABELS,
        )
        self._mutating = Histogram(
            "apiserver_mutating_admission_policy_check_duration_seconds",
            "Duration of mutations by policies, in seconds",
            _POLICY_BUCKETS,
            _MUTATION_LABELS,
        )
        registry.add(self._validated, self._validating, self._mutated, self._mutating)

    def count_validation(self, policy: str, binding: str, error_type: str, action: str, seconds: float) -> None:
        """Count a validation; `action` is allow, deny, audit or warn."""
        labels = (action, error_type, policy, binding)
        self._validated.inc(labels)
        self._validating.observe(seconds, labels)

    def count_mutation(self, policy: str, binding: str, error_type: str, seconds: float) -> None:
        """Count a mutation."""
        labels = (error_type, policy, binding)
        self._mutated.inc(labels)
        self._mutating.observe(seconds, labels)
