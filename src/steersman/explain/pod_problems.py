"""Problems of pods as their status tells them, in short, for the explanations of objects that need these pods."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from steersman.api.core.v1 import ContainerStatus, Pod
from steersman.client.resources import PODS
from steersman.explain.commands import why
from steersman.explain.finding import Evidence, Finding, Severity, Suggestion, at_condition, at_field, reference
from steersman.machinery.built_in.pod_state import is_ready
from steersman.machinery.values.conditions import find_condition

_STARTING: Final = frozenset({"", "ContainerCreating", "PodInitializing"})
"""Reasons for waiting that every starting container has."""
_NAMED: Final = 3
"""Pods of a group that are named."""
_MOST_GROUPS: Final = 8
"""Most groups of pods with one problem each that are reported."""


class Problem(NamedTuple):
    """A problem of a pod: its kind, a text that is equal for all pods with the same problem, and its evidence."""

    reason: str
    text: str
    evidence: Evidence
    severity: Severity = Severity.ERROR


def problem_of(pod: Pod) -> Problem | None:
    """Return the first problem that keeps a pod from being ready, None for a ready pod or one that has succeeded."""
    status, subject = pod.status, reference(PODS, pod)
    if status.phase == "Succeeded" or (is_ready(pod) and pod.metadata.deletion_timestamp is None):
        return None
    if status.phase == "Failed":
        ended = _failed_container(pod)
        if status.reason or status.message or ended is None:
            text = ": ".join(filter(None, (status.reason, status.message))) or "failed without a reason"
            return Problem("PodFailed", text, at_field(subject, ".status.reason", status.reason))
        return ended
    if pod.metadata.deletion_timestamp is not None:
        evidence = at_field(subject, ".metadata.deletionTimestamp", pod.metadata.deletion_timestamp)
        return Problem("PodTerminating", "is being deleted", evidence, Severity.WARNING)
    scheduled = find_condition(status.conditions, "PodScheduled")
    if scheduled is not None and scheduled.status == "False":
        text = scheduled.message or scheduled.reason
        return Problem("PodUnscheduled", f"not scheduled: {text}", at_condition(subject, scheduled))
    return _container_problem(pod) or _other_problem(pod)


def _failed_container(pod: Pod) -> Problem | None:
    for path, each in _statuses(pod):
        ended = each.state.terminated
        if ended is not None and ended.exit_code:
            text = f"container {each.name} exited with {ended.exit_code} ({ended.reason or 'Error'})"
            evidence = at_field(reference(PODS, pod), f"{path}.state.terminated.exitCode", ended.exit_code)
            return Problem("ContainerFailed", text, evidence)
    return None


def _container_problem(pod: Pod) -> Problem | None:
    """Return the problem of the first container that waits abnormally, has failed, or is not ready."""
    subject = reference(PODS, pod)
    for path, each in _statuses(pod):
        waiting = each.state.waiting
        if waiting is not None and waiting.reason not in _STARTING:
            last = each.last_state.terminated
            ended = "" if last is None else f", last exit code {last.exit_code} ({last.reason or 'no reason'})"
            message = "" if waiting.reason == "CrashLoopBackOff" or not waiting.message else f": {waiting.message}"
            text = f"container {each.name}: {waiting.reason}{message}{ended}"
            return Problem(waiting.reason, text, at_field(subject, f"{path}.state.waiting", waiting))
    failed = _failed_container(pod)
    if failed is not None:
        return failed
    for path, each in _statuses(pod):
        if each.state.running is not None and not each.ready and path.startswith(".status.containerStatuses"):
            text = f"container {each.name} runs and is not ready{_probe_text(pod, each.name)}"
            return Problem("ContainerNotReady", text, at_field(subject, f"{path}.ready", value=False))
    return None


def _probe_text(pod: Pod, container: str) -> str:
    for each in pod.spec.containers or ():
        if each.name == container:
            if each.startup_probe is not None:
                return ": its startup or readiness probe has not succeeded"
            if each.readiness_probe is not None:
                return ": its readiness probe fails"
    return ""


def _other_problem(pod: Pod) -> Problem | None:
    subject = reference(PODS, pod)
    conditions = pod.status.conditions
    for gate in pod.spec.readiness_gates:
        condition = find_condition(conditions, gate.condition_type)
        if condition is None or condition.status != "True":
            evidence = at_field(subject, ".status.conditions", [each.type for each in conditions])
            return Problem("ReadinessGate", f"readiness gate {gate.condition_type} is not True", evidence)
    ready = find_condition(conditions, "Ready")
    if ready is not None and ready.reason not in ("", "ContainersNotReady"):
        text = ": ".join(filter(None, (ready.reason, ready.message)))
        return Problem("PodNotReady", text, at_condition(subject, ready))
    if pod.spec.node_name and pod.status.phase == "Pending":
        evidence = at_field(subject, ".status.phase", pod.status.phase)
        return Problem("PodStarting", f"is starting on a node ({_starting_reason(pod)})", evidence, Severity.WARNING)
    if ready is None and not pod.spec.node_name:
        evidence = at_field(subject, ".spec.nodeName", None)
        return Problem("PodNotAssigned", "no scheduler has assigned it to a node yet", evidence, Severity.WARNING)
    return Problem("PodNotReady", "is not ready", at_field(subject, ".status.phase", pod.status.phase))


def _starting_reason(pod: Pod) -> str:
    waits = (each.state.waiting.reason for _, each in _statuses(pod) if each.state.waiting is not None)
    return next(filter(None, waits), "no container status yet")


def _statuses(pod: Pod) -> Iterator[tuple[str, ContainerStatus]]:
    """Yield path and status of each container, initialization first."""
    status = pod.status
    for key, statuses in (
        ("initContainerStatuses", status.init_container_statuses),
        ("containerStatuses", status.container_statuses),
    ):
        for each in statuses:
            yield f'.status.{key}[?(@.name=="{each.name}")]', each


def problems_of(pods: Iterable[Pod]) -> list[Finding]:
    """Return a finding for each group of pods with the same problem, the largest groups first."""
    groups: dict[tuple[str, str], list[tuple[Pod, Problem]]] = {}
    for pod in pods:
        problem = problem_of(pod)
        if problem is not None:
            groups.setdefault((problem.reason, problem.text), []).append((pod, problem))
    ordered = sorted(groups.values(), key=len, reverse=True)
    findings = [_finding(each) for each in ordered[:_MOST_GROUPS]]
    if len(ordered) > _MOST_GROUPS:
        text = f"{len(ordered) - _MOST_GROUPS} more groups of pods with other problems"
        findings.append(Finding(Severity.NOTE, "MoreProblems", text))
    return findings


def _finding(group: Sequence[tuple[Pod, Problem]]) -> Finding:
    (pod, problem), names = group[0], [each.metadata.name for each, _ in group]
    shown = ", ".join(names[:_NAMED]) + (", ..." if len(names) > _NAMED else "")
    who = f"pod {names[0]}" if len(names) == 1 else f"{len(names)} pods ({shown})"
    return Finding(
        problem.severity,
        problem.reason,
        f"{who}: {problem.text}",
        tuple(each.evidence for _, each in group[:_NAMED]),
        (Suggestion("look at the pod", why(reference(PODS, pod))),),
    )
