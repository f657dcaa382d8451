"""The nodes that a demand fits on, best first, remembered from pod to pod.

Nodes are put into groups in which all that has to be weighed against other nodes is the same: taints that are
disliked, labels that are preferred, and what other pods say. Within a group the order is that of what each node says of
itself, in a heap. A pod is then decided by a look at the groups and the best node of each; and only nodes that have
changed since the last pod are looked at again.
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
    MAX_SCORE,
    contents_score,
    dislike,
    image_score,
    image_state,
    preference,
    rejected_by_contents,
    rejected_by_node,
)
from steersman.scheduler.fit.status import Rejection
from steersman.scheduler.fit.tally import Contribution
from steersman.scheduler.fit.topology import Description, Topology
from steersman.scheduler.state.cluster import ClusterState
from steersman.scheduler.state.node_info import NodeInfo

_TAINT_WEIGHT: Final = 3
_AFFINITY_WEIGHT: Final = 2

Key = tuple[int, int, Description]
"""Of a group: taints disliked, weight of labels preferred, and what other pods say."""


_Entry = tuple[int, float, int, int]
"""Score (negative), chance, index of the node, and stamp: an entry whose stamp is old counts no more."""


class _Group(Struct, eq=False):
    key: Key
    members: set[int] = field(default_factory=set)
    heap: list[_Entry] = field(default_factory=list)


class _Seen(Struct):
    """What was found out about a node."""

    version: int = -1
    """Of the node itself, for which the next three were found."""
    by_node: Rejection | None = None
    dislike: int = 0
    preference: int = 0
    rejection: Rejection | None = None
    """What is said against it as far as it alone matters."""
    score: int = 0
    group: _Group | None = None
    stamp: int = 0
    summed: int = -1
    """The version of the node for which it contributes what it does."""
    contributions: Sequence[Contribution | None] = ()
    host: str | None = None


class Choice(Struct, frozen=True):
    """The node that is best, and how many would do (or, without a node, why none does)."""

    index: int | None
    feasible: int
    rejections: Counter[Rejection]


class Ranking:
    """Call `refresh` with the nodes that have changed, then `choose`."""

    def __init__(self, demand: Demand, cluster: ClusterState, topology: Topology) -> None:
        """`topology` is filled."""
        self.demand: Final = demand
        self.position = cluster.changes.end
        """How far the log of changes is read."""
        self._cluster = cluster
        self.topology = topology
        self._seen: list[_Seen | None] = []
        self._groups: dict[Key, _Group] = {}
        self._rejections: Counter[Rejection] = Counter()
        self._hosts: dict[str, set[int]] = {}
        self._images = image_state(demand, cluster)

    @property
    def is_outdated(self) -> bool:
        """Whether every node has to be looked at anew: images have come or gone."""
        return bool(self.demand.images) and image_state(self.demand, self._cluster) != self._images

    def refresh(self, indices: Iterable[int]) -> None:
        """Looks at nodes again."""
        nodes = self._cluster.nodes
        missing = len(nodes) - len(self._seen)
        if missing > 0:
            self._seen.extend([None] * missing)
        hosts: set[str] = set()
        some = list(indices)
        for index in some:
            self._sum_up(index, hosts)
        for index in some:
            self._judge(nodes[index])
        for host in hosts:
            for index in self._hosts.get(host, ()):
                seen = self._seen[index]
                if seen is not None and seen.group is not None:
                    self._place(nodes[index], seen, rescored=False)

    def sum_up(self, indices: Iterable[int]) -> None:
        """Takes nodes into account without judging them."""
        self._seen.extend([None] * (len(self._cluster.nodes) - len(self._seen)))
        for index in indices:
            self._sum_up(index, set())

    def _sum_up(self, index: int, hosts: set[str]) -> None:
        seen = self._seen[index]
        if seen is None:
            seen = self._seen[index] = _Seen()
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

    def _set_host(self, index: int, seen: _Seen, info: NodeInfo) -> None:
        host = None if info.node is None else info.node.metadata.labels.get(self.topology.by_host[0].key)
        if host != seen.host:
            if seen.host is not None:
                self._hosts[seen.host].discard(index)
            if host is not None:
                self._hosts.setdefault(host, set()).add(index)
            seen.host = host

    def _judge(self, info: NodeInfo) -> None:
        """Finds out what the node itself says."""
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
            self._take_out(info.index, seen)
            return
        seen.rejection = rejection
        if rejection is not None:
            self._take_out(info.index, seen)
            self._count(rejection, 1)
            return
        score = contents_score(demand, info)
        if self._images is not None:
            score += image_score(demand, info, self._cluster)
        rescored = score != seen.score
        seen.score = score
        self._place(info, seen, rescored=rescored)

    def _count(self, rejection: Rejection, sign: int) -> None:
        self._rejections[rejection] += sign
        if not self._rejections[rejection]:
            del self._rejections[rejection]

    def _place(self, info: NodeInfo, seen: _Seen, *, rescored: bool) -> None:
        """Puts a node that is not rejected into its group, and into the order there."""
        key = seen.dislike, seen.preference, self.topology.describe(info)
        group = seen.group
        if group is None or group.key != key:
            if group is not None:
                self._take_out(info.index, seen)
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
            group.heap = [each for each in group.heap if self._counts(group, each)]
            heapify(group.heap)

    def _take_out(self, index: int, seen: _Seen) -> None:
        group = seen.group
        if group is None:
            return
        group.members.discard(index)
        if not group.members:
            del self._groups[group.key]
        seen.group = None

    def _counts(self, group: _Group, entry: _Entry) -> bool:
        seen = self._seen[entry[2]]
        return seen is not None and seen.group is group and seen.stamp == entry[3]

    # decisions

    @property
    def fitting(self) -> int:
        """How many of the nodes that were looked at do."""
        return sum(len(group.members) for group in self._groups.values() if self._against(group) is None)

    def choose(self, excluded: Mapping[int, Rejection]) -> Choice:
        """The best node, of equals any; `excluded` are nodes that do not do now, and why."""
        left_out: Counter[_Group] = Counter()
        rejections: Counter[Rejection] = Counter()
        for index, rejection in excluded.items():
            group = self._group_of(index)
            if group is not None:
                left_out[group] += 1
                rejections[rejection] += 1
        feasible: list[tuple[_Group, int]] = []
        for group in self._groups.values():
            count = len(group.members) - left_out[group]
            against = self._against(group)
            if against is None:
                if count:
                    feasible.append((group, count))
            elif count:
                rejections[against] += count
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

    def _group_of(self, index: int) -> _Group | None:
        seen = self._seen[index] if index < len(self._seen) else None
        return None if seen is None else seen.group

    def _against(self, group: _Group) -> Rejection | None:
        topology = self.topology
        return None if topology.is_trivial else topology.rejection(group.key[2])

    def _scores(self, feasible: Sequence[tuple[_Group, int]]) -> Sequence[int]:
        """What groups have more or less than others by what has to be weighed against them."""
        most_disliked = max(group.key[0] for group, _ in feasible)
        most_preferred = max(group.key[1] for group, _ in feasible)
        totals = []
        for group, _ in feasible:
            disliked, preferred, _ = group.key
            taints = MAX_SCORE - (MAX_SCORE * disliked // most_disliked if most_disliked else 0)
            affinity = MAX_SCORE * preferred // most_preferred if most_preferred else 0
            totals.append(_TAINT_WEIGHT * taints + _AFFINITY_WEIGHT * affinity)
        if not self.topology.is_trivial:
            more = self.topology.scores([(group.key[2], count) for group, count in feasible])
            totals = [total + each for total, each in zip(totals, more, strict=True)]
        return totals

    def _best(self, group: _Group, excluded: Mapping[int, Rejection]) -> _Entry:
        """The best node of a group that has one; entries that count no more are dropped."""
        heap = group.heap
        aside: list[_Entry] = []
        while True:
            entry = heap[0]
            if not self._counts(group, entry):
                heappop(heap)
            elif entry[2] in excluded:
                aside.append(heappop(heap))
            else:
                break
        for each in aside:
            heappush(heap, each)
        return entry

    def candidates(self, *, fitting: bool = False) -> Iterator[int]:
        """Nodes that are not rejected for what they themselves are and hold; if `fitting`, for nothing else either."""
        for group in self._groups.values():
            if not fitting or self._against(group) is None:
                yield from group.members

    def is_candidate(self, index: int) -> bool:
        """Whether a node is one of those."""
        return self._group_of(index) is not None

    def resolvable(self, excluded: Mapping[int, Rejection]) -> Iterator[int]:
        """Nodes on which there may be room once other pods are deleted."""
        for index, seen in enumerate(self._seen):
            if seen is None or self._cluster.nodes[index].node is None:
                continue
            rejection = seen.rejection or excluded.get(index)
            if rejection is None and seen.group is not None:
                rejection = self._against(seen.group)
            if rejection is not None and rejection.resolvable:
                yield index
