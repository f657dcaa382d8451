"""Controller of the kubelets' cache lifetime for secrets and ConfigMaps, which grows with the cluster
(pkg/controller/ttl).
"""

from __future__ import annotations

from typing import Final

from steersman.api.core.v1 import Node
from steersman.client.client import STRATEGIC_MERGE_PATCH
from steersman.client.errors import ignoring, is_not_found
from steersman.client.resources import NODES
from steersman.controllers.controller import Controller, ControllerDependencies

ANNOTATION: Final = "node.alpha.kubernetes.io/ttl"
STEPS: Final = ((0, 100, 0), (90, 500, 15), (450, 1000, 30), (900, 2000, 60), (1800, 1 << 31, 300))
"""Fewest nodes, most nodes, and lifetime in seconds of each step.

The ranges overlap, so that a single node that comes and goes does not change the lifetime of all nodes.
"""


class TTLController(Controller[str]):
    """Annotates nodes with the lifetime. A key is the name of a node.

    When the step changes, a node gets the new value with its next change: each node changes every few minutes.
    """

    name = "ttl-controller"
    account = "ttl-controller"

    def __init__(self, dependencies: ControllerDependencies) -> None:
        super().__init__(dependencies)
        self._count = 0
        self._step = 0
        self._nodes = self.informers.for_resource(NODES)
        self._nodes.on_change(self._changed)

    def _changed(self, old: Node | None, new: Node | None) -> None:
        self._count += (new is not None) - (old is not None)
        self._step = next_step(self._step, self._count)
        if new is not None:
            self.queue.add(new.metadata.name)

    async def sync(self, key: str) -> None:
        node = self._nodes.get("", key)
        desired = str(STEPS[self._step][2])
        if node is None or node.metadata.annotations.get(ANNOTATION) == desired:
            return
        change = {"metadata": {"annotations": {ANNOTATION: desired}}}
        with ignoring(is_not_found):
            await self.client.patch(NODES, key, "", change, media=STRATEGIC_MERGE_PATCH)


def next_step(step: int, count: int) -> int:
    """Return the step for `count` nodes, after `step` for one node more or fewer."""
    least, most, _ = STEPS[step]
    return step + (count > most) - (count < least)


def lifetime_of(count: int) -> int:
    """Return the lifetime in seconds of a cluster whose number of nodes has grown to `count`."""
    return next(lifetime for _, most, lifetime in STEPS if count <= most)
