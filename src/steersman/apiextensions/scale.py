"""The `/scale` subresource of custom resources: replicas and selector at declared JSON paths.

Follows k8s.io/apiextensions-apiserver `pkg/registry/customresource` (etcd.go, validator.go).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from msgspec.structs import replace

from steersman.api.apiextensions.v1 import CustomResourceSubresourceScale
from steersman.api.autoscaling.v1 import Scale, ScaleSpec, ScaleStatus
from steersman.apiextensions.declared import DeclaredVersion
from steersman.kinds.open import OpenObject
from steersman.machinery.errors.field import FieldError, Path, invalid, quote
from steersman.machinery.errors.status import bad_request, internal, plain_internal
from steersman.machinery.json_path import NestedFieldError, nested_field, split_path
from steersman.registry.scale import SCALE, scale_metadata
from steersman.rest.resource import AGE, Column, Subresource

UNSET: Final = -(2**31)
"""The number of replicas in a Scale for an update, of an object without that field."""
_MOST: Final = 2**31 - 1
_COLUMNS: Final = (
    Column(
        "Desired", lambda scale: scale.spec.replicas or None, type="integer", description="Number of desired replicas"
    ),
    Column("Available", lambda scale: scale.status.replicas, type="integer", description="Number of actual replicas"),
    replace(AGE, type="date"),
)
"""Columns that read the JSON of a Scale, which omits a desired number of 0."""


def scale_subresource(
    declared: CustomResourceSubresourceScale, default: Callable[[OpenObject], None] | None = None
) -> Subresource[Any]:
    """Return the subresource of a version; `default` fills in defaults after a change."""
    return Subresource(name=SCALE.name, kind=SCALE.kind, view=CustomScale(declared, default), columns=_COLUMNS)


class CustomScale:
    """The Scale of an object with declared paths."""

    def __init__(
        self, declared: CustomResourceSubresourceScale, default: Callable[[OpenObject], None] | None = None
    ) -> None:
        self._default = default
        self._path = declared.spec_replicas_path
        self._wanted = split_path(declared.spec_replicas_path)
        self._there = split_path(declared.status_replicas_path)
        self.replicas = tuple(f"f:{name}" for name in self._wanted)
        self._selector = split_path(declared.label_selector_path) if declared.label_selector_path else None

    def read(self, obj: OpenObject) -> Scale:
        """Return the Scale of `obj`. Raises StatusError 500 if the number of replicas is missing or a value has a wrong
        type.
        """
        scale = self.read_to_change(obj)
        if scale.spec.replicas == UNSET:
            raise internal(f"the spec replicas field {quote(self._path)} does not exist")
        return scale

    def read_to_change(self, obj: OpenObject) -> Scale:
        """Return the Scale of `obj`, whose number of replicas may be missing (UNSET). Raises StatusError 500."""
        content = obj.content
        try:
            replicas = nested_field(content, self._wanted, int)
            there = nested_field(content, self._there, int)
            selector = None if self._selector is None else nested_field(content, self._selector, str)
        except NestedFieldError as error:
            raise plain_internal(str(error)) from None
        return Scale(
            metadata=scale_metadata(obj.metadata),
            spec=ScaleSpec(replicas=UNSET if replicas is None else replicas),
            status=ScaleStatus(replicas=there or 0, selector=selector or ""),
        )

    def write(self, obj: OpenObject, view: Scale) -> None:
        """Write the desired number into `obj`. Raises StatusError 400 if it is missing."""
        if view.spec.replicas == UNSET:
            raise bad_request(f"the spec replicas field {quote(self._path)} cannot be empty")
        parent: Any = obj.content
        for name in self._wanted[:-1]:
            below = parent.setdefault(name, {})
            if not isinstance(below, dict):
                raise plain_internal(f"value cannot be set because .{'.'.join(self._wanted[:-1])} is not a map")
            parent = below
        parent[self._wanted[-1]] = view.spec.replicas
        if self._default is not None:
            self._default(obj)
        if view.metadata.resource_version:
            obj.metadata.resource_version = view.metadata.resource_version


def scale_errors(declared: DeclaredVersion, content: dict[str, Any], *, of_status: bool = False) -> list[FieldError]:
    """Return the errors of the values at a version's scale paths; `of_status` skips the desired number."""
    scale = None if declared.subresources is None else declared.subresources.scale
    if scale is None:
        return []
    numbers = [scale.status_replicas_path] if of_status else [scale.spec_replicas_path, scale.status_replicas_path]
    errors = [error for path in numbers for error in _number_errors(content, path)]
    if scale.label_selector_path is not None:
        try:
            nested_field(content, split_path(scale.label_selector_path), str)
        except NestedFieldError as error:
            errors.append(invalid(Path(scale.label_selector_path), "", str(error)))
    return errors


def _number_errors(content: dict[str, Any], path: str) -> list[FieldError]:
    try:
        number = nested_field(content, split_path(path), int) or 0
    except NestedFieldError as error:
        return [invalid(Path(path), 0, str(error))]
    if number < 0:
        return [invalid(Path(path), number, "should be a non-negative integer")]
    if number > _MOST:
        return [invalid(Path(path), number, f"should be less than or equal to {_MOST}")]
    return []
