"""Documents of other servers, as parts of ours."""

from __future__ import annotations

import json
from typing import Any

from steersman.openapi.fragments import Fragments
from steersman.openapi.merging import below, merge_document


def reference(name: str) -> dict[str, Any]:
    return {"$ref": f"#/definitions/{name}"}


def fragments(**sections: dict[str, Any]) -> Fragments:
    return Fragments(
        **{
            section: {name: json.dumps(each).encode() for name, each in members.items()}
            for section, members in sections.items()
        }
    )


def decoded(members: Any) -> dict[str, Any]:
    return {name: json.loads(each) for name, each in members.items()}


def test_only_paths_below_the_prefix_stay_and_what_they_need() -> None:
    document = {
        "paths": {"/apis/a/v1/x": {"get": reference("X")}, "/apis/b/v1/y": {"get": reference("Y")}},
        "definitions": {"X": {"properties": {"z": reference("Z")}}, "Y": {}, "Z": reference("X"), "Unused": {}},
    }
    found = below(document, "/apis/a/v1/")
    assert list(found["paths"]) == ["/apis/a/v1/x"]
    assert set(found["definitions"]) == {"X", "Z", "Unused"}


def test_what_has_no_paths_adds_nothing() -> None:
    assert below({"paths": [], "definitions": {"X": {}}}, "/apis/")["paths"] == {}
    whole = fragments(paths={"/a": {}})
    assert merge_document(whole, {"paths": {"/a": {"other": {}}}}) is whole


def test_a_definition_that_means_the_same_is_shared() -> None:
    whole = fragments(paths={"/a": {}}, definitions={"X": {"type": "object", "description": "ours"}})
    kind = {"x-kubernetes-group-version-kind": [{"kind": "X"}]}
    document = {"paths": {"/b": reference("X")}, "definitions": {"X": {"type": "object", "description": "it", **kind}}}
    found = merge_document(whole, document)
    assert decoded(found.paths) == {"/a": {}, "/b": reference("X")}
    assert decoded(found.definitions)["X"]["description"] == "ours"


def test_a_definition_that_means_something_else_has_another_name() -> None:
    whole = fragments(definitions={"X": {"type": "object"}, "X_v2": {"type": "integer"}}, parameters={"p": {"a": 1}})
    document = {
        "paths": {"/b": {"get": reference("X"), "parameters": [{"$ref": "#/parameters/p"}]}},
        "definitions": {"X": {"type": "string"}, "Y": {"items": reference("X")}},
        "parameters": {"p": {"a": 2}},
    }
    found = merge_document(whole, document)
    assert decoded(found.definitions) == {
        "X": {"type": "object"},
        "X_v2": {"type": "integer"},
        "X_v3": {"type": "string"},
        "Y": {"items": reference("X_v3")},
    }
    assert decoded(found.parameters) == {"p": {"a": 1}, "p_v2": {"a": 2}}
    assert decoded(found.paths)["/b"] == {"get": reference("X_v3"), "parameters": [{"$ref": "#/parameters/p_v2"}]}


def test_a_name_that_was_given_before_is_taken_again() -> None:
    whole = fragments(definitions={"X": {"type": "object"}, "X_v2": {"type": "string"}})
    document = {"paths": {"/b": reference("X")}, "definitions": {"X": {"type": "string"}}}
    assert decoded(merge_document(whole, document).paths) == {"/b": reference("X_v2")}
