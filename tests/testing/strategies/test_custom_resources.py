from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given

from steersman.testing.strategies import (
    InvalidDefinition,
    UnknownKind,
    Unsatisfiable,
    custom_resources,
    nearly_valid,
)
from steersman.testing.strategies.judges import CustomJudge
from steersman.testing.strategies.sources import custom_source
from tests.testing.strategies.widgets import DEFINITION, SCHEMA, definition


@given(custom_resources(definition(SCHEMA)))
def test_objects_obey_the_schema_and_its_rules(obj: dict[str, Any]) -> None:
    structural = custom_source(definition(SCHEMA)).structural
    assert CustomJudge(structural).errors(obj) == []
    assert structural.fit(obj, strict=True) == []
    assert obj["metadata"]["namespace"] == "default"


def drawn(schema: dict[str, Any]) -> list[dict[str, Any]]:
    """Draw a few objects."""
    found = []

    @given(custom_resources(definition(schema)))
    def draw(obj: dict[str, Any]) -> None:
        found.append(obj)

    draw()
    return found


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ({"type": "string", "minLength": 10**9}, "it needs at least 1000000000 characters"),
        ({"type": "array", "minItems": 10**6, "items": {"type": "string"}}, "it needs at least 1000000 items"),
        ({"type": "string", "pattern": "^(a{1000}){1000}$"}, "error parsing regexp"),
        ({"type": "string", "minLength": 5, "maxLength": 4}, "minLength is 5, maxLength 4"),
    ],
)
def test_a_field_without_small_values_is_left_out_or_named(schema: dict[str, Any], text: str) -> None:
    optional = {"type": "object", "properties": {"huge": schema, "small": {"type": "boolean"}}}
    assert all("huge" not in obj["spec"] for obj in drawn(optional))
    with pytest.raises(Unsatisfiable) as caught:
        drawn({**optional, "required": ["huge"]})
    assert text in str(caught.value)
    assert "huge" in str(caught.value)


def test_a_rule_that_nothing_satisfies_is_named() -> None:
    rule = "self.a > 5 && self.a < 3"
    schema = {
        "type": "object",
        "required": ["a"],
        "properties": {"a": {"type": "integer"}},
        "x-kubernetes-validations": [{"rule": rule}],
    }
    with pytest.raises(Unsatisfiable) as caught:
        drawn(schema)
    assert rule in str(caught.value)


def test_a_definition_without_valid_objects_is_named() -> None:
    """No rule and no single bound is to blame: the format and the minimum contradict each other."""
    schema = {
        "type": "object",
        "required": ["a"],
        "properties": {"a": {"type": "integer", "format": "int32", "minimum": 1 << 40}},
    }
    with pytest.raises(Unsatisfiable) as caught:
        drawn(schema)
    assert "spec.a" in str(caught.value)


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ({"type": "string", "pattern": "^a$", "minLength": 5}, "spec.a: no value is found within bounds"),
        (
            {
                "type": "array",
                "items": {"enum": ["b"], "type": "string"},
                "minItems": 3,
                "x-kubernetes-list-type": "set",
            },
            "spec.a: no value is found within bounds",
        ),
        ({"type": "integer", "minimum": 5, "maximum": 1}, "spec.a: no number is between minimum 5 and maximum 1"),
        ({"type": "number", "minimum": 1, "maximum": 1, "exclusiveMinimum": True}, "spec.a: no number is between"),
        (
            {"type": "number", "maximum": 5e-324, "minimum": 0, "exclusiveMinimum": True, "exclusiveMaximum": True},
            "spec.a",
        ),
        (
            {"type": "array", "items": {"type": "string"}, "minItems": 10**9},
            "spec.a: it needs at least 1000000000 items",
        ),
        (
            {"type": "object", "required": [f"p{n}" for n in range(2000)]}
            | {"properties": {f"p{n}": {"type": "string"} for n in range(2000)}},
            "it needs at least 2001 values",
        ),
        ({"type": "number", "multipleOf": 0}, "spec.a"),
    ],
)
@pytest.mark.parametrize("strategy", [custom_resources, nearly_valid])
def test_a_field_without_values_is_named_soon(schema: dict[str, Any], why: str, strategy: Any) -> None:
    with pytest.raises(Unsatisfiable) as caught:
        strategy(definition({"type": "object", "required": ["a"], "properties": {"a": schema}}))
    assert why in str(caught.value)


def test_tiny_numbers_are_drawn() -> None:
    number = {"type": "number", "minimum": 0, "maximum": 1e-310}
    found = drawn({"type": "object", "required": ["a"], "properties": {"a": number}})
    assert all(0 <= obj["spec"]["a"] <= 1e-310 for obj in found)


def test_a_schema_of_more_levels_than_a_server_reads_is_refused() -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(3000):
        schema = {"type": "object", "properties": {"a": schema}}
    with pytest.raises(InvalidDefinition, match="its schema has more levels than a server reads"):
        custom_resources(definition(schema))


@pytest.mark.parametrize("depth", [100])
def test_deep_and_wide_schemas_are_drawn_in_bounded_time(depth: int) -> None:
    deep: dict[str, Any] = {"type": "string"}
    for _ in range(depth):
        deep = {"type": "object", "required": ["a"], "properties": {"a": deep}}
    wide = {f"p{number}": {"type": "string"} for number in range(20_000)}
    schema = {"type": "object", "required": ["deep"], "properties": {"deep": deep, **wide}}
    assert all(len(obj["spec"]) < 20 for obj in drawn(schema))


def test_definitions_come_from_files(tmp_path: Path) -> None:
    other = {**DEFINITION, "spec": {**DEFINITION["spec"], "names": {"plural": "gadgets", "kind": "Gadget"}}}
    file = tmp_path / "crds.yaml"
    file.write_text(yaml.safe_dump_all([DEFINITION, other]))
    custom_resources(file, "Gadget")
    with pytest.raises(UnknownKind, match="choose a kind: Gadget, Widget"):
        custom_resources(file)
    with pytest.raises(UnknownKind, match="has no definition of Nothing; it has Gadget, Widget"):
        custom_resources(tmp_path, "Nothing")
    with pytest.raises(UnknownKind, match="has no version v9; it has v1"):
        custom_resources(DEFINITION, version="v9")


def test_a_schema_that_is_not_structural_is_refused() -> None:
    with pytest.raises(InvalidDefinition, match=r"'\$ref' is not supported"):
        custom_resources(definition({"$ref": "#/x"}))
