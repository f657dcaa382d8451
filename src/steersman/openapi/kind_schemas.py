"""The schema of a single kind and the schemas to which it refers, as published in OpenAPI v3 (`cel/openapi/resolver`).

The schema of a built-in kind is known without a document. Those of kinds that bring their schemas, and those of other
servers, are looked up in the documents of their group version.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from steersman.api.index import MODULES
from steersman.endpoints.discovery import ServedResource
from steersman.machinery.codec.derived_types import schema_name
from steersman.machinery.codec.serializer import decode_plain
from steersman.machinery.identity.schema import GroupVersionKind
from steersman.openapi.custom import ObjectTexts, schemas_of
from steersman.openapi.derived import GVK, Schema
from steersman.openapi.names import META, name_of_kind
from steersman.openapi.schemas import recorded, references
from steersman.openapi.structural import V3_PREFIX

SchemaOf = Callable[[str], Mapping[str, Any]]
"""A function that returns the schema of a reference. Raises LookupError."""

_NO_TEXTS = ObjectTexts({}, {})


@dataclass(frozen=True, slots=True)
class KindSchema:
    """The schema of a kind.

    `reference` is the reference of other schemas to this one, if it may occur within itself; "" for kinds from
    documents, where upstream does not recognize the recursion.
    """

    schema: Mapping[str, Any]
    schema_of: SchemaOf
    reference: str = ""


def built_in_schema(gvk: GroupVersionKind) -> KindSchema | None:
    """Return the schema of a built-in kind, also of lists and options; None for other kinds."""
    module = MODULES.get((gvk.group, gvk.version))
    names = (schema_name(f"{module}.{gvk.kind}") if module else "", f"{META}{gvk.kind}")
    schema_of = cache(_built_in)
    for reference in (f"{V3_PREFIX}{name}" for name in names if name):
        try:
            schema = schema_of(reference)
        except LookupError:
            continue
        if _is_of(schema, gvk):
            return KindSchema(schema, schema_of, reference)
    return None


def _built_in(reference: str) -> Schema:
    return recorded(reference.removeprefix(V3_PREFIX))


def _is_of(schema: Any, gvk: GroupVersionKind) -> bool:
    said = schema.get(GVK) if isinstance(schema, dict) else None
    wanted = {"group": gvk.group, "version": gvk.version, "kind": gvk.kind}
    return isinstance(said, list) and wanted in said


def served_schema(served: ServedResource, gvk: GroupVersionKind) -> KindSchema | None:
    """Return the schema of a kind that brings its own, or of its list; None if `gvk` is neither."""
    kind = served.form
    if not kind.brings_openapi or gvk.kind not in (kind.name, kind.list_name):
        return None
    own = schemas_of(kind, served.resource.plural, (), _NO_TEXTS).schemas

    @cache
    def schema_of(reference: str) -> Schema:
        name = reference.removeprefix(V3_PREFIX)
        return own[name] if name in own else recorded(name)

    return KindSchema(own[name_of_kind(kind, gvk.kind)], schema_of)


def document_schema(data: bytes, gvk: GroupVersionKind) -> KindSchema | None:
    """Return the schema of a kind in another server's v3 document; None if it is missing or has a dangling reference."""
    schemas = _schemas(data)
    found = next((each for each in schemas.values() if _is_of(each, gvk)), None)
    if found is None:
        return None
    schema_of = partial(_in_document, schemas)
    pending, seen = [found], set[str]()
    while pending:
        for name in references(pending.pop()):
            if name not in seen:
                seen.add(name)
                if name not in schemas:
                    return None
                pending.append(schemas[name])
    return KindSchema(found, schema_of)


def _schemas(data: bytes) -> dict[str, Any]:
    """Return the schemas of a document, {} if it is malformed."""
    try:
        document = decode_plain(data)
    except ValueError:
        return {}
    components = document.get("components") if isinstance(document, dict) else None
    schemas = components.get("schemas") if isinstance(components, dict) else None
    return {name: each for name, each in schemas.items() if isinstance(each, dict)} if isinstance(schemas, dict) else {}


def _in_document(schemas: Mapping[str, Schema], reference: str) -> Schema:
    return schemas[reference.removeprefix(V3_PREFIX)]
