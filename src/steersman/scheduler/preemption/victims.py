"""Choice of the node and of the victims of a preemption (framework/preemption)."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from msgspec import Struct

from steersman.api.core import v1 as core
from steersman.api.policy.v1 import PodDisruptionBudget
from steersman.machinery.selectors.labels import Selector, SelectorError, from_label_selector
from steersman.machinery.values import times
from steersman.machinery.values.conditions import find_condition
from steersman.scheduler.fit.ranking import Ranking
from steersman.scheduler.fit.status import Diagnosis, Rejection
from steersman.scheduler.fit.what_if import Check, WhatIf, with_nominated
from steersman.scheduler.state.cluster import ClusterState
from steersman.scheduler.state.node_info import NodeInfo, PodInfo
from steersman.work.yielding import TimeSlice

NO_VICTIMS: Final = Rejection("", ("No preemption victims found for incoming pod",))
NOT_HELPFUL: Final = Rejection("", ("Preemption is not helpful for scheduling",))
_LEAST_CANDIDATES: Final = 100
_CANDIDATES_PERCENT: Final = 10
_LARGE: Final = 1 << 31

Nominated = Callable[[NodeInfo], Sequence[PodInfo]]
"""Returns the pods of at least the preemptor's priority that are nominated for a node."""


class Candidate(Struct, frozen=True):
    """Node for a preemption, with its victims, the most important first."""

    node: NodeInfo
    victims: Sequence[PodInfo]
    violations: int
    """Number of victims that a disruption budget protects."""


class _Budget(Struct, frozen=True):
    namespace: str
    selector: Selector
    disrupted: frozenset[str]
    allowed: int


def ineligibility(pod: core.Pod, cluster: ClusterState, *, nominated_is_hopeless: bool) -> str:
    """Return the reason why a pod may not preempt others; "" if it may."""
    if pod.spec.preemption_policy == "Never":
        return "not eligible due to preemptionPolicy=Never."
    name = pod.status.nominated_node_name
    if not name or nominated_is_hopeless:
        return ""
    node = cluster.by_name.get(name)
    priority = pod.spec.priority or 0
    if node is not None and any(
        info.priority < priority and _is_ending_for_another(info.pod) for info in node.pods.values()
    ):
        return "not eligible due to a terminating pod on the nominated node."
    return ""


def _is_ending_for_another(pod: core.Pod) -> bool:
    if not pod.metadata.deletion_timestamp:
        return False
    target = find_condition(pod.status.conditions, "DisruptionTarget")
    return target is not None and target.status == "True" and target.reason == "PreemptionByScheduler"


def budgets_of(budgets: Iterable[PodDisruptionBudget]) -> Sequence[_Budget]:
    """Return the budgets that select any pods."""
    found = []
    for each in budgets:
        try:
            selector = from_label_selector(each.spec.selector)
        except SelectorError:
            continue
        if not selector.empty:
            status = each.status
            found.append(
                _Budget(each.metadata.namespace, selector, frozenset(status.disrupted_pods), status.disruptions_allowed)
            )
    return found


class Search:
    """Search for the node where preemption does the least harm. The ranking must be up to date with all changes."""

    def __init__(
        self,
        pod: core.Pod,
        ranking: Ranking,
        cluster: ClusterState,
        nominated: Nominated,
        budgets: Sequence[_Budget],
        more: Check | None,
    ) -> None:
        self._more = more
        self._pod = pod
        self._priority = pod.spec.priority or 0
        self._ranking = ranking
        self._cluster = cluster
        self._nominated = nominated
        self._budgets = budgets

    async def best(self, nodes: Sequence[int]) -> Candidate | str:
        """Return the best candidate among the given nodes, or the message for the case that there is none."""
        rejections: Counter[Rejection] = Counter()
        found: list[Candidate] = []
        if nodes and not self._cluster.has_pods_below(self._priority):
            rejections[NO_VICTIMS] = len(nodes)
        elif nodes:
            found = await self._candidates(nodes, rejections)
        if not found:
            return Diagnosis(self._cluster.size, rejections, absent=NOT_HELPFUL).message()
        return pick(found)

    async def _candidates(self, nodes: Sequence[int], rejections: Counter[Rejection]) -> list[Candidate]:
        enough = min(max(len(nodes) * _CANDIDATES_PERCENT // 100, _LEAST_CANDIDATES), len(nodes))
        start = random.randrange(len(nodes))
        candidates: list[Candidate] = []
        harmless = 0
        time_slice = TimeSlice()
        for index in (*nodes[start:], *nodes[:start]):
            result = self.on_node(self._cluster.nodes[index])
            if isinstance(result, Candidate):
                candidates.append(result)
                harmless += not result.violations
                if harmless and len(candidates) >= enough:
                    break
            else:
                rejections[result] += 1
            await time_slice.pause_if_over()
        return candidates

    def on_node(self, node: NodeInfo) -> Candidate | Rejection:
        """Return the fewest and least important victims on a node, or the rejection if none help."""
        possible = [info for info in node.pods.values() if info.priority < self._priority]
        if not possible:
            return NO_VICTIMS
        nominated = self._nominated(node)
        labels = self._pod.metadata.labels
        what_if = WhatIf(self._ranking, self._cluster, node, self._more)
        for info in possible:
            what_if.remove(info)
        rejection = with_nominated(what_if, nominated, labels)
        if rejection is not None:
            return rejection
        possible.sort(key=_importance)
        protected, others = self._by_protection(possible)
        victims: list[PodInfo] = []
        violations = 0
        for number, info in enumerate((*protected, *others)):
            what_if.add(info)
            if with_nominated(what_if, nominated, labels) is not None:
                what_if.remove(info)
                victims.append(info)
                violations += number < len(protected)
        victims.sort(key=_importance)
        return Candidate(node, victims, violations) if victims else NO_VICTIMS

    def _by_protection(self, pods: Sequence[PodInfo]) -> tuple[list[PodInfo], list[PodInfo]]:
        """Return the pods whose deletion would violate a budget, and the other pods."""
        left = [budget.allowed for budget in self._budgets]
        protected: list[PodInfo] = []
        others: list[PodInfo] = []
        for info in pods:
            metadata = info.pod.metadata
            is_protected = False
            for number, budget in enumerate(self._budgets):
                if (
                    budget.namespace == metadata.namespace
                    and metadata.labels
                    and metadata.name not in budget.disrupted
                    and budget.selector.matches(metadata.labels)
                ):
                    left[number] -= 1
                    is_protected = is_protected or left[number] < 0
            (protected if is_protected else others).append(info)
        return protected, others


def _importance(info: PodInfo) -> tuple[int, str]:
    return -info.priority, _started(info.pod)


def _started(pod: core.Pod) -> str:
    return pod.status.start_time or times.now()


def pick(candidates: Sequence[Candidate]) -> Candidate:
    """Return the candidate that does the least harm (pickOneNodeForPreemption)."""

    def harm(candidate: Candidate) -> tuple[int, int, int, int]:
        priorities = [info.priority for info in candidate.victims]
        return candidate.violations, priorities[0], sum(each + _LARGE for each in priorities), len(priorities)

    least = min(map(harm, candidates))
    return max((each for each in candidates if harm(each) == least), key=_youngest)


def _youngest(candidate: Candidate) -> str:
    """Return the earliest start time of its victims of the highest priority, as text that sorts like the times."""
    highest = max(info.priority for info in candidate.victims)
    return min(_started(info.pod) for info in candidate.victims if info.priority == highest)
