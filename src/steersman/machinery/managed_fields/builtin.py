"""Schemas of the built-in kinds, made from generated data when a kind is first written."""

from __future__ import annotations

from functools import lru_cache
from importlib import resources
from typing import Any

import msgspec

from steersman.machinery.schema import GroupVersionKind
from steersman.machinery.scheme import kind_of

from .openapi_schemas import SchemaBuilder
from .schema import Schema


@lru_cache(maxsize=1)
def _builder() -> tuple[SchemaBuilder, dict[str, str]]:
    text = resources.files(__package__).joinpath("data/definitions.json").read_bytes()
    data: dict[str, Any] = msgspec.json.decode(text)
    return SchemaBuilder(data["definitions"]), data["kinds"]


@lru_cache(maxsize=1024)
def schema_of_kind(gvk: GroupVersionKind) -> Schema:
    """The schema of a built-in kind. Raises LookupError for any other."""
    builder, kinds = _builder()
    return builder.schema(kinds[f"{gvk.group_version} {gvk.kind}"])


@lru_cache(maxsize=1024)
def schema_for(cls: type[msgspec.Struct]) -> Schema:
    """The schema of a built-in class that is a kind. Raises LookupError for any other."""
    return schema_of_kind(kind_of(cls))
