"""Tests of the tool that compares published OpenAPI documents with a reference server's."""

from __future__ import annotations

from random import Random
from typing import Any

import orjson

from steersman.endpoints.discovery import served_versions
from steersman.openapi.builder import group_version_document
from steersman.openapi.schemas import Schemas
from tools.compare_openapi import comparable, compare, definitions_in, differences, random_definition, resource_of
from tools.differential.server import Answer

DEFINITION = """
{kind: ConfigMap}
---
kind: CustomResourceDefinition
metadata: {name: gadgets.e.x, labels: {app: '{{ name }}'}}
spec:
  group: e.x
  scope: Namespaced
  names: {plural: gadgets, kind: Gadget, listKind: GadgetList}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {'=': {}}}}}
  - {name: v2, served: false, storage: false, schema: {openAPIV3Schema: {type: object}}}
"""


class Reference:
    """Reference server that publishes this server's documents with one change of a v3 schema."""

    def __init__(self, definition: dict[str, Any], **change: Any) -> None:
        spec = definition["spec"]
        document = group_version_document("e.x", "v1", served_versions(resource_of(spec, spec["versions"][0])))
        fragments = document.fragments(Schemas())
        self._v2 = {
            "paths": {path: orjson.loads(item) for path, item in fragments.paths.items()},
            "definitions": {name: orjson.loads(each) for name, each in fragments.definitions.items()},
        }
        self._v3 = document.build()
        self._v3["components"]["schemas"]["x.e.v1.Gadget"] |= change

    def ask(self, method: str, path: str) -> Answer:
        return Answer(200, {"/openapi/v2": self._v2, "/openapi/v3/apis/e.x/v1": self._v3}[path])


def test_what_is_alike_does_not_differ() -> None:
    (definition,) = definitions_in(DEFINITION)
    assert "labels" not in definition["metadata"]
    client: Any = Reference(definition)
    assert list(compare(client, [definition])) == []


def test_a_difference_is_told_with_its_place() -> None:
    (definition,) = definitions_in(DEFINITION)
    client: Any = Reference(definition, type="array")
    place = "apis/e.x/v1 | components | schemas | x.e.v1.Gadget | type"
    assert list(compare(client, [definition])) == [(place, "array", "object")]


def test_numbers_differ_by_their_text_and_lists_by_their_items() -> None:
    one, other = comparable({"a": [1, 2]}), comparable({"a": [1.0, 2]})
    assert [place for place, *_ in differences("x", one, other)] == ["x | a[0] | number"]
    assert [place for place, *_ in differences("x", one, comparable({"a": [1]}))] == ["x | a"]
    assert [place for place, *_ in differences("x", one, comparable({}))] == ["x | a"]


def test_parameters_and_built_in_types_may_be_described_in_other_words() -> None:
    parameter, built_in = {"in": "query", "name": "a"}, {"type": "string"}
    described = {"parameters": [{**parameter, "description": "b"}], "io.k8s.api.A": {**built_in, "description": "c"}}
    assert comparable(described) == {"parameters": [parameter], "io.k8s.api.A": built_in}
    assert comparable({"description": "d"}) == {"description": "d"}


def test_a_seed_makes_the_same_definition_again() -> None:
    one, other = (random_definition(Random(7), 4) for _ in range(2))
    assert one == other
    assert one["metadata"]["name"] == "foo4s.g1.compared.example.com"
