"""Copies of owners of pods in which members can be set; their templates, which may be large, are shared."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from steersman.api.core.v1 import PodTemplateSpec
from steersman.api.meta.v1 import ObjectMeta
from steersman.machinery.codec.serializer import deep_copy

O = TypeVar("O")  # noqa: E741


def changeable(obj: O) -> O:
    """Return an object whose labels, annotations and status are its own, and whose spec may get other members.

    What the spec has is that of `obj`: it may be replaced, and not changed.
    """
    owner: Any = obj
    changed: O = msgspec.structs.replace(
        owner, metadata=_own(owner.metadata), spec=msgspec.structs.replace(owner.spec), status=deep_copy(owner.status)
    )
    return changed


def changeable_template(template: PodTemplateSpec) -> PodTemplateSpec:
    """The same of a pod template."""
    return msgspec.structs.replace(
        template, metadata=_own(template.metadata), spec=msgspec.structs.replace(template.spec)
    )


def _own(metadata: ObjectMeta) -> ObjectMeta:
    return msgspec.structs.replace(metadata, labels=dict(metadata.labels), annotations=dict(metadata.annotations))
