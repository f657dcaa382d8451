"""ControllerRevisions: the history of a workload's pod templates (pkg/controller/history)."""

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
"""Label of a pod with the hash of its revision."""


def revision_data(template: PodTemplateSpec) -> bytes:
    """Return the data of a template's revision: a strategic merge patch of the workload object."""
    return encode_sorted({"spec": {"template": {**to_plain(template), "$patch": "replace"}}})


def new_revision(
    resource: APIResource[Any], owner: Any, name: str, labels: Mapping[str, str], data: bytes, number: int
) -> ControllerRevision:
    """Return a revision of the pod template of `owner`; `labels` are added to the template's labels."""
    metadata = ObjectMeta(
        name=name,
        namespace=owner.metadata.namespace,
        labels={**owner.spec.template.metadata.labels, **labels},
        annotations=dict(owner.metadata.annotations),
        owner_references=[new_controller_ref(resource, owner)],
    )
    return ControllerRevision(metadata=metadata, data=msgspec.Raw(data), revision=number)


def revision_template(revision: ControllerRevision) -> PodTemplateSpec:
    """Return the pod template in a revision. Raises msgspec.ValidationError."""
    template = dict(decode_plain(raw_data(revision))["spec"]["template"])
    template.pop("$patch", None)
    return from_plain(PodTemplateSpec, template)


def raw_data(revision: ControllerRevision) -> bytes:
    """Return the data of a revision, empty if it has none."""
    return b"" if revision.data is None else bytes(revision.data)


def has_data(revision: ControllerRevision, data: bytes) -> bool:
    """Return True if a revision's data equals `data`, as bytes or as decoded JSON."""
    return raw_data(revision) == data or decode_plain(raw_data(revision) or b"null") == decode_plain(data)


def equal_revisions(
    template: PodTemplateSpec, revisions: Sequence[ControllerRevision]
) -> tuple[bytes, list[ControllerRevision]]:
    """Return the data of a template, and the revisions with equal data."""
    data = revision_data(template)
    return data, [each for each in revisions if has_data(each, data)]


def revision_hash(data: bytes, collision_count: int) -> str:
    """Return the hash in the name of a revision (HashControllerRevision): 32-bit FNV-1."""
    value = 0x811C9DC5
    for each in data + str(collision_count).encode():
        value = value * 0x01000193 & 0xFFFFFFFF ^ each
    return safe_encode(str(value))


def revision_sort_key(revision: ControllerRevision) -> tuple[int, str, str]:
    """Return the sort key of a revision; the oldest sorts first."""
    return revision.revision, revision.metadata.creation_timestamp or "", revision.metadata.name
