"""Paths of changed fields, without values."""

from __future__ import annotations

import json
from typing import Any

import pytest

from steersman.store.changed_fields import changed_fields


def document(**members: Any) -> bytes:
    return json.dumps(members).encode()


@pytest.mark.parametrize(
    ("before", "after", "paths"),
    [
        ({"spec": {"replicas": 1}}, {"spec": {"replicas": 2}}, [".spec.replicas"]),
        ({"spec": {}}, {"spec": {"paused": True}}, [".spec.paused"]),
        (
            {"metadata": {"resourceVersion": "1", "managedFields": [], "generation": 1}},
            {"metadata": {"resourceVersion": "2", "managedFields": [1], "generation": 2}},
            [],
        ),
        (
            {"containers": [{"name": "a", "args": ["--password=x"]}]},
            {"containers": [{"name": "a", "args": ["--password=y"]}]},
            [".containers[name=a].args"],
        ),
        ({"data": {"a": "secret"}}, {"data": {"a": "other", "b": "secret"}}, [".data.b", ".data.a"]),
    ],
)
def test_paths_of_changed_fields(before: dict[str, Any], after: dict[str, Any], paths: list[str]) -> None:
    assert changed_fields(document(**before), document(**after)) == paths


def test_paths_are_few_and_short() -> None:
    found = changed_fields(document(), document(**{f"{number}{'x' * 10_000}": 1 for number in range(100)}))
    assert len(found) == 20
    assert {len(each) for each in found} == {256}
