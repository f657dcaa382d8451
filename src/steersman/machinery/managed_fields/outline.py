"""Outlines of new objects: names and list keys without values. The fields that an object sets depend only on these.

Most new objects resemble earlier ones, so their field sets are cached by outline.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from itertools import compress, islice
from operator import ne
from typing import Any, Final, NamedTuple

import msgspec

from steersman.work.threads import give_way

from .plain import Plain, members, plain_value, values_of
from .schema import Atom, Kind, ListType, MapType

Outline = tuple[Any, ...]

_LONGEST: Final = 2048
"""The most parts of an outline."""
_NAME: Final = 80
"""Bytes that a name takes beside its characters."""


class Outlines:
    """A builder of outlines for objects of one schema, which are compared with the `empty` object of the kind."""

    __slots__ = ("_leaves", "_root")

    def __init__(self, root: Atom, empty: Plain) -> None:
        self._root = root.map
        self._leaves = list(_leaves_of(empty, ()))

    def get(self, plain: Plain) -> Outline | None:
        """Return the outline of an object as plain data; None if it is too long. Raises TypedError."""
        if self._root is None:
            return None
        out: list[Any] = []
        for path, value in self._leaves:
            found: Any = plain
            for name in path:
                found = found.get(name) if found.__class__ is dict else None
            out.append(found == value)
        return outline(self._root, plain, out, most=_LONGEST)


def outline(root: Kind, value: Any, out: list[Any] | None = None, *, most: int | None = None) -> Outline | None:
    """Append the outline of a value to `out` and return it as a tuple; None if it has more than `most` parts.

    Raises TypedError for list items with invalid keys.
    """
    out = [] if out is None else out
    kinds = [root]
    values = [value]
    for kind, value in islice(zip(kinds, values, strict=False), most):  # both lists grow during the loop
        if value.__class__ is dict and kind.__class__ is MapType:
            names = tuple(value)
            out.append(names)
            for name, _, _, below in (kind.shapes[names] or kind.shape(names))[1]:
                kinds.append(below)
                values.append(value[name])
        elif value.__class__ is list and kind.__class__ is ListType:
            give_way()
            if most is not None and len(value) > most:
                return None
            out.append(tuple(kind.elements_of(value)))
            if not kind.element.leaf:
                kinds += [kind.element.kind] * len(value)
                values += value
        else:
            out.append(value.__class__)
            if kind.__class__ is Atom and (inner := kind.granular(value)) is not None:
                kinds.append(inner)
                values.append(value)
    return tuple(out) if most is None or len(values) < most else None


_Deep = tuple[Kind, bool]
"""The kind of a member whose parts are owned separately, and True for a map whose values have no parts."""


class _Form(NamedTuple):
    """The members of a class, the deep ones first: a function that returns their values, those of an empty object, and
    the deep members.
    """

    values: Callable[[Any], tuple[Any, ...]]
    empty: tuple[object, ...]
    deep: tuple[_Deep, ...]


@lru_cache(maxsize=4096)
def _form_of(cls: Callable[..., msgspec.Struct], kind: MapType) -> _Form:
    """Return the form of a class with this schema."""
    deep: dict[str, _Deep] = {}
    rest: list[str] = []
    for name, attribute, _, _ in members(cls).each:
        child = kind.named.get(name, kind.element)
        if child is None or child.leaf:
            rest.append(attribute)
            continue
        below = child.kind
        is_flat = isinstance(below, MapType) and not below.named and (below.element is None or below.element.leaf)
        deep[attribute] = below, is_flat
    empty = members(cls).empty
    attributes = [*deep, *rest]
    return _Form(values_of(attributes), tuple(map(empty.__getitem__, attributes)), tuple(deep.values()))


def struct_outline(kind: MapType, obj: msgspec.Struct) -> Outline | None:
    """Return the outline of an object of a class; None if it is too long. Only its lists are made plain data.

    Raises TypedError for list items with invalid keys.
    """
    out: list[Any] = []
    return tuple(out) if _outline_struct(kind, obj, out) else None


def _outline_struct(kind: MapType, obj: msgspec.Struct, out: list[Any]) -> bool:
    """Append the members that differ from those of an empty object, and their outlines; return False for too many."""
    values_of_form, empty, deep = _form_of(obj.__class__, kind)
    values = values_of_form(obj)
    differ = bytes(map(ne, values, empty))
    out.append(differ)
    for (below, is_flat), value in compress(zip(deep, values, strict=False), differ):
        if is_flat and value.__class__ is dict:
            out.append(tuple(value))
        elif isinstance(value, msgspec.Struct) and below.__class__ is MapType:
            if not _outline_struct(below, value, out):
                return False
        else:
            found = outline(below, plain_value(value), most=_LONGEST)
            if found is None:
                return False
            out += found
    return len(out) < _LONGEST


def weight_of(outline: Outline) -> int:
    """Return an upper estimate of an outline's memory in bytes, as if it shared none of its names."""
    names = [name for part in outline if part.__class__ is tuple for name in part]
    return _NAME * len(names) + 4 * sum(map(len, names)) + 8 * len(outline)


def _leaves_of(value: Plain, path: tuple[str, ...]) -> list[tuple[tuple[str, ...], Any]]:
    """Return the paths and values of an empty object's leaves.

    A new object with equal values has not set these fields.
    """
    out: list[tuple[tuple[str, ...], Any]] = []
    for name, item in value.items():
        out += _leaves_of(item, (*path, name)) if isinstance(item, dict) and item else [((*path, name), item)]
    return out
