"""Reading of Stage objects, and the errors for invalid ones."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.nodes.stages.declaration import StageError, Step, read_stage, steps_of
from steersman.nodes.stages.stage_set import Stages
from tests.nodes.stages.samples import ENDS, RUNS, Plain, selecting, stage, where


def kinds(step: Step) -> list[str]:
    return [name for name in ("event", "finalizers", "delete", "patch") if getattr(step, name)]


def test_what_was_said_before_there_were_steps_becomes_steps() -> None:
    spec = read_stage(RUNS).spec
    assert [kinds(each) for each in steps_of(spec)] == [["event"], ["patch"]]
    patch = steps_of(spec)[1].patch
    assert patch is not None
    assert (patch.root, patch.subresource, patch.type) == ("status", "status", None)
    everything = {
        "event": {"reason": "R"},
        "finalizers": {"empty": True},
        "delete": True,
        "patches": [{"template": "a: 1"}, {"template": "b: 1"}],
        "statusTemplate": "unused: 1",
    }
    spec = read_stage(stage("all", selector={}, next=everything)).spec
    assert [kinds(each) for each in steps_of(spec)] == [["event"], ["finalizers"], ["patch"], ["patch"], ["delete"]]
    spec = read_stage(stage("steps", next=everything, steps=[{"delete": True}])).spec
    assert [kinds(each) for each in steps_of(spec)] == [["delete"]]


@pytest.mark.parametrize(
    ("spec", "reported"),
    [
        ({"next": {"statusTemplate": "{{ none }}"}}, 'template: line 1: function "none" not defined'),
        ({"next": {"statusTemplate": "{{ NodePort }}"}}, 'template: line 1: function "NodePort" not defined'),
        ({"next": {"statusTemplate": "{{ if }}"}}, "template: line 1: missing value for if"),
        ({"selector": selecting(where(".a |", "Exists"))}, ".a |: syntax error"),
        ({"selector": selecting(where("none(1)", "Exists"))}, "none(1): none/1 is not defined"),
        ({"selector": selecting(where(".a", "Near"))}, 'operator "Near" is not supported'),
        ({"selector": selecting(where(".a", "In"))}, "values set can't be empty"),
        ({"selector": selecting(where(".a", "Exists", "b"))}, "values set must be empty"),
        ({"selector": selecting({"cel": {"expression": "self."}})}, "failed to compile expression: ERROR"),
        ({"selector": selecting({})}, "matchExpressions[0]: invalid expression"),
        ({"weightFrom": {"cel": {"expression": "none"}}}, "undeclared reference to 'none'"),
        ({"weightFrom": {"expressionFrom": ".a["}}, ".a[: syntax error"),
        ({"weight": -1}, "weight is less than 0"),
        ({"weight": "1"}, "spec.weight: Expected `int`, got `str`"),
        ({"delay": {"durationMilliseconds": -1}}, "-1 milliseconds"),
        ({"next": {"patches": [{"type": "other"}]}}, "'other' is none of json, merge, strategic"),
        ({"next": {"patches": [{"impersonation": {}}]}}, "need a username"),
        ({"next": {"statusTemplate": "a", "statusPatchAs": {"username": "u\nx"}}}, "others than those of ASCII"),
        ({"steps": [{"apply": {"type": "json"}}]}, "'json' is none of apply, merge, strategic"),
        ({"steps": [{}] * 257}, "a list or map of more than 256 elements"),
        ({"resourceRef": {"apiGroup": "apps/v1"}}, "kind and apiGroup are required"),
        ({"nexts": {}}, "spec: unknown key 'nexts'; known are delay, "),
        ({"nexts": {}}, "did you mean next?"),
        ({"steps": [{"aply": 1}]}, "spec.steps[0]: unknown key 'aply'; known are "),
        ({"selector": {"matchExpresions": []}}, "did you mean matchExpressions?"),
    ],
)
def test_an_invalid_stage_is_reported_with_its_file_and_name(spec: Plain, reported: str) -> None:
    manifest: dict[str, Any] = stage("mine", **{"selector": {}, **spec})
    with pytest.raises(StageError) as refused:
        Stages.parse([("a.yaml", manifest)])
    assert str(refused.value).startswith("a.yaml: Stage mine: ")
    assert reported in str(refused.value)


def test_another_version_is_refused() -> None:
    with pytest.raises(StageError, match=r"only kwok\.x-k8s\.io/v1alpha1 is known"):
        read_stage({**RUNS, "apiVersion": "kwok.x-k8s.io/v1"})


def test_a_kind_without_stages_has_no_lifecycle() -> None:
    stages = Stages.parse([("a", RUNS), ("b", ENDS)])
    assert (stages.pods is None, stages.nodes is None) == (False, True)
    assert Stages.parse([("a", stage("n", "Node", selector={}))]).pods is None
