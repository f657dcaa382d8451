"""Scheduling cycle of one pod: the node it gets, or the reason why it gets none and the preemption to try
(schedule_one.go).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from msgspec import Struct

from steersman.api.core import v1 as core
from steersman.api.policy.v1 import PodDisruptionBudget
from steersman.api.resource.v1 import ResourceClaim
from steersman.scheduler.demand.affinity_terms import NO_TERMS, PodTerms
from steersman.scheduler.demand.demand import Demand
from steersman.scheduler.demands import Demands
from steersman.scheduler.devices.pod_claims import ClaimPlan, PodClaims
from steersman.scheduler.fit.ranking import Choice, Ranking
from steersman.scheduler.fit.rankings import Rankings
from steersman.scheduler.fit.status import NODE_AFFINITY, Diagnosis, Rejection, plugins_of
from steersman.scheduler.fit.what_if import Check, WhatIf, with_nominated
from steersman.scheduler.preemption.nominator import Nominator
from steersman.scheduler.preemption.victims import NOT_HELPFUL, Candidate, Search, budgets_of, ineligibility
from steersman.scheduler.state.cluster import ClusterState
from steersman.scheduler.state.node_info import NodeInfo, PodInfo
from steersman.scheduler.volumes.pod_volumes import Plan, PodVolumes

NO_NODES: Final = "no nodes available to schedule pods"
_NO_CLAIMS: Final = "no new claims to deallocate"
_STILL: Final = "still not schedulable"
_RELEASED: Final = "deallocation of ResourceClaim completed"
_CONFLICTING_NAMES: Final = Rejection(NODE_AFFINITY, ("pod affinity terms conflict",))
NOT_NAMED: Final = Rejection(NODE_AFFINITY, ("node(s) didn't satisfy plugin(s) [NodeAffinity]",))
_EARLY: Final = "not found"
"""Upstream's text in place of the result of preemption, for a pod that was rejected before any node was checked."""


class Placement(Struct, frozen=True):
    """Decision for a node, with what must be written for the pod's volumes and claims before the binding."""

    node: NodeInfo
    volumes: Plan | None = None
    claims: ClaimPlan | None = None
    terms: PodTerms = NO_TERMS
    """Affinity terms of the pod."""


class NoPlacement(Struct, frozen=True):
    """Decision that a pod gets no node now, with the reason."""

    message: str
    plugins: frozenset[str] = frozenset()
    pending_plugins: frozenset[str] = frozenset()
    nominated: str | None = None
    """Node that the pod is nominated for from now on; "" for none, None if the nomination does not change."""
    preemption: Candidate | None = None
    """Preemption to be done for the pod."""
    claim_to_release: ResourceClaim | None = None
    """Claim whose allocation is to be released."""
    similarity_key: bytes = b""
    """Equal for pods that the same cluster events may help."""


class Attempt(Struct, frozen=True):
    """Comparison of a pod with the nodes, from which its node is chosen."""

    pod: core.Pod
    demand: Demand
    volumes: PodVolumes | None
    claims: PodClaims | None
    ranking: Ranking
    excluded: dict[int, Rejection]
    """Rejections of nodes that the ranking alone does not reject, by the node's index."""
    more: Check | None
    """Check of a node for volumes and claims."""


class Cycle:
    """Decides pods one after the other."""

    def __init__(
        self,
        cluster: ClusterState,
        demands: Demands,
        nominator: Nominator,
        budgets: Callable[[], Sequence[PodDisruptionBudget]],
        volumes_of: Callable[[core.Pod], PodVolumes | None],
        claims_of: Callable[[core.Pod], PodClaims | None],
    ) -> None:
        self._claims_of = claims_of
        self._cluster = cluster
        self._demands = demands
        self._nominator = nominator
        self._budgets = budgets
        self._volumes_of = volumes_of
        self._rankings = Rankings(cluster)
        self.free_heavy = self._rankings.free_heavy

    async def decide(self, pod: core.Pod) -> Placement | NoPlacement:
        """Decide a node for a pod. Raises SelectorError if the pod's demand cannot be read."""
        attempt = await self._attempt(pod, self._rankings.current)
        if isinstance(attempt, NoPlacement):
            return attempt
        meant = self._cluster.node(pod.status.nominated_node_name) if pod.status.nominated_node_name else None
        if meant is not None and self._rejection(pod, attempt.ranking, meant, attempt.more) is None:
            return self._placement(meant, attempt)
        choice = attempt.ranking.choose(attempt.excluded)
        if choice.index is not None:
            return self._placement(self._cluster.nodes[choice.index], attempt)
        return await self._no_placement(attempt, choice)

    async def examine(self, pod: core.Pod) -> Attempt | NoPlacement:
        """Return a pod's comparison with all nodes, without a decision; NoPlacement if it is rejected before that.

        Raises SelectorError if the pod's demand cannot be read.
        """
        return await self._attempt(pod, self._rankings.complete)

    async def _attempt(
        self, pod: core.Pod, ranking_of: Callable[[Demand], Awaitable[Ranking]]
    ) -> Attempt | NoPlacement:
        """Compare a pod with the nodes. Return NoPlacement if it is rejected before any node is checked."""
        if not self._cluster.size:
            return NoPlacement(NO_NODES, nominated="")
        demand = await self._demands.for_pod(pod)
        if demand.named_nodes is not None and not demand.named_nodes:
            return self._rejected(_CONFLICTING_NAMES, demand.key)
        volumes = self._volumes_of(pod)
        if volumes is not None and volumes.before is not None:
            return self._rejected(volumes.before, pod.metadata.uid.encode())
        claims = self._claims_of(pod)
        if claims is not None and claims.before is not None:
            hopeless = Diagnosis(self._cluster.size, absent=NOT_HELPFUL).message()
            after = f"{_NO_CLAIMS}, preemption: {hopeless}"
            return self._rejected(claims.before, pod.metadata.uid.encode(), after=after)
        more: Check | None = None if volumes is None else volumes.rejection
        if claims is not None:
            await claims.evaluate()
        ranking = await ranking_of(demand)
        excluded = self._excluded(pod, ranking, more)
        if claims is not None:
            more = _both(more, claims.rejection)
            for index in list(ranking.candidates(fitting=True)):
                rejection = None if index in excluded else claims.rejection(self._cluster.nodes[index])
                if rejection is not None:
                    excluded[index] = rejection
        return Attempt(pod, demand, volumes, claims, ranking, excluded, more)

    def _rejected(self, rejection: Rejection, similarity_key: bytes, *, after: str = _EARLY) -> NoPlacement:
        """Return the decision for a pod that was rejected before any node was checked."""
        message = Diagnosis(self._cluster.size, before=rejection, after=after).message()
        return NoPlacement(message, frozenset({rejection.plugin}), similarity_key=similarity_key)

    def _placement(self, node: NodeInfo, attempt: Attempt) -> Placement:
        volumes, claims, demand = attempt.volumes, attempt.claims, attempt.demand
        if node.node is None or (volumes is None and claims is None):
            return Placement(node, terms=demand.terms)
        plan = None if volumes is None or volumes.all_bound else volumes.plan(node.node)
        return Placement(node, plan, None if claims is None else claims.plan(node.node), demand.terms)

    def _rejection(self, pod: core.Pod, ranking: Ranking, node: NodeInfo, more: Check | None) -> Rejection | None:
        """Return the rejection of a pod by a node on which nominated pods count as well; None if it fits."""
        what_if = WhatIf(ranking, self._cluster, node, more)
        return with_nominated(what_if, self._nominated_for(pod, node), pod.metadata.labels)

    def _nominated_for(self, pod: core.Pod, node: NodeInfo) -> Sequence[PodInfo]:
        return self._nominator.at_least(node.name, pod.spec.priority or 0, pod.metadata.uid)

    def _excluded(self, pod: core.Pod, ranking: Ranking, more: Check | None) -> dict[int, Rejection]:
        """Return rejections of nodes that would fit without the pods nominated for them, or without the
        pod's volumes.
        """
        excluded = {}
        for index in ranking.candidates() if more is not None else ():
            rejection = None if more is None else more(self._cluster.nodes[index])
            if rejection is not None:
                excluded[index] = rejection
        for name in self._nominator.nodes():
            node = self._cluster.node(name)
            if node is not None and ranking.is_candidate(node.index) and self._nominated_for(pod, node):
                rejection = self._rejection(pod, ranking, node, more)
                if rejection is not None:
                    excluded[node.index] = rejection
        return excluded

    async def _no_placement(self, attempt: Attempt, choice: Choice) -> NoPlacement:
        pod, demand, ranking, excluded = attempt.pod, attempt.demand, attempt.ranking, attempt.excluded
        diagnosis = Diagnosis(self._cluster.size, choice.rejections, plugins=plugins_of(choice.rejections))
        if demand.named_nodes is not None:
            diagnosis.absent = NOT_NAMED
            diagnosis.plugins.add(NODE_AFFINITY)
        nominated: str | None = None
        room: Candidate | None = None
        nodes = list(ranking.resolvable(excluded))
        meant = self._cluster.node(pod.status.nominated_node_name)
        hopeless = meant is not None and meant.index not in nodes
        refused = ineligibility(pod, self._cluster, nominated_is_hopeless=hopeless)
        claim_to_release = None if attempt.claims is None else attempt.claims.claim_to_release()
        claims = _NO_CLAIMS if not pod.spec.resource_claims else _STILL if claim_to_release is None else _RELEASED
        if refused:
            diagnosis.after = f"{claims}, preemption: {refused}"
        else:
            found = await self.search(attempt).best(nodes)
            if isinstance(found, Candidate):
                nominated, room = found.node.name, found
            else:
                nominated = ""
                diagnosis.after = f"{claims}, preemption: {found}"
        return NoPlacement(
            diagnosis.message(),
            frozenset(diagnosis.plugins),
            nominated=nominated,
            preemption=room,
            claim_to_release=claim_to_release,
            similarity_key=demand.key if attempt.more is None else pod.metadata.uid.encode(),
        )

    def search(self, attempt: Attempt) -> Search:
        """Return a search for the node where preemption for the pod does the least harm."""

        def nominated(node: NodeInfo) -> Sequence[PodInfo]:
            return self._nominated_for(attempt.pod, node)

        budgets = budgets_of(self._budgets())
        return Search(attempt.pod, attempt.ranking, self._cluster, nominated, budgets, attempt.more)


def _both(first: Check | None, second: Check) -> Check:
    """Return a check that gives the rejection of the first check, or else that of the second."""
    if first is None:
        return second
    return lambda info: first(info) or second(info)
