"""Random schemas: sound ones, and sound ones that something was done to."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from random import Random
from typing import Any, Final

Schema = dict[str, Any]

NAMES: Final = ("a", "b", "c", "d", "kind", "apiVersion", "metadata", "name", "a.b", "x-y")
PATTERNS: Final = ("^a+$", "[0-9]", "^$", "b|c", r"^\d{2,3}$", "ä")
FORMATS: Final = (
    "byte",
    "date",
    "date-time",
    "duration",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "cidr",
    "mac",
    "uri",
    "uuid",
    "uuid4",
    "password",
    "isbn",
    "creditcard",
    "ssn",
    "hexcolor",
    "rgbcolor",
    "k8s-short-name",
    "k8s-long-name",
    "bsonobjectid",
    "unheard-of",
    "int32",
    "float",
)
_NUMBERS: Final = (-3, -1, 0, 1, 2, 3, 5, 10, 100, 2**31 - 1, 2**31, 2**53, 2**63 - 1, 1e30)
_FRACTIONS: Final = (-1.5, -0.1, 0.1, 0.5, 1.5, 2.5, 0.3, 1e-7, 3.4e38)
DEPTH: Final = 3


def schema(random: Random, depth: int = 0) -> Schema:
    """A schema that a definition may have, in all but its defaults."""
    kinds = [_string, _integer, _number, _boolean, _int_or_string, _anything]
    if depth < DEPTH:
        kinds += [_array, _array, _object, _object, _object, _map, _embedded]
    out = random.choice(kinds)(random, depth)
    if random.random() < 0.15:
        out["nullable"] = True
    if depth < DEPTH and random.random() < 0.3:
        _add_junctors(random, out)
    return out


def _some(random: Random, share: float, **members: Any) -> Schema:
    return {name: value for name, value in members.items() if random.random() < share}


def _checks_of_text(random: Random) -> Schema:
    return _some(
        random,
        0.2,
        minLength=random.randint(0, 3),
        maxLength=random.randint(1, 5),
        pattern=random.choice(PATTERNS),
        enum=random.choice((["a", "b"], ["", "ä"], ["aa", "10"])),
        format=random.choice(FORMATS),
    )


def _checks_of_number(random: Random, *, fractions: bool) -> Schema:
    pool = _NUMBERS + _FRACTIONS if fractions or random.random() < 0.1 else _NUMBERS
    return _some(
        random,
        0.2,
        minimum=random.choice(pool),
        maximum=random.choice(pool),
        exclusiveMinimum=True,
        exclusiveMaximum=True,
        multipleOf=random.choice((1, 2, 3, 0.5, 0.1, 1.5, -1, 0)),
        enum=random.choice(([1, 2], [1.5, 3], [65, 0])),
    )


def _string(random: Random, depth: int) -> Schema:
    return {"type": "string", **_checks_of_text(random), **_some(random, 0.1, default=random.choice(("a", "aa", "")))}


def _integer(random: Random, depth: int) -> Schema:
    format = _some(random, 0.3, format=random.choice(("int32", "int64", "date", "unheard-of")))
    default = _some(random, 0.1, default=random.choice((1, 2, 5)))
    return {"type": "integer", **_checks_of_number(random, fractions=False), **format, **default}


def _number(random: Random, depth: int) -> Schema:
    format = _some(random, 0.3, format=random.choice(("float", "double", "int32", "unheard-of")))
    return {"type": "number", **_checks_of_number(random, fractions=True), **format}


def _boolean(random: Random, depth: int) -> Schema:
    return {"type": "boolean", **_some(random, 0.1, default=True, enum=[True])}


def _int_or_string(random: Random, depth: int) -> Schema:
    out: Schema = {"x-kubernetes-int-or-string": True}
    either = [{"type": "integer"}, {"type": "string"}]
    kind = random.random()
    if kind < 0.3:
        out["anyOf"] = either
    elif kind < 0.5:
        out["allOf"] = [{"anyOf": either}, random.choice(({"pattern": "^a"}, {"minimum": 3}, {"enum": ["A", 5]}))]
    return out | _some(random, 0.2, pattern=random.choice(PATTERNS), enum=["A", 65, "10"], format="ipv4")


def _anything(random: Random, depth: int) -> Schema:
    return {"x-kubernetes-preserve-unknown-fields": True} | _some(random, 0.3, type="object")


def _array(random: Random, depth: int) -> Schema:
    kind = random.random()
    out: Schema = {"type": "array", **_some(random, 0.25, minItems=random.randint(0, 2), maxItems=random.randint(1, 3))}
    if kind < 0.2:
        items = random.choice((_string, _integer, _number))(random, depth + 1)
        items.pop("nullable", None)
        return out | {"items": items, "x-kubernetes-list-type": "set"}
    if kind < 0.5:
        keys = random.sample(["a", "b", "c"], random.randint(1, 2))
        properties = {name: random.choice((_string, _integer, _number))(random, depth + 1) for name in keys}
        properties["d"] = schema(random, depth + 1)
        items = {"type": "object", "properties": properties, "required": keys}
        return out | {"items": items, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys}
    if random.random() < 0.1:
        out["x-kubernetes-preserve-unknown-fields"] = True
    return out | {"items": schema(random, depth + 1)} | _some(random, 0.2, **{"x-kubernetes-list-type": "atomic"})


def _counts(random: Random) -> Schema:
    return _some(random, 0.15, minProperties=random.randint(0, 2), maxProperties=random.randint(1, 3))


def _object(random: Random, depth: int) -> Schema:
    names = random.sample(NAMES, random.randint(1, 4))
    out: Schema = {"type": "object", "properties": {name: schema(random, depth + 1) for name in names}}
    if random.random() < 0.3:
        out["required"] = random.sample(names, random.randint(1, len(names))) + random.choice(([], ["gone"]))
    if random.random() < 0.2:
        out["x-kubernetes-preserve-unknown-fields"] = True
    if random.random() < 0.1:
        out["default"] = {}
    return (
        out | _counts(random) | _some(random, 0.1, **{"x-kubernetes-map-type": random.choice(("atomic", "granular"))})
    )


def _map(random: Random, depth: int) -> Schema:
    additional = random.choice((schema(random, depth + 1), schema(random, depth + 1), True, False))
    return {"type": "object", "additionalProperties": additional} | _counts(random)


def _embedded(random: Random, depth: int) -> Schema:
    out: Schema = {"type": "object", "x-kubernetes-embedded-resource": True}
    if random.random() < 0.5:
        out["x-kubernetes-preserve-unknown-fields"] = True
        return out
    return out | {"properties": {"d": schema(random, depth + 1), "metadata": {"type": "object"}}}


def _add_junctors(random: Random, out: Schema) -> None:
    """Adds alternatives that say nothing of what the schema does not know."""
    for name in random.sample(("allOf", "anyOf", "oneOf", "not"), random.randint(1, 2)):
        if name in out:
            continue
        out[name] = (
            _nested(random, out) if name == "not" else [_nested(random, out) for _ in range(random.randint(1, 3))]
        )


def _nested(random: Random, structural: Schema) -> Schema:
    kind = structural.get("type")
    out: Schema = {}
    if random.random() < 0.2:
        out["not" if random.random() < 0.5 else "anyOf"] = {} if "not" in out else [{}, _nested(random, structural)]
        if "not" in out:
            out["not"] = _nested(random, structural)
        elif out["anyOf"] == {}:
            out["anyOf"] = [{}]
    if kind == "string":
        return out | _checks_of_text(random)
    if kind in ("integer", "number"):
        return out | _checks_of_number(random, fractions=kind == "number")
    if kind == "array":
        out |= _some(random, 0.3, minItems=random.randint(0, 3), maxItems=random.randint(0, 3))
        return out | ({"items": _nested(random, structural["items"])} if random.random() < 0.5 else {})
    properties = structural.get("properties") or {}
    out |= _some(random, 0.2, minProperties=1, required=random.sample(NAMES, 1))
    names = [name for name in properties if name != "metadata" and random.random() < 0.5]
    return out | ({"properties": {name: _nested(random, properties[name]) for name in names}} if names else {})


# Members that a definition must not have

_ODD: Final[tuple[Schema, ...]] = (
    {"type": "null"},
    {"type": "file"},
    {"type": ""},
    {"id": "x"},
    {"$ref": "x"},
    {"$schema": "x"},
    {"definitions": {"a": {"type": "object"}}},
    {"dependencies": {"a": ["b"]}},
    {"patternProperties": {"a": {"type": "null"}}},
    {"additionalItems": True},
    {"uniqueItems": True},
    {"additionalProperties": True},
    {"additionalProperties": False},
    {"additionalProperties": {"type": "string"}},
    {"additionalProperties": {}},
    {"items": [{"type": "string"}]},
    {"items": {}},
    {"items": {"type": "string", "nullable": True}},
    {"nullable": True},
    {"pattern": "a["},
    {"pattern": "(?=a)"},
    {"default": 5},
    {"default": {"a": 1, "kind": 3}},
    {"default": []},
    {"default": "x"},
    {"default": {"metadata": {"labels": 5}}},
    {"default": {"apiVersion": "v1", "kind": "A", "metadata": {"name": "/"}}},
    {"x-kubernetes-list-type": "set"},
    {"x-kubernetes-list-type": "map"},
    {"x-kubernetes-list-type": "odd"},
    {"x-kubernetes-list-map-keys": ["a", "a"]},
    {"x-kubernetes-list-map-keys": ["gone"], "x-kubernetes-list-type": "map"},
    {"x-kubernetes-map-type": "atomic"},
    {"x-kubernetes-map-type": "odd"},
    {"x-kubernetes-embedded-resource": True},
    {"x-kubernetes-int-or-string": True},
    {"x-kubernetes-preserve-unknown-fields": True},
    {"x-kubernetes-preserve-unknown-fields": False},
    {"anyOf": [{"type": "integer"}, {"type": "string"}]},
    {"allOf": [{"anyOf": [{"type": "integer"}, {"type": "string"}]}, {"type": "string"}]},
    {"oneOf": [{"properties": {"a": {"minimum": 1}, "gone": {}}}]},
    {"not": {"items": {"minLength": 1}}},
    {"anyOf": [{"description": "x", "title": "y", "nullable": True, "default": 1}]},
    {"anyOf": [{"properties": {"metadata": {}}, "additionalProperties": {"type": "string"}}]},
    {"not": {"x-kubernetes-list-type": "set", "x-kubernetes-list-map-keys": ["a"], "x-kubernetes-map-type": "atomic"}},
    {
        "properties": {
            "metadata": {"type": "object", "default": {}, "properties": {"name": {"type": "string", "default": "/"}}}
        }
    },
    {"properties": {"metadata": {"type": "string"}, "kind": {"type": "object"}}},
    {"properties": {"kind": {"type": "string", "default": 5}, "apiVersion": {"type": "string", "default": "a/b/c"}}},
    {"format": "date", "default": "2020-13-01"},
    {"minimum": 3, "default": 1},
    {"default": False},
    {"default": ""},
    {"example": {}},
    {"externalDocs": {}},
    {"required": []},
    {"enum": []},
    {"properties": {}},
    {"allOf": []},
    {"items": []},
    {"not": {}},
    {"minimum": 0},
    {"x-kubernetes-list-map-keys": []},
    {"x-kubernetes-list-type": ""},
    {"x-kubernetes-map-type": ""},
    {"description": ""},
    {"default": None},
    {"properties": {"metadata": {"type": "object", "example": {}}}},
    {"properties": {"metadata": {"required": []}}},
    {"anyOf": [{"type": "integer", "required": []}, {"type": "string"}]},
    {"anyOf": [{"properties": {}}]},
    {"anyOf": [{"type": "integer"}, {"type": "string", "additionalProperties": False, "enum": []}]},
    {"enum": ["x", 1]},
    {"x-kubernetes-validations": [{"rule": " "}, {"rule": "true", "message": " ", "reason": "Odd", "fieldPath": ".x"}]},
    {
        "x-kubernetes-validations": [
            {"rule": "true\n||true"},
            {"rule": "true", "message": "a\nb", "messageExpression": " "},
        ]
    },
)


def oddly(random: Random, sound: Schema) -> Schema:
    """A sound schema with one to three odd members somewhere; it is changed."""
    for _ in range(random.randint(1, 3)):
        place = random.choice(list(places(sound)))
        place.update(copy.deepcopy(random.choice(_ODD)))
        if random.random() < 0.15:
            place.pop(random.choice(list(place)))
    return sound


def places(schema: Schema) -> Iterator[Schema]:
    """The schema and all below it."""
    yield schema
    for name in ("items", "additionalProperties", "not"):
        if isinstance(schema.get(name), dict):
            yield from places(schema[name])
    for each in (schema.get("properties") or {}).values():
        yield from places(each)
    for name in ("allOf", "anyOf", "oneOf"):
        for each in schema.get(name) or ():
            yield from places(each)
