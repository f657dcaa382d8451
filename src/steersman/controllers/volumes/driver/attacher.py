"""Attacher of the driver: it marks volumes as attached to nodes (the task of external-attacher)."""

from __future__ import annotations

from typing import Final

import msgspec

from steersman.api.storage.v1 import VolumeAttachment
from steersman.client.errors import ignoring, is_not_found
from steersman.client.resources import VOLUME_ATTACHMENTS
from steersman.controllers.controller import ControllerDependencies
from steersman.controllers.volumes.driver.component import DriverComponent
from steersman.controllers.volumes.driver.objects import DRIVER

_FINALIZER: Final = f"external-attacher/{DRIVER.replace('.', '-')}"
_NODE_ID: Final = "csi.alpha.kubernetes.io/node-id"


class Attacher(DriverComponent[str]):
    """Attaches and detaches. A key is the name of a VolumeAttachment."""

    name = "volume-driver-attacher"

    def __init__(self, dependencies: ControllerDependencies) -> None:
        super().__init__(dependencies)
        self._attachments = self.informers.for_resource(VOLUME_ATTACHMENTS)
        self._attachments.on_change(self._changed)

    def _changed(self, _: VolumeAttachment | None, new: VolumeAttachment | None) -> None:
        if new is not None and new.spec.attacher == DRIVER:
            self.queue.add(new.metadata.name)

    async def sync(self, key: str) -> None:
        attachment = self._attachments.get("", key)
        if attachment is None or attachment.spec.attacher != DRIVER:
            return
        with ignoring(is_not_found):
            if attachment.metadata.deletion_timestamp:
                await self._detach(attachment)
            elif not attachment.status.attached:
                await self._attach(attachment)

    async def _attach(self, attachment: VolumeAttachment) -> None:
        metadata = attachment.metadata
        if _FINALIZER not in metadata.finalizers:
            metadata = msgspec.structs.replace(
                metadata,
                finalizers=[*metadata.finalizers, _FINALIZER],
                annotations={**metadata.annotations, _NODE_ID: attachment.spec.node_name},
            )
            updated = msgspec.structs.replace(attachment, metadata=metadata)
            attachment = await self.client.update(VOLUME_ATTACHMENTS, updated)
        await self.client.patch(
            VOLUME_ATTACHMENTS, metadata.name, "", {"status": {"attached": True}}, subresource="status"
        )

    async def _detach(self, attachment: VolumeAttachment) -> None:
        finalizers = [each for each in attachment.metadata.finalizers if each != _FINALIZER]
        metadata = msgspec.structs.replace(attachment.metadata, finalizers=finalizers)
        if len(finalizers) < len(attachment.metadata.finalizers):
            await self.client.update(VOLUME_ATTACHMENTS, msgspec.structs.replace(attachment, metadata=metadata))
