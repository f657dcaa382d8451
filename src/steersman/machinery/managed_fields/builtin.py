"""Schemas of the built-in kinds, built from generated data when a kind is first written."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from steersman.api.index import ON_REQUEST
from steersman.machinery.identity.schema import GroupVersionKind

from .openapi_schemas import OBJECT_PROPERTIES, SchemaBuilder
from .schema import DEDUCED, Schema


class _Definitions(dict[str, Any]):
    """OpenAPI definitions by name. A definition is decoded when it is looked up, because most are never needed."""

    def __getitem__(self, name: str) -> Any:
        return msgspec.json.decode(super().__getitem__(name))


class _Data(msgspec.Struct):
    """A generated file: definitions in JSON, and the name of the definition of each kind."""

    definitions: dict[str, msgspec.Raw]
    kinds: dict[str, str]


def _data(name: str) -> _Data:
    return msgspec.json.decode(Path(__file__).with_name("data").joinpath(name).read_bytes(), type=_Data)


@lru_cache(maxsize=1)
def _builder() -> tuple[SchemaBuilder, dict[str, str]]:
    data = _data("definitions.json")
    return SchemaBuilder(_Definitions(data.definitions)), data.kinds


@lru_cache(maxsize=1)
def _builder_on_request() -> tuple[SchemaBuilder, dict[str, str]]:
    """Return the builder for the versions that --runtime-config turns on, which most servers never need."""
    more = _data("definitions_on_request.json")
    return SchemaBuilder(_Definitions(_data("definitions.json").definitions | more.definitions)), more.kinds


@lru_cache(maxsize=1024)
def schema_of_kind(gvk: GroupVersionKind) -> Schema:
    """Return the schema of a built-in kind. Raises LookupError for any other kind."""
    builder, kinds = _builder_on_request() if (gvk.group, gvk.version) in ON_REQUEST else _builder()
    return builder.schema(kinds[f"{gvk.group_version} {gvk.kind}"])


def custom_schema(definition: Mapping[str, Any] | None, *, preserve_unknown: bool = False) -> Schema:
    """Return the schema of a custom resource from its `openAPIV3Schema`, which is None if it has none.

    The caller caches the schema of each version. Raises SchemaError for invalid list types.
    """
    if definition is None:
        return DEDUCED
    builder, _ = _builder()
    properties = {**definition.get("properties", {}), **OBJECT_PROPERTIES}
    return builder.inline({**definition, "type": "object", "properties": properties}, preserve_unknown=preserve_unknown)
