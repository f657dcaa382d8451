"""Tallies: sums by topology domain, the nodes that share a label's value, such as the number of selected pods.

A tally is updated node by node: when a node has changed, its old contribution is subtracted and the new one added.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Final

from steersman.scheduler.demand.spread import HOSTNAME
from steersman.scheduler.state.node_info import NodeInfo, PodInfo

Contribution = tuple[str, int]
"""Topology domain of a node, and the amount that the node adds there."""


class Tally:
    """Amounts by the value of a node label.

    `amounts` has the amounts by the node's index. `eligible` returns True for nodes that count. `of_pod` returns the
    amount of a single pod, for pods that are added or removed hypothetically.
    """

    __slots__ = ("_amounts", "_domains", "_eligible", "_with_amount", "is_by_host", "key", "of_pod", "slot", "sums")

    def __init__(
        self,
        key: str,
        amounts: Mapping[int, int],
        of_pod: Callable[[PodInfo], int],
        eligible: Callable[[NodeInfo], bool] | None = None,
    ) -> None:
        self.key: Final = key
        self.is_by_host: Final = key == HOSTNAME
        self.slot = 0
        """Index of the domain (or, by host, of the amount) in the description of a group of nodes."""
        self.of_pod: Final = of_pod
        self.sums: dict[str, int] = {}
        self._amounts = amounts
        self._eligible = eligible
        self._domains: Counter[str] = Counter()
        self._with_amount: Counter[int] = Counter()

    @property
    def is_empty(self) -> bool:
        """True if no node has an amount."""
        return not self._amounts

    def contribution(self, info: NodeInfo) -> Contribution | None:
        """Return the domain and amount of a node; None if the node does not count."""
        node = info.node
        if node is None:
            return None
        value = node.metadata.labels.get(self.key)
        if value is None or (self._eligible is not None and not self._eligible(info)):
            return None
        return value, self._amounts.get(info.index, 0)

    def amount_on(self, index: int) -> int:
        """Return the current amount of a node, regardless of eligibility."""
        return self._amounts.get(index, 0)

    def change(self, old: Contribution | None, new: Contribution | None) -> None:
        """Replace a node's contribution."""
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
        """Number of domains with nodes that count."""
        return len(self._domains)

    def least(self) -> int:
        """Return the smallest amount of any domain."""
        return min(self._with_amount, default=0)

    def least_but(self, domain: str, amount: int) -> int:
        """Return the smallest amount of any domain if the amount of one of them were different."""
        others = self._with_amount.copy()
        if domain in self._domains:
            old = self.sums[domain]
            others[old] -= 1
            if not others[old]:
                del others[old]
        others[amount] += 1
        return min(others)

    def is_nowhere(self) -> bool:
        """Return True if all amounts are zero."""
        return not any(self._with_amount)

    def is_nowhere_but(self, domain: str, amount: int) -> bool:
        """Return True if all amounts are zero when one domain has the given amount instead."""
        somewhere = sum(count for each, count in self._with_amount.items() if each)
        return not amount and somewhere == bool(self.sums.get(domain))
