"""Schemas of kinds that bring their own, as k8s.io/apiextensions-apiserver publishes those of custom resources.

Follows its `pkg/controller/openapi/builder`: the members of every object are added to the structural schema, and the
schema of lists is generated.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from steersman.kinds.kind import Kind
from steersman.openapi.derived import GVK, Schema
from steersman.openapi.names import LIST_META, OBJECT_META, name_of_kind
from steersman.openapi.structural import PRESERVE, V2_PREFIX, V3_PREFIX, PublishedSchemas, object_meta

_SELECTABLE: Final = "x-kubernetes-selectable-fields"
_MORE: Final = "More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md"


@dataclass(frozen=True, slots=True)
class ObjectTexts:
    """Descriptions of the members that every object has, and that every list has, by name."""

    object: dict[str, str]
    list: dict[str, str]


@dataclass(frozen=True, slots=True)
class OwnSchemas:
    """The schemas of a kind and its list by name, and the full names of the built-in types to which they refer."""

    schemas: dict[str, Schema]
    references: frozenset[str]


def schemas_of(
    kind: Kind[Any], plural: str, selectable: Iterable[str], texts: ObjectTexts, *, v2: bool = False
) -> OwnSchemas:
    """Return the schemas of a kind for v3 or v2 documents. `selectable` are paths of fields: `spec.color`."""
    declared = kind.openapi
    assert declared is not None
    published = PublishedSchemas(v2=v2)
    if v2 and declared.get(PRESERVE):
        whole: Schema = {"type": "object"}  # v2 clients would refuse members that are not declared
    else:
        whole = published.schema(declared)
        whole["properties"] = whole.get("properties", {}) | _of_every_object(object_meta(v2=v2), texts.object)
    of_list = _list(kind, plural, texts.list, v2=v2)
    fields = [{"fieldPath": each} for each in selectable]
    for schema, name in ((whole, kind.name), (of_list, kind.list_name)):
        schema[GVK] = [{"group": kind.group, "kind": name, "version": kind.version}]
        if fields:
            schema[_SELECTABLE] = fields
    found = {name_of_kind(kind): whole, name_of_kind(kind, kind.list_name): of_list}
    return OwnSchemas(found, frozenset({*published.references, OBJECT_META, LIST_META}))


def _of_every_object(metadata: Schema, texts: dict[str, str]) -> dict[str, Schema]:
    members: dict[str, Schema] = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": metadata}
    return {
        name: member | ({"description": texts[name]} if texts.get(name) else {}) for name, member in members.items()
    }


def _list(kind: Kind[Any], plural: str, texts: dict[str, str], *, v2: bool) -> Schema:
    prefix = V2_PREFIX if v2 else V3_PREFIX
    reference = {"$ref": prefix + LIST_META}
    items = {
        "description": f"List of {plural}. {_MORE}",
        "items": {"$ref": prefix + name_of_kind(kind)},
        "type": "array",
    }
    return {
        "description": f"{kind.list_name} is a list of {kind.name}",
        "properties": {"items": items, **_of_every_object(reference if v2 else {"allOf": [reference]}, texts)},
        "required": ["items"],
        "type": "object",
    }
