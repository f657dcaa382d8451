"""Cache of the rankings of recent demands."""

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
"""Nodes that are checked between two checks of the clock."""
NODES_REMEMBERED: Final = 1_000_000
"""Nodes in all rankings together; the results for one node take about 400 bytes."""
_RANKINGS: Final = 1024
LEAST_RANKINGS: Final = 16
_IN_USE: Final = 4
"""A ranking is in use if it was requested within this number of decisions times the number of rankings."""
_TRIES: Final = 3
"""Attempts to rank all nodes for a heavy demand before too much has changed."""
_SEEN: Final = 16_384
"""Keys of demands that are remembered as seen."""
_ALL_LOOKED_AT: Final = 100
"""Nodes of a cluster in which all nodes are always checked."""
_LEAST_PERCENT: Final = 5


def enough_nodes(nodes: int) -> int:
    """Return the number of feasible nodes that is enough to choose from, where each has to be checked
    (numFeasibleNodesToFind).
    """
    if nodes < _ALL_LOOKED_AT:
        return nodes
    percent = max(50 - nodes // 125, _LEAST_PERCENT)
    return max(nodes * percent // 100, _ALL_LOOKED_AT)


class TooManyChanges(Exception):
    """Too much has changed while a heavy demand was compared with the nodes; the pod is retried later."""


class Rankings:
    """Rankings by demand.

    A ranking is kept from the second pod with its demand on, as the first may be the only one.
    """

    def __init__(self, cluster: ClusterState) -> None:
        self._cluster = cluster
        self._rankings: OrderedDict[bytes, Ranking] = OrderedDict()
        self._seen: BoundedSet[bytes] = BoundedSet(_SEEN)
        self._decisions = 0
        self._used: dict[bytes, int] = {}
        """Number of the decision that requested each ranking last, by the demand's key."""
        self._heavy: Topology | None = None
        self._next_node = 0
        """Node at which the next search for enough nodes starts, so that all nodes have the same chance."""

    async def current(self, demand: Demand) -> Ranking:
        """Return a ranking in which all nodes are current, or enough of them to choose from."""
        self._decisions += 1
        found = self._rankings.get(demand.key)
        if found is not None:
            self._rankings.move_to_end(demand.key)
            self._used[demand.key] = self._decisions
            if not found.is_outdated and await self._refresh_changed(found):
                return found
            self._forget(demand.key)
        if demand.is_heavy:
            return await self._heavy_ranking(demand)
        if demand.named_nodes is not None:
            return await self._ranking_of_named(demand, demand.named_nodes)
        if self._cluster.size > _ALL_LOOKED_AT and not (self._is_known(demand.key) and self._has_room()):
            return await self._ranking_of_enough(demand)
        return await self._ranking_of_all(demand)

    async def complete(self, demand: Demand) -> Ranking:
        """Return a ranking in which all nodes that the demand may name are current; nothing is kept of it."""
        if demand.named_nodes is not None:
            return await self._ranking_of_named(demand, demand.named_nodes)
        return await self._current_ranking_of_all(demand)

    def _ranking(self, demand: Demand) -> Ranking:
        topology = Topology(demand, self._cluster)
        for _ in topology.fill():
            pass
        return Ranking(demand, self._cluster, topology)

    async def _heavy_ranking(self, demand: Demand) -> Ranking:
        """Return a ranking for one decision on a heavy demand, made in time slices between decisions on other pods.

        Raises Unsteady if relevant pods change faster than that.
        """
        time_slice = TimeSlice()
        for _ in range(_TRIES):
            await self.free_heavy()
            self._heavy = topology = Topology(demand, self._cluster)
            for _ in topology.fill(without_empty=True):
                await time_slice.pause_if_over()
            ranking = Ranking(demand, self._cluster, topology)
            if await self.check_nodes(ranking, range(len(self._cluster.nodes)), time_slice) and topology.is_complete:
                return ranking
        raise TooManyChanges

    async def free_heavy(self) -> None:
        """Free the results for the last heavy demand."""
        topology, self._heavy = self._heavy, None
        if topology is not None:
            time_slice = TimeSlice()
            for _ in topology.empty():
                await time_slice.pause_if_over()

    async def check_nodes(self, ranking: Ranking, indices: Iterable[int], time_slice: TimeSlice) -> bool:
        """Check nodes one by one, and those that change meanwhile again.

        Return False if the changes are not known any more.
        """
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

    async def _refresh_changed(self, ranking: Ranking) -> bool:
        """Check the nodes that have changed. Return False if the changes are not known any more."""
        changes = self._cluster.changes
        while ranking.position != changes.end:
            changed = changes.since(ranking.position)
            if changed is None:
                return False
            ranking.position = changes.end
            await _in_slices(ranking.refresh, changed)
        changes.trim(4 * len(self._cluster.nodes) + 1024)
        return True

    async def _ranking_of_all(self, demand: Demand) -> Ranking:
        ranking = await self._current_ranking_of_all(demand)
        self._rankings[demand.key] = ranking
        self._used[demand.key] = self._decisions
        while len(self._rankings) > self._max_rankings():
            self._forget(next(iter(self._rankings)))
        return ranking

    async def _current_ranking_of_all(self, demand: Demand) -> Ranking:
        while True:
            ranking = self._ranking(demand)
            await _in_slices(ranking.refresh, range(len(self._cluster.nodes)))
            if await self._refresh_changed(ranking):
                return ranking

    def _max_rankings(self) -> int:
        """Return the number of rankings that are kept."""
        return max(min(_RANKINGS, NODES_REMEMBERED // max(self._cluster.size, 1)), LEAST_RANKINGS)

    def _has_room(self) -> bool:
        """Return True if another ranking may be kept: there is space, or the oldest ranking is not in use.

        If more demands are in use than can be kept, the kept ones stay, as replacing rankings in rotation is the worst
        case.
        """
        most = self._max_rankings()
        if len(self._rankings) < most:
            return True
        oldest = next(iter(self._rankings))
        return self._decisions - self._used[oldest] > _IN_USE * most

    def _forget(self, key: bytes) -> None:
        del self._rankings[key]
        del self._used[key]

    async def _ranking_of_named(self, demand: Demand, names: Iterable[str]) -> Ranking:
        ranking = self._ranking(demand)
        if not ranking.topology.is_trivial:
            await _in_slices(ranking.sum_up, range(len(self._cluster.nodes)))
        nodes = (self._cluster.node(name) for name in names)
        ranking.refresh([info.index for info in nodes if info is not None])
        return ranking

    async def _ranking_of_enough(self, demand: Demand) -> Ranking:
        """Return a ranking of some nodes, checked from where the last such search ended, until enough are feasible."""
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
        if looked_at == count and not await self._refresh_changed(ranking):
            return await self._ranking_of_all(demand)
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
