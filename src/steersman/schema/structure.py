"""Validation that a schema is structural: each value has one type, declared outside of allOf, anyOf, oneOf and not.

Follows k8s.io/apiextensions-apiserver `pkg/apiserver/schema` (NewStructural, ValidateStructural).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from steersman.machinery.errors import field
from steersman.machinery.errors.field import FieldError, Path
from steersman.work.threads import give_way

from .compiling import UnsupportedSchemaError, compile_node
from .patterns import pattern_error

Schema = Mapping[str, Any]

_ROOT: Final = "must not be empty at the root"
_ITEM: Final = "must not be empty for specified array items"
_FIELD: Final = "must not be empty for specified object fields"
_EMBEDDED: Final = "must be object if x-kubernetes-embedded-resource is true"
_ONLY_NAMES: Final = "must not specify anything other than name and generateName, but metadata is implicitly specified"
_INT_OR_STRING: Final = [{"type": "integer"}, {"type": "string"}]
_JUNCTORS: Final = ("anyOf", "allOf", "oneOf")
_KEPT_EMPTY: Final = frozenset(
    {
        "additionalProperties",
        "default",
        "example",
        "externalDocs",
        "not",
        "required",
        "x-kubernetes-list-map-keys",
        "x-kubernetes-list-type",
        "x-kubernetes-map-type",
    }
)
"""Members that are significant even if they are empty or false."""
_NOT_NESTED: Final = (
    ("type", "must be empty to be structural"),
    ("default", "must be undefined to be structural"),
    ("title", "must be empty to be structural"),
    ("description", "must be empty to be structural"),
    ("nullable", "must be false to be structural"),
    ("x-kubernetes-preserve-unknown-fields", "must be false to be structural"),
    ("x-kubernetes-embedded-resource", "must be false to be structural"),
    ("x-kubernetes-int-or-string", "must be false to be structural"),
    ("x-kubernetes-list-map-keys", "must be empty to be structural"),
    ("x-kubernetes-list-type", "must be undefined to be structural"),
    ("x-kubernetes-map-type", "must be undefined to be structural"),
    ("x-kubernetes-validations", "must be empty to be structural"),
)
_POINTERS: Final = frozenset({"default", "x-kubernetes-list-type", "x-kubernetes-map-type"})


def structural_errors(plain: Schema, path: Path) -> list[FieldError]:
    """Return the errors that keep a schema from being structural, sorted by text."""
    try:
        compile_node(plain)
    except UnsupportedSchemaError as error:
        return [field.invalid(path, "", str(error))]
    return invariant_errors(plain, path)


def invariant_errors(plain: Schema, path: Path) -> list[FieldError]:
    """Return the errors of a schema without unsupported members (ValidateStructural), sorted by text."""
    return sorted([*_errors(plain, path, _ROOT), *_completeness(plain, plain, path, path)], key=str)


def _errors(plain: Schema, path: Path, level: str) -> Iterator[FieldError]:
    give_way()
    items = plain.get("items")
    if isinstance(items, Mapping):
        yield from _errors(items, path / "items", _ITEM)
    elif plain.get("type") == "array":
        yield field.required(path / "items", "must be specified")
    properties = plain.get("properties") or {}
    for name, each in properties.items():
        yield from _errors(each, (path / "properties")[name], _FIELD)
    yield from _additional(plain, path, level)
    yield from _extensions(plain, path)
    is_first = bool(plain.get("allOf")) and says_int_or_string(plain["allOf"][0])
    yield from _validations(plain, path, is_int_or_string=says_int_or_string(plain), is_first=is_first)
    yield from _types(plain, path, level)
    embedded = bool(plain.get("x-kubernetes-embedded-resource"))
    yield from _meta(properties, path / "properties", is_resource=embedded or level is _ROOT, is_root=level is _ROOT)
    if embedded and not plain.get("x-kubernetes-preserve-unknown-fields") and not properties:
        yield field.required(
            path / "properties",
            "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields",
        )


def _additional(plain: Schema, path: Path, level: str) -> Iterator[FieldError]:
    additional = plain.get("additionalProperties")
    if additional is None:
        return
    if level is _ROOT:
        yield field.forbidden(path / "additionalProperties", "must not be used at the root")
    if isinstance(additional, Mapping):
        yield from _errors(additional, path / "additionalProperties", _FIELD)
    if plain.get("x-kubernetes-embedded-resource"):
        text = "must not be used if x-kubernetes-embedded-resource is set"
        yield field.forbidden(path / "additionalProperties", text)


def _extensions(plain: Schema, path: Path) -> Iterator[FieldError]:
    if plain.get("x-kubernetes-int-or-string"):
        for name in ("x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"):
            if plain.get(name):
                yield field.invalid(path / name, True, "must be false if x-kubernetes-int-or-string is true")


def _types(plain: Schema, path: Path, level: str) -> Iterator[FieldError]:
    kind = plain.get("type") or ""
    if plain.get("x-kubernetes-embedded-resource") and kind != "object":
        yield field.invalid(path / "type", kind, _EMBEDDED) if kind else field.required(path / "type", _EMBEDDED)
    elif not kind and not (
        plain.get("x-kubernetes-int-or-string") or plain.get("x-kubernetes-preserve-unknown-fields")
    ):
        yield field.required(path / "type", level)
    if level is _ROOT and kind and kind != "object":
        yield field.invalid(path / "type", kind, "must be object at the root")


def _meta(properties: Schema, path: Path, *, is_resource: bool, is_root: bool) -> Iterator[FieldError]:
    """Yield the errors of the members that every resource has."""
    if is_resource:
        for name in ("kind", "apiVersion"):
            if name in properties:
                kind = properties[name].get("type") or ""
                if kind != "string":
                    yield field.invalid(path[name] / "type", kind, "must be string")
    if "metadata" not in properties:
        return
    metadata = properties["metadata"]
    kind = metadata.get("type") or ""
    if is_resource and kind != "object":
        yield field.invalid(path["metadata"] / "type", kind, "must be object")
    if is_root:
        said = _said(metadata)
        said.pop("type", None)
        said.pop("default", None)
        names = said.get("properties")
        if not names or names.keys() <= {"name", "generateName"}:
            said.pop("properties", None)
        if said:
            yield field.forbidden(path["metadata"], _ONLY_NAMES)


def _said(plain: Schema) -> dict[str, Any]:
    """Return a schema without insignificant members."""
    return {name: value for name, value in plain.items() if not _is_empty(name, value)}


def _is_empty(name: str, value: Any) -> bool:
    if name == "items":
        return not isinstance(value, Mapping)
    return value is None or (name not in _KEPT_EMPTY and (value is False or value in ("", [], {})))


def says_int_or_string(plain: Schema) -> bool:
    """Return True if anyOf consists of the types integer and string, and nothing else."""
    found = plain.get("anyOf") or ()
    return len(found) == 2 and [_nested_said(each) for each in found] == _INT_OR_STRING


def _nested_said(plain: Schema) -> dict[str, Any]:
    said = _said(plain)
    if plain.get("properties") is not None:
        said["properties"] = plain["properties"]
    if plain.get("additionalProperties") is False:
        said.pop("additionalProperties", None)
    return said


def _validations(plain: Schema, path: Path, *, is_int_or_string: bool, is_first: bool) -> Iterator[FieldError]:
    """Yield the errors in allOf, anyOf, oneOf and not.

    The flags determine whether the int-or-string anyOf of the schema, or of the first schema in its allOf, is skipped.
    """
    for junctor in _JUNCTORS:
        if junctor == "anyOf" and is_int_or_string:
            continue
        for number, each in enumerate(plain.get(junctor) or ()):
            skipped = is_first and junctor == "allOf" and number == 0
            yield from _nested(each, (path / junctor)[number], is_int_or_string=skipped)
    negated = plain.get("not")
    if negated is not None:
        yield from _nested(negated, path / "not")
    pattern = plain.get("pattern")
    if pattern:
        wrong = pattern_error(pattern)
        if wrong:
            yield field.invalid(path / "pattern", pattern, f"must be a valid regular expression, but isn't: {wrong}")


def _nested(plain: Schema, path: Path, *, is_int_or_string: bool = False) -> Iterator[FieldError]:
    give_way()
    yield from _validations(plain, path, is_int_or_string=is_int_or_string, is_first=False)
    items = plain.get("items")
    if isinstance(items, Mapping):
        yield from _nested(items, path / "items")
    properties = plain.get("properties") or {}
    for name, each in properties.items():
        yield from _nested(each, (path / "properties")[name])
    additional = plain.get("additionalProperties")
    if additional is not None and additional is not False:
        yield field.forbidden(path / "additionalProperties", "must be undefined to be structural")
    for name, text in _NOT_NESTED:
        value = plain.get(name)
        if value is not None and (value or name in _POINTERS):
            yield field.forbidden(path / name, text)
    if "metadata" in properties:
        yield field.forbidden((path / "properties")["metadata"], "must not be specified in a nested context")


def _completeness(plain: Schema, structural: Schema, path: Path, said_at: Path) -> Iterator[FieldError]:
    """Yield the errors of value validations for fields or items that are not declared outside of them."""
    negated = plain.get("not")
    if negated is not None:
        yield from _nested_completeness(negated, structural, path, said_at / "not")
    for junctor in ("allOf", "anyOf", "oneOf"):
        for number, each in enumerate(plain.get(junctor) or ()):
            yield from _nested_completeness(each, structural, path, (said_at / junctor)[number])


def _nested_completeness(plain: Schema, structural: Schema, path: Path, said_at: Path) -> Iterator[FieldError]:
    yield from _completeness(plain, structural, path, said_at)
    items = plain.get("items")
    if isinstance(items, Mapping):
        declared = structural.get("items")
        if isinstance(declared, Mapping):
            yield from _nested_completeness(items, declared, path / "items", said_at / "items")
        else:
            yield field.required(path / "items", f"because it is defined in {said_at / 'items'}")
    declared = structural.get("properties") or {}
    for name, each in (plain.get("properties") or {}).items():
        at, said = (path / "properties")[name], (said_at / "properties")[name]
        if name in declared:
            yield from _nested_completeness(each, declared[name], at, said)
        else:
            yield field.required(at, f"because it is defined in {said}")
