"""The errors of invalid values."""

from __future__ import annotations

from typing import Any

import pytest

from tests.schema.asking import compiled, told

TEXT = {"type": "string"}
ONE_OF = 'Invalid value: "": "one" must validate one and only one schema (oneOf).'
NUMBERS: dict[str, Any] = {
    "half": {"type": "number", "multipleOf": 0.5},
    "tenth": {"type": "number", "multipleOf": 0.1},
    "huge": {"type": "number", "maximum": 1e30},
    "fraction": {"type": "integer", "maximum": 1.5},
    "million": {"type": "number", "maximum": 1_000_000},
    "int32": {"type": "integer", "format": "int32"},
    "float": {"type": "number", "format": "float"},
    "limits": {"type": "integer", "minimum": 1, "maximum": 9, "multipleOf": 2},
    "open": {"type": "integer", "minimum": 1, "exclusiveMinimum": True, "maximum": 9, "exclusiveMaximum": True},
}


@pytest.mark.parametrize(
    ("name", "value", "errors"),
    [
        ("half", 3, [("half", "Invalid value: 0: factor MultipleOf declared for half must be positive: 0")]),
        ("half", 3.0, []),
        ("half", 0.3, [("half", "Invalid value: 0.3: half in body should be a multiple of 0.5")]),
        ("tenth", 0.3, []),
        ("huge", 5, [("huge", "Invalid value: 5: huge in body should be less than or equal to -9223372036854775808")]),
        ("huge", 5.5, []),
        (
            "fraction",
            1,
            [
                (
                    "<nil>",
                    'Invalid value: "": Maximum boundary value must be of type integer (default format) in fraction',
                )
            ],
        ),
        (
            "million",
            1000001,
            [("million", "Invalid value: 1000001: million in body should be less than or equal to 1000000")],
        ),
        (
            "million",
            1000000.5,
            [("million", "Invalid value: 1.0000005e+06: million in body should be less than or equal to 1e+06")],
        ),
        (
            "int32",
            2**31,
            [("<nil>", 'Invalid value: "": Checked value must be of type integer with format int32 in int32')],
        ),
        ("int32", 1.0, []),
        (
            "int32",
            1.5,
            [
                ("int32", 'Invalid value: "float64": int32 in body must be of type int32: "float64"'),
                ("<nil>", 'Invalid value: "": Checked value must be of type integer with format int32 in int32'),
            ],
        ),
        (
            "int32",
            2**64,
            [
                ("int32", 'Invalid value: "float64": int32 in body must be of type int32: "float64"'),
                ("<nil>", 'Invalid value: "": Checked value must be of type integer with format int32 in int32'),
            ],
        ),
        (
            "float",
            3.5e38,
            [("<nil>", 'Invalid value: "": Checked value must be of type number with format float in float')],
        ),
        (
            "limits",
            11,
            [
                ("limits", "Invalid value: 11: limits in body should be a multiple of 2"),
                ("limits", "Invalid value: 11: limits in body should be less than or equal to 9"),
            ],
        ),
        ("limits", 0, [("limits", "Invalid value: 0: limits in body should be greater than or equal to 1")]),
        ("open", 1, [("open", "Invalid value: 1: open in body should be greater than 1")]),
        ("open", 9, [("open", "Invalid value: 9: open in body should be less than 9")]),
        ("open", 2, []),
        ("limits", "4", [("limits", 'Invalid value: "string": limits in body must be of type integer: "string"')]),
        ("limits", True, [("limits", 'Invalid value: "boolean": limits in body must be of type integer: "boolean"')]),
    ],
)
def test_numbers_are_judged_in_go_s_arithmetic(name: str, value: Any, errors: list[tuple[str, str]]) -> None:
    assert told(compiled(**NUMBERS).validate({name: value})) == errors


@pytest.mark.parametrize(
    ("schema", "value", "errors"),
    [
        (
            {"minLength": 2, "maxLength": 4, "pattern": "^a+$"},
            "b",
            ['Invalid value: "b": v in body should be at least 2 chars long'],
        ),
        ({"minLength": 2, "maxLength": 4, "pattern": "^a+$"}, "bbbbb", ["Too long: may not be more than 4 bytes"]),
        (
            {"minLength": 2, "maxLength": 4, "pattern": "^a+$"},
            "ab",
            ["Invalid value: \"ab\": v in body should match '^a+$'"],
        ),
        ({"maxLength": 3}, "äöü", []),
        ({"maxLength": 3}, "äöüß", ["Too long: may not be more than 3 bytes"]),
        ({"enum": ["one", "two"]}, "three", ['Unsupported value: "three": supported values: "one", "two"']),
        ({"nullable": True, "enum": ["a"]}, None, ['Unsupported value: null: supported values: "a"']),
        ({"nullable": True}, None, []),
        ({}, None, ['Invalid value: "null": v in body must be of type string: "null"']),
        (
            {"format": "date"},
            "2020-13-01",
            ['Invalid value: "2020-13-01": v in body must be of type date: "2020-13-01"'],
        ),
        ({"format": "date"}, 5, ['Invalid value: "int64": v in body must be of type date: "int64"']),
        ({"format": "date"}, True, ['Invalid value: "": v in body must be of type date: ""']),
        ({"format": "date"}, [1], []),
        ({"format": "unheard-of"}, "anything", []),
        ({"format": "unheard-of"}, 5, ['Invalid value: "integer": v in body must be of type string: "integer"']),
    ],
)
def test_texts(schema: dict[str, Any], value: Any, errors: list[str]) -> None:
    assert told(compiled(v={"type": "string", **schema}).validate({"v": value})) == [("v", text) for text in errors]


def test_an_enumeration_converts_values_as_go_does() -> None:
    structural = compiled(
        n={"type": "number", "enum": [1, 2.5]}, s={"x-kubernetes-int-or-string": True, "enum": ["A", 5]}
    )
    assert structural.validate({"n": 1.9, "s": 65}) == []
    assert told(structural.validate({"n": 3})) == [("n", 'Unsupported value: 3: supported values: "1", "2.5"')]
    assert told(structural.validate({"s": True})) == [
        ("s", 'Invalid value: "boolean": s in body must be of type integer,string: "boolean"'),
        ("s", 'Unsupported value: true: supported values: "A", "5"'),
    ]


def test_objects_and_lists() -> None:
    structural = compiled(
        closed={"type": "object", "additionalProperties": False},
        map={"type": "object", "additionalProperties": {"type": "integer"}, "minProperties": 1, "maxProperties": 2},
        list={"type": "array", "items": TEXT, "minItems": 1, "maxItems": 2},
        object={"type": "object", "properties": {"a": TEXT}, "required": ["a", "b"]},
    )
    assert told(structural.validate({"closed": {"a": 1}})) == [
        ("closed", 'Invalid value: "a": closed.a in body is a forbidden property')
    ]
    assert told(structural.validate({"map": {"x.y": "a"}})) == [
        ("map.x.y", 'Invalid value: "string": map.x.y in body must be of type integer: "string"')
    ]
    assert told(structural.validate({"map": {}})) == [
        ("map", "Invalid value: 0: map in body should have at least 1 properties")
    ]
    assert told(structural.validate({"map": {"a": 1, "b": 2, "c": 3}})) == [
        ("map", "Too many: 3: must have at most 2 items")
    ]
    assert told(structural.validate({"list": []})) == [
        ("list", "Invalid value: 0: list in body should have at least 1 items")
    ]
    assert told(structural.validate({"list": ["a", 5, "c"]})) == [
        ("list[1]", 'Invalid value: "integer": list[1] in body must be of type string: "integer"'),
        ("list", "Too many: 3: must have at most 2 items"),
    ]
    assert told(structural.validate({"object": {}})) == [("object.a", "Required value"), ("object.b", "Required value")]
    assert told(structural.validate({"object": []})) == [
        ("object", 'Invalid value: "array": object in body must be of type object: "array"')
    ]


ALTERNATIVES: dict[str, dict[str, Any]] = {
    "any": {
        "anyOf": [{"required": ["a"], "properties": {"a": {"minLength": 3}, "b": {"minimum": 5}}}, {"required": ["b"]}]
    },
    "one": {"oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
    "all": {"allOf": [{"required": ["a"]}, {"properties": {"b": {"maximum": 1}}}]},
    "not": {"not": {"required": ["a"]}},
}


@pytest.mark.parametrize(
    ("name", "value", "errors"),
    [
        ("any", {"b": 1}, []),
        (
            "any",
            {"a": "x"},
            [
                ("<nil>", 'Invalid value: "": "any" must validate at least one schema (anyOf)'),
                ("any.a", 'Invalid value: "x": any.a in body should be at least 3 chars long'),
            ],
        ),
        (
            "one",
            {"a": "x", "b": 1},
            [
                (
                    "<nil>",
                    f"{ONE_OF} Found 2 valid alternatives",
                )
            ],
        ),
        (
            "one",
            {},
            [
                ("<nil>", f"{ONE_OF} Found none valid"),
                ("one.a", "Required value"),
            ],
        ),
        (
            "all",
            {"b": 5},
            [
                ("all.a", "Required value"),
                ("all.b", "Invalid value: 5: all.b in body should be less than or equal to 1"),
                ("<nil>", 'Invalid value: "": "all" must validate all the schemas (allOf). None validated'),
            ],
        ),
        (
            "all",
            {"a": "x", "b": 5},
            [
                ("all.b", "Invalid value: 5: all.b in body should be less than or equal to 1"),
                ("<nil>", 'Invalid value: "": "all" must validate all the schemas (allOf)'),
            ],
        ),
        ("not", {"a": "x"}, [("<nil>", 'Invalid value: "": "not" must not validate the schema (not)')]),
    ],
)
def test_alternatives(name: str, value: Any, errors: list[tuple[str, str]]) -> None:
    properties = {"a": TEXT, "b": {"type": "integer"}}
    structural = compiled(**{name: {"type": "object", "properties": properties, **ALTERNATIVES[name]}})
    assert told(structural.validate({name: value})) == errors


def test_an_error_is_told_once() -> None:
    twice = {"type": "string", "minLength": 3, "allOf": [{"minLength": 3}]}
    assert told(compiled(v=twice).validate({"v": "a"})) == [
        ("v", 'Invalid value: "a": v in body should be at least 3 chars long'),
        ("<nil>", 'Invalid value: "": "v" must validate all the schemas (allOf). None validated'),
    ]


def test_the_status_alone_is_judged_below_its_name() -> None:
    structural = compiled(status={"type": "object", "additionalProperties": {"type": "integer"}}, spec=TEXT)
    assert told(structural.validate_status({"status": {"a": "x"}, "spec": 5}, {})) == [
        ("status.a", 'Invalid value: "string": .a in body must be of type integer: "string"')
    ]
    assert told(structural.validate_status({"status": 5}, {})) == [
        ("status", 'Invalid value: "integer":  in body must be of type object: "integer"')
    ]
    assert structural.validate_status({"spec": 5}, {}) == []


def test_names_that_clients_choose_do_not_make_more_text_than_there_is_room_for() -> None:
    deep: Any = {
        "type": "object",
        "additionalProperties": {"type": "object", "additionalProperties": {"type": "integer"}},
    }
    value = {"m": {"k" * 100_000: {f"n{number}": "x" for number in range(5000)}}}
    errors = compiled(m=deep).validate(value)
    assert 50 < len(errors) < 300
