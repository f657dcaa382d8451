"""Invalid values that have not changed are accepted."""

from __future__ import annotations

from typing import Any

from tests.schema.asking import compiled, told

SHORT = {"type": "string", "maxLength": 2}
KEYED = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["k"],
    "items": {"type": "object", "required": ["k"], "properties": {"k": {"type": "string"}, "v": SHORT}},
}
SCHEMA = compiled(
    s=SHORT,
    o={"type": "object", "properties": {"a": SHORT, "b": SHORT}, "required": ["c"]},
    keyed=KEYED,
    atomic={"type": "array", "items": SHORT},
    open={"type": "object", "x-kubernetes-preserve-unknown-fields": True, "required": ["gone"]},
    map={"type": "object", "additionalProperties": SHORT},
)


def errors(new: Any, old: Any) -> list[str]:
    """Return the fields of the remaining errors."""
    return [place for place, _ in told(SCHEMA.validate_update(new, old))]


def test_what_is_not_changed_is_let_through() -> None:
    wrong = {"s": "long", "o": {"a": "long"}, "map": {"x": "long"}, "atomic": ["long"]}
    assert errors(wrong, wrong) == []
    assert errors({**wrong, "s": "longer"}, wrong) == ["s"]
    assert errors({**wrong, "map": {"x": "long", "y": "long"}}, wrong) == ["map.y"]


def test_a_change_below_brings_back_what_is_wrong_with_an_object_itself() -> None:
    old = {"o": {"a": "long", "b": "x"}}
    assert errors({"o": {"a": "long", "b": "y"}}, old) == ["o.c"]


def test_items_are_found_by_their_keys_and_only_there() -> None:
    old = {"keyed": [{"k": "a", "v": "long"}, {"k": "b", "v": "x"}], "atomic": ["long", "x"]}
    assert errors({**old, "keyed": [{"k": "b", "v": "y"}, {"k": "a", "v": "long"}]}, old) == []
    assert errors({**old, "keyed": [{"k": "c", "v": "long"}]}, old) == ["keyed[0].v"]
    assert errors({**old, "atomic": ["long", "y"]}, old) == ["atomic[0]"]


def test_a_member_of_which_nothing_is_said_makes_an_object_another() -> None:
    """Upstream cannot determine whether it has changed."""
    assert errors({"open": {"x": 1}}, {"open": {"x": 1}}) == ["open.gone"]
    assert errors({"open": {}}, {"open": {}}) == []


def test_one_is_not_one_point_zero() -> None:
    of_numbers = compiled(n={"type": "integer", "maximum": 0})
    assert of_numbers.validate_update({"n": 1}, {"n": 1}) == []
    assert len(of_numbers.validate_update({"n": 1.0}, {"n": 1})) == 1


def test_the_kind_and_the_version_are_always_judged() -> None:
    schema = compiled(kind={"type": "string", "maxLength": 1}, spec={"type": "object", "properties": {"kind": SHORT}})
    wrong = {"kind": "Foo", "spec": {"kind": "long"}}
    changed = {**wrong, "other": 1}
    assert [place for place, _ in told(schema.validate_update(changed, {**wrong, "other": 2}))] == ["kind"]


def test_the_status_is_held_against_the_old_one() -> None:
    schema = compiled(status={"type": "object", "properties": {"s": SHORT}})
    assert schema.validate_status({"status": {"s": "long"}}, {"status": {"s": "long"}}) == []
    assert len(schema.validate_status({"status": {"s": "long"}}, {})) == 1


def test_rules_can_ask_what_was_found_out() -> None:
    old: dict[str, Any] = {"keyed": [{"k": "a", "v": "x"}], "s": "a"}
    new: dict[str, Any] = {"keyed": [{"k": "b"}, {"k": "a", "v": "x"}], "s": "b"}
    correlated = SCHEMA.correlate(new, old)
    keyed = correlated.key("keyed")
    assert keyed is not None
    assert keyed.index(0) is None
    item = keyed.index(1)
    assert item is not None
    assert item.old is old["keyed"][0]
    assert [each.is_same() for each in (item, keyed, correlated)] == [True, False, False]
    assert correlated.key("gone") is None
