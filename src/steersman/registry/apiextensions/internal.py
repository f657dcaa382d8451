"""The internal form of a definition's spec: what all versions have in common stands above them.

Upstream validates this form, so that errors name `spec.validation.openAPIV3Schema`, `spec.subresources`,
`spec.additionalPrinterColumns` and `spec.selectableFields` wherever all versions say the same there, a definition of
one version always; and versions that differ have theirs in `spec.versions[0].schema.openAPIV3Schema`
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


def same(left: object, right: object) -> bool:
    """Whether two parts of a definition say the same: 1 is not true, and nothing is the same as an empty list."""
    return encode(left or None) == encode(right or None)


class Shared(Struct, Generic[T], frozen=True):
    """A member that versions have: one for all of them, or each its own."""

    common: T | None
    own: tuple[T | None, ...]
    """By version; nothing but None where they have it in common."""

    @property
    def values(self) -> Iterator[T]:
        """The common value, then those of versions."""
        return (value for value in (self.common, *self.own) if value is not None)


def _shared(values: Sequence[T | None]) -> Shared[T]:
    if not values:
        return Shared(None, ())
    first = values[0]
    give_way()
    if all(same(first, value) for value in values[1:]):
        return Shared(first, (None,) * len(values))
    return Shared(None, tuple(values))


class InternalSpec:
    """A spec in that form. It looks at the spec when it is first asked, and keeps what it has seen."""

    def __init__(self, spec: CustomResourceDefinitionSpec) -> None:
        self.spec = spec
        self.versions: Sequence[CustomResourceDefinitionVersion] = spec.versions or ()

    @property
    def version(self) -> str:
        """The name of the first version."""
        return self.versions[0].name if self.versions else ""

    @cached_property
    def validation(self) -> Shared[CustomResourceValidation]:
        """The schemas, in what is around them."""
        return _shared([version.schema for version in self.versions])

    @cached_property
    def schemas(self) -> Shared[PlainSchema]:
        """The schemas as plain JSON."""
        validation = self.validation
        return Shared(_plain(validation.common), tuple(_plain(each) for each in validation.own))

    @cached_property
    def subresources(self) -> Shared[CustomResourceSubresources]:
        """Status and scale."""
        return _shared([version.subresources for version in self.versions])

    @cached_property
    def columns(self) -> Shared[list[CustomResourceColumnDefinition]]:
        """Printer columns."""
        return _shared([version.additional_printer_columns or None for version in self.versions])

    @cached_property
    def selectable_fields(self) -> Shared[list[SelectableField]]:
        """Fields that selectors may name."""
        return _shared([version.selectable_fields or None for version in self.versions])

    def validation_of(self, name: str) -> tuple[bool, CustomResourceValidation | None]:
        """Whether there is such a version, and what it says of its schema; where versions have one in common it is
        that of any name."""
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
