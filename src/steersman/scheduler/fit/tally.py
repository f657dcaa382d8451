"""Sums over parts of the cluster: how many pods of a kind are on the nodes that share a label's value.

A tally is kept up node by node: when a node has changed, its old contribution is taken off and its new one put on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Final

from steersman.scheduler.demand.spread import HOSTNAME
from steersman.scheduler.state.node_info import NodeInfo, PodInfo

Contribution = tuple[str, int]
"""The part of the cluster that a node is in, and what it adds there."""


class Tally:
    """Amounts by the value of a label of nodes.

    `amounts` has them by the node's index; `eligible` says whether a node counts. `of_pods` says what pods would amount
    to on a node: it is asked where pods are thought away, or added.
    """

    __slots__ = ("_amounts", "_domains", "_eligible", "_with_amount", "is_by_host", "key", "of_pod", "place", "sums")

    def __init__(
        self,
        key: str,
        amounts: Mapping[int, int],
        of_pod: Callable[[PodInfo], int],
        eligible: Callable[[NodeInfo], bool] | None = None,
    ) -> None:
        self.key: Final = key
        self.is_by_host: Final = key == HOSTNAME
        self.place = 0
        """Where the part (or, by host, the amount) stands in the description of a group of nodes."""
        self.of_pod: Final = of_pod
        self.sums: dict[str, int] = {}
        self._amounts = amounts
        self._eligible = eligible
        self._domains: Counter[str] = Counter()
        self._with_amount: Counter[int] = Counter()

    @property
    def is_empty(self) -> bool:
        """Whether no node amounts to anything."""
        return not self._amounts

    def contribution(self, info: NodeInfo) -> Contribution | None:
        """What a node adds, and where; None if it does not count."""
        node = info.node
        if node is None:
            return None
        value = node.metadata.labels.get(self.key)
        if value is None or (self._eligible is not None and not self._eligible(info)):
            return None
        return value, self._amounts.get(info.index, 0)

    def amount_on(self, index: int) -> int:
        """What a node adds now, if it counts."""
        return self._amounts.get(index, 0)

    def change(self, old: Contribution | None, new: Contribution | None) -> None:
        """A node's contribution is another."""
        if old is not None:
            self._add(old[0], -old[1], -1)
        if new is not None:
            self._add(new[0], new[1], 1)

    def _add(self, domain: str, amount: int, nodes: int) -> None:
        was = self._domains.get(domain, 0)
        before = self.sums.get(domain, 0)
        if was:
            self._with_amount[before] -= 1
            if not self._with_amount[before]:
                del self._with_amount[before]
        if was + nodes:
            self._domains[domain] = was + nodes
            self.sums[domain] = before + amount
            self._with_amount[before + amount] += 1
        else:
            self._domains.pop(domain, None)
            self.sums.pop(domain, None)

    @property
    def domains(self) -> int:
        """How many parts there are that have nodes that count."""
        return len(self._domains)

    def least(self) -> int:
        """The smallest amount of any part."""
        return min(self._with_amount, default=0)

    def least_but(self, domain: str, amount: int) -> int:
        """The smallest amount of any part, were it another in one of them."""
        others = self._with_amount.copy()
        if domain in self._domains:
            old = self.sums[domain]
            others[old] -= 1
            if not others[old]:
                del others[old]
        others[amount] += 1
        return min(others)

    def is_nowhere(self) -> bool:
        """Whether there is nothing to count anywhere."""
        return not any(self._with_amount)

    def is_nowhere_but(self, domain: str, amount: int) -> bool:
        """The same, were it another amount in one part."""
        somewhere = sum(count for each, count in self._with_amount.items() if each)
        return not amount and somewhere == bool(self.sums.get(domain))
