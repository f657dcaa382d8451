"""Validation of the schemas of definitions."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.machinery.errors.field import FieldError, Path, invalid
from steersman.schema import (
    SchemaChecks,
    SchemaPosition,
    has_defaults,
    has_extensions,
    schema_errors,
    structural_errors,
)
from tests.schema.asking import PATH, of, refused, told

TEXT = {"type": "string"}
TYPES = '"array", "boolean", "integer", "number", "object", "string"'
ATOMIC = "must be atomic as item of a list with x-kubernetes-list-type=set"
KEYED = {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items": of(k=TEXT)}
MUST_BE_EMPTY = "Forbidden: must be empty to be structural"


@pytest.mark.parametrize(
    ("schema", "errors"),
    [
        ({}, [("schema.type", "Required value: must not be empty at the root")]),
        ({"type": "string"}, [("schema.type", 'Invalid value: "string": must be object at the root')]),
        (
            {"type": "object", "additionalProperties": TEXT},
            [("schema.additionalProperties", "Forbidden: must not be used at the root")],
        ),
        (of(a={}), [("schema.properties[a].type", "Required value: must not be empty for specified object fields")]),
        (of(a={"type": "array"}), [("schema.properties[a].items", "Required value: must be specified")]),
        (
            of(a={"type": "array", "items": {}}),
            [("schema.properties[a].items.type", "Required value: must not be empty for specified array items")],
        ),
        (
            of(metadata={"type": "object", "description": "x"}),
            [
                (
                    "schema.properties[metadata]",
                    "Forbidden: must not specify anything other than name and generateName, but metadata is implicitly"
                    " specified",
                )
            ],
        ),
        (of(metadata={"type": "object", "properties": {"name": {**TEXT, "maxLength": 3}}}), []),
        (of(a={**TEXT, "anyOf": [{"type": "integer"}, {"type": "string"}]}), []),
        (
            of(a={**TEXT, "anyOf": [{"type": "integer", "default": []}, {"type": "string"}]}),
            [
                ("schema.properties[a].anyOf[0].default", "Forbidden: must be undefined to be structural"),
                ("schema.properties[a].anyOf[0].type", MUST_BE_EMPTY),
                ("schema.properties[a].anyOf[1].type", MUST_BE_EMPTY),
            ],
        ),
        (
            of(a={**TEXT, "anyOf": [{"type": "string"}, {"type": "integer"}]}),
            [
                ("schema.properties[a].anyOf[0].type", MUST_BE_EMPTY),
                ("schema.properties[a].anyOf[1].type", MUST_BE_EMPTY),
            ],
        ),
        (of(a={"type": "object", "not": {"properties": {"b": {}}}}), []),
        (
            {"type": "object", "not": {"properties": {"b": {}}}},
            [("schema.properties[b]", "Required value: because it is defined in schema.not.properties[b]")],
        ),
        (
            of(a={**TEXT, "pattern": "["}),
            [
                (
                    "schema.properties[a].pattern",
                    'Invalid value: "[": must be a valid regular expression, but isn\'t: error parsing regexp: missing'
                    " closing ]: `[`",
                )
            ],
        ),
    ],
)
def test_structure(schema: dict[str, Any], errors: list[tuple[str, str]]) -> None:
    assert told(structural_errors(schema, PATH)) == errors


@pytest.mark.parametrize(
    ("schema", "errors"),
    [
        (
            {**TEXT, "uniqueItems": True},
            [
                (
                    ".uniqueItems",
                    "Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
                )
            ],
        ),
        (
            {"type": "object", "properties": {"b": TEXT}, "additionalProperties": False},
            [(".additionalProperties", "Forbidden: additionalProperties and properties are mutual exclusive")],
        ),
        (
            {"type": "null"},
            [
                (".type", f'Unsupported value: "null": supported values: {TYPES}'),
                (".type", "Forbidden: type cannot be set to null, use nullable as an alternative"),
            ],
        ),
        ({**TEXT, "$ref": "x"}, [(".$ref", "Forbidden: $ref is not supported")]),
        (
            {**TEXT, "x-kubernetes-map-type": "odd"},
            [
                (".type", 'Invalid value: "string": must be object if x-kubernetes-map-type is specified'),
                (".x-kubernetes-map-type", 'Unsupported value: "odd": supported values: "atomic", "granular"'),
            ],
        ),
        (
            {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "object"}},
            [(".items.x-kubernetes-map-type", f"Invalid value: null: {ATOMIC}")],
        ),
        (
            {"type": "array", "x-kubernetes-list-type": "map", "items": of(k=TEXT)},
            [(".x-kubernetes-list-map-keys", "Required value: must not be empty if x-kubernetes-list-type is map")],
        ),
        (
            KEYED,
            [
                (
                    ".items.properties[k].default",
                    "Required value: this property is in x-kubernetes-list-map-keys, so it must have a default or be a"
                    " required property",
                )
            ],
        ),
        (
            {"type": "object", "default": {"b": 1, "c": 2}, "properties": {"b": TEXT}},
            [
                (".default", 'Invalid value: {"b":1,"c":2}: must not have unknown fields'),
                (".default.b", 'Invalid value: "integer": b in body must be of type string: "integer"'),
            ],
        ),
        ({"x-kubernetes-int-or-string": True, "default": True}, []),
        (
            {**TEXT, "format": "odd", "default": 5},
            [(".default", 'Invalid value: "int64":  in body must be of type odd: "int64"')],
        ),
        (
            {
                "type": "object",
                "x-kubernetes-embedded-resource": True,
                "x-kubernetes-preserve-unknown-fields": True,
                "default": {"metadata": {"name": "a/b"}},
            },
            [
                (".default.apiVersion", "Required value"),
                (".default.kind", "Required value"),
                (".default.metadata.name", "Invalid value: \"a/b\": may not contain '/'"),
            ],
        ),
    ],
)
def test_fields(schema: dict[str, Any], errors: list[tuple[str, str]]) -> None:
    assert refused(of(a=schema)) == [(f"schema.properties[a]{place}", text) for place, text in errors]


def test_defaults_inside_of_metadata_make_valid_metadata() -> None:
    labels = {"type": "object", "additionalProperties": TEXT}
    resource = {"type": "object", "x-kubernetes-embedded-resource": True}
    good, bad = (
        of(a={**resource, "properties": {"metadata": of(labels={**labels, "default": default})}})
        for default in ({"a": "b"}, {"a": 5})
    )
    assert refused(good) == []
    assert refused(bad) == [
        (
            "schema.properties[a].properties[metadata].properties[labels].default",
            'Invalid value: {"a":5}: must result in valid metadata: metadata: Invalid value: {"labels":{"a":5}}: json:'
            " cannot unmarshal number into Go struct field ObjectMeta.labels of type string",
        )
    ]


def test_the_root_says_little_where_there_is_a_status() -> None:
    plain = {**of(spec=TEXT), "enum": [1], "nullable": True, "maximum": 1e30}
    (place, text), nullable = refused(plain, status_enabled=True)
    assert place == "schema"
    assert text.startswith(
        'Invalid value: {"ID":"","Schema":"","Ref":null,"Description":"","Type":"object","Nullable":true,'
    )
    assert '"Maximum":1e+30,"ExclusiveMaximum":false,' in text
    assert text.endswith(
        "}: only [Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength MinLength"
        " Pattern MaxItems MinItems UniqueItems MultipleOf Required Items Properties ExternalDocs Example"
        " XPreserveUnknownFields XValidations] fields are allowed at the root of the schema if the status subresource"
        " is enabled"
    )
    assert nullable == ("schema.nullable", "Forbidden: nullable cannot be true at the root")


def test_rules_are_looked_at_without_their_expressions() -> None:
    rules = [
        {"rule": " "},
        {"rule": "true", "message": " ", "reason": "Odd", "fieldPath": ".x\n"},
        {"rule": "true\n||true"},
        {"rule": "true", "message": "a\nb", "messageExpression": " "},
    ]
    at = "schema.properties[a].x-kubernetes-validations"
    assert refused(of(a={**TEXT, "x-kubernetes-validations": rules})) == [
        (f"{at}[0].rule", "Required value: rule is not specified"),
        (f"{at}[1].message", 'Invalid value: " ": must be non-empty if specified'),
        (
            f"{at}[1].reason",
            'Unsupported value: "Odd": supported values: "FieldValueDuplicate", "FieldValueForbidden",'
            ' "FieldValueInvalid", "FieldValueRequired"',
        ),
        (f"{at}[1].fieldPath", 'Invalid value: ".x\\n": must not contain line breaks'),
        (f"{at}[1].fieldPath", 'Invalid value: ".x\\n": must be a valid path'),
        (f"{at}[2].message", "Required value: message must be specified if rule contains line breaks"),
        (f"{at}[3].message", 'Invalid value: "a\\nb": must not contain line breaks'),
        (f"{at}[3].messageExpression", "Required value: messageExpression must be non-empty if specified"),
    ]


class Judge:
    """Reports an error for every rule, and records its calls."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, str, str]] = []

    def default_errors(self, node: object, value: object, path: Path, *, is_root: bool) -> list[FieldError]:
        self.asked.append(("default", str(path), "", ""))
        return []

    def rule_errors(self, place: SchemaPosition) -> list[FieldError]:
        self.asked.append(("rules", str(place.path), f"{place.step} {place.name}", str(place.uncorrelatable)))
        return [invalid(place.path, 1, "by the judge")]

    def total_errors(self, path: Path) -> list[FieldError]:
        self.asked.append(("total", str(path), "", ""))
        return []


def test_rules_are_judged_where_the_rest_is_sound() -> None:
    ruled = {**TEXT, "x-kubernetes-validations": [{"rule": "true"}]}
    plain = of(a={**ruled, "default": "x"}, l={"type": "array", "items": ruled})
    judge = Judge()
    errors = schema_errors(plain, PATH, SchemaChecks(), status_enabled=False, rules=judge)
    assert [place for place, _ in told(errors)] == ["schema.properties[a]", "schema.properties[l].items"]
    assert judge.asked == [
        ("default", "schema.properties[a].default", "", ""),
        ("rules", "schema.properties[a]", "properties a", "None"),
        ("rules", "schema.properties[l].items", "items ", "schema.properties[l]"),
        ("total", "schema", "", ""),
    ]
    judge = Judge()
    schema_errors({**plain, "type": ""}, PATH, SchemaChecks(), status_enabled=False, rules=judge)
    assert judge.asked == []


@pytest.mark.parametrize(
    ("plain", "lacking"),
    [
        (of(a={"type": "file"}), "known_types"),
        (of(a={}), "structural"),
        (of(a={"type": "object", "default": {"b": 1}}), "pruned_defaults"),
        (of(a={"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "object"}}), "atomic_sets"),
        (of(a={"type": "array", "x-kubernetes-list-type": "set", "items": {**TEXT, "nullable": True}}), "sound_keys"),
    ],
)
def test_an_update_is_not_refused_for_what_was_so_before(plain: dict[str, Any], lacking: str) -> None:
    checks = SchemaChecks.of_update([None, of(x=TEXT), plain])
    assert [name for name in SchemaChecks.__slots__ if not getattr(checks, name)] == [lacking]
    assert refused(plain) != []
    assert refused(plain, checks=checks) == []
    assert SchemaChecks.of_update([of(x=TEXT)]) == SchemaChecks()


def test_what_a_definition_is_asked_for_as_a_whole() -> None:
    deep = of(a={"type": "array", "items": {"allOf": [of(b={**TEXT, "default": "x"})]}})
    assert has_defaults(deep)
    assert not has_extensions(deep)
    assert has_extensions(of(a={"x-kubernetes-preserve-unknown-fields": False}))
    assert not has_defaults(None)
