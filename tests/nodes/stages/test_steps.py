"""Actions of stages: patches from templates, and finalizers."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.client.client import JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH
from steersman.nodes.stages.declaration import PODS, Finalizer, Finalizers, Patch, ResourceRef, Step
from steersman.nodes.stages.go_template.values import TemplateError
from steersman.nodes.stages.steps import PreparedPatch, finalizer_operations, prepared

POD: dict[str, Any] = {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "x"}, {"name": "y"}]}}


def patch(template: str, of: ResourceRef = PODS, **more: Any) -> PreparedPatch:
    found = prepared(Step(patch=Patch(template=template, **more)), of).patch
    assert found is not None
    return found


def test_a_template_is_yaml_that_becomes_the_patch() -> None:
    found = patch("\n{{ range .spec.containers }}\n- {{ .name | Quote }}\n{{ end }}", root="names")
    assert found.body(POD, {}) == {"names": ["x", "y"]}
    assert patch("at: 2026-01-01T00:00:00Z\nyes_: yes\nnumber: 010").body(POD, {}) == {
        "at": "2026-01-01T00:00:00Z",
        "yes_": True,
        "number": 8,
    }
    assert patch("{{ range .none }}{{ end }}", root="status").body(POD, {}) == {"status": None}


def test_operations_of_a_json_patch_are_below_the_root() -> None:
    found = patch('- {op: add, path: /labels/a, value: "{{ .metadata.name }}"}', root="metadata", type="json")
    assert found.body(POD, {}) == [{"op": "add", "path": "/metadata/labels/a", "value": "a"}]


@pytest.mark.parametrize(
    ("type_", "media"),
    [(None, STRATEGIC_MERGE_PATCH), ("strategic", STRATEGIC_MERGE_PATCH), ("merge", MERGE_PATCH), ("json", JSON_PATCH)],
)
def test_types_of_patches(type_: str | None, media: str) -> None:
    assert patch("a: 1", type=type_).media == media


def test_patches_of_other_kinds_than_pods_and_nodes_are_merge_patches() -> None:
    assert patch("a: 1", ResourceRef("example.com/v1", "Widget")).media == MERGE_PATCH


@pytest.mark.parametrize(
    ("template", "more", "reported"),
    [
        ("a: [", {}, "the text is no YAML: "),
        ("- a", {}, "the text is no patch: it is not an object"),
        ("text", {}, "the text is no patch: it is not an object"),
        ("a: 1", {"type": "json"}, "the text is no JSON patch: it is not a list of operations"),
        ("a: {{ index .spec.containers 7 }}", {}, "line 1: error calling index: index out of range: 7"),
    ],
)
def test_an_invalid_patch_is_reported(template: str, more: dict[str, Any], reported: str) -> None:
    with pytest.raises(TemplateError) as refused:
        patch(template, **more).body(POD, {})
    assert str(refused.value).startswith(reported)


@pytest.mark.parametrize(
    ("present", "wanted", "operations"),
    [
        ("", {"add": "a b"}, [("add", "", ["a", "b"])]),
        ("x", {"add": "a x"}, [("add", "/-", "a")]),
        ("a b c", {"remove": "a c"}, [("remove", "/2", None), ("remove", "/0", None)]),
        ("a b", {"remove": "a b"}, [("remove", "", None)]),
        ("a", {"remove": "b"}, []),
        ("", {"remove": "b"}, []),
        ("", {"empty": True}, []),
        ("a", {"empty": True, "add": "b"}, [("remove", "", None), ("add", "", ["b"])]),
        ("a b", {"remove": "a", "add": "c"}, [("remove", "/0", None), ("add", "/-", "c")]),
    ],
)
def test_finalizers(present: str, wanted: dict[str, Any], operations: list[tuple[str, str, Any]]) -> None:
    given: dict[str, Any] = {
        key: value if key == "empty" else tuple(Finalizer(each) for each in value.split())
        for key, value in wanted.items()
    }
    found = finalizer_operations(present.split(), Finalizers(**given))
    assert found == [
        {"op": op, "path": f"/metadata/finalizers{path}", **({} if value is None else {"value": value})}
        for op, path, value in operations
    ]
