"""Functions of lists and maps (sprig `list.go`, `dict.go`)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from steersman.nodes.stages.go_template.builtins import Function, integer, text
from steersman.nodes.stages.go_template.values import (
    Number,
    TemplateError,
    Value,
    check_size,
    text_of,
    truth,
    type_name,
)
from steersman.nodes.stages.sprig.numbers import MOST_NUMBERS


def same(one: Value, other: Value) -> bool:
    """Return True if two values are equal as by reflect.DeepEqual. Raises TemplateError if one is too large."""
    check_size(one)
    return _same(one, other)


def _same(one: Value, other: Value) -> bool:
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    return type(one) is type(other) and bool(one == other)


def _list(value: Value, whose: str) -> list[Value]:
    if isinstance(value, list):
        return value
    raise TemplateError(f"cannot find {whose} on type {type_name(value)}")


def _map(value: Value, whose: str) -> dict[str, Value]:
    if isinstance(value, dict):
        return value
    if value is None:
        return {}
    raise TemplateError(f"{whose}: wrong type for value; expected map[string]interface {{}}; got {type_name(value)}")


def _has(wanted: Value, values: Value) -> bool:
    return values is not None and any(same(wanted, each) for each in _list(values, "has"))


def _unique(value: Value) -> list[Value]:
    found: list[Value] = []
    values = _list(value, "uniq")
    if len(values) > MOST_NUMBERS:
        raise TemplateError(f"uniq: more than {MOST_NUMBERS} values")
    seen: set[tuple[type, Value]] = set()
    for each in values:
        if isinstance(each, (list, dict)):
            if not any(same(each, other) for other in found):
                found.append(each)
        elif (type(each), each) not in seen:
            seen.add((type(each), each))
            found.append(each)
    return found


def _slice(value: Value, *bounds: Value) -> Value:
    values = _list(value, "slice")
    if not values:
        return None
    begin = integer(bounds[0], "slice") if bounds else 0
    end = integer(bounds[1], "slice") if len(bounds) > 1 else len(values)
    if not 0 <= begin <= end <= len(values):
        raise TemplateError(f"slice bounds out of range [{begin}:{end}]")
    return values[begin:end]


def _chunks(size: Value, value: Value) -> list[Value]:
    count, values = integer(size, "chunk"), _list(value, "chunk")
    if count < 1:
        raise TemplateError("chunk: a size of less than 1")
    return [values[at : at + count] for at in range(0, len(values), count)]


def _concat(*lists: Value) -> list[Value]:
    found: list[Value] = []
    for each in lists:
        found += _list(each, "concat")
        if len(found) > MOST_NUMBERS:
            raise TemplateError(f"concat: more than {MOST_NUMBERS} values")
    return found


def _dict(*pairs: Value) -> dict[str, Value]:
    return {text_of(pairs[at]): pairs[at + 1] if at + 1 < len(pairs) else "" for at in range(0, len(pairs), 2)}


def _set(given: Value, key: Value, value: Value) -> Value:
    if given is None:
        raise TemplateError("assignment to entry in nil map")
    _map(given, "set")[text(key, "set")] = value
    return given


def _unset(given: Value, key: Value) -> Value:
    _map(given, "unset").pop(text(key, "unset"), None)
    return given


def _keys(*maps: Value) -> list[Value]:
    return [key for each in maps for key in sorted(_map(each, "keys"))]


def _values(given: Value) -> list[Value]:
    return [value for _, value in sorted(_map(given, "values").items())]


def _pick(given: Value, *keys: Value) -> dict[str, Value]:
    found, names = _map(given, "pick"), [text(key, "pick") for key in keys]
    return {name: found[name] for name in names if name in found}


def _omit(given: Value, *keys: Value) -> dict[str, Value]:
    names = {text(key, "omit") for key in keys}
    return {key: value for key, value in _map(given, "omit").items() if key not in names}


def _pluck(key: Value, *maps: Value) -> list[Value]:
    name = text(key, "pluck")
    return [each[name] for each in maps if name in _map(each, "pluck")]


def _merge(into: Value, *others: Value) -> Value:
    for each in others:
        check_size(each)
        _merge_one(_map(into, "merge"), _map(each, "merge"), overwrites=False)
    return into


def _merge_overwrite(into: Value, *others: Value) -> Value:
    for each in others:
        check_size(each)
        _merge_one(_map(into, "mergeOverwrite"), _map(each, "mergeOverwrite"), overwrites=True)
    return into


def _merge_one(into: dict[str, Value], other: dict[str, Value], *, overwrites: bool, depth: int = 0) -> None:
    if depth > _DEEPEST:
        raise TemplateError("merge: maps that are nested too deeply")
    for key, value in other.items():
        known = into.get(key)
        if isinstance(known, dict) and isinstance(value, dict):
            _merge_one(known, value, overwrites=overwrites, depth=depth + 1)
        elif not truth(known) or (overwrites and truth(value)):
            into[key] = value


def _dig(*given: Value) -> Value:
    if len(given) < 3:
        raise TemplateError("dig needs at least three arguments")
    *keys, default, found = given
    for key in keys:
        found = _map(found, "dig").get(text(key, "dig"))
        if found is None:
            return default
    return found


_DEEPEST: Final = 100


def _with(value: Value, *more: Value) -> list[Value]:
    return [*_list(value, "push"), *more]


COLLECTIONS: Final[Mapping[str, Function]] = MappingProxyType(
    {
        "append": lambda value, one: _with(value, one),
        "chunk": _chunks,
        "compact": lambda value: [each for each in _list(value, "compact") if truth(each)],
        "concat": _concat,
        "dict": _dict,
        "dig": _dig,
        "first": lambda value: (_list(value, "first") or [None])[0],
        "get": lambda given, key: _map(given, "get").get(text(key, "get"), ""),
        "has": _has,
        "hasKey": lambda given, key: text(key, "hasKey") in _map(given, "hasKey"),
        "initial": lambda value: _list(value, "initial")[:-1],
        "keys": _keys,
        "last": lambda value: (_list(value, "last") or [None])[-1],
        "list": lambda *values: list(values),
        "merge": _merge,
        "mergeOverwrite": _merge_overwrite,
        "omit": _omit,
        "pick": _pick,
        "pluck": _pluck,
        "prepend": lambda value, one: [one, *_list(value, "prepend")],
        "push": lambda value, one: _with(value, one),
        "rest": lambda value: _list(value, "rest")[1:],
        "reverse": lambda value: _list(value, "reverse")[::-1],
        "set": _set,
        "slice": _slice,
        "tuple": lambda *values: list(values),
        "uniq": _unique,
        "unset": _unset,
        "values": _values,
        "without": lambda value, *omitted: [
            each for each in _list(value, "without") if not any(same(each, one) for one in omitted)
        ],
    }
)


def kind_name(value: Value) -> str:
    """Return the name of a value's reflect.Kind."""
    if isinstance(value, Number):
        return "string"
    if isinstance(value, list):
        return "slice"
    return "map" if isinstance(value, dict) else "invalid" if value is None else type_name(value)
