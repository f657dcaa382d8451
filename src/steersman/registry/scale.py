"""The `/scale` subresource: desired and current replicas of any workload, as autoscaling/v1 Scale."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from steersman.api.autoscaling.v1 import Scale, ScaleSpec, ScaleStatus
from steersman.api.meta.v1 import LabelSelector, ObjectMeta
from steersman.kinds.built_in import built_in
from steersman.machinery.errors.field import FieldError, Path
from steersman.machinery.errors.status import invalid as invalid_object
from steersman.machinery.identity.schema import GroupKind
from steersman.machinery.selectors.labels import SelectorError, from_label_selector, selector_from_set
from steersman.machinery.validation.leaves import validate_nonnegative
from steersman.machinery.validation.object_meta import (
    name_is_dns_subdomain,
    validate_object_meta,
    validate_standard_finalizers,
)
from steersman.rest.resource import AGE, Column, Subresource

_KIND: Final = GroupKind("autoscaling", "Scale")
_METADATA: Final = Path("metadata")
_REPLICAS: Final = Path("spec", "replicas")

SCALE_COLUMNS: Final = (
    Column("Desired", lambda scale: scale.spec.replicas, type="integer"),
    Column("Available", lambda scale: scale.status.replicas, type="integer"),
    AGE,
)
"""Columns of a Table of Scale."""


def scale_metadata(metadata: ObjectMeta) -> ObjectMeta:
    """Return the metadata of the Scale of an object."""
    return ObjectMeta(
        name=metadata.name,
        namespace=metadata.namespace,
        uid=metadata.uid,
        resource_version=metadata.resource_version,
        creation_timestamp=metadata.creation_timestamp,
    )


class ScaleView:
    """The Scale of any object that has `spec.replicas`, `spec.selector` (of either form) and `status.replicas`."""

    replicas = ("f:spec", "f:replicas")

    def read(self, obj: Any) -> Scale:
        """Return the Scale of `obj`."""
        return Scale(
            metadata=scale_metadata(obj.metadata),
            spec=ScaleSpec(replicas=obj.spec.replicas or 0),
            status=ScaleStatus(replicas=obj.status.replicas, selector=selector_text(obj.spec.selector)),
        )

    def read_to_change(self, obj: Any) -> Scale:
        """Return the Scale of `obj`."""
        return self.read(obj)

    def write(self, obj: Any, view: Scale) -> None:
        """Write the desired replicas into `obj`.

        Raises StatusError 422 if they are negative or the Scale's metadata, which are not stored, are invalid
        (autoscaling validation `ValidateScale`).
        """
        if faults := list(_faults(view)):
            raise invalid_object(_KIND, obj.metadata.name, faults)
        obj.spec.replicas = view.spec.replicas
        obj.metadata.resource_version = view.metadata.resource_version


def _faults(view: Scale) -> Iterator[FieldError]:
    yield from validate_object_meta(
        view.metadata, namespaced=True, name_validator=name_is_dns_subdomain, path=_METADATA
    )
    yield from validate_standard_finalizers(view.metadata.finalizers, _METADATA / "finalizers")
    yield from validate_nonnegative(view.spec.replicas, _REPLICAS)


def selector_text(selector: LabelSelector | dict[str, str] | None) -> str:
    """Return a selector in the form of a query parameter; "" if it cannot be parsed."""
    if isinstance(selector, dict):
        return str(selector_from_set(selector))
    try:
        return str(from_label_selector(selector))
    except SelectorError:
        return ""


SCALE: Final = Subresource(
    name="scale",
    kind=built_in(Scale),
    view=ScaleView(),
    columns=SCALE_COLUMNS,
)
