"""Tests of type checking: warnings, and limits on kinds and bytes."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.admission_rules import type_checking
from steersman.admission_rules.type_checking import TypedKind, WarningsTooLarge, check
from steersman.api.admissionregistration.v1 import ExpressionWarning, ValidatingAdmissionPolicySpec
from steersman.machinery.codec.serializer import from_plain
from steersman.machinery.identity.schema import GroupVersionKind

NUMBERED = {"type": "object", "properties": {"n": {"type": "integer"}}}


def kind(name: str, schema: dict[str, Any] = NUMBERED) -> TypedKind:
    schemas: dict[str, Any] = {}
    return TypedKind(GroupVersionKind("e.x", "v1", name), schema, schemas.__getitem__)


def warnings(
    spec: dict[str, Any], *kinds: TypedKind, params: TypedKind | None = None, limit: int = 1 << 20
) -> list[ExpressionWarning]:
    return check(from_plain(ValidatingAdmissionPolicySpec, spec), kinds, params, limit=limit)


def validating(*expressions: str, **more: Any) -> dict[str, Any]:
    return {"validations": [{"expression": each} for each in expressions], **more}


def test_each_expression_is_told_of_with_all_kinds_it_is_wrong_for() -> None:
    spec = validating("object.n == 1", "object.m == 1")
    (found,) = warnings(spec, kind("A"), kind("B", {"type": "object", "properties": {"m": {"type": "integer"}}}))[1:]
    assert found.field_ref == "spec.validations[1].expression"
    mark = " | object.m == 1\n | ......^\n"
    assert found.warning == f"e.x/v1, Kind=A: ERROR: <input>:1:7: undefined field 'm'\n{mark}"


def test_objects_and_parameters_of_one_kind_are_of_two_types() -> None:
    spec = validating("object == params", paramKind={"apiVersion": "e.x/v1", "kind": "A"})
    (found,) = warnings(spec, kind("A"), params=kind("A"))
    assert "found no matching overload for '_==_' applied to '(A0, A1)'" in found.warning


def test_variables_have_the_types_of_their_expressions_and_wrong_ones_may_be_anything() -> None:
    variables = [{"name": "n", "expression": "object.n"}, {"name": "m", "expression": "object.m"}]
    (found,) = warnings(validating("variables.n == ''", "variables.m == ''", variables=variables), kind("A"))
    assert "'(int, string)'" in found.warning


def test_a_policy_of_many_kinds_and_long_expressions_is_checked_for_the_first_of_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kinds = [kind(each) for each in "ABCD"]
    text = "object.m == 1"
    monkeypatch.setattr(type_checking, "MAX_CHECKED", 2 * len(text) + 1)
    (found,) = warnings(validating(text), *kinds)
    assert [each for each in "ABCD" if f"Kind={each}:" in found.warning] == ["A", "B"]
    monkeypatch.setattr(type_checking, "MAX_CHECKED", 1)
    (found,) = warnings(validating(text), *kinds)
    assert found.warning.count("Kind=") == 1


def test_no_more_is_said_than_may_be() -> None:
    spec = validating("object.m == 1", "object.m == 2")
    size = sum(len(each.warning) for each in warnings(spec, kind("A")))
    assert len(warnings(spec, kind("A"), limit=size)) == 2
    with pytest.raises(WarningsTooLarge):
        warnings(spec, kind("A"), limit=size - 1)
