"""Warnings about unknown formats in schemas, which nothing checks (apiextensions.k8s.io `validation/formats.go`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from steersman.machinery.errors.field import quote
from steersman.registry.apiextensions.internal import InternalSpec, PlainSchema
from steersman.work.threads import give_way

TEXT_FORMATS: Final = frozenset(
    {
        "bsonobjectid",
        "byte",
        "cidr",
        "creditcard",
        "date",
        "datetime",
        "duration",
        "email",
        "hexcolor",
        "hostname",
        "ipv4",
        "ipv6",
        "isbn",
        "isbn10",
        "isbn13",
        "k8slongname",
        "k8sshortname",
        "mac",
        "password",
        "rgbcolor",
        "ssn",
        "uri",
        "uuid",
        "uuid3",
        "uuid4",
        "uuid5",
    }
)
"""Formats of strings, without dashes."""

_FORMATS: Final = {"integer": frozenset({"int32", "int64"}), "number": frozenset({"double", "float"})}
_LISTS: Final = ("allOf", "anyOf", "oneOf")
_MAPS: Final = ("properties", "patternProperties", "definitions", "dependencies")


def unrecognized_formats(internal: InternalSpec) -> Iterator[str]:
    """Yield the unknown formats in the schemas of all versions, with repetitions."""
    for schema in internal.schemas.values:
        for part in parts(schema):
            name = part.get("format", "")
            if name and not is_recognized(part.get("type", ""), name):
                yield name


def is_recognized(kind: str, name: str) -> bool:
    """Return True if a format is known for values of a type ("" for a missing type)."""
    if kind in ("", "string"):
        return name.replace("-", "") in TEXT_FORMATS
    return name in _FORMATS.get(kind, ())


def warning(name: str) -> str:
    """Return the warning about an unknown format."""
    return f"unrecognized format {quote(name)}"


def parts(schema: PlainSchema) -> Iterator[PlainSchema]:
    """Yield a schema and all schemas inside it, each before the schemas inside it."""
    ahead: list[Any] = [schema]
    while ahead:
        give_way()
        part = ahead.pop()
        yield part
        ahead.extend(reversed(list(_children(part))))


def _children(part: PlainSchema) -> Iterator[PlainSchema]:
    items = part.get("items")
    for value in items if isinstance(items, list) else (items,):
        if isinstance(value, dict):
            yield value
    for name in _LISTS:
        yield from part.get(name, ())
    for name in ("not", "additionalProperties", "additionalItems"):
        value = part.get(name)
        if isinstance(value, dict):
            yield value
    for name in _MAPS:
        yield from (value for value in part.get(name, {}).values() if isinstance(value, dict))
