"""Ranking of pods for deletion (pkg/controller ActivePodsWithRanks)."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Final

from steersman.api.core.v1 import Pod
from steersman.machinery.built_in.pod_resources import is_sidecar
from steersman.machinery.built_in.pod_state import is_active, is_ready
from steersman.machinery.values import times
from steersman.machinery.values.conditions import find_condition
from steersman.work.patterns import late_pattern

DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
_PHASES: Final = {"Pending": 0, "Unknown": 1, "Running": 2}
_INT32: Final = late_pattern(r"-?(?:0|[1-9][0-9]{0,9})|\+?0", re.ASCII)


def pods_to_delete(pods: Sequence[Pod], related: Iterable[Pod], count: int, now: int) -> list[Pod]:
    """Return the `count` pods to delete first.

    In this order: unassigned before assigned, early phases before late ones, not ready before ready, low deletion cost
    (an annotation) before high, nodes with many pods of `related` before others, ready for a short time before long (in
    powers of two), more restarts before fewer, young before old. `now` is in seconds since 1970.
    """
    if count >= len(pods):
        return list(pods)
    on_node = Counter(pod.spec.node_name for pod in related if is_active(pod))
    ranked = [(_rank(pod, on_node[pod.spec.node_name], now), pod) for pod in pods]
    ranked.sort(key=lambda each: each[0])
    return [pod for _, pod in ranked[:count]]


def in_deletion_order(pods: Iterable[Pod]) -> list[Pod]:
    """Return pods in the order of deletion without regard to related pods and deletion cost (ActivePods)."""
    return sorted(pods, key=_deletion_key)


def _deletion_key(pod: Pod) -> tuple[Any, ...]:
    ready = is_ready(pod)
    restarts, sidecar_restarts = _restarts(pod)
    return (
        bool(pod.spec.node_name),
        _PHASES.get(pod.status.phase, 0),
        ready,
        _newest_first(_ready_time(pod)) if ready else 0,
        -restarts,
        -sidecar_restarts,
        _newest_first(pod.metadata.creation_timestamp),
    )


def _newest_first(moment: str | None) -> float:
    return -times.unix(moment) if moment else -math.inf


def _rank(pod: Pod, on_node: int, now: int) -> tuple[Any, ...]:
    ready = is_ready(pod)
    return (
        bool(pod.spec.node_name),
        _PHASES.get(pod.status.phase, 0),
        ready,
        deletion_cost(pod),
        -on_node,
        _age_rank(_ready_time(pod), now) if ready else 0,
        _TieBreak(pod, now, ready=ready),
    )


def deletion_cost(pod: Pod) -> int:
    """Return the cost in the pod's annotation, 0 if there is none or it is not a 32-bit integer."""
    text = pod.metadata.annotations.get(DELETION_COST)
    if text is None or not _INT32.fullmatch(text):
        return 0
    cost = int(text)
    return cost if -(2**31) <= cost < 2**31 else 0


class _TieBreak:
    """Last part of a pod's rank, which decides between pods that are equal otherwise."""

    __slots__ = ("_born", "_now", "_pod", "_ready_time", "_uid")

    def __init__(self, pod: Pod, now: int, *, ready: bool) -> None:
        self._pod = pod
        self._now = now
        self._uid = pod.metadata.uid
        self._ready_time = _ready_time(pod) if ready else None
        self._born = pod.metadata.creation_timestamp

    def __lt__(self, other: _TieBreak) -> bool:
        if self._ready_time != other._ready_time:
            return self._uid < other._uid
        mine, others = _restarts(self._pod), _restarts(other._pod)
        if mine != others:
            return mine > others
        if self._born != other._born:
            rank, other_rank = _age_rank(self._born, self._now), _age_rank(other._born, self._now)
            return self._uid < other._uid if rank == other_rank else rank < other_rank
        return False


def _ready_time(pod: Pod) -> str | None:
    condition = find_condition(pod.status.conditions, "Ready")
    return None if condition is None else condition.last_transition_time


def _age_rank(since: str | None, now: int) -> float:
    """Return the logarithm (base 2) of the age in nanoseconds, minus infinity without a time: it comes first."""
    if not since:
        return -math.inf
    seconds = now - times.unix(since)
    return int(math.log2(seconds * 10**9)) if seconds > 0 else -1


def _restarts(pod: Pod) -> tuple[int, int]:
    """Return the most restarts of any container, and of any sidecar."""
    sidecars = {each.name for each in pod.spec.init_containers if is_sidecar(each)}
    return (
        max((each.restart_count for each in pod.status.container_statuses), default=0),
        max((each.restart_count for each in pod.status.init_container_statuses if each.name in sidecars), default=0),
    )
