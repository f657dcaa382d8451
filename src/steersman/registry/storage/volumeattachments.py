"""VolumeAttachments: requests to attach a volume to a node."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from steersman.api.storage.v1 import VolumeAttachment, VolumeAttachmentSource, VolumeAttachmentStatus
from steersman.kinds.built_in import built_in
from steersman.machinery.errors.field import FieldError, Path, forbidden, invalid, required, too_long
from steersman.machinery.validation.formats import byte_length, inclusive_range_error, total_length
from steersman.machinery.validation.leaves import FIELD_IMMUTABLE, validate_name
from steersman.machinery.validation.object_meta import name_is_dns_subdomain
from steersman.registry.persistent_volume.defaults import set_persistent_source_defaults
from steersman.registry.persistent_volume.validation import validate_inline_volume_spec
from steersman.registry.printing.internal_form import internal_text
from steersman.registry.validation.drivers import validate_driver_name
from steersman.rest.context import Context
from steersman.rest.resource import AGE, Column, Resource, Subresource
from steersman.rest.strategy import StatusStrategy, Strategy

MAX_METADATA_SIZE: Final = 256 * 1024
MAX_ERROR_MESSAGE: Final = 1024
"""Bytes."""
ONE_SOURCE: Final = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"


def _validate(attachment: VolumeAttachment) -> Iterator[FieldError]:
    spec, path = attachment.spec, Path("spec")
    yield from validate_driver_name(spec.attacher, path / "attacher")
    yield from _validate_source(spec.source, path / "source")
    yield from validate_name(name_is_dns_subdomain, spec.node_name, path / "nodeName")
    yield from _validate_status(attachment.status, Path("status"))
    volume = spec.source.persistent_volume_name
    if volume is not None:
        yield from validate_name(name_is_dns_subdomain, volume, Path("spec", "source", "persistentVolumeName"))


def _validate_source(source: VolumeAttachmentSource, path: Path) -> Iterator[FieldError]:
    volume, inline = source.persistent_volume_name, source.inline_volume_spec
    if volume is None and inline is None:
        yield required(path, ONE_SOURCE)
    elif volume is not None and inline is not None:
        yield forbidden(path, ONE_SOURCE)
    elif inline is not None:
        yield from validate_inline_volume_spec(inline, path / "inlineVolumeSpec")
    elif volume == "":
        yield required(path / "persistentVolumeName", "must specify non empty persistentVolumeName")


def _validate_status(status: VolumeAttachmentStatus, path: Path) -> Iterator[FieldError]:
    metadata = status.attachment_metadata
    if total_length(metadata, metadata.values(), most=MAX_METADATA_SIZE) > MAX_METADATA_SIZE:
        yield too_long(path / "attachmentMetadata", MAX_METADATA_SIZE)
    for error, name in ((status.attach_error, "attachError"), (status.detach_error, "detachError")):
        if error is None:
            continue
        if byte_length(error.message) > MAX_ERROR_MESSAGE:
            # The number in the message is upstream's, although it differs from the limit.
            yield too_long(path / name / "message", MAX_METADATA_SIZE)
        if error.error_code is not None and error.error_code < 0:
            detail = inclusive_range_error(0, 2**31 - 1)
            yield invalid(path / name / "errorCode", error.error_code, detail)


class VolumeAttachmentStrategy(Strategy[VolumeAttachment]):
    allow_unconditional_update = False
    resets = ("status",)

    def validate(self, ctx: Context, attachment: VolumeAttachment) -> Iterator[FieldError]:
        return _validate(attachment)

    def validate_update(self, ctx: Context, new: VolumeAttachment, old: VolumeAttachment) -> Iterator[FieldError]:
        return _validate_update(new, old)


def _validate_update(new: VolumeAttachment, old: VolumeAttachment) -> Iterator[FieldError]:
    yield from _validate(new)
    if new.spec != old.spec:
        yield invalid(Path("spec"), internal_text(new.spec), FIELD_IMMUTABLE)


class VolumeAttachmentStatusStrategy(StatusStrategy[VolumeAttachment]):
    allow_unconditional_update = False
    resets = ("spec", "metadata")

    def validate_update(self, ctx: Context, new: VolumeAttachment, old: VolumeAttachment) -> Iterator[FieldError]:
        return _validate_update(new, old)


def set_defaults(attachment: VolumeAttachment) -> None:
    """Set the defaults of an inline volume."""
    if (spec := attachment.spec.source.inline_volume_spec) is not None:
        set_persistent_source_defaults(spec)


VOLUME_ATTACHMENTS = Resource(
    kind=built_in(VolumeAttachment, default=set_defaults),
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
