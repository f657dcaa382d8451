"""Predefined functions of templates (text/template `funcs.go`); `and` and `or` are in `evaluation`, as they
are lazy.
"""

from __future__ import annotations

import html as _html
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final
from urllib.parse import quote_plus

from steersman.nodes.stages.go_template.formatting import sprint, sprintf, sprintln
from steersman.nodes.stages.go_template.values import Kind, Number, TemplateError, Value, kind_of, truth, type_name

Function = Callable[..., Value]
"""Takes values and returns one. Raises TemplateError."""


def text(value: Value, whose: str) -> str:
    """Return an argument that must be a string. `whose` is the function for the message. Raises TemplateError."""
    if isinstance(value, str) and not isinstance(value, Number):
        return value
    raise TemplateError(f"{whose}: wrong type for value; expected string; got {type_name(value)}")


def integer(value: Value, whose: str) -> int:
    """Return an argument that must be an int. `whose` is the function for the message. Raises TemplateError."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise TemplateError(f"{whose}: wrong type for value; expected integer; got {type_name(value)}")


def equal(first: Value, *others: Value) -> bool:
    """Return True if a value equals one of the others. Raises TemplateError for values that are not comparable."""
    if not others:
        raise TemplateError("missing argument for comparison")
    return any(_are_equal(first, each) for each in others)


def _are_equal(one: Value, other: Value) -> bool:
    kind = kind_of(one)
    if kind is not kind_of(other):
        if one is None or other is None:
            return False
        raise TemplateError(f"incompatible types for comparison: {type_name(one)} and {type_name(other)}")
    if kind is not Kind.INVALID:
        return bool(one == other)
    if one is None or other is None:
        return one is other
    raise TemplateError(f"non-comparable types {type_name(one)} and {type_name(other)}")


def less(one: Value, other: Value) -> bool:
    """Return True if a string or number is less than another.

    Raises TemplateError for values that are not comparable.
    """
    kinds = kind_of(one), kind_of(other)
    if Kind.INVALID in kinds or (kinds[0] is kinds[1] is Kind.BOOL):
        raise TemplateError("invalid type for comparison")
    if kinds[0] is not kinds[1]:
        raise TemplateError(f"incompatible types for comparison: {type_name(one)} and {type_name(other)}")
    if isinstance(one, str):
        return one.encode() < str(other).encode()
    return bool(one < other)


def _at_most(one: Value, other: Value) -> bool:
    return less(one, other) or equal(one, other)


def index(item: Value, *keys: Value) -> Value:
    """Return an element of a list or map by its key; further keys index the result. Raises TemplateError."""
    if item is None:
        raise TemplateError("index of untyped nil")
    for key in keys:
        if item is None:
            raise TemplateError("index of nil pointer")
        if isinstance(item, dict):
            item = item.get(text(key, "index"))
        elif isinstance(item, (list, str)):
            values: list[Value] | bytes = item.encode() if isinstance(item, str) else item
            at = integer(key, "cannot index slice/array")
            if not 0 <= at < len(values):
                raise TemplateError(f"index out of range: {at}")
            item = values[at]
        else:
            raise TemplateError(f"can't index item of type {type_name(item)}")
    return item


def slice_(item: Value, *bounds: Value) -> Value:
    """Return a part of a string or list between bounds. Raises TemplateError."""
    if not isinstance(item, (list, str)) or isinstance(item, Number):
        raise TemplateError(f"slice of {'untyped nil' if item is None else f'type {type_name(item)}'}")
    if len(bounds) > 3 or (len(bounds) == 3 and isinstance(item, str)):
        raise TemplateError(f"cannot slice by {len(bounds)} indexes")
    values = item.encode() if isinstance(item, str) else item
    places = [integer(each, "cannot index slice/array") for each in bounds]
    for each in places:
        if not 0 <= each <= len(values):
            raise TemplateError(f"index out of range: {each}")
    begin = places[0] if places else 0
    end = places[1] if len(places) > 1 else len(values)
    if begin > end or (len(places) == 3 and end > places[2]):
        raise TemplateError(f"invalid slice index: {begin} > {end}")
    part = values[begin:end]
    return part.decode(errors="replace") if isinstance(part, bytes) else part


def length(item: Value) -> int:
    """Return the number of bytes of a string, or of elements of a list or map. Raises TemplateError."""
    if isinstance(item, str):
        return len(item.encode())
    if isinstance(item, (list, dict)):
        return len(item)
    raise TemplateError("len of nil pointer" if item is None else f"len of type {type_name(item)}")


def _call(what: Value, *_: Value) -> Value:
    raise TemplateError("call of nil" if what is None else f"non-function of type {type_name(what)}")


def _html_escaped(*values: Value) -> str:
    escaped = _html.escape(sprint(values), quote=True)
    return escaped.replace("&quot;", "&#34;").replace("&#x27;", "&#39;").replace("\0", "\ufffd")


_JS: Final = {"\\": "\\\\", "'": "\\'", '"': '\\"', "<": "\\u003C", ">": "\\u003E", "&": "\\u0026", "=": "\\u003D"}


def _js_escaped(*values: Value) -> str:
    return "".join(
        _JS.get(char) or (char if char >= " " and (char.isprintable() or ord(char) < 0x7F) else f"\\u{ord(char):04X}")
        for char in sprint(values)
    )


BUILTINS: Final[Mapping[str, Function]] = MappingProxyType(
    {
        "call": _call,
        "eq": equal,
        "ge": lambda one, other: not less(one, other),
        "gt": lambda one, other: not _at_most(one, other),
        "html": _html_escaped,
        "index": index,
        "js": _js_escaped,
        "le": _at_most,
        "len": length,
        "lt": less,
        "ne": lambda one, other: not equal(one, other),
        "not": lambda value: not truth(value),
        "print": lambda *values: sprint(values),
        "printf": lambda layout, *values: sprintf(text(layout, "printf"), values),
        "println": lambda *values: sprintln(values),
        "slice": slice_,
        "urlquery": lambda *values: quote_plus(sprint(values)),
    }
)
LAZY: Final = frozenset({"and", "or"})
"""Functions that stop evaluating arguments at the one that decides."""
