"""Simple JSON paths into a schema, by which selectable fields and rules name fields: `.spec.names['a.b']`.

Follows k8s.io/apiextensions-apiserver `schema/cel` (ValidFieldPath).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from steersman.machinery.errors.field import Path
from steersman.work.patterns import late_pattern

_TOKEN: Final = late_pattern(r"'(?:(?s:.)*?)(?<!\\)'|'(?s:.)*|[.\[\]]|[^.\[\]]+")
_ESCAPE: Final = late_pattern(r"\\(.)")
_ESCAPED: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "'": "'", "\\": "\\"}


class FieldPathError(ValueError):
    """The error for a path without a field, with upstream's message."""


class FoundField(NamedTuple):
    """The target of a path: the field path in values, its first step, and its schema (None if it has none)."""

    path: Path
    first: str
    schema: Mapping[str, Any] | None


def valid_field_path(text: str, plain: Mapping[str, Any], *, array_notation: bool = True) -> FoundField:
    """Return the field of a path. Raises FieldPathError."""
    tokens = (found[0] for found in _TOKEN.finditer(text))
    found = FoundField(Path(), "", plain)
    for token in tokens:
        if token == "[":
            if not array_notation:
                raise FieldPathError("array notation is not allowed")
            quoted = _next(tokens)
            if len(quoted) < 2 or quoted[0] != "'" or quoted[-1] != "'":
                raise FieldPathError(f"expected single quoted string but got {quoted}")
            found = _step(found, _unescaped(quoted[1:-1]))
            closing = _next(tokens)
            if closing != "]":
                raise FieldPathError(f"expected ] but got {closing}")
        elif token == ".":
            found = _step(found, _next(tokens))
        else:
            raise FieldPathError(f"expected [ or . but got: {token}")
    return found


def _next(tokens: Iterator[str]) -> str:
    token = next(tokens, None)
    if token is None:
        raise FieldPathError("unexpected end of JSON path")
    return token


def _step(found: FoundField, name: str) -> FoundField:
    schema = found.schema or {}
    properties, additional = schema.get("properties"), schema.get("additionalProperties")
    if properties:
        if name not in properties:
            raise FieldPathError("does not refer to a valid field")
        path, below = found.path / name, properties[name]
    elif additional is not None:
        path, below = found.path[name], additional if isinstance(additional, Mapping) else None
    else:
        raise FieldPathError("does not refer to a valid field")
    return FoundField(path, found.first or str(path), below)


def _unescaped(text: str) -> str:
    wrong = [found for found in _ESCAPE.findall(text) if found not in _ESCAPED]
    if wrong:
        raise FieldPathError(f"invalid string literal: invalid escape char \\{wrong[-1]}")
    return _ESCAPE.sub(lambda found: _ESCAPED[found[1]], text)
