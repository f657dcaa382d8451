"""The internal form of a definition's spec, where members that all versions share stand above the versions.

Upstream validates this form. So errors name `spec.validation.openAPIV3Schema`, `spec.subresources`,
`spec.additionalPrinterColumns` and `spec.selectableFields` wherever all versions agree, which includes every definition
with one version; versions that differ have their errors in `spec.versions[0].schema.openAPIV3Schema`
(apiextensions.k8s.io `apis/apiextensions/v1/conversion.go`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import Struct

from steersman.api.apiextensions.v1 import (
    CustomResourceColumnDefinition,
    CustomResourceDefinitionSpec,
    CustomResourceDefinitionVersion,
    CustomResourceSubresources,
    CustomResourceValidation,
    SelectableField,
)
from steersman.machinery.codec.serializer import encode
from steersman.machinery.sorted_maps import presorted
from steersman.work.threads import give_way

T = TypeVar("T")

PlainSchema = dict[str, Any]
"""An `openAPIV3Schema` as plain JSON."""


def equal_as_json(left: object, right: object) -> bool:
    """Return True if two parts of a definition are equal as JSON: 1 differs from true, and None equals an empty list."""
    return encode(left or None) == encode(right or None)


class Shared(Struct, Generic[T], frozen=True):
    """A member of versions: one value that all share, or a value for each version."""

    common: T | None
    own: tuple[T | None, ...]
    """The values by version; all None if the versions share one value."""

    @property
    def values(self) -> Iterator[T]:
        """The shared value, then those of versions."""
        return (value for value in (self.common, *self.own) if value is not None)


def _shared(values: Sequence[T | None]) -> Shared[T]:
    if not values:
        return Shared(None, ())
    first = values[0]
    give_way()
    if all(equal_as_json(first, value) for value in values[1:]):
        return Shared(first, (None,) * len(values))
    return Shared(None, tuple(values))


class InternalSpec:
    """A spec in internal form, computed lazily and cached."""

    def __init__(self, spec: CustomResourceDefinitionSpec) -> None:
        self.spec = spec
        self.versions: Sequence[CustomResourceDefinitionVersion] = spec.versions or ()

    @property
    def version(self) -> str:
        """The name of the first version."""
        return self.versions[0].name if self.versions else ""

    @cached_property
    def validation(self) -> Shared[CustomResourceValidation]:
        """The schemas in their wrappers."""
        return _shared([version.schema for version in self.versions])

    @cached_property
    def schemas(self) -> Shared[PlainSchema]:
        """The schemas as plain JSON."""
        validation = self.validation
        return Shared(_plain(validation.common), tuple(_plain(each) for each in validation.own))

    @cached_property
    def subresources(self) -> Shared[CustomResourceSubresources]:
        """The status and scale subresources."""
        return _shared([version.subresources for version in self.versions])

    @cached_property
    def columns(self) -> Shared[list[CustomResourceColumnDefinition]]:
        """The printer columns."""
        return _shared([version.additional_printer_columns or None for version in self.versions])

    @cached_property
    def selectable_fields(self) -> Shared[list[SelectableField]]:
        """The selectable fields."""
        return _shared([version.selectable_fields or None for version in self.versions])

    def validation_of(self, name: str) -> tuple[bool, CustomResourceValidation | None]:
        """Return True if the version exists, and its schema; a shared schema is returned for any name."""
        validation = self.validation
        if not any(validation.own):
            return True, validation.common
        for version in self.versions:
            if version.name == name:
                return True, version.schema
        return False, None


def _plain(validation: CustomResourceValidation | None) -> PlainSchema | None:
    if validation is None or validation.open_api_v3_schema is None:
        return None
    plain: PlainSchema = msgspec.to_builtins(presorted(validation.open_api_v3_schema), order="deterministic")
    return plain
