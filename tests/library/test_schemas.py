"""Schemas of classes."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec
import pydantic
import pytest

from steersman import OpenAPI, Rule
from steersman.library.schemas import schema_of


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Port(msgspec.Struct, rename="camel"):
    """A port."""

    target_port: Annotated[int, msgspec.Meta(ge=1, lt=65536)]


def field_schema(hint: Any) -> dict[str, Any]:
    model = msgspec.defstruct("Model", [("it", hint)])
    found: dict[str, Any] = schema_of(model)["properties"]["it"]
    return found


@pytest.mark.parametrize(
    ("hint", "schema"),
    [
        (str, {"type": "string"}),
        (str | None, {"type": "string"}),
        (int, {"type": "integer", "format": "int64"}),
        (float, {"type": "number"}),
        (bool, {"type": "boolean"}),
        (bytes, {"type": "string", "format": "byte"}),
        (datetime, {"type": "string", "format": "date-time"}),
        (int | str, {"x-kubernetes-int-or-string": True}),
        (Any, {"x-kubernetes-preserve-unknown-fields": True}),
        (list[str], {"type": "array", "items": {"type": "string"}}),
        (set[str], {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}),
        (tuple[str, ...], {"type": "array", "items": {"type": "string"}}),
        (dict[str, bool], {"type": "object", "additionalProperties": {"type": "boolean"}}),
        (dict, {"type": "object", "x-kubernetes-preserve-unknown-fields": True}),
        (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
        (Color, {"type": "string", "enum": ["red", "blue"]}),
        (Annotated[str, msgspec.Meta(min_length=1, pattern="^a")], {"type": "string", "minLength": 1, "pattern": "^a"}),
        (
            Annotated[list[bool], msgspec.Meta(max_length=3)],
            {"type": "array", "items": {"type": "boolean"}, "maxItems": 3},
        ),
        (Annotated[float, msgspec.Meta(gt=0)], {"type": "number", "minimum": 0, "exclusiveMinimum": True}),
        (Annotated[str, OpenAPI({"format": "cidr"})], {"type": "string", "format": "cidr"}),
        (
            Annotated[str, Rule("self != ''", message="is empty")],
            {"type": "string", "x-kubernetes-validations": [{"rule": "self != ''", "message": "is empty"}]},
        ),
    ],
)
def test_a_type_has_a_schema(hint: Any, schema: dict[str, Any]) -> None:
    assert field_schema(hint) == schema


def test_classes_within_a_class_bring_names_descriptions_and_what_is_required() -> None:
    assert field_schema(Port) == {
        "type": "object",
        "description": "A port.",
        "properties": {
            "targetPort": {
                "type": "integer",
                "format": "int64",
                "minimum": 1,
                "maximum": 65536,
                "exclusiveMaximum": True,
            }
        },
        "required": ["targetPort"],
    }


@dataclass
class Spec:
    replicas: int = 1
    ports: list[Port] = field(default_factory=lambda: [Port(80)])
    note: str | None = None


def test_defaults_of_a_dataclass_are_those_of_the_schema_but_for_none() -> None:
    schema = schema_of(Spec)
    properties = schema["properties"]
    assert (properties["replicas"]["default"], properties["ports"]["default"]) == (1, [{"targetPort": 80}])
    assert "default" not in properties["note"]
    assert "required" not in schema
    assert "description" not in schema


class Model(pydantic.BaseModel):
    """A model."""

    max_size: Annotated[int, pydantic.Field(ge=1, alias="maxSize", description="The most.")]
    names: list[Annotated[str, pydantic.Field(max_length=3)]] = []


def test_a_pydantic_model_has_the_same_schema() -> None:
    assert schema_of(Model) == {
        "type": "object",
        "description": "A model.",
        "properties": {
            "maxSize": {"type": "integer", "format": "int64", "minimum": 1, "description": "The most."},
            "names": {"type": "array", "items": {"type": "string", "maxLength": 3}, "default": []},
        },
        "required": ["maxSize"],
    }


@dataclass
class Node:
    next: Node | None = None


@pytest.mark.parametrize(
    ("hint", "text"),
    [
        (int | list[str], "Model.it: a structural schema cannot represent int | list"),
        (dict[int, str], "Model.it: the keys of a map are str, not int"),
        (tuple[int, str], "Model.it: the items of a list are of one type"),
        (Literal["a", 1], "Model.it: the values of an enumeration are all str or all int"),
        (complex, "Model.it: there is no schema of complex"),
        (Node, "Model.it.next: Node contains itself"),
    ],
)
def test_what_no_structural_schema_can_say_is_refused_with_its_place(hint: Any, text: str) -> None:
    with pytest.raises(TypeError) as refusal:
        field_schema(hint)
    assert str(refusal.value).startswith(text)


def test_a_status_that_is_required_is_refused_as_no_object_begins_with_one() -> None:
    with pytest.raises(TypeError, match=r"Model.status needs a default"):
        schema_of(msgspec.defstruct("Model", [("status", Port)]))
