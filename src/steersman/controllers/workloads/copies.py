"""Partial copies of workload objects, for changes. Pod templates may be large, so their content is shared."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from steersman.api.core.v1 import PodTemplateSpec
from steersman.api.meta.v1 import ObjectMeta
from steersman.machinery.codec.serializer import deep_copy

O = TypeVar("O")  # noqa: E741


def mutable_copy(obj: O) -> O:
    """Return a copy with its own labels, annotations and status, and a spec whose members may be replaced.

    The values of the spec's members are shared with `obj`: replace them, do not change them.
    """
    owner: Any = obj
    changed: O = msgspec.structs.replace(
        owner,
        metadata=_copied_metadata(owner.metadata),
        spec=msgspec.structs.replace(owner.spec),
        status=deep_copy(owner.status),
    )
    return changed


def mutable_template_copy(template: PodTemplateSpec) -> PodTemplateSpec:
    """Return a copy of a pod template with its own labels and annotations, and a spec whose members may be replaced."""
    return msgspec.structs.replace(
        template, metadata=_copied_metadata(template.metadata), spec=msgspec.structs.replace(template.spec)
    )


def _copied_metadata(metadata: ObjectMeta) -> ObjectMeta:
    return msgspec.structs.replace(metadata, labels=dict(metadata.labels), annotations=dict(metadata.annotations))
