"""Changes of custom resource definitions that lose stored data, or make stored objects invalid."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterator
from math import inf
from typing import Any, Final

from msgspec import Struct

from steersman.check.documents import mapping, sequence, text
from steersman.check.finding import Level, Rule

_MOST_CHANGES: Final = 100
"""Changes of a definition that are told."""
_MOST_VALUES: Final = 20
"""Values that a change tells."""
_UPPER: Final = ("maximum", "maxLength", "maxItems", "maxProperties")
_LOWER: Final = ("minimum", "minLength", "minItems", "minProperties")
_FLAGS: Final = ("exclusiveMaximum", "exclusiveMinimum", "uniqueItems")
_EXACT: Final = ("pattern", "format", "multipleOf", "not", "allOf", "anyOf", "oneOf", "x-kubernetes-list-type")
_SCHEMA: Final = "schema.openAPIV3Schema"


class Change(Struct, frozen=True):
    """A change of a definition, and the field's path in the new one."""

    rule: Rule
    message: str
    field: str
    level: Level = Level.WARNING


def changes(old: dict[str, Any], new: dict[str, Any]) -> Iterator[Change]:
    """Yield the changes from one definition to another that may break stored objects, at most a hundred."""
    for number, each in enumerate(_changes(old, new)):
        if number == _MOST_CHANGES:
            return
        yield each


def _changes(old: dict[str, Any], new: dict[str, Any]) -> Iterator[Change]:
    versions = {name: (number, each) for number, (name, each) in enumerate(_versions(new))}
    for name, before in _versions(old):
        if before.get("served") is not True:
            continue
        number, after = versions.get(name, (-1, {}))
        if after.get("served") is not True:
            place = "spec.versions" if number < 0 else f"spec.versions[{number}].served"
            yield Change(Rule.NARROWED_SCHEMA, f"version {name} is no longer served", place)
        if number >= 0:
            place = f"spec.versions[{number}].{_SCHEMA}"
            yield from _schema_changes(_schema(before), _schema(after), place)


def _versions(definition: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for each in sequence(mapping(definition.get("spec")).get("versions")):
        yield text(mapping(each).get("name")), mapping(each)


def _schema(version: dict[str, Any]) -> dict[str, Any]:
    return mapping(mapping(version.get("schema")).get("openAPIV3Schema"))


class _Pair(Struct, frozen=True):
    """A schema before and after, the path of its values, and its own path in the new definition."""

    before: dict[str, Any]
    after: dict[str, Any]
    value: str
    place: str

    def at(self, value: str, place: str, before: Any, after: Any) -> _Pair:
        """Return the pair of a schema below."""
        return _Pair(mapping(before), mapping(after), f"{self.value}{value}".lstrip("."), f"{self.place}.{place}")

    def narrowed(self, message: str, place: str) -> Change:
        """Return a change after which less is allowed."""
        return Change(Rule.NARROWED_SCHEMA, f"{self.value or 'the object'}: {message}", f"{self.place}.{place}")


def _schema_changes(before: dict[str, Any], after: dict[str, Any], place: str) -> Iterator[Change]:
    pairs = [_Pair(before, after, "", place)]
    while pairs:
        pair = pairs.pop()
        yield from _lost(pair)
        yield from _narrowed(pair)
        pairs += reversed(list(_below(pair)))


def _below(pair: _Pair) -> Iterator[_Pair]:
    properties = mapping(pair.after.get("properties"))
    for name, before in mapping(pair.before.get("properties")).items():
        if name in properties:
            yield pair.at(f".{name}", f"properties.{name}", before, properties[name])
    for name, shown in (("items", "[]"), ("additionalProperties", "[*]")):
        if isinstance(pair.before.get(name), dict) and isinstance(pair.after.get(name), dict):
            yield pair.at(shown, name, pair.before[name], pair.after[name])


def _lost(pair: _Pair) -> Iterator[Change]:
    """Yield the fields that are no longer in a schema, and whose values are dropped therefore."""
    kept = pair.after.get("x-kubernetes-preserve-unknown-fields") is True or pair.after.get("additionalProperties")
    if kept:
        return
    properties = mapping(pair.after.get("properties"))
    place = f"{pair.place}.properties" if properties else pair.place
    for name in mapping(pair.before.get("properties")):
        if name not in properties:
            field = f"{pair.value}.{name}".lstrip(".")
            yield Change(Rule.LOST_FIELD, f"{field} is removed: stored values are lost", place, Level.ERROR)
    if pair.before.get("x-kubernetes-preserve-unknown-fields") is True or (
        pair.before.get("additionalProperties") and not properties
    ):
        field = pair.value or "the object"
        yield Change(Rule.LOST_FIELD, f"{field} no longer keeps unknown fields", pair.place, Level.ERROR)


def _narrowed(pair: _Pair) -> Iterator[Change]:
    before, after = pair.before, pair.after
    if before.get("type") != after.get("type"):
        yield pair.narrowed(f"the type changes from {before.get('type')} to {after.get('type')}", "type")
    if before.get("nullable") is True and after.get("nullable") is not True:
        yield pair.narrowed("null is no longer allowed", "nullable")
    properties = mapping(after.get("properties"))
    was_required = set(map(str, sequence(before.get("required"))))
    for each in sequence(after.get("required")):
        if str(each) not in was_required and "default" not in mapping(properties.get(str(each))):
            yield pair.narrowed(f"{each} is now required, without a default", "required")
    enum = set(map(_key, sequence(after.get("enum"))))
    gone = [each for each in sequence(before.get("enum")) if _key(each) not in enum]
    if enum and (gone or not before.get("enum")):
        what = f"{_shown(gone)} no longer allowed" if gone else "only some values are allowed now"
        yield pair.narrowed(what, "enum")
    for names, is_upper in ((_UPPER, True), (_LOWER, False)):
        for name in names:
            old, new = _number(before.get(name)), _number(after.get(name))
            if new is not None and (old is None or (new < old if is_upper else new > old)):
                was = "was not set" if old is None else f"was {old:g}"
                yield pair.narrowed(f"{name} is {new:g}, {was}", name)
    for name in _FLAGS:
        if after.get(name) is True and before.get(name) is not True:
            yield pair.narrowed(f"{name} is set", name)
    for name in _EXACT:
        if after.get(name) not in (None, before.get(name)):
            yield pair.narrowed(f"{name} {'is set' if before.get(name) is None else 'changes'}", name)
    rules = {text(mapping(each).get("rule")) for each in sequence(before.get("x-kubernetes-validations"))}
    for number, each in enumerate(sequence(after.get("x-kubernetes-validations"))):
        rule = text(mapping(each).get("rule"))
        if rule not in rules:
            yield pair.narrowed(f"the rule {rule} is new", f"x-kubernetes-validations[{number}].rule")


def _shown(values: list[Any]) -> str:
    more = f" and {len(values) - _MOST_VALUES} more" if len(values) > _MOST_VALUES else ""
    return ", ".join(map(str, values[:_MOST_VALUES])) + more


def _key(value: Any) -> Hashable:
    """Return a key by which values of JSON are compared."""
    return value if isinstance(value, str | int | float) else (json.dumps(value, sort_keys=True),)


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except OverflowError:
        return inf if value > 0 else -inf
