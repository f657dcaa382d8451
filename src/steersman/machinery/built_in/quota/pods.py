"""Usage of quotas by pods: their number, requests and limits, until they have ended.

Follows pkg/quota/v1/evaluator/core/pods.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from steersman.api.core.v1 import Pod, PodAffinityTerm, ScopedResourceSelectorRequirement
from steersman.machinery.built_in.pod_resources import Amounts, compute_qos_class, pod_limits, pod_requests
from steersman.machinery.built_in.pod_state import is_terminal
from steersman.machinery.built_in.quota.measure import ONE, Measure, select_name
from steersman.machinery.identity.schema import GroupResource
from steersman.machinery.validation.resource_names import (
    COMPUTE,
    is_extended_resource,
    is_huge_page_resource,
    is_native_resource,
    is_quota_huge_page_resource,
)
from steersman.machinery.values import times

REQUESTS: Final = "requests."
LIMITS: Final = "limits."
IMPLICIT_CLASS: Final = "deviceclass.resource.kubernetes.io/"
"""The prefix of devices of a class that a pod requests as an extended resource."""


def is_quota_extended_resource(name: str) -> bool:
    """Return True if a quota limits an extended resource under this name."""
    return name.startswith(REQUESTS) and (not is_native_resource(name) or name.startswith(REQUESTS + IMPLICIT_CLASS))


class PodMeasure(Measure[Pod]):
    """The usage of quotas by pods: their number, requests and limits."""

    def __init__(self) -> None:
        super().__init__(GroupResource("", "pods"))
        prefixes = ("", REQUESTS, LIMITS)
        self.names = frozenset({self.count, "pods", *(prefix + name for name in COMPUTE for prefix in prefixes)})

    def matching(self, names: Iterable[str]) -> set[str]:
        return {
            name
            for name in names
            if name in self.names or is_quota_huge_page_resource(name) or is_quota_extended_resource(name)
        }

    def in_scope(self, selector: ScopedResourceSelectorRequirement, obj: Pod) -> bool:
        scope = selector.scope_name
        if scope in ("Terminating", "NotTerminating"):
            return is_terminating(obj) is (scope == "Terminating")
        if scope in ("BestEffort", "NotBestEffort"):
            qos_class = obj.status.qos_class or compute_qos_class(obj.spec)
            return (qos_class == "BestEffort") is (scope == "BestEffort")
        if scope == "PriorityClass":
            name = obj.spec.priority_class_name
            return bool(name) if selector.operator == "Exists" else select_name(selector, [name] if name else [])
        return scope == "CrossNamespacePodAffinity" and any(
            term.namespaces or term.namespace_selector is not None for term in _affinity_terms(obj)
        )

    def usage(self, obj: Pod) -> Amounts:
        return pod_usage(obj)


def pod_usage(pod: Pod) -> Amounts:
    """Return the usage of a pod. A pod that has ended, or should have by now, still counts as an object."""
    used = {"count/pods": ONE}
    if has_ended(pod):
        return used
    used["pods"] = ONE
    for name, amount in pod_requests(pod, whole_as_reported=False).items():
        if name in COMPUTE or is_huge_page_resource(name):
            used[name] = used[REQUESTS + name] = amount
        elif is_extended_resource(name) or name.startswith(IMPLICIT_CLASS):
            used[REQUESTS + name] = amount
    used.update((LIMITS + name, amount) for name, amount in pod_limits(pod).items() if name in COMPUTE)
    return used


def has_ended(pod: Pod) -> bool:
    """Return True if the pod has ended, or its deletion is overdue."""
    metadata = pod.metadata
    if is_terminal(pod):
        return True
    if metadata.deletion_timestamp is None or metadata.deletion_grace_period_seconds is None:
        return False
    due = times.shifted(metadata.deletion_timestamp, metadata.deletion_grace_period_seconds)
    return times.unix_now() > times.unix(due)


def is_terminating(pod: Pod) -> bool:
    """Return True if the pod has a deadline, which the scope Terminating selects."""
    deadline = pod.spec.active_deadline_seconds
    return deadline is not None and deadline >= 0


def _affinity_terms(pod: Pod) -> Iterator[PodAffinityTerm]:
    affinity = pod.spec.affinity
    if affinity is None:
        return
    for each in (affinity.pod_affinity, affinity.pod_anti_affinity):
        if each is not None:
            yield from each.required_during_scheduling_ignored_during_execution
            for weighted in each.preferred_during_scheduling_ignored_during_execution:
                yield weighted.pod_affinity_term
