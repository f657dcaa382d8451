"""Ranking of nodes for one demand, best first, kept from pod to pod.

Nodes are put into groups within which every score that is relative to other nodes is equal: untolerated taints,
preferred labels, and the effect of other pods. Within a group, a heap orders the nodes by their own scores. Deciding a
pod then means comparing the groups with the best node of each, and only nodes that have changed since the last pod are
checked again.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import heapify, heappop, heappush
from typing import Final

from msgspec import Struct, field

from steersman.scheduler.demand.demand import Demand
from steersman.scheduler.fit.node_fit import (
    AFFINITY_WEIGHT,
    MAX_SCORE,
    TAINT_WEIGHT,
    balanced_score,
    contents_score,
    dislike,
    image_score,
    image_state,
    least_allocated_score,
    preference,
    rejected_by_contents,
    rejected_by_node,
)
from steersman.scheduler.fit.status import (
    BALANCED_ALLOCATION,
    IMAGE_LOCALITY,
    NODE_AFFINITY,
    NODE_RESOURCES_FIT,
    TAINT_TOLERATION,
    Rejection,
)
from steersman.scheduler.fit.tally import Contribution
from steersman.scheduler.fit.topology import Description, Topology
from steersman.scheduler.state.cluster import ClusterState
from steersman.scheduler.state.node_info import NodeInfo

Key = tuple[int, int, Description]
"""Key of a group: number of untolerated taints, weight of preferred labels, and description of the topology."""


_Entry = tuple[int, float, int, int]
"""Negated score, random tie-breaker, index of the node, and stamp; an entry with an old stamp is stale."""


class _Group(Struct, eq=False):
    key: Key
    members: set[int] = field(default_factory=set)
    heap: list[_Entry] = field(default_factory=list)


class _NodeRecord(Struct):
    """Results for one node."""

    version: int = -1
    """Version of the node for which the next three values were computed."""
    by_node: Rejection | None = None
    dislike: int = 0
    preference: int = 0
    rejection: Rejection | None = None
    """Rejection that depends on the node and its pods alone."""
    score: int = 0
    group: _Group | None = None
    stamp: int = 0
    summed: int = -1
    """Version of the node for which its contributions were computed."""
    contributions: Sequence[Contribution | None] = ()
    host: str | None = None


class Choice(Struct, frozen=True):
    """Best node (None if no node is feasible), number of feasible nodes, and number of nodes by rejection."""

    index: int | None
    feasible: int
    rejections: Counter[Rejection]


class Ranking:
    """Ranking for one demand. Call `refresh` with the nodes that have changed, then `choose`."""

    def __init__(self, demand: Demand, cluster: ClusterState, topology: Topology) -> None:
        """Create a ranking without nodes. `topology` must be filled."""
        self.demand: Final = demand
        self.position = cluster.changes.end
        """Position in the log of changes up to which this ranking is current."""
        self._cluster = cluster
        self.topology = topology
        self._seen: list[_NodeRecord | None] = []
        self._groups: dict[Key, _Group] = {}
        self._rejections: Counter[Rejection] = Counter()
        self._hosts: dict[str, set[int]] = {}
        self._images = image_state(demand, cluster)

    @property
    def is_outdated(self) -> bool:
        """True if every node has to be checked again, because images have come or gone."""
        return bool(self.demand.images) and image_state(self.demand, self._cluster) != self._images

    def refresh(self, indices: Iterable[int]) -> None:
        """Check nodes again."""
        nodes = self._cluster.nodes
        missing = len(nodes) - len(self._seen)
        if missing > 0:
            self._seen.extend([None] * missing)
        hosts: set[str] = set()
        some = list(indices)
        for index in some:
            self._sum_up(index, hosts)
        for index in some:
            self._check(nodes[index])
        for host in hosts:
            for index in self._hosts.get(host, ()):
                seen = self._seen[index]
                if seen is not None and seen.group is not None:
                    self._put_in_group(nodes[index], seen, rescored=False)

    def sum_up(self, indices: Iterable[int]) -> None:
        """Count nodes in the topology without checking them."""
        self._seen.extend([None] * (len(self._cluster.nodes) - len(self._seen)))
        for index in indices:
            self._sum_up(index, set())

    def _sum_up(self, index: int, hosts: set[str]) -> None:
        seen = self._seen[index]
        if seen is None:
            seen = self._seen[index] = _NodeRecord()
        topology = self.topology
        if topology.is_trivial:
            return
        info = self._cluster.nodes[index]
        if seen.summed == info.version and all(
            each is None or each[1] == tally.amount_on(index)
            for each, tally in zip(seen.contributions, topology.tallies, strict=True)
        ):
            return
        seen.summed = info.version
        old = seen.contributions or (None,) * len(topology.tallies)
        new = [tally.contribution(info) for tally in topology.tallies]
        for tally, before, after in zip(topology.tallies, old, new, strict=True):
            if before != after:
                tally.change(before, after)
                if tally.is_by_host:
                    hosts.update(each[0] for each in (before, after) if each is not None)
        seen.contributions = new
        if topology.by_host:
            self._set_host(index, seen, info)

    def _set_host(self, index: int, seen: _NodeRecord, info: NodeInfo) -> None:
        host = None if info.node is None else info.node.metadata.labels.get(self.topology.by_host[0].key)
        if host != seen.host:
            if seen.host is not None:
                self._hosts[seen.host].discard(index)
            if host is not None:
                self._hosts.setdefault(host, set()).add(index)
            seen.host = host

    def _check(self, info: NodeInfo) -> None:
        """Compute the rejection or the score of a node by its own state."""
        seen = self._seen[info.index]
        assert seen is not None
        demand = self.demand
        if seen.version != info.version:
            seen.version = info.version
            seen.by_node = rejected_by_node(demand, info)
            seen.dislike = dislike(demand, info)
            seen.preference = preference(demand, info)
        rejection = seen.by_node
        if rejection is None:
            rejection = rejected_by_contents(demand, info)
        if seen.rejection is not None:
            self._count(seen.rejection, -1)
        if info.node is None:
            seen.rejection = None
            self._remove_from_group(info.index, seen)
            return
        seen.rejection = rejection
        if rejection is not None:
            self._remove_from_group(info.index, seen)
            self._count(rejection, 1)
            return
        score = contents_score(demand, info)
        if self._images is not None:
            score += image_score(demand, info, self._cluster)
        rescored = score != seen.score
        seen.score = score
        self._put_in_group(info, seen, rescored=rescored)

    def _count(self, rejection: Rejection, sign: int) -> None:
        self._rejections[rejection] += sign
        if not self._rejections[rejection]:
            del self._rejections[rejection]

    def _put_in_group(self, info: NodeInfo, seen: _NodeRecord, *, rescored: bool) -> None:
        """Put a node that is not rejected into its group, and into the group's heap."""
        key = seen.dislike, seen.preference, self.topology.describe(info)
        group = seen.group
        if group is None or group.key != key:
            if group is not None:
                self._remove_from_group(info.index, seen)
            group = self._groups.get(key)
            if group is None:
                group = self._groups[key] = _Group(key)
            group.members.add(info.index)
            seen.group = group
        elif not rescored:
            return
        seen.stamp += 1
        heappush(group.heap, (-seen.score, random.random(), info.index, seen.stamp))
        if len(group.heap) > 2 * len(group.members) + 64:
            group.heap = [each for each in group.heap if self._is_current(group, each)]
            heapify(group.heap)

    def _remove_from_group(self, index: int, seen: _NodeRecord) -> None:
        group = seen.group
        if group is None:
            return
        group.members.discard(index)
        if not group.members:
            del self._groups[group.key]
        seen.group = None

    def _is_current(self, group: _Group, entry: _Entry) -> bool:
        seen = self._seen[entry[2]]
        return seen is not None and seen.group is group and seen.stamp == entry[3]

    # Decisions

    @property
    def fitting(self) -> int:
        """Number of feasible nodes among those that were checked."""
        return sum(len(group.members) for group in self._groups.values() if self._group_rejection(group) is None)

    def choose(self, excluded: Mapping[int, Rejection]) -> Choice:
        """Return the best node, a random one of equals.

        `excluded` are nodes that are rejected for this pod, with the reason.
        """
        rejections: Counter[Rejection] = Counter()
        feasible = self._feasible(excluded, rejections)
        if not feasible:
            return Choice(None, 0, self._rejections + rejections)
        best: tuple[int, float, int] | None = None
        for (group, _), score in zip(feasible, self._scores(feasible), strict=True):
            entry = self._best(group, excluded)
            candidate = score - entry[0], entry[1], entry[2]
            if best is None or candidate > best:
                best = candidate
        assert best is not None
        return Choice(best[2], sum(count for _, count in feasible), rejections)

    def _feasible(
        self, excluded: Mapping[int, Rejection], rejections: Counter[Rejection]
    ) -> Sequence[tuple[_Group, int]]:
        """Return the feasible groups with their numbers of nodes that are not excluded, and count the rejections of all
        other candidates.
        """
        left_out: Counter[_Group] = Counter()
        for index, rejection in excluded.items():
            group = self._group_of(index)
            if group is not None:
                left_out[group] += 1
                rejections[rejection] += 1
        feasible: list[tuple[_Group, int]] = []
        for group in self._groups.values():
            count = len(group.members) - left_out[group]
            against = self._group_rejection(group)
            if against is None:
                if count:
                    feasible.append((group, count))
            elif count:
                rejections[against] += count
        return feasible

    def _group_of(self, index: int) -> _Group | None:
        seen = self._seen[index] if index < len(self._seen) else None
        return None if seen is None else seen.group

    def _group_rejection(self, group: _Group) -> Rejection | None:
        topology = self.topology
        return None if topology.is_trivial else topology.rejection(group.key[2])

    def _scores(self, feasible: Sequence[tuple[_Group, int]]) -> Sequence[int]:
        """Return the scores of groups for what is relative to other groups."""
        if len(feasible) == 1:  # nothing to compare with
            return (0,)
        return [sum(each) for each in zip(*self._scores_by_plugin(feasible).values(), strict=True)]

    def _scores_by_plugin(self, feasible: Sequence[tuple[_Group, int]]) -> dict[str, Sequence[int]]:
        most_disliked = max(group.key[0] for group, _ in feasible)
        most_preferred = max(group.key[1] for group, _ in feasible)
        taints, affinity = [], []
        for group, _ in feasible:
            disliked, preferred, _ = group.key
            liked = MAX_SCORE - (MAX_SCORE * disliked // most_disliked if most_disliked else 0)
            taints.append(TAINT_WEIGHT * liked)
            affinity.append(AFFINITY_WEIGHT * (MAX_SCORE * preferred // most_preferred if most_preferred else 0))
        scores: dict[str, Sequence[int]] = {TAINT_TOLERATION: taints, NODE_AFFINITY: affinity}
        if not self.topology.is_trivial:
            scores |= self.topology.scores([(group.key[2], count) for group, count in feasible])
        return scores

    def scores(self, excluded: Mapping[int, Rejection]) -> dict[int, dict[str, int]]:
        """Return the weighted scores of all feasible nodes by plugin; their sums are the scores that `choose`
        compares.
        """
        feasible = self._feasible(excluded, Counter())
        if not feasible:
            return {}
        relative = self._scores_by_plugin(feasible)
        found: dict[int, dict[str, int]] = {}
        for number, (group, _) in enumerate(feasible):
            of_group = {plugin: scores[number] for plugin, scores in relative.items()}
            for index in group.members - excluded.keys():
                info = self._cluster.nodes[index]
                found[index] = {
                    NODE_RESOURCES_FIT: least_allocated_score(self.demand, info),
                    BALANCED_ALLOCATION: balanced_score(self.demand, info),
                    IMAGE_LOCALITY: 0 if self._images is None else image_score(self.demand, info, self._cluster),
                    **of_group,
                }
        return found

    def _best(self, group: _Group, excluded: Mapping[int, Rejection]) -> _Entry:
        """Return the entry of the best node of a group that is not excluded, and drop stale entries."""
        heap = group.heap
        aside: list[_Entry] = []
        while True:
            entry = heap[0]
            if not self._is_current(group, entry):
                heappop(heap)
            elif entry[2] in excluded:
                aside.append(heappop(heap))
            else:
                break
        for each in aside:
            heappush(heap, each)
        return entry

    def candidates(self, *, fitting: bool = False) -> Iterator[int]:
        """Yield the nodes that are not rejected for their own state; with `fitting`, not for other pods' positions
        either.
        """
        for group in self._groups.values():
            if not fitting or self._group_rejection(group) is None:
                yield from group.members

    def is_candidate(self, index: int) -> bool:
        """Return True if a node is not rejected for its own state."""
        return self._group_of(index) is not None

    def resolvable(self, excluded: Mapping[int, Rejection]) -> Iterator[int]:
        """Yield the rejected nodes that might fit once other pods are deleted."""
        for index, seen in enumerate(self._seen):
            if seen is None or self._cluster.nodes[index].node is None:
                continue
            rejection = seen.rejection or excluded.get(index)
            if rejection is None and seen.group is not None:
                rejection = self._group_rejection(seen.group)
            if rejection is not None and rejection.resolvable:
                yield index
