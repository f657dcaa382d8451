"""Objects and patches that expressions make: their types, and how they are read and compared."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.cel.errors import CompileError
from steersman.cel.expression import compile_expression
from steersman.cel.library.kubernetes import base_environment
from steersman.cel.library.kubernetes_costs import kubernetes_costs
from steersman.cel.library.mutation import JSON_PATCHES, ObjectValue, constructed
from steersman.cel.steps import ProgramError
from steersman.cel.values import EvaluationError

ENVIRONMENT = base_environment().constructing(constructed, JSON_PATCHES)


def _evaluated(text: str) -> Any:
    return compile_expression(text, ENVIRONMENT).program(kubernetes_costs).evaluate({}, 100_000)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("Object{a: 1}.a", 1),
        ("Object{a: 1}.b == null", True),
        ("has(Object{a: 1}.a) && !has(Object{a: 1}.b)", True),
        ("Object{a: Object.a{b: 1}}.a.b", 1),
        ("Object{a: 1} == Object{a: 1}", True),
        ("Object{a: 1} == Object{a: 1.0}", False),
        ("Object{a: [1]} == Object{a: [1]}", False),
        ("dyn(Object{a: 1}) == Object.x{a: 1}", False),
        ("type(Object{}) == type(Object{a: 1})", True),
        ("has(Object{?a: optional.none()}.a)", False),
        ("optional.ofNonZeroValue(Object{}).hasValue()", False),
        ("JSONPatch{op: 'a'} == JSONPatch{op: 'a'}", True),
        ("JSONPatch{op: 'a'}.path", ""),
        ("has(JSONPatch{op: 'a'}.op) && !has(JSONPatch{op: 'a'}.value) && !has(JSONPatch{}.from)", True),
        ("[JSONPatch{op: 'a'}].map(p, p.op)", ["a"]),
        ("jsonpatch.escapeKey('a/b~c')", "a~1b~0c"),
    ],
)
def test_they_are_read_and_compared_as_upstream_does(text: str, value: Any) -> None:
    assert _evaluated(text)[0] == value


def test_making_one_costs_as_an_object_does() -> None:
    assert _evaluated("Object{a: 1, b: Object.b{}}")[1] == 80


def test_names_of_types_follow_the_places_of_values() -> None:
    made, _ = _evaluated("Object{spec: Object.spec{list: [Object.other{}]}, m: {'k': Object.m{}}}")
    assert isinstance(made, ObjectValue)
    assert made.misplaced() == [
        'unexpected type name "Object.other", expected "Object.spec.list", which matches field name path from root '
        "Object type"
    ]


@pytest.mark.parametrize("text", ["dyn(Object{a: 1}).a", "dyn(Object{a: 1})['a']"])
def test_where_the_type_is_not_known_they_have_no_fields(text: str) -> None:
    with pytest.raises(EvaluationError, match="no such key: a"):
        _evaluated(text)


def test_types_are_no_values() -> None:
    with pytest.raises(ProgramError, match="reference to undefined type: Object"):
        _evaluated("type(Object{}) == Object")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("JSONPatch{foo: 1}", "expected type of field 'foo' is '' but provided type is 'int'"),
        ("JSONPatch{op: 1}", "expected type of field 'op' is 'string' but provided type is 'int'"),
        ("Objects{}", "undeclared reference to 'Objects'"),
        ("Object{?a: 1}", "expected type 'optional_type(int)' but found 'int'"),
    ],
)
def test_what_does_not_fit_is_told(text: str, message: str) -> None:
    with pytest.raises(CompileError) as caught:
        compile_expression(text, ENVIRONMENT)
    assert message in str(caught.value)
