"""VolumeAttachments: the wish to have a volume on a node."""

from __future__ import annotations

from steersman.api.storage.v1 import VolumeAttachment, VolumeAttachmentStatus
from steersman.machinery.validation.object_meta import name_is_dns_subdomain
from steersman.registry.storage.status_metadata import reset_metadata_for_status
from steersman.rest.context import Context
from steersman.rest.resource import AGE, Column, Resource, Subresource
from steersman.rest.strategy import StatusStrategy, Strategy


class VolumeAttachmentStrategy(Strategy[VolumeAttachment]):
    allow_unconditional_update = False

    def prepare_for_create(self, ctx: Context, attachment: VolumeAttachment) -> None:
        attachment.status = VolumeAttachmentStatus()

    def prepare_for_update(self, ctx: Context, new: VolumeAttachment, old: VolumeAttachment) -> None:
        new.status = old.status


class VolumeAttachmentStatusStrategy(StatusStrategy[VolumeAttachment]):
    allow_unconditional_update = False

    def prepare_for_update(self, ctx: Context, new: VolumeAttachment, old: VolumeAttachment) -> None:
        new.spec = old.spec
        reset_metadata_for_status(new.metadata, old.metadata)


VOLUME_ATTACHMENTS = Resource(
    kind=VolumeAttachment,
    group="storage.k8s.io",
    plural="volumeattachments",
    namespaced=False,
    strategy=VolumeAttachmentStrategy(),
    name_validator=name_is_dns_subdomain,
    columns=(
        Column("Attacher", lambda a: a.spec.attacher, format="name"),
        Column("PV", lambda a: a.spec.source.persistent_volume_name or ""),
        Column("Node", lambda a: a.spec.node_name),
        Column("Attached", lambda a: a.status.attached, type="boolean"),
        AGE,
    ),
    subresources=(Subresource(name="status", strategy=VolumeAttachmentStatusStrategy()),),
    returns_deleted_object=True,
    storage_version_hash="tJx/ezt6UDU=",
)
