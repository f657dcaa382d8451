"""Reduced CustomResourceDefinitions, as the server keeps them: schemas stay JSON text.

Decoding the schemas of a large definition takes milliseconds, and their objects ten times the memory of the text.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import msgspec

from steersman.api.apiextensions.v1 import (
    CustomResourceColumnDefinition,
    CustomResourceConversion,
    CustomResourceDefinitionNames,
    CustomResourceDefinitionStatus,
    CustomResourceSubresources,
    SelectableField,
)
from steersman.api.meta.v1 import ObjectMeta
from steersman.machinery.codec.serializer import decoder
from steersman.registry.apiextensions.conditions import is_established

_NO_SCHEMA: Final = b"null"


class _Schema(msgspec.Struct, rename="camel"):
    open_api_v3_schema: msgspec.Raw = msgspec.field(name="openAPIV3Schema", default=msgspec.Raw(_NO_SCHEMA))


class DeclaredVersion(msgspec.Struct, rename="camel"):
    """A version of a definition; see CustomResourceDefinitionVersion."""

    name: str
    served: bool = False
    storage: bool = False
    deprecated: bool = False
    deprecation_warning: str | None = None
    schema: _Schema | None = None
    subresources: CustomResourceSubresources | None = None
    additional_printer_columns: list[CustomResourceColumnDefinition] | None = None
    selectable_fields: list[SelectableField] | None = None

    @property
    def schema_text(self) -> bytes:
        """The JSON of its schema, `null` for none."""
        return _NO_SCHEMA if self.schema is None else bytes(self.schema.open_api_v3_schema)

    @property
    def has_status(self) -> bool:
        """True if there is a status subresource."""
        return self.subresources is not None and self.subresources.status is not None


class DeclaredSpec(msgspec.Struct, rename="camel"):
    """The spec of a definition; see CustomResourceDefinitionSpec."""

    group: str
    names: CustomResourceDefinitionNames
    scope: str = ""
    versions: list[DeclaredVersion] = []
    conversion: CustomResourceConversion | None = None


class Declared(msgspec.Struct, rename="camel"):
    """A definition; see CustomResourceDefinition."""

    metadata: ObjectMeta
    spec: DeclaredSpec
    status: CustomResourceDefinitionStatus = msgspec.field(default_factory=CustomResourceDefinitionStatus)

    @property
    def is_established(self) -> bool:
        """True if objects of the kind may be stored."""
        return is_established(self)

    @property
    def stored(self) -> DeclaredVersion:
        """The storage version."""
        return next(each for each in self.spec.versions if each.storage)


class _NamedSpec(msgspec.Struct):
    group: str
    names: CustomResourceDefinitionNames


class _NamedStatus(msgspec.Struct, rename="camel"):
    accepted_names: CustomResourceDefinitionNames = msgspec.field(default_factory=CustomResourceDefinitionNames)


class _NamedMetadata(msgspec.Struct, rename="camel"):
    uid: str = ""
    deletion_timestamp: str | None = None


class Named(msgspec.Struct):
    """The wanted and the accepted names of a definition, with its deletion timestamp."""

    metadata: _NamedMetadata
    spec: _NamedSpec
    status: _NamedStatus = msgspec.field(default_factory=_NamedStatus)


@cache
def _decoder(kind: type[Any]) -> msgspec.json.Decoder[Any]:
    return decoder(kind)


def read_declared(body: bytes) -> Declared:
    """Return the reduced definition in a body."""
    declared: Declared = _decoder(Declared).decode(b"{" + body)
    return declared


def read_named(body: bytes) -> Named:
    """Return only the names in a body, which takes a millisecond however large the rest is."""
    named: Named = _decoder(Named).decode(b"{" + body)
    return named
