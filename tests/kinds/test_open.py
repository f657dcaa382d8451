"""Kinds of any JSON: conversions between values, bodies and objects."""

from __future__ import annotations

import json
from typing import Any

import pytest

from steersman.kinds.open import OpenKind
from steersman.machinery.identity.schema import GroupVersionKind

V1, V2 = (OpenKind(GroupVersionKind("e.x", version, "Foo")) for version in ("v1", "v2"))
FAMILY = {each.api_version: each for each in (V1, V2)}
for _each in FAMILY.values():
    _each.family = FAMILY


def value(metadata: dict[str, Any], version: str = "v1", **content: Any) -> bytes:
    whole = {"apiVersion": f"e.x/{version}", "kind": "Foo", "metadata": metadata, **content}
    return json.dumps(whole, sort_keys=True, separators=(",", ":")).encode()


@pytest.mark.parametrize(
    "stored",
    [
        value({"name": "a", "uid": "u"}),
        value({"name": "a", "labels": {"resourceVersion": "7"}, "uid": "u"}, spec={"metadata": {"uid": "x"}}),
        value({"name": "a"}),
        value({"labels": {"resourceVersion": "7", "uid": "x"}}),
        value({"name": "a", "selfLink": "/x", "uid": "u"}),
        value({"name": "a", "uid": "u"}, aaa={"metadata": {"resourceVersion": "1", "uid": "u"}}),
        value({"annotations": {"a": '"resourceVersion":"9","uid":"x"'}, "name": "a", "uid": "u"}),
    ],
)
def test_a_body_becomes_its_value_again(stored: Any) -> None:
    body = V1.at_revision(stored, 9)
    assert json.loads(b"{" + body)["metadata"]["resourceVersion"] == "9"
    assert V1.value_of(body) == stored
    assert V1.value_of(stored[1:]) == stored
    assert V1.at_revision(V1.value_of(body), 12) == V1.at_revision(stored, 12) == V1.body_at(body, 12)


@pytest.mark.parametrize("content", [{}, {"aaa": 1}, {"aaa": {"apiVersion": "other"}}])
def test_the_version_of_a_body_is_what_it_says(content: dict[str, Any]) -> None:
    for version in ("v1", "v2"):
        assert V1.version_of(value({"name": "a"}, version, **content)[1:]) == f"e.x/{version}"


def test_a_value_is_presented_in_the_version_it_was_stored_in() -> None:
    stored = value({"name": "a", "uid": "u"}, "v2", x=1)
    body = V1.present(stored, 9)
    assert body == V2.at_revision(stored, 9)
    assert V1.body_at(body, 10) == V2.at_revision(stored, 10)
