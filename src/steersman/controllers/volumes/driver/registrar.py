"""Registrar of the driver: it registers the driver on each simulated node (the task of node-driver-registrar and
kubelet).
"""

from __future__ import annotations

from steersman.api.core.v1 import Node
from steersman.api.meta.v1 import ObjectMeta, OwnerReference
from steersman.api.storage.v1 import CSINode, CSINodeDriver, CSINodeSpec
from steersman.client.errors import ignoring, is_already_exists
from steersman.client.resources import CSI_NODES, NODES
from steersman.controllers.controller import ControllerDependencies
from steersman.controllers.volumes.driver.component import DriverComponent
from steersman.controllers.volumes.driver.objects import DRIVER
from steersman.machinery.built_in.volumes import CONTROLLER_ATTACHES


class Registrar(DriverComponent[str]):
    """Creates CSINodes. A key is the name of a node."""

    name = "volume-driver-registrar"

    def __init__(self, dependencies: ControllerDependencies) -> None:
        super().__init__(dependencies)
        self._nodes = self.informers.for_resource(NODES)
        self._csi_nodes = self.informers.for_resource(CSI_NODES)
        self._nodes.on_change(self._changed)

    def _changed(self, old: Node | None, new: Node | None) -> None:
        if old is None and new is not None and CONTROLLER_ATTACHES in new.metadata.annotations:
            self.queue.add(new.metadata.name)

    async def sync(self, key: str) -> None:
        node = self._nodes.get("", key)
        if node is None or self._csi_nodes.get("", key) is not None:
            return
        owner = OwnerReference(api_version="v1", kind="Node", name=key, uid=node.metadata.uid)
        drivers = [CSINodeDriver(name=DRIVER, node_id=key, topology_keys=None)]
        metadata = ObjectMeta(name=key, owner_references=[owner])
        with ignoring(is_already_exists):
            await self.client.create(CSI_NODES, CSINode(metadata=metadata, spec=CSINodeSpec(drivers=drivers)))
