"""Topology: filters and scores that depend on the positions of other pods, by topology spread and pod affinity.

A group of nodes for which all of this is equal is evaluated once. Its description holds the nodes' value of each
relevant label, and the amount of each tally that counts by host.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from typing import Any, Final

from msgspec import Struct

from steersman.machinery.selectors.labels import NOTHING
from steersman.scheduler.demand.affinity_terms import AffinityTerm, PodSelection
from steersman.scheduler.demand.demand import Demand
from steersman.scheduler.demand.spread import HOSTNAME, SpreadConstraint
from steersman.scheduler.demand.taints import forbidding
from steersman.scheduler.fit.status import INTER_POD_AFFINITY, POD_TOPOLOGY_SPREAD, Rejection
from steersman.scheduler.fit.tally import Tally
from steersman.scheduler.state.cluster import ClusterState
from steersman.scheduler.state.node_info import NodeInfo, PodInfo
from steersman.scheduler.state.pod_counts import CountedPods, PodCount, TermUse

_SPREAD: Final = "node(s) didn't match pod topology spread constraints"
SKEWED: Final = Rejection(POD_TOPOLOGY_SPREAD, (_SPREAD,), resolvable=True)
LABEL_MISSING: Final = Rejection(POD_TOPOLOGY_SPREAD, (f"{_SPREAD} (missing required label)",))
NOT_NEAR: Final = Rejection(INTER_POD_AFFINITY, ("node(s) didn't match pod affinity rules",))
TOO_NEAR: Final = Rejection(INTER_POD_AFFINITY, ("node(s) didn't match pod anti-affinity rules",), resolvable=True)
KEPT_AWAY: Final = Rejection(
    INTER_POD_AFFINITY, ("node(s) didn't satisfy existing pods anti-affinity rules",), resolvable=True
)

Part = str | int | None
Description = tuple[Part, ...]
"""Description of a group of nodes: values of labels, then amounts on hosts; None where a node lacks the label."""

Amount = Callable[[Tally], "int | None"]
"""Returns the amount of a tally for a node; None if the node lacks the tally's label."""
Rule = SpreadConstraint | AffinityTerm | Sequence[AffinityTerm]
"""Hard rule: a spread constraint, an anti-affinity term of the pod or of another pod, or the required affinity."""
Least = Callable[[Tally], int]
Nowhere = Callable[[Tally], bool]


class _Spread(Struct):
    constraint: SpreadConstraint
    tally: Tally


class _SoftSpread(Struct):
    """Soft spread constraint; for the host name label, `count` has the amounts of single nodes and there is
    no tally.
    """

    constraint: SpreadConstraint
    tally: Tally | None
    count: PodCount
    slot: int = 0


class Topology:
    """Tallies of a demand, and the filters and scores computed from them.

    It holds references to pod counts, which keeps them updated.
    """

    def __init__(self, demand: Demand, cluster: ClusterState) -> None:
        """Create it without tallies; `fill` must follow."""
        self._demand = demand
        self._cluster = cluster
        self._held: list[PodCount] = []
        self._uses: list[TermUse] = []
        self._hard: list[_Spread] = []
        self._soft: list[_SoftSpread] = []
        self._near: list[Tally] = []
        self._far: list[Tally] = []
        self._kept_away: list[Tally] = []
        self._scored: list[tuple[int, Tally]] = []
        self._left_out: list[Tally] = []
        self.tallies: list[Tally] = []

    def fill(self, *, without_empty: bool = False) -> Iterator[None]:
        """Create the tallies in steps, yielding after each.

        With `without_empty`, tallies of anti-affinity and preferences that are zero now are left out. Then check
        `is_complete` at the end.
        """
        demand, cluster = self._demand, self._cluster
        spreading, terms = demand.spreading, demand.terms
        keys = tuple(each.topology_key for each in spreading.hard)
        for each in spreading.hard:
            self._hard.append(_Spread(each, self._spread_tally(each, keys)))
            yield
        keys = tuple(each.topology_key for each in spreading.soft) if spreading.all_keys_needed else ()
        for each in spreading.soft:
            self._soft.append(self._soft_spread(each, keys))
            yield
        near = tuple(each.pods for each in terms.required_affinity)
        for key in dict.fromkeys(each.topology_key for each in terms.required_affinity):
            self._near.append(self._pods_tally(key, near))
            yield
        for term in terms.required_anti_affinity:
            tally = self._pods_tally(term.topology_key, (term.pods,))
            (self._left_out if without_empty and tally.is_empty else self._far).append(tally)
            yield
        for term in demand.kept_away_by:
            self._kept_away.append(self._use_tally(term, cluster.anti_affinity_uses.use_of(term), anti=True))
            yield
        for wish in terms.preferred:
            tally = self._pods_tally(wish.term.topology_key, (wish.term.pods,))
            if without_empty and tally.is_empty:
                self._left_out.append(tally)
            else:
                self._scored.append((wish.weight, tally))
            yield
        for term in demand.liked_by:
            self._scored.append((1, self._use_tally(term, cluster.preference_uses.use_of(term), anti=False)))
            yield
        self.tallies = [
            *(each.tally for each in self._hard),
            *(each.tally for each in self._soft if each.tally is not None),
            *self._near,
            *self._far,
            *self._kept_away,
            *(tally for _, tally in self._scored),
        ]
        self._lay_out()

    def empty(self) -> Iterator[None]:
        """Free everything in steps, as freeing thousands of counts at once takes long. Yields after each."""
        parts: tuple[list[Any], ...] = (
            self.by_host,
            self._counted,
            self.tallies,
            self._held,
            self._left_out,
            self._hard,
            self._soft,
            self._near,
            self._far,
            self._kept_away,
            self._scored,
            self._uses,
        )
        for some in parts:
            while some:
                some.pop()
                yield

    @property
    def is_complete(self) -> bool:
        """True if the tallies that were left out are still zero."""
        return all(each.is_empty for each in self._left_out)

    def _lay_out(self) -> None:
        """Assign each label and each amount its index in descriptions."""
        keys = dict.fromkeys(tally.key for tally in self.tallies if not tally.is_by_host)
        keys.update(dict.fromkeys(each.constraint.topology_key for each in self._soft if each.tally is not None))
        self._keys = tuple(keys)
        self.by_host = [tally for tally in self.tallies if tally.is_by_host]
        self._counted = [each for each in self._soft if each.tally is None]
        self.has_hosts = bool(self.by_host or self._counted)
        slots = {key: slot for slot, key in enumerate(self._keys)}
        next_slot = len(self._keys)
        for tally in self.tallies:
            if tally.is_by_host:
                tally.slot, next_slot = next_slot, next_slot + 1
            else:
                tally.slot = slots[tally.key]
        for each in self._soft:
            if each.tally is None:
                each.slot, next_slot = next_slot, next_slot + 1
            else:
                each.slot = each.tally.slot

    @property
    def is_trivial(self) -> bool:
        """True if the demand does not depend on the nodes of other pods."""
        return not self.tallies and not self._soft

    def describe(self, info: NodeInfo) -> Description:
        """Return the current description of the group that a node belongs to."""
        if self.is_trivial or info.node is None:
            return ()
        labels = info.node.metadata.labels
        parts: list[Part] = [labels.get(key) for key in self._keys]
        if self.has_hosts:
            host = labels.get(HOSTNAME)
            parts += [None if host is None else tally.sums.get(host, 0) for tally in self.by_host]
            parts += [None if host is None else each.count.on_node.get(info.index, 0) for each in self._counted]
        return tuple(parts)

    # Tallies

    def _count(self, selections: tuple[PodSelection, ...], *, terminating: bool) -> PodCount:
        count = self._cluster.counts.count_of(CountedPods(selections, terminating))
        self._held.append(count)
        return count

    def _of_namespace(self, constraint: SpreadConstraint) -> PodCount:
        selector = NOTHING if constraint.selector.empty else constraint.selector
        pods = PodSelection(frozenset({self._demand.namespace}), NOTHING, selector)
        return self._count((pods,), terminating=False)

    def _spread_tally(self, constraint: SpreadConstraint, keys: Sequence[str]) -> Tally:
        count = self._of_namespace(constraint)
        return Tally(constraint.topology_key, count.on_node, _one_for(count), self._eligible(constraint, keys))

    def _soft_spread(self, constraint: SpreadConstraint, keys: Sequence[str]) -> _SoftSpread:
        count = self._of_namespace(constraint)
        if constraint.topology_key == HOSTNAME:
            return _SoftSpread(constraint, None, count)
        eligible = self._eligible(constraint, keys)
        return _SoftSpread(constraint, Tally(constraint.topology_key, count.on_node, _one_for(count), eligible), count)

    def _eligible(self, constraint: SpreadConstraint, keys: Sequence[str]) -> Callable[[NodeInfo], bool]:
        """Return a function that tells if a node counts: it has the labels `keys`, and as the constraint asks, admits
        the pod.
        """
        demand = self._demand

        def eligible(info: NodeInfo) -> bool:
            node = info.node
            if node is None:
                return False
            labels = node.metadata.labels
            if any(key not in labels for key in keys):
                return False
            wanted = demand.wanted_nodes if constraint.honors_affinity else None
            if wanted is not None and not wanted(info.name, labels):
                return False
            return not (constraint.honors_taints and forbidding(demand.tolerations, node.spec.taints) is not None)

        return eligible

    def _pods_tally(self, key: str, selections: tuple[PodSelection, ...]) -> Tally:
        count = self._count(selections, terminating=True)
        return Tally(key, count.on_node, _one_for(count))

    def _use_tally(self, term: AffinityTerm, use: TermUse, *, anti: bool) -> Tally:
        self._uses.append(use)

        def of_pod(info: PodInfo) -> int:
            terms = info.terms
            if anti:
                return sum(each == term for each in terms.required_anti_affinity)
            required = sum(each == term for each in terms.required_affinity)
            return required + sum(each.weight for each in terms.preferred if each.term == term)

        return Tally(term.topology_key, use.on_node, of_pod)

    # Filters

    def rejection(self, description: Description) -> Rejection | None:
        """Return the rejection of a group of nodes, or None."""

        def amount(tally: Tally) -> int | None:
            part = description[tally.slot]
            if part is None or isinstance(part, int):
                return part
            return tally.sums.get(part, 0)

        return self.rejection_where(amount, Tally.least, Tally.is_nowhere)

    def rejection_where(self, amount: Amount, least: Least, is_nowhere: Nowhere) -> Rejection | None:
        """Return the rejection of a node for which tallies have the given amounts, or None."""
        for each in self._hard:
            found = amount(each.tally)
            if found is None:
                return LABEL_MISSING
            constraint = each.constraint
            minimum = 0 if each.tally.domains < constraint.min_domains else least(each.tally)
            if found + constraint.counts_itself - minimum > constraint.max_skew:
                return SKEWED
        if self._near:
            near = [amount(tally) for tally in self._near]
            if None in near:
                return NOT_NEAR
            first = self._demand.matches_itself and all(map(is_nowhere, self._near))
            if not all(near) and not first:
                return NOT_NEAR
        if any(map(amount, self._far)):
            return TOO_NEAR
        if any(map(amount, self._kept_away)):
            return KEPT_AWAY
        return None

    def rules(self) -> Iterator[tuple[Rule, Topology]]:
        """Yield each hard rule with a topology that has no other rule and shares this one's tallies.

        The required affinity terms are one rule, as they hold together.
        """
        for spread in self._hard:
            yield spread.constraint, self._only(_hard=[spread])
        if self._near:
            yield self._demand.terms.required_affinity, self._only(_near=self._near)
        for term, far in zip(self._demand.terms.required_anti_affinity, self._far, strict=True):
            yield term, self._only(_far=[far])
        for term, kept_away in zip(self._demand.kept_away_by, self._kept_away, strict=True):
            yield term, self._only(_kept_away=[kept_away])

    def _only(self, **rules: list[Any]) -> Topology:
        found = copy(self)
        for name in ("_hard", "_near", "_far", "_kept_away"):
            setattr(found, name, rules.get(name, []))
        return found

    def spread_on(self, info: NodeInfo) -> tuple[int, int] | None:
        """Return the pods in the node's domain of the first hard constraint, and the least number in any domain that
        it compares with; None if the node lacks the label.
        """
        first = self._hard[0]
        description = self.describe(info)
        part = description[first.tally.slot]
        if part is None:
            return None
        found = first.tally.sums.get(part, 0) if isinstance(part, str) else part
        return found, 0 if first.tally.domains < first.constraint.min_domains else first.tally.least()

    # Scores

    def scores(self, groups: Sequence[tuple[Description, int]]) -> dict[str, Sequence[int]]:
        """Return the weighted scores by plugin of groups of feasible nodes, given as descriptions with numbers of
        nodes.
        """
        scores: dict[str, Sequence[int]] = {}
        if self._soft:
            scores[POD_TOPOLOGY_SPREAD] = [2 * score for score in self._spread_scores(groups)]
        if self._scored:
            scores[INTER_POD_AFFINITY] = [2 * score for score in self._affinity_scores(groups)]
        return scores

    def _spread_scores(self, groups: Sequence[tuple[Description, int]]) -> Sequence[int]:
        all_needed = self._demand.spreading.all_keys_needed
        slots = [each.slot for each in self._soft]
        ignored = [all_needed and any(parts[slot] is None for slot in slots) for parts, _ in groups]
        scored = [parts for (parts, _), left_out in zip(groups, ignored, strict=True) if not left_out]
        nodes = sum(count for (_, count), left_out in zip(groups, ignored, strict=True) if not left_out)
        weights = []
        for each in self._soft:
            size = nodes if each.tally is None else len({parts[each.slot] for parts in scored})
            weights.append(math.log(size + 2))
        raw = [
            -1 if left_out else self._raw_spread(parts, weights)
            for (parts, _), left_out in zip(groups, ignored, strict=True)
        ]
        counted = [score for score in raw if score >= 0]
        most, least = max(counted, default=0), min(counted, default=0)
        if not most:
            return [0 if score < 0 else 100 for score in raw]
        return [0 if score < 0 else 100 * (most + least - score) // most for score in raw]

    def _raw_spread(self, parts: Description, weights: Sequence[float]) -> int:
        score = 0.0
        for each, weight in zip(self._soft, weights, strict=True):
            part = parts[each.slot]
            if part is None:
                continue
            if isinstance(part, str):
                part = 0 if each.tally is None else each.tally.sums.get(part, 0)
            score += part * weight + (each.constraint.max_skew - 1)
        return math.floor(score + 0.5)

    def _affinity_scores(self, groups: Sequence[tuple[Description, int]]) -> Sequence[int]:
        raw = []
        for parts, _ in groups:
            total = 0
            for weight, tally in self._scored:
                part = parts[tally.slot]
                if isinstance(part, str):
                    total += weight * tally.sums.get(part, 0)
                elif part is not None:
                    total += weight * part
            raw.append(total)
        most, least = max(raw, default=0), min(raw, default=0)
        if most == least:
            return [0] * len(raw)
        return [int(100 * ((score - least) / (most - least))) for score in raw]


def _one_for(count: PodCount) -> Callable[[PodInfo], int]:
    return lambda info: int(count.matches(info))
