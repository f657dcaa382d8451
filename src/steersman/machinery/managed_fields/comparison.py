"""Differences between two values as field sets (structured-merge-diff `typed.Compare`).

Values are plain JSON data. Equal parts are skipped by `==`, which cannot tell `true` from 1, if a class determines the
types; otherwise by `same`.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import compress
from operator import eq, is_not, ne
from typing import Any, Final

import msgspec
from msgspec import Struct

from steersman.machinery.sorted_maps import presorted
from steersman.work.threads import give_way

from .field_set import EMPTY, LEAF, FieldSet, in_order
from .path_elements import SELF
from .schema import Atom, ListType, MapType

Same = Callable[[Any, Any], bool]


def same(one: Any, other: Any) -> bool:
    """Return True if two JSON values are equal, including their types."""
    if one.__class__ is not other.__class__ or one != other:
        return False
    return one.__class__ not in (dict, list) or _SORTED.encode(presorted(one)) == _SORTED.encode(presorted(other))


_SORTED: Final = msgspec.json.Encoder(order="deterministic")


class Comparison(Struct, frozen=True):
    """The added or changed fields, and the removed fields."""

    changed: FieldSet
    removed: FieldSet


def compare(atom: Atom, old: Any, new: Any, is_same: Same = eq) -> Comparison:
    """Compare two values. Raises TypedError if two items of a list have the same key."""
    changed: dict[str, Any] = {}
    removed: dict[str, Any] = {}
    if not atom.leaf and atom.map is not None and not is_same(old, new):
        _compare_maps(atom.map, old or EMPTY, new or EMPTY, changed, removed, is_same)
    return Comparison(changed, removed)


def _compare_maps(
    kind: MapType, old: Any, new: Any, changed: dict[str, Any], removed: dict[str, Any], is_same: Same
) -> None:
    if not old:
        if new:
            changed.update(kind.cover(new))
            del changed[SELF]
        return
    named, rest = kind.named, kind.element
    few, many = (old, new) if len(old) < len(new) else (new, old)
    # JSON can only tell equal values of unequal types apart where no class determines the types
    differ = map(ne if is_same is eq else is_not, map(old.get, few), map(new.get, few))
    for name in compress(few, differ):
        if name not in many:
            continue
        before, item = old[name], new[name]
        if is_same is not eq and is_same(before, item):
            continue
        child = named.get(name, rest)
        element = "f:" + name
        if child is None or child.leaf:
            changed[element] = LEAF
        elif before.__class__ is dict and item.__class__ is dict and child.kind.__class__ is MapType:
            give_way()
            inner_changed: dict[str, Any] = {}
            inner_removed: dict[str, Any] = {}
            _compare_maps(child.kind, before, item, inner_changed, inner_removed, is_same)
            if inner_changed:
                changed[element] = inner_changed
            if inner_removed:
                removed[element] = inner_removed
        else:
            _compare_values(child, before, item, element, changed, removed, is_same)
    if len(changed) > 1 or not new.keys() <= old.keys():
        _add_others(kind, new, old, changed)
    if len(removed) > 1 or not old.keys() <= new.keys():
        _add_others(kind, old, new, removed)


def _add_others(kind: MapType, value: Any, other: Any, out: dict[str, Any]) -> None:
    """Add the members that only `value` has to the fields in `out`, and sort these."""
    out.update(kind.cover({name: item for name, item in value.items() if name not in other}))
    out.pop(SELF, None)
    if (ordered := sorted(out)) != list(out):
        copy = {element: out[element] for element in ordered}
        out.clear()
        out.update(copy)


def _sort_in_place(node: dict[str, Any]) -> None:
    ordered = in_order(node)
    if ordered is not node:
        node.clear()
        node.update(ordered)


def _compare_values(
    atom: Atom, old: Any, new: Any, element: str, changed: dict[str, Any], removed: dict[str, Any], is_same: Same
) -> None:
    """Compare two values that differ, both present, of an atom that is not a leaf."""
    give_way()
    inner_changed: dict[str, Any] = {}
    inner_removed: dict[str, Any] = {}
    old_kind = atom.granular(old)
    new_kind = old_kind if new.__class__ is old.__class__ else atom.granular(new)
    kind = new_kind or old_kind
    if kind is None or not (old or new):
        is_leaf = True
    elif old_kind is not None and new_kind is not None and old_kind is not new_kind:
        is_leaf = True
        _compare_kinds(old_kind, old, None, inner_changed, inner_removed, is_same)
        _compare_kinds(new_kind, None, new, inner_changed, inner_removed, is_same)
    else:
        # One side is empty, null or a scalar. In the last two cases the path itself changes its owner, too.
        is_leaf = (old_kind is None and old is not None) or (new_kind is None and new is not None)
        _compare_kinds(
            kind,
            old if old_kind is not None else None,
            new if new_kind is not None else None,
            inner_changed,
            inner_removed,
            is_same,
        )
    if is_leaf:
        changed[element] = {SELF: LEAF, **inner_changed} if inner_changed else LEAF
    elif inner_changed:
        changed[element] = inner_changed
    if inner_removed:
        removed[element] = inner_removed


def _compare_kinds(
    kind: MapType | ListType, old: Any, new: Any, changed: dict[str, Any], removed: dict[str, Any], is_same: Same
) -> None:
    if isinstance(kind, MapType):
        _compare_maps(kind, old or EMPTY, new or EMPTY, changed, removed, is_same)
    else:
        _compare_lists(kind, old or (), new or (), changed, removed, is_same)


def _by_element(kind: ListType, items: Any) -> dict[str, list[Any]]:
    out: dict[str, list[Any]] = {}
    for element, item in zip(kind.elements_of(items), items, strict=True):
        out.setdefault(element, []).append(item)
    return out


def _compare_lists(
    kind: ListType, old: Any, new: Any, changed: dict[str, Any], removed: dict[str, Any], is_same: Same
) -> None:
    if not old:
        changed.update(kind.cover(list(new)))
        changed.pop(SELF, None)
        return
    child = kind.element
    before, after = _by_element(kind, old), _by_element(kind, new)
    for element, items in after.items():
        others = before.get(element, ())
        if others and is_same(items, others):
            continue
        if len(items) > 1:
            # Items with the same key are one field together.
            if len(others) == 1:
                removed[element] = child.cover(others[0])
            changed[element] = LEAF
        elif len(others) == 1:
            _compare_values(child, others[0], items[0], element, changed, removed, is_same)
        else:
            changed[element] = child.cover(items[0])
            if others:
                removed[element] = LEAF
    for element, items in before.items():
        if element not in after:
            removed[element] = child.cover(items[0]) if len(items) == 1 else LEAF
    if len(changed) > 1:
        _sort_in_place(changed)
    if len(removed) > 1:
        _sort_in_place(removed)
