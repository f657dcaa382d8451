"""From schemas to nodes."""

from __future__ import annotations

import asyncio
import gc
import threading
from typing import Any

import pytest

from steersman.schema import UnsupportedSchemaError, compile_schema, compiling
from tests.schema.asking import of

TEXT = {"type": "string"}


def test_parts_that_say_the_same_are_shared_between_schemas() -> None:
    one = compile_schema(of(a=of(x={**TEXT, "description": "this"}), b=of(x=TEXT)))
    other = compile_schema(of(c=of(x={**TEXT, "title": "that"})))
    assert one.root.properties["a"] is one.root.properties["b"] is other.root.properties["c"]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"default": 1}, {"default": 1.0}),
        ({"default": True}, {"default": 1}),
        ({"enum": [1]}, {"enum": [True]}),
        ({"default": {"a": [1]}}, {"default": {"a": [1.0]}}),
        ({"nullable": True}, {}),
        ({"format": "date"}, {"format": "unheard-of"}),
        ({"x-kubernetes-validations": [{"rule": "a"}]}, {"x-kubernetes-validations": [{"rule": "b"}]}),
        ({"additionalProperties": True}, {"additionalProperties": False}),
    ],
)
def test_parts_that_do_not_are_not(one: dict[str, Any], other: dict[str, Any]) -> None:
    schemas = [compile_schema({"type": "object", **each}) for each in (one, other)]
    assert schemas[0].root is not schemas[1].root


async def test_what_is_not_used_any_more_is_freed_beside_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Freeing the nodes of a large definition takes a tenth of a second."""
    threads: list[int] = []
    freed = threading.Event()

    def forget(use: compiling.Use) -> None:
        threads.append(threading.get_ident())
        forgotten(use)
        if len(threads) == 50:
            freed.set()

    forgotten = compiling.forget
    monkeypatch.setattr(compiling, "forget", forget)
    schema = compile_schema(of(**{f"only-here-{number}": of(**{f"x{number}": TEXT}) for number in range(50)}))
    del schema
    gc.collect()
    assert await asyncio.to_thread(freed.wait, 60)
    assert threading.get_ident() not in threads


def test_what_is_not_used_any_more_is_forgotten() -> None:
    before = len(compiling.in_use)
    kept = [compile_schema(of(**{f"only_here_{number}": TEXT})) for number in range(50)]
    assert len(compiling.in_use) >= before + 50
    del kept
    gc.collect()
    assert len(compiling.in_use) <= before + 2


@pytest.mark.parametrize(
    ("member", "message"),
    [
        ({"id": "x"}, "OpenAPIV3Schema 'id' is not supported"),
        ({"$schema": "x"}, "OpenAPIV3Schema 'schema' is not supported"),
        ({"$ref": "x"}, "OpenAPIV3Schema '$ref' is not supported"),
        ({"additionalItems": False}, "OpenAPIV3Schema 'additionalItems' is not supported"),
        ({"items": [TEXT]}, "OpenAPIV3Schema 'items' must be a schema, but is an array"),
        (
            {"x-kubernetes-preserve-unknown-fields": False},
            "internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined",
        ),
    ],
)
def test_what_no_structural_schema_has_is_refused(member: dict[str, Any], message: str) -> None:
    with pytest.raises(UnsupportedSchemaError) as raised:
        compile_schema(of(a={"type": "array", **member}))
    assert str(raised.value) == message


def test_without_a_schema_nothing_is_known() -> None:
    structural = compile_schema(None)
    obj = {"apiVersion": "v1", "kind": "A", "metadata": {"name": "x"}, "spec": {"a": 1}}
    assert structural.fit(obj, strict=True) == ["spec"]
    assert structural.validate(obj) == []
    assert not structural.has_defaults


def test_rules_stay_where_they_are_declared() -> None:
    rule = {"rule": "self.a > 1", "message": "too small"}
    structural = compile_schema(of(spec={**of(a={"type": "integer"}), "x-kubernetes-validations": [rule]}))
    assert structural.has_rules
    assert structural.root.properties["spec"].rules == (rule,)
    assert not compile_schema(of(a=TEXT)).has_rules


def test_what_is_said_twice_is_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[Any] = []
    real = compiling.Compiler.compiled

    def counted(self: compiling.Compiler, plain: Any) -> Any:
        compiled.append(plain)
        return real(self, plain)

    monkeypatch.setattr(compiling.Compiler, "compiled", counted)
    name = {"type": "string", "maxLength": 5}
    properties = {letter: {"description": f"The {letter}", **name} for letter in "abcdefgh"}
    node = compiling.Compiler().node({"type": "object", "properties": properties})
    assert len(compiled) == 2
    assert {id(node.properties[letter]) for letter in "abcdefgh"} == {id(node.properties["a"])}


@pytest.mark.parametrize(
    "other",
    [
        {"type": "string", "format": "unheard-of"},
        {"x-kubernetes-int-or-string": True},
        {"type": "array", "items": {"type": "string", "format": "date"}},
        {"type": "object", "additionalProperties": {"x-kubernetes-int-or-string": True}},
        {"type": "string", "allOf": [{"format": "date"}]},
    ],
)
def test_only_what_judges_defaults_otherwise_is_compiled_for_them_again(other: dict[str, Any]) -> None:
    alike = {"type": "object", "properties": {"x": {"type": "string", "default": "y"}}}
    plain = {"type": "object", "properties": {"alike": alike, "other": other}}
    compiler = compiling.Compiler()
    node = compiler.node(plain)
    of_defaults = compiler.node_of_defaults(plain)
    assert of_defaults.properties["alike"] is node.properties["alike"]
    assert compiling.Compiler().node_of_defaults(plain).features() == of_defaults.features()
    assert id(other) not in compiler._alike
