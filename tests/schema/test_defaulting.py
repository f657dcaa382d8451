"""Defaulting by schemas."""

from __future__ import annotations

from typing import Any

from steersman.schema import compile_schema
from tests.schema.asking import compiled, of

PORT = {"type": "object", "properties": {"protocol": {"type": "string", "default": "TCP"}}}


def test_what_is_lacking_is_filled_in_at_every_level() -> None:
    structural = compiled(
        spec={
            "type": "object",
            "default": {},
            "properties": {
                "n": {"type": "integer", "default": 1},
                "o": {
                    "type": "object",
                    "default": {"a": 1},
                    "properties": {"a": {"type": "integer"}, "b": {"type": "integer", "default": 2}},
                },
                "l": {"type": "array", "items": PORT},
                "m": {"type": "object", "additionalProperties": PORT},
                "not_there": PORT,
            },
        }
    )
    obj: dict[str, Any] = {}
    structural.default(obj)
    assert obj == {"spec": {"n": 1, "o": {"a": 1, "b": 2}}}
    obj = {"spec": {"n": 5, "l": [{}, {"protocol": "UDP"}, None], "m": {"a": {}}}}
    structural.default(obj)
    assert obj["spec"]["l"] == [{"protocol": "TCP"}, {"protocol": "UDP"}, None]
    assert obj["spec"]["m"] == {"a": {"protocol": "TCP"}}


def test_a_null_is_lacking_where_it_is_not_allowed() -> None:
    structural = compiled(
        a={"type": "string", "default": "x"},
        b={"type": "string", "default": "x", "nullable": True},
        l={"type": "array", "items": {"type": "string", "default": "x"}},
        m={"type": "object", "additionalProperties": {"type": "string", "default": "x"}},
    )
    obj: dict[str, Any] = {"a": None, "b": None, "l": [None], "m": {"k": None}}
    structural.default(obj)
    assert obj == {"a": "x", "b": None, "l": ["x"], "m": {"k": "x"}}


def test_a_default_is_not_shared_between_objects() -> None:
    structural = compiled(o={"type": "object", "default": {"a": []}, "x-kubernetes-preserve-unknown-fields": True})
    one: dict[str, Any] = {}
    other: dict[str, Any] = {}
    structural.default(one)
    one["o"]["a"].append(1)
    structural.default(other)
    assert other == {"o": {"a": []}}


def test_defaults_are_pruned_before_they_are_used() -> None:
    """Metadata in them too, as this server reads it."""
    plain = of(
        r={
            "type": "object",
            "x-kubernetes-embedded-resource": True,
            "x-kubernetes-preserve-unknown-fields": True,
            "default": {"apiVersion": "v1", "kind": "A", "metadata": {"name": "x", "odd": 1, "labels": 5}},
        },
        o={"type": "object", "properties": {"a": {"type": "string"}}, "default": {"a": "x", "odd": 1}},
    )
    obj: dict[str, Any] = {}
    compile_schema(plain).default(obj)
    assert obj == {"r": {"apiVersion": "v1", "kind": "A", "metadata": {"name": "x"}}, "o": {"a": "x"}}
    assert plain["properties"]["o"]["default"] == {"a": "x", "odd": 1}
