"""The rankings of the demands that were seen last."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Final

from steersman.scheduler.demand.demand import Demand
from steersman.scheduler.fit.ranking import Ranking
from steersman.scheduler.fit.topology import Topology
from steersman.scheduler.state.cluster import ClusterState
from steersman.work.bounded_cache import BoundedSet
from steersman.work.yielding import TimeSlice

_SLICE: Final = 256
"""Nodes that are looked at between two looks at the clock."""
_NODES_REMEMBERED: Final = 1_000_000
"""In all rankings together: what is remembered of a node takes some 400 bytes."""
_RANKINGS: Final = 1024
_LEAST_RANKINGS: Final = 16
_IN_USE: Final = 4
"""A ranking is in use that was asked for within so many decisions a ranking."""
_TRIES: Final = 3
_SEEN: Final = 16_384
_ALL_LOOKED_AT: Final = 100
_LEAST_PERCENT: Final = 5


def enough_nodes(nodes: int) -> int:
    """How many nodes that do are enough to choose from, where each has to be looked at (numFeasibleNodesToFind)."""
    if nodes < _ALL_LOOKED_AT:
        return nodes
    percent = max(50 - nodes // 125, _LEAST_PERCENT)
    return max(nodes * percent // 100, _ALL_LOOKED_AT)


class Unsteady(Exception):
    """Too much has changed while a heavy demand was held against the nodes: it is to be tried again later."""


class Rankings:
    """A ranking is remembered from the second pod with a demand on: the first may be the only one."""

    def __init__(self, cluster: ClusterState) -> None:
        self._cluster = cluster
        self._rankings: OrderedDict[bytes, Ranking] = OrderedDict()
        self._seen: BoundedSet[bytes] = BoundedSet(_SEEN)
        self._decisions = 0
        self._used: dict[bytes, int] = {}
        """At which decision each ranking was asked for last."""
        self._heavy: Topology | None = None
        self._next_node = 0
        """Where the search for enough nodes goes on, so that all have the same chance."""

    async def current(self, demand: Demand) -> Ranking:
        """A ranking in which all nodes are as they are now, or enough of them to choose from."""
        self._decisions += 1
        found = self._rankings.get(demand.key)
        if found is not None:
            self._rankings.move_to_end(demand.key)
            self._used[demand.key] = self._decisions
            if not found.is_outdated and await self._catch_up(found):
                return found
            self._forget(demand.key)
        if demand.is_heavy:
            return await self._of_heavy(demand)
        if demand.named_nodes is not None:
            return await self._of_some(demand, demand.named_nodes)
        if self._cluster.size > _ALL_LOOKED_AT and not (self._is_known(demand.key) and self._has_room()):
            return await self._of_enough(demand)
        return await self._of_all(demand)

    def _ranking(self, demand: Demand) -> Ranking:
        topology = Topology(demand, self._cluster)
        for _ in topology.fill():
            pass
        return Ranking(demand, self._cluster, topology)

    async def _of_heavy(self, demand: Demand) -> Ranking:
        """For one decision, which takes long: in steps, so that others are decided meanwhile. Raises Unsteady where the
        pods that matter come faster than that."""
        time_slice = TimeSlice()
        for _ in range(_TRIES):
            await self.let_go()
            self._heavy = topology = Topology(demand, self._cluster)
            for _ in topology.fill(without_empty=True):
                await time_slice.pause_if_over()
            ranking = Ranking(demand, self._cluster, topology)
            if await self._look(ranking, range(len(self._cluster.nodes)), time_slice) and topology.nothing_is_missing:
                return ranking
        raise Unsteady

    async def let_go(self) -> None:
        """Lets go of what was found out for the last heavy demand."""
        topology, self._heavy = self._heavy, None
        if topology is not None:
            time_slice = TimeSlice()
            for _ in topology.empty():
                await time_slice.pause_if_over()

    async def _look(self, ranking: Ranking, indices: Iterable[int], time_slice: TimeSlice) -> bool:
        """Looks at nodes one by one, and at those that change meanwhile; False if it is not known which do."""
        names, changes = ranking.demand.named_nodes, self._cluster.changes
        while True:
            for index in indices:
                if names is None or self._cluster.nodes[index].name in names:
                    ranking.refresh((index,))
                else:
                    ranking.sum_up((index,))
                await time_slice.pause_if_over()
            if ranking.position == changes.end:
                return True
            changed = changes.since(ranking.position)
            if changed is None:
                return False
            ranking.position, indices = changes.end, changed

    async def _catch_up(self, ranking: Ranking) -> bool:
        """Looks at what has changed; False if that is not known any more."""
        changes = self._cluster.changes
        while ranking.position != changes.end:
            changed = changes.since(ranking.position)
            if changed is None:
                return False
            ranking.position = changes.end
            await _in_slices(ranking.refresh, changed)
        changes.trim(4 * len(self._cluster.nodes) + 1024)
        return True

    async def _of_all(self, demand: Demand) -> Ranking:
        while True:
            ranking = self._ranking(demand)
            await _in_slices(ranking.refresh, range(len(self._cluster.nodes)))
            if await self._catch_up(ranking):
                break
        self._rankings[demand.key] = ranking
        self._used[demand.key] = self._decisions
        while len(self._rankings) > self._most():
            self._forget(next(iter(self._rankings)))
        return ranking

    def _most(self) -> int:
        """How many rankings are kept."""
        return max(min(_RANKINGS, _NODES_REMEMBERED // max(self._cluster.size, 1)), _LEAST_RANKINGS)

    def _has_room(self) -> bool:
        """Whether another may be kept: there is a place, or one whose ranking is not in use. Where more demands are in
        use than there are places, those that have one keep it, as making rankings in turns is the worst of all."""
        most = self._most()
        if len(self._rankings) < most:
            return True
        oldest = next(iter(self._rankings))
        return self._decisions - self._used[oldest] > _IN_USE * most

    def _forget(self, key: bytes) -> None:
        del self._rankings[key]
        del self._used[key]

    async def _of_some(self, demand: Demand, names: Iterable[str]) -> Ranking:
        ranking = self._ranking(demand)
        if not ranking.topology.is_trivial:
            await _in_slices(ranking.sum_up, range(len(self._cluster.nodes)))
        nodes = (self._cluster.node(name) for name in names)
        ranking.refresh([info.index for info in nodes if info is not None])
        return ranking

    async def _of_enough(self, demand: Demand) -> Ranking:
        """Looks at nodes, beginning where the last such search ended, until enough do."""
        count = len(self._cluster.nodes)
        ranking = self._ranking(demand)
        if not ranking.topology.is_trivial:
            await _in_slices(ranking.sum_up, range(count))
        enough = enough_nodes(self._cluster.size)
        start = self._next_node % count
        order = iter([*range(start, count), *range(start)])
        looked_at = 0
        time_slice = TimeSlice()
        while some := list(islice(order, _SLICE)):
            ranking.refresh(some)
            looked_at += len(some)
            if ranking.fitting >= enough:
                break
            await time_slice.pause_if_over()
        self._next_node = (start + looked_at) % count
        if looked_at == count and not await self._catch_up(ranking):
            return await self._of_all(demand)
        return ranking

    def _is_known(self, key: bytes) -> bool:
        known = self._seen.has(key)
        if not known:
            self._seen.keep(key)
        return known


async def _in_slices(refresh: Callable[[Iterable[int]], None], indices: Iterable[int]) -> None:
    every = iter(indices)
    time_slice = TimeSlice()
    while some := list(islice(every, _SLICE)):
        refresh(some)
        await time_slice.pause_if_over()
