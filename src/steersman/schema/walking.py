"""Iteration over all subschemas of a schema (k8s.io/apiextensions-apiserver `validation`, SchemaHas)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from steersman.work.threads import give_way

_LISTS: Final = ("allOf", "anyOf", "oneOf")
_MAPS: Final = ("properties", "patternProperties", "definitions", "dependencies")
_ONE: Final = ("items", "not", "additionalProperties", "additionalItems")
_EXTENSIONS: Final = (
    "x-kubernetes-embedded-resource",
    "x-kubernetes-int-or-string",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-validations",
)

Schema = Mapping[str, Any]


def schemas_in(plain: Schema) -> Iterator[Schema]:
    """Yield a schema and all its subschemas, each once."""
    give_way()
    yield plain
    for name in _ONE:
        found = plain.get(name)
        if isinstance(found, Mapping):
            yield from schemas_in(found)
    for name in (*_LISTS, "items"):
        found = plain.get(name)
        if isinstance(found, list):
            for each in found:
                yield from schemas_in(each)
    for name in _MAPS:
        for each in (plain.get(name) or {}).values():
            if isinstance(each, Mapping):  # a dependency may also be a list of names
                yield from schemas_in(each)


def any_schema(plain: Schema | None, has: Callable[[Schema], bool]) -> bool:
    """Return True if `has` is true for a schema or one of its subschemas."""
    return plain is not None and any(has(each) for each in schemas_in(plain))


def has_defaults(plain: Schema | None) -> bool:
    """Return True if the schema has a default anywhere."""
    return any_schema(plain, lambda each: each.get("default") is not None)


def has_extensions(plain: Schema | None) -> bool:
    """Return True if the schema uses an extension of structural schemas (x-kubernetes-...)."""
    return any_schema(plain, _has_extension)


def _has_extension(plain: Schema) -> bool:
    return (
        any(plain.get(name) for name in _EXTENSIONS)
        or plain.get("x-kubernetes-preserve-unknown-fields") is not None
        or plain.get("x-kubernetes-list-type") is not None
    )
