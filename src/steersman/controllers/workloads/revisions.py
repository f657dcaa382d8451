"""ControllerRevisions: the pod templates that a set has had (pkg/controller/history)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from steersman.api.apps.v1 import ControllerRevision
from steersman.api.core.v1 import PodTemplateSpec
from steersman.api.meta.v1 import ObjectMeta
from steersman.client.api_resource import APIResource
from steersman.controllers.workloads.controller_ref import new_controller_ref
from steersman.controllers.workloads.template_hash import safe_encode
from steersman.machinery.codec.serializer import decode_plain, encode_sorted, from_plain, to_plain

REVISION_HASH: Final = "controller-revision-hash"
"""The label by which pods say of which revision they are."""


def data_of(template: PodTemplateSpec) -> bytes:
    """What a revision holds of a template: a strategic merge patch of the set."""
    return encode_sorted({"spec": {"template": {**to_plain(template), "$patch": "replace"}}})


def new_revision(
    resource: APIResource[Any], owner: Any, name: str, labels: Mapping[str, str], data: bytes, number: int
) -> ControllerRevision:
    """Return a revision of the pod template of `owner`; `labels` come besides those of the template."""
    metadata = ObjectMeta(
        name=name,
        namespace=owner.metadata.namespace,
        labels={**owner.spec.template.metadata.labels, **labels},
        annotations=dict(owner.metadata.annotations),
        owner_references=[new_controller_ref(resource, owner)],
    )
    return ControllerRevision(metadata=metadata, data=msgspec.Raw(data), revision=number)


def template_of(revision: ControllerRevision) -> PodTemplateSpec:
    """The template that a revision holds. Raises msgspec.ValidationError."""
    template = dict(decode_plain(raw(revision))["spec"]["template"])
    template.pop("$patch", None)
    return from_plain(PodTemplateSpec, template)


def raw(revision: ControllerRevision) -> bytes:
    """The data of a revision."""
    return b"" if revision.data is None else bytes(revision.data)


def holds(revision: ControllerRevision, data: bytes) -> bool:
    """Whether a revision holds this."""
    return raw(revision) == data or decode_plain(raw(revision) or b"null") == decode_plain(data)


def revisions_of(
    template: PodTemplateSpec, revisions: Sequence[ControllerRevision]
) -> tuple[bytes, list[ControllerRevision]]:
    """Return the data of a template, and the revisions that hold it."""
    data = data_of(template)
    return data, [each for each in revisions if holds(each, data)]


def revision_hash(data: bytes, collision_count: int) -> str:
    """The hash that names a revision (HashControllerRevision): 32-bit FNV-1."""
    value = 0x811C9DC5
    for each in data + str(collision_count).encode():
        value = value * 0x01000193 & 0xFFFFFFFF ^ each
    return safe_encode(str(value))


def in_order(revision: ControllerRevision) -> tuple[int, str, str]:
    """The key by which revisions are sorted, the oldest first."""
    return revision.revision, revision.metadata.creation_timestamp or "", revision.metadata.name
