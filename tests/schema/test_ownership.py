"""Ownership of the fields of custom resources."""

from __future__ import annotations

from typing import Any

from steersman.machinery.managed_fields import custom_schema
from steersman.machinery.managed_fields.typed_value import field_set
from tests.schema.asking import compiled, of

TEXT = {"type": "string"}


def test_lists_and_maps_are_owned_as_the_schema_says() -> None:
    properties: dict[str, Any] = {
        "keyed": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["k", "p"],
            "items": of(k=TEXT, p={**TEXT, "default": "TCP"}, v=TEXT),
        },
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": TEXT},
        "atomic": {"type": "array", "items": TEXT},
        "one": {**of(a=TEXT), "x-kubernetes-map-type": "atomic"},
        "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "either": {"x-kubernetes-int-or-string": True},
        "map": {"type": "object", "additionalProperties": {"type": "integer"}},
        "resource": {
            "type": "object",
            "x-kubernetes-embedded-resource": True,
            "x-kubernetes-preserve-unknown-fields": True,
        },
    }
    value = {
        "keyed": [{"k": "a", "v": "x"}],
        "set": ["a"],
        "atomic": ["a"],
        "one": {"a": "x"},
        "open": {"a": {"b": 1}},
        "either": 5,
        "map": {"a": 1},
        "resource": {"kind": "A", "metadata": {"labels": {"a": "b"}}, "spec": {"x": 1}},
    }
    owned = field_set(compiled(**properties).ownership.root, value)
    assert owned == field_set(custom_schema(of(**properties)).root, value)
    assert owned["f:keyed"] == {'k:{"k":"a","p":"TCP"}': {".": {}, "f:k": {}, "f:v": {}}}
    assert owned["f:set"] == {'v:"a"': {}}
    assert owned["f:one"] == owned["f:atomic"] == owned["f:either"] == {}
