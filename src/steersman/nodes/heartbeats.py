"""Heartbeats of simulated nodes: registration, renewal of leases, status reports."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable
from typing import Any, Final

from steersman.api.core.v1 import Node
from steersman.client.client import STRATEGIC_MERGE_PATCH, Client
from steersman.client.errors import is_already_exists, is_not_found
from steersman.client.informer import Informer
from steersman.client.resources import LEASES, NODES
from steersman.client.transport import Unreachable
from steersman.machinery.built_in.volumes import CONTROLLER_ATTACHES
from steersman.machinery.codec.serializer import to_plain
from steersman.machinery.errors.status import StatusError
from steersman.machinery.values import times
from steersman.machinery.values.conditions import find_condition
from steersman.nodes.node_set import NodeSet
from steersman.nodes.simulated_node import LEASE_SECONDS, LEASES_NAMESPACE, SimulatedNode
from steersman.work import simulated_time, upkeep

logger = logging.getLogger(__name__)

_FEW: Final = 1000
"""Nodes up to which leases have their usual duration."""
_LONGEST: Final = 80
"""Duration in seconds of leases of very many nodes. Each is renewed four times in that time, as kubelets do, and within
half of the grace period of the node lifecycle controller."""
_REPORT_EVERY: Final = 300.0
"""Seconds between two status reports of a node."""
_AT_ONCE: Final = 16
"""Nodes that register at the same time."""
_TRIES: Final = 5
"""Attempts at a renewal or a status report, one directly after the other, until the next heartbeat is due
(`maxUpdateRetries`, `nodeStatusUpdateRetry`)."""
_TOGETHER: Final = 0.2
"""Seconds for which due renewals wait for each other, to be sent together."""
_MOST_TOGETHER: Final = 100
"""Most overdue renewals that are sent together. Thousands would keep all other requests waiting, and would be sent for
nodes that are deleted meanwhile."""


def lease_seconds(nodes: int) -> int:
    """Return the duration of leases in seconds.

    It grows with the number of nodes, so that the write rate stays bounded.
    """
    return min(_LONGEST, max(LEASE_SECONDS, LEASE_SECONDS * nodes // _FEW))


class Heartbeats:
    """Heartbeats of all nodes. While `reports` returns False, something else reports the nodes' conditions."""

    def __init__(
        self, client: Client, node_objects: Informer[Node], nodes: NodeSet, *, reports: Callable[[], bool]
    ) -> None:
        self._client = client
        self._node_objects = node_objects
        self._nodes = nodes
        self._reports = reports
        self._reported: dict[str, float] = {}
        """Time of the last status report of each node, on the event loop's clock."""
        self._running = False
        """True while `run` sends heartbeats."""

    async def register_all(self) -> None:
        """Register all nodes, several at a time. Raises StatusError, Unreachable."""
        waiting = iter(tuple(self._nodes.values()))

        async def some() -> None:
            for node in waiting:
                await self._register(node)

        registering = [asyncio.create_task(some()) for _ in range(min(_AT_ONCE, len(self._nodes)))]
        try:
            await asyncio.gather(*registering)
        finally:
            for each in registering:
                each.cancel()

    async def _register(self, node: SimulatedNode) -> None:
        """Create the Node object, or use the existing one. Raises StatusError, Unreachable."""
        obj = node.node()
        if not self._reports():
            obj.status.conditions = []
        try:
            made = await self._client.create(NODES, obj)
        except StatusError as error:
            if not is_already_exists(error):
                raise
            made = await self._client.get(NODES, node.name)
            if missing := _missing_in(made, node):
                await self._client.patch_without_result(NODES, node.name, "", missing)
            await self._report(node, uses_volumes=False)
        self._reported[node.name] = simulated_time.time()
        node.uid = made.metadata.uid
        node.has_pulled(name for image in made.status.images for name in image.names or ())
        await self._begin_lease(node)

    async def join(self, node: SimulatedNode, obj: Node) -> None:
        """Complete a Node object that somebody else has created, and begin its heartbeats unless it is unreachable.

        A node that was ready as the cluster started sends its first ones in its turn of `run`: together they would
        delay the start. Raises StatusError, Unreachable.
        """
        node.has_pulled(name for image in obj.status.images for name in image.names or ())
        if node.unreachable:
            return
        if missing := _missing_in(obj, node):
            await self._client.patch_without_result(NODES, node.name, "", missing)
        if not self._running and _is_ready(obj):
            return
        await self._begin_lease(node)
        await self._report(node, obj, uses_volumes=False)
        self._reported[node.name] = simulated_time.time()

    def forget(self, name: str) -> None:
        """Forget a node that is no longer simulated."""
        self._reported.pop(name, None)

    async def run(self) -> None:
        """Renew the leases of all nodes for ever, spread evenly; renewals that are due soon after each other are sent
        together.

        Together they need few commits of the storage, which costs half as much as one by one.
        """
        self._running = True
        started_at = simulated_time.time()
        while True:
            nodes = tuple(self._nodes.values())
            every = lease_seconds(len(nodes)) / 4
            at_once = max(1, round(len(nodes) * _TOGETHER / every))
            done = 0
            while done < len(nodes):
                # On a slow event loop, send overdue renewals together: waiting for each group would lose more time.
                late = int((simulated_time.time() - started_at) / every * len(nodes))
                most = max(at_once, _MOST_TOGETHER)
                until = min(max(done + at_once, min(late, done + most)), len(nodes))
                await upkeep.sleep(started_at + every * until / len(nodes) - simulated_time.time())
                await asyncio.gather(*map(self.beat, nodes[done:until]))
                done = until
            if not nodes:
                await upkeep.sleep(every)
            started_at = max(started_at + every, simulated_time.time() - every)

    async def beat(self, node: SimulatedNode) -> None:
        """Renew the lease of a reachable node that is simulated, and report its status where that is due."""
        if node.unreachable or not self._has(node):
            return
        now = simulated_time.time
        due = now() - self._reported.get(node.name, -math.inf) >= _REPORT_EVERY or self._is_to_report(node)
        if await self.send(node, reports=due) and due:
            self._reported[node.name] = now()

    async def send(self, node: SimulatedNode, *, reports: bool) -> bool:
        """Send a heartbeat of a node, and with `reports` a status report, which does not depend on the lease.

        Return True if the last of them succeeded.
        """
        renewed = await self._succeeds(node, self._renew)
        return await self._succeeds(node, self._report) if reports and self._has(node) else renewed

    async def _succeeds(self, node: SimulatedNode, send: Callable[[SimulatedNode], Awaitable[None]]) -> bool:
        """Send a part of a heartbeat, several times if it fails, as a kubelet does. Return False if all fail."""
        for left in reversed(range(_TRIES)):
            try:
                await send(node)
            except (StatusError, Unreachable) as error:
                if not self._has(node):
                    return False
                if not left:
                    logger.warning("heartbeat of node %s: %s", node.name, error)
            else:
                return True
        return False

    def _is_to_report(self, node: SimulatedNode) -> bool:
        """Return True if others have marked the node as not ready, or have changed its extended resources."""
        found = self._node_objects.get("", node.name)
        return found is not None and (
            (not node.boots and any(each.type == "Ready" and each.status != "True" for each in found.status.conditions))
            or bool(_extended(found, node))
        )

    async def _renew(self, node: SimulatedNode) -> None:
        patch = {"spec": {"renewTime": times.now_micro()}}
        try:
            await self._client.patch_without_result(LEASES, node.name, LEASES_NAMESPACE, patch)
        except StatusError as error:
            if not is_not_found(error):
                raise
            if self._has(node):
                await self._begin_lease(node)

    def _has(self, node: SimulatedNode) -> bool:
        """Return True if a node is still simulated. It may be deleted during a request about it."""
        return self._nodes.get(node.name) is node

    async def _begin_lease(self, node: SimulatedNode) -> None:
        """Create the node's lease, or renew the one that exists."""
        try:
            await self._client.create(LEASES, node.lease(lease_seconds(len(self._nodes))))
        except StatusError as error:
            if not is_already_exists(error):
                raise
            await self._renew(node)

    async def _report(self, node: SimulatedNode, known: Node | None = None, *, uses_volumes: bool = True) -> None:
        """Write the conditions and what else has changed of the node's status, unless something else reports it.

        `known` is its present object, if it was read; the informer's is as good as a read from a cache.
        """
        if not self._reports():
            return
        found = known or self._node_objects.get("", node.name)
        if found is None:
            found = await self._client.get(NODES, node.name)
        before, status = to_plain(found.status), to_plain(node.status(found.status.conditions))
        status["allocatable"].update(_extended(found, node))
        if not uses_volumes:
            status["volumesInUse"] = None
        # The conditions may have changed since `found`, as the node lifecycle controller writes them, too.
        changed = {name for name, value in status.items() if name == "conditions" or value != before.get(name)}
        patch = {"status": {name: status[name] for name in changed}}
        await self._client.patch_without_result(
            NODES, node.name, "", patch, media=STRATEGIC_MERGE_PATCH, subresource="status"
        )


def _is_ready(obj: Node) -> bool:
    """Return True if a Node object says that its node is ready."""
    ready = find_condition(obj.status.conditions, "Ready")
    return ready is not None and ready.status == "True"


def _extended(obj: Node, node: SimulatedNode) -> dict[str, str | None]:
    """Return a patch that makes extended resources in the node's capacity allocatable and removes others.

    Other programs write the capacity of extended resources. Follows pkg/kubelet/nodestatus, `MachineInfo`.
    """
    capacity, allocatable = obj.status.capacity, obj.status.allocatable
    own = {*node.template.capacity, *node.template.allocatable}
    patch: dict[str, str | None] = {
        name: str(amount) for name, amount in capacity.items() if name not in own and allocatable.get(name) != amount
    }
    patch.update({name: None for name in allocatable if "/" in name and name not in own and name not in capacity})
    return patch


def _missing_in(obj: Node, node: SimulatedNode) -> dict[str, Any]:
    """Return a patch with what a kubelet sets on its Node object and the object lacks."""
    labels = {name: value for name, value in node.usual_labels().items() if name not in obj.metadata.labels}
    patch: dict[str, Any] = {}
    if labels or obj.metadata.annotations.get(CONTROLLER_ATTACHES) != "true":
        patch["metadata"] = {"labels": labels, "annotations": {CONTROLLER_ATTACHES: "true"}}
    if not obj.spec.pod_cidr:
        patch["spec"] = {"podCIDR": str(node.pod_cidr), "podCIDRs": [str(node.pod_cidr)]}
    return patch
