"""The published form of structural schemas, compared with that of kube-apiserver."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from steersman.machinery.codec.serializer import encode
from steersman.openapi.names import OBJECT_META
from steersman.openapi.structural import PublishedSchemas

RECORDED: dict[str, Any] = json.loads(Path(__file__).with_name("recorded_structural_schemas.json").read_text())
"""By kube-apiserver 1.36, of fields of a CustomResourceDefinition: the schema of each, and what v3 and v2 say of it."""
TEXT = {"type": "string"}
DEEP = 490
"""Levels of arrays and objects, of which a document has 500 at most."""


def published(schema: Any, *, v2: bool = False) -> Any:
    """Return the encoded value, in which 1 and 1.0 differ."""
    return json.loads(encode(PublishedSchemas(v2=v2).schema(schema)), parse_float="float {}".format)


def nested(levels: int, member: str) -> dict[str, Any]:
    schema: dict[str, Any] = dict(TEXT)
    for _ in range(levels):
        below = {"a": schema} if member == "properties" else [schema] if member == "allOf" else schema
        schema = {"type": "object", member: below}
    return schema


def depth_of(schema: Any, member: str) -> int:
    levels = 0
    while member in schema:
        below = schema[member]
        schema = below["a"] if member == "properties" else below[0] if member == "allOf" else below
        levels += 1
    return levels


@pytest.mark.parametrize("version", ["v3", "v2"])
@pytest.mark.parametrize("case", RECORDED)
def test_a_schema_is_published_as_upstream_publishes_it(case: str, version: str) -> None:
    expected = json.loads(json.dumps(RECORDED[case][version]), parse_float="float {}".format)
    assert published(RECORDED[case]["schema"], v2=version == "v2") == expected


def test_an_int_or_string_says_so_itself_beside_members_that_say_nothing() -> None:
    either = [{"type": "integer", "enum": []}, {"type": "string", "additionalProperties": False}]
    expected = [{"type": "integer"}, {"type": "string"}]
    mark = {"x-kubernetes-int-or-string": True}
    assert published({**mark, "anyOf": either}) == {**mark, "anyOf": expected}
    assert published({**mark, "allOf": [{"anyOf": either}]}) == {**mark, "allOf": [{"anyOf": expected}]}


def test_what_no_schema_has_is_not_published() -> None:
    assert published({**TEXT, "id": "x", "x-own": 1, "x-kubernetes-validations": [{"odd": 1}]}) == {
        **TEXT,
        "x-kubernetes-validations": [{"rule": ""}],
    }


def test_numbers_larger_than_64_bits_are_floats() -> None:
    assert published({"type": "integer", "maximum": 10**19, "default": [10**19]}) == {
        "type": "integer",
        "maximum": 10**19,
        "default": [10**19],
    }
    assert published({"type": "integer", "maximum": 10**25})["maximum"] == "float 1e+25"


def test_whole_objects_refer_to_their_metadata() -> None:
    walk = PublishedSchemas(v2=False)
    walk.schema({"type": "object", "properties": {"a": TEXT}})
    assert walk.references == set()
    walk.schema({"type": "array", "items": {"type": "object", "x-kubernetes-embedded-resource": True}})
    assert walk.references == {OBJECT_META}


def test_references_of_types_are_kept_beside_descriptions() -> None:
    reference = {"$ref": "#/components/schemas/io.k8s.api.core.v1.PodSpec"}
    in_v2 = {"$ref": "#/definitions/io.k8s.api.core.v1.PodSpec"}
    assert (published(reference), published(reference, v2=True)) == (reference, in_v2)
    described = {**reference, "description": "what to run"}
    assert published(described) == {"allOf": [reference], "description": "what to run"}
    assert published(described, v2=True) == {**in_v2, "description": "what to run"}


def test_the_schema_stays_as_it_is() -> None:
    before = json.dumps(RECORDED)
    for case in RECORDED.values():
        for v2 in (False, True):
            made = PublishedSchemas(v2=v2).schema(case["schema"])
            made.setdefault("properties", {})["more"] = {}
    assert json.dumps(RECORDED) == before


@pytest.mark.parametrize(
    ("member", "levels"),
    [("items", DEEP), ("additionalProperties", DEEP), ("not", DEEP), ("properties", DEEP // 2), ("allOf", DEEP // 2)],
)
def test_a_schema_may_be_nested_as_deeply_as_documents(member: str, levels: int) -> None:
    assert depth_of(PublishedSchemas(v2=False).schema(nested(levels, member)), member) == levels
    in_v2 = depth_of(PublishedSchemas(v2=True).schema(nested(levels, member)), member)
    assert in_v2 == (0 if member in ("not", "allOf") else levels)


def test_a_schema_may_have_as_many_properties_as_there_can_be() -> None:
    schema = {"type": "object", "properties": {f"p{each}": TEXT for each in range(50_000)}, "required": ["p1"] * 50_000}
    for v2 in (False, True):
        assert PublishedSchemas(v2=v2).schema(schema) == schema
