"""Controller that assigns each node a block of each pod address range
(pkg/controller/nodeipam/ipam/range_allocator.go).
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from ipaddress import ip_network
from typing import Final

from steersman.api.core.v1 import Node, ObjectReference
from steersman.client.client import STRATEGIC_MERGE_PATCH
from steersman.client.resources import NODES
from steersman.client.transport import Unreachable
from steersman.controllers.controller import Controller, ControllerDependencies, Settings
from steersman.controllers.node_ipam.cidr_set import CIDRSet, Network, NoBlockLeft, OutOfRange
from steersman.machinery.errors.status import StatusError
from steersman.work.work_queue import TryLater

logger = logging.getLogger(__name__)

_ATTEMPTS: Final = 3


class NodeIPAMController(Controller[str]):
    """Assigns pod address blocks. A key is the name of a node."""

    name = "node-ipam-controller"
    account = "node-controller"
    component = "cidrAllocator"
    workers = 30

    def __init__(self, dependencies: ControllerDependencies) -> None:
        super().__init__(dependencies)
        settings = dependencies.settings
        self._sets = [CIDRSet(each.network, each.node_size) for each in settings.cluster_cidrs]
        for service_range in settings.service_cidrs:
            for each in self._sets:
                if each.overlaps(service_range):
                    each.occupy(service_range)
        self._nodes = self.informers.for_resource(NODES)
        self._assigned: dict[str, Sequence[Network]] = {}
        """Blocks that were assigned but are not in the informer's Node yet, by the node's uid."""

    @classmethod
    def can_run(cls, settings: Settings) -> bool:
        return bool(settings.cluster_cidrs)

    async def run(self) -> None:
        for node in self._nodes:
            self._occupy(node)  # before any block is allocated
        self._nodes.on_change(self._changed)
        await super().run()

    def _changed(self, old: Node | None, new: Node | None) -> None:
        if new is not None:
            if new.spec.pod_cidrs:
                self._assigned.pop(new.metadata.uid, None)
            self.queue.add(new.metadata.name)
        elif old is not None:
            self._release(self._assigned.pop(old.metadata.uid, ()) or _blocks_of_node(old))

    async def sync(self, key: str) -> None:
        node = self._nodes.get("", key)
        if node is None or node.metadata.deletion_timestamp:
            return
        if node.spec.pod_cidrs:
            self._occupy(node)
        elif node.metadata.uid not in self._assigned:
            await self._assign(node)

    def _occupy(self, node: Node) -> None:
        """Mark the blocks of a node as allocated. Blocks outside of the ranges are ignored with a warning."""
        blocks = _blocks_of_node(node)
        if len(blocks) > len(self._sets):
            logger.warning("node %s has more pod CIDRs than there are cluster CIDRs", node.metadata.name)
        for each, block in zip(self._sets, blocks, strict=False):
            try:
                each.occupy(block)
            except OutOfRange as error:
                logger.warning("node %s: %s", node.metadata.name, error)

    def _release(self, blocks: Sequence[Network]) -> None:
        for each, block in zip(self._sets, blocks, strict=False):
            try:
                each.release(block)
            except OutOfRange as error:
                logger.warning("%s", error)

    async def _assign(self, node: Node) -> None:
        blocks: list[Network] = []
        try:
            for each in self._sets:
                blocks.append(each.allocate())
        except NoBlockLeft as error:
            self._release(blocks)
            self._record_event(node, "CIDRNotAvailable")
            raise TryLater(f"failed to allocate cidr from cluster cidr at idx:{len(blocks)}: {error}") from None
        texts = [str(each) for each in blocks]
        change = {"spec": {"podCIDR": texts[0], "podCIDRs": texts}}
        self._assigned[node.metadata.uid] = blocks
        for attempt in range(_ATTEMPTS):
            try:
                await self.client.patch(NODES, node.metadata.name, "", change, media=STRATEGIC_MERGE_PATCH)
            except (StatusError, Unreachable) as error:
                if attempt + 1 == _ATTEMPTS:
                    left = self._assigned.pop(
                        node.metadata.uid, ()
                    )  # empty if the node was deleted and its blocks freed
                    if isinstance(error, StatusError):  # else the write may have succeeded: the blocks stay allocated
                        self._release(left)
                    self._record_event(node, "CIDRAssignmentFailed")
                    raise
            else:
                return

    def _record_event(self, node: Node, status: str) -> None:
        name = node.metadata.name
        about = ObjectReference(api_version="v1", kind="Node", name=name, uid=node.metadata.uid)
        self.recorder.event(about, "Normal", status, f"Node {name} status is now: {status}")


def _blocks_of_node(node: Node) -> Sequence[Network]:
    """Return the blocks of a node, up to the first that cannot be parsed, which is logged."""
    blocks: list[Network] = []
    for text in node.spec.pod_cidrs:
        try:
            blocks.append(ip_network(text, strict=False))
        except ValueError:
            logger.warning("failed to parse node %s, CIDR %s", node.metadata.name, text)
            break
    return blocks
