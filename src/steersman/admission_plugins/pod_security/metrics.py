"""Metrics of Pod Security, with upstream's names (k8s.io/pod-security-admission `metrics`)."""

from __future__ import annotations

from typing import Final

from steersman.admission.interface import CREATE, UPDATE, Attributes, Operation
from steersman.admission_plugins.pod_security.levels import LATEST, PRIVILEGED, LevelVersion
from steersman.machinery.metrics import Counter, Registry

ENFORCE: Final = "enforce"
AUDIT: Final = "audit"
WARN: Final = "warn"
_NEWEST: Final = 36
"""Minor version of this server. Later versions are counted as `future`."""

Evaluation = tuple[str, LevelVersion, bool]
"""Mode, required level, and True if the pod meets it."""

_ABOUT: Final = ("request_operation", "resource", "subresource")
_RESOURCES: Final = {"pods": "pod", "namespaces": "namespace"}


class PodSecurityMetrics:
    """Metrics of the evaluations of requests."""

    def __init__(self, registry: Registry) -> None:
        self._evaluations = Counter(
            "pod_security_evaluations_total",
            "[ALPHA] Number of policy evaluations that occurred, not counting ignored or exempt requests.",
            ("decision", "policy_level", "policy_version", "mode", *_ABOUT),
        )
        self._exemptions = Counter(
            "pod_security_exemptions_total",
            "[ALPHA] Number of exempt requests, not counting ignored or out of scope requests.",
            _ABOUT,
        )
        self._errors = Counter(
            "pod_security_errors_total",
            "[ALPHA] Number of errors preventing normal evaluation. Non-fatal errors may result in the latest "
            "restricted profile being used for evaluation.",
            ("fatal", *_ABOUT),
        )
        for operation in ("create", "update"):
            self._evaluations.inc(("allow", PRIVILEGED, "latest", ENFORCE, operation, "pod", ""), 0)
            for resource in ("pod", "controller"):
                self._exemptions.inc((operation, resource, ""), 0)
        self._privileged_series: dict[tuple[Operation, str], list[float]] = {}
        """Series of pods in privileged namespaces, by operation and subresource."""
        registry.add(self._evaluations, self._exemptions, self._errors)

    def count_evaluation(self, evaluation: Evaluation, attributes: Attributes) -> None:
        """Count an evaluation of a pod. As upstream, callers report only violations for audit and warn."""
        mode, level, meets = evaluation
        decision = "allow" if meets else "deny"
        self._evaluations.inc((decision, level.level, _version(level), mode, *_request_labels(attributes)))

    def count_privileged(self, attributes: Attributes) -> None:
        """Count a pod of a privileged namespace."""
        write = attributes.operation, attributes.action.subresource
        series = self._privileged_series.get(write)
        if series is None:
            labels = ("allow", PRIVILEGED, "latest", ENFORCE, _OPERATIONS[write[0]], "pod", write[1])
            series = self._privileged_series[write] = self._evaluations.series(labels)
        series[0] += 1

    def count_exemption(self, attributes: Attributes) -> None:
        """Count an exempt request."""
        self._exemptions.inc(_request_labels(attributes))

    def count_error(self, attributes: Attributes, *, fatal: bool) -> None:
        """Count a request that could not be evaluated (`fatal`), or only by the strictest level because of bad labels."""
        self._errors.inc(("true" if fatal else "false", *_request_labels(attributes)))


def _version(level: LevelVersion) -> str:
    if level.minor == LATEST or level.level == PRIVILEGED:
        return "latest"
    return f"v1.{level.minor}" if level.minor <= _NEWEST else "future"


_OPERATIONS: Final = {CREATE: "create", UPDATE: "update"}


def _request_labels(attributes: Attributes) -> tuple[str, str, str]:
    action = attributes.action
    resource = "controller" if action.group else _RESOURCES.get(action.resource, "controller")
    return _OPERATIONS[attributes.operation], resource, action.subresource
