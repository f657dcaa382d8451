"""Columns and row metadata that the Tables of workloads share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from msgspec.structs import replace

from steersman.api.core.v1 import PodTemplateSpec
from steersman.api.meta.v1 import ObjectMeta
from steersman.rest.resource import Column


def without_annotation(name: str) -> Callable[[ObjectMeta], ObjectMeta]:
    """Return a function that drops an annotation from the metadata of Table rows.

    Upstream prints rows from the internal type, which has a field in place of the annotation.
    """

    def row_metadata(metadata: ObjectMeta) -> ObjectMeta:
        if not metadata.annotations.get(name):
            return metadata
        return replace(metadata, annotations={key: text for key, text in metadata.annotations.items() if key != name})

    return row_metadata


READY: Final = Column(
    "Ready",
    lambda workload: f"{workload.status.ready_replicas}/{workload.spec.replicas or 0}",
    description="Number of the pod with ready state",
)


def container_columns(template: Callable[[Any], PodTemplateSpec]) -> tuple[Column, Column]:
    """Return the -o wide columns with names and images of the containers in a pod template."""
    return (
        Column(
            "Containers",
            lambda obj: ",".join(container.name for container in template(obj).spec.containers or ()),
            priority=1,
            description="Names of each container in the template.",
        ),
        Column(
            "Images",
            lambda obj: ",".join(container.image for container in template(obj).spec.containers or ()),
            priority=1,
            description="Images referenced by each container in the template.",
        ),
    )
