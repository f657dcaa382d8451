"""Evaluation of rules, with the results and error texts of kube-apiserver 1.36."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.schema import Correlated, compile_schema
from steersman.validation_rules.evaluation import BUDGET, Rules

_TEXT = {"type": "string"}
_NUMBER = {"type": "integer"}


def rules(schema: dict[str, Any]) -> Rules:
    return Rules(compile_schema(schema).root)


def ruled(schema: dict[str, Any], *texts: Any, **members: Any) -> dict[str, Any]:
    """Return a schema of objects whose member `a` has rules."""
    own = [{"rule": text} if isinstance(text, str) else text for text in texts]
    if members:
        own[0] |= members
    return {"type": "object", "properties": {"a": {**schema, "x-kubernetes-validations": own}}}


def errors(schema: dict[str, Any], new: Any, old: Any = None) -> list[str]:
    return [str(error) for error in rules(schema).evaluate({"a": new}, None if old is None else {"a": old}).errors]


@pytest.mark.parametrize(
    ("members", "text"),
    [
        ({}, "a: Invalid value: 1: failed rule: self > 1"),
        ({"message": " too small "}, "a: Invalid value: 1: too small"),
        ({"messageExpression": "'got %d'.format([self])"}, "a: Invalid value: 1: got 1"),
        ({"messageExpression": "'  '", "message": "instead"}, "a: Invalid value: 1: instead"),
        ({"messageExpression": "'a\\nb'", "message": "instead"}, "a: Invalid value: 1: instead"),
        ({"messageExpression": "string(1 / (self - 1))", "message": "instead"}, "a: Invalid value: 1: instead"),
        ({"reason": "FieldValueForbidden", "message": "no"}, "a: Forbidden: no"),
        ({"reason": "FieldValueRequired", "message": "no"}, "a: Required value: no"),
        ({"reason": "FieldValueDuplicate", "message": "no"}, "a: Duplicate value: 1"),
        ({"reason": "FieldValueInvalid", "message": "no"}, "a: Invalid value: 1: no"),
    ],
)
def test_a_broken_rule_is_told(members: dict[str, Any], text: str) -> None:
    assert errors(ruled(_NUMBER, {"rule": "self > 1", **members}), 1) == [text]
    assert errors(ruled(_NUMBER, {"rule": "self > 1", **members}), 2) == []


@pytest.mark.parametrize(
    ("path", "field"),
    [(".b.c", "a.b.c"), (".m['k']", "a.m[k]"), ("['b'].c", "a.b.c"), (".l", "a.l")],
)
def test_it_is_told_where_the_rule_says(path: str, field: str) -> None:
    schema = {
        "type": "object",
        "properties": {
            "b": {"type": "object", "properties": {"c": _NUMBER}},
            "m": {"type": "object", "additionalProperties": _NUMBER},
            "l": {"type": "array", "items": _NUMBER},
        },
    }
    assert errors(ruled(schema, {"rule": "false", "fieldPath": path, "message": "no"}), {}) == [
        f"{field}: Invalid value: no"
    ]


@pytest.mark.parametrize(
    ("schema", "rule", "value", "text"),
    [
        (_NUMBER, "10 / self > 1", 0, 'a: Invalid value: "integer": division by zero evaluating rule: 10 / self > 1'),
        (
            {"type": "array", "items": _NUMBER},
            "self[2] == 1",
            [1],
            'a: Invalid value: "array": index out of bounds: 2 evaluating rule: self[2] == 1',
        ),
        (
            {"type": "object", "properties": {"b": _NUMBER}},
            "self.b == 1",
            {},
            'a: Invalid value: "object": no such key: b evaluating rule: self.b == 1',
        ),
        (
            {"x-kubernetes-int-or-string": True},
            "self + 1 > 2",
            "x",
            "a: Invalid value: \"\": 'no such overload': call arguments did not match a supported operator, function "
            "or macro signature for rule: self + 1 > 2",
        ),
    ],
)
def test_a_rule_that_has_no_value_is_told(schema: dict[str, Any], rule: str, value: Any, text: str) -> None:
    assert errors(ruled(schema, rule), value) == [text]


def test_rules_of_items_members_and_values_are_asked() -> None:
    schema = {
        "type": "object",
        "properties": {
            "list": {"type": "array", "items": {**_NUMBER, "x-kubernetes-validations": [{"rule": "self > 1"}]}},
            "map": {
                "type": "object",
                "additionalProperties": {**_TEXT, "x-kubernetes-validations": [{"rule": "self != 'x'"}]},
            },
            "with-dash": {**_NUMBER, "x-kubernetes-validations": [{"rule": "self > 1"}]},
            "$odd": {**_NUMBER, "x-kubernetes-validations": [{"rule": "self > 1"}]},
        },
        "x-kubernetes-validations": [{"rule": "has(self.list)"}],
    }
    found = rules(schema).evaluate({"list": [2, 1], "map": {"k": "x"}, "with-dash": 1, "$odd": 1}).errors
    assert [error.field for error in found] == ["list[1]", "map[k]", "with-dash", "$odd"]
    (missing,) = rules(schema).evaluate({}).errors
    assert str(missing) == "<nil>: Invalid value: failed rule: has(self.list)"


def test_null_is_not_judged_by_its_own_rules() -> None:
    schema = ruled({**_TEXT, "nullable": True}, "self == 'x'")
    assert rules(schema).evaluate({"a": None}).errors == []


def test_transitions_are_judged_where_there_is_an_old_value() -> None:
    schema = ruled(_NUMBER, "self >= oldSelf")
    assert errors(schema, 1) == []
    assert errors(schema, 2, 1) == []
    assert errors(schema, 1, 2) == ["a: Invalid value: 1: failed rule: self >= oldSelf"]


def test_an_old_value_may_be_optional() -> None:
    schema = ruled(_NUMBER, {"rule": "oldSelf.orValue(0) < self", "optionalOldSelf": True})
    assert errors(schema, 1) == []
    assert errors(schema, 0) == ["a: Invalid value: 0: failed rule: oldSelf.orValue(0) < self"]
    assert errors(schema, 1, 1) == ["a: Invalid value: 1: failed rule: oldSelf.orValue(0) < self"]


def test_items_with_keys_are_held_against_those_with_the_same_keys() -> None:
    item = {
        "type": "object",
        "properties": {"k": _TEXT, "v": _NUMBER},
        "x-kubernetes-validations": [{"rule": "self.v >= oldSelf.v"}],
    }
    keyed = {"type": "array", "items": item, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}
    schema = {"type": "object", "properties": {"a": keyed}}
    old = [{"k": "x", "v": 2}, {"k": "y", "v": 2}]
    new = [{"k": "y", "v": 3}, {"k": "x", "v": 1}, {"k": "z", "v": 0}]
    assert errors(schema, new, old) == ["a[1]: Invalid value: failed rule: self.v >= oldSelf.v"]


def test_what_was_wrong_before_is_a_warning() -> None:
    schema = compile_schema(
        {
            "type": "object",
            "properties": {
                "a": {**_NUMBER, "x-kubernetes-validations": [{"rule": "self > 10", "message": "over ten"}]},
                "b": _NUMBER,
            },
        }
    )
    old = {"a": 5, "b": 1}
    own = Rules(schema.root)
    same = {"a": 5, "b": 2}
    result = own.evaluate(same, old, correlated=Correlated(same, old, schema.root))
    assert (result.errors, result.warnings) == ([], ["a: Invalid value: 5: over ten"])
    other = {"a": 6, "b": 1}
    result = own.evaluate(other, old, correlated=Correlated(other, old, schema.root))
    assert [str(error) for error in result.errors] == ["a: Invalid value: 6: over ten"]


@pytest.mark.parametrize(
    ("schema", "rule", "value"),
    [
        ({"type": "string", "format": "date-time"}, "self.getFullYear() == 2021", "2021-02-03T04:05:06.5Z"),
        ({"type": "string", "format": "date"}, "self == timestamp('2021-02-03T00:00:00Z')", "2021-02-03"),
        ({"type": "string", "format": "duration"}, "self == duration('48h')", "2 days"),
        ({"type": "string", "format": "byte"}, "self == b'abc'", "YWJj"),
        ({"type": "number"}, "self == 1.0 && type(self) == double", 1),
        ({"x-kubernetes-int-or-string": True}, "type(self) == int || type(self) == string", "5%"),
        (
            {"type": "object", "properties": {"a.b": _TEXT, "in": _TEXT}},
            "self.a__dot__b == self.__in__",
            {"a.b": "x", "in": "x"},
        ),
        (
            {"type": "object", "additionalProperties": _NUMBER},
            "self.all(k, self[k] > 0) && size(self) == 2",
            {"x": 1, "y": 2},
        ),
        ({"type": "object", "properties": {"b": {**_TEXT, "nullable": True}}}, "!has(self.b)", {"b": None}),
        (
            {"type": "object", "properties": {"b": _TEXT}, "x-kubernetes-preserve-unknown-fields": True},
            "self.b == 'x'",
            {"b": "x", "other": 1},
        ),
        (
            {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True},
            "self.kind == 'Pod' && self.metadata.name == 'a'",
            {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "a"}, "spec": {}},
        ),
        ({"type": "array", "items": _TEXT, "x-kubernetes-list-type": "set"}, "self == ['b', 'a']", ["a", "b"]),
        (
            {"type": "array", "items": _TEXT, "x-kubernetes-list-type": "set"},
            "(self + ['b', 'c']).size() == 3",
            ["a", "b"],
        ),
        ({"type": "array", "items": _TEXT}, "self != ['b', 'a']", ["a", "b"]),
    ],
)
def test_values_are_what_their_schema_says(schema: dict[str, Any], rule: str, value: Any) -> None:
    assert errors(ruled(schema, rule), value) == []


def test_lists_with_keys_are_compared_by_keys() -> None:
    item = {"type": "object", "properties": {"k": _TEXT, "v": _NUMBER}}
    keyed = {"type": "array", "items": item, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}
    old = [{"k": "x", "v": 1}, {"k": "y", "v": 2}]
    assert errors(ruled(keyed, "self == oldSelf"), old[::-1], old) == []
    assert errors(ruled(keyed, "self == oldSelf"), [{"k": "x", "v": 1}, {"k": "y", "v": 3}], old) != []
    merged = "(oldSelf + self).map(e, e.v) == [7, 2, 3]"
    assert errors(ruled(keyed, merged), [{"k": "z", "v": 3}, {"k": "x", "v": 7}], old) == []


def test_objects_are_the_same_by_what_is_seen_and_what_is_not() -> None:
    open_ended = {"type": "object", "properties": {"b": _NUMBER}, "x-kubernetes-preserve-unknown-fields": True}
    rule = "self == oldSelf"
    assert errors(ruled(open_ended, rule), {"b": 1, "x": [1]}, {"x": [1], "b": 1}) == []
    assert errors(ruled(open_ended, rule), {"b": 1, "x": [1]}, {"b": 1, "x": [True]}) != []
    assert errors(ruled(open_ended, rule), {"b": 1}, {"b": 2}) != []


def test_rules_stop_where_the_budget_is_spent() -> None:
    schema = ruled({"type": "array", "items": _TEXT}, "self.all(x, x.startsWith('a'))", "self.size() > 100")
    own = rules(schema)
    value = {"a": ["a" * 10] * 50}
    spent = BUDGET - own.evaluate(value, budget=BUDGET).budget
    result = own.evaluate(value, budget=spent // 2)
    assert result.budget < 0
    assert [str(error) for error in result.errors] == [
        'a: Invalid value: "array": validation failed due to running out of cost budget, no further validation rules '
        "will be run"
    ]


def test_one_evaluation_may_not_cost_too_much() -> None:
    schema = ruled({"type": "array", "items": _NUMBER}, "self.all(x, self.all(y, x == y))")
    result = rules(schema).evaluate({"a": [1] * 2000})
    assert result.budget < 0
    assert [str(error) for error in result.errors] == [
        "a: Invalid value: \"array\": 'operation cancelled: actual cost limit exceeded': no further validation rules "
        "will be run due to call cost exceeds limit for rule: self.all(x, self.all(y, x == y))"
    ]


def test_a_schema_without_rules_has_nothing_to_say() -> None:
    own = rules({"type": "object", "properties": {"a": _TEXT}})
    assert own.is_empty
    assert own.evaluate({"a": 1}).budget == BUDGET


def test_sets_of_texts_with_a_format_are_never_the_same() -> None:
    lengths = {"type": "array", "items": {**_TEXT, "format": "duration"}, "x-kubernetes-list-type": "set"}
    assert errors(ruled(lengths, "self == self"), ["1h"]) == ["a: Invalid value: failed rule: self == self"]


def test_rules_that_are_compiled_are_judged_without_their_types(monkeypatch: pytest.MonkeyPatch) -> None:
    item = {"type": "object", "properties": {"n": _NUMBER}, "x-kubernetes-validations": [{"rule": "self.n > 1"}]}
    unseen = {"x-kubernetes-preserve-unknown-fields": True, "properties": {"b": item}}
    schema = {
        "type": "object",
        "properties": {
            "items": {"type": "array", "items": item},
            "map": {"type": "object", "additionalProperties": item},
            "c": unseen,
        },
    }
    obj = {"items": [{"n": 1}, {"n": 2}], "map": {"x": {"n": 0}}, "c": {"b": {"n": 1}}}
    expected = [str(error) for error in rules(schema).evaluate(obj).errors]
    assert len(expected) == 2
    compiled = rules(schema)
    compiled.compile()
    assert not compiled._declarations.objects
    monkeypatch.setattr(type(compiled._declarations), "type_of", None)
    assert [str(error) for error in compiled.evaluate(obj).errors] == expected
