"""Merging of an applied object into the live one, and removal of fields (structured-merge-diff `typed`)."""

from __future__ import annotations

from typing import Any, Final

from .field_set import Node, is_member
from .schema import Atom, ListType, MapType
from .typed_value import kind_of

ABSENT: Final = object()
"""A placeholder for the value on a side that has none."""


def merge(atom: Atom, live: Any, applied: Any) -> Any:
    """Return the live value merged with the applied one, whose leaves win.

    The result may share parts with both. Raises TypedError if two items of a list have the same key.
    """
    if live is ABSENT or live == applied:
        return applied
    if applied is ABSENT:
        return live
    kind = kind_of(atom, applied)
    if isinstance(kind, MapType):
        return _merge_maps(kind, live, applied)
    if isinstance(kind, ListType):
        return _merge_lists(kind, live, applied)
    return applied


def _merge_maps(kind: MapType, live: Any, applied: Any) -> Any:
    old = live if isinstance(live, dict) else {}
    new = applied if isinstance(applied, dict) else {}
    if kind.atomic or not (old or new):
        return applied
    out = dict(old)
    for name, after in new.items():
        before = out.get(name, ABSENT)
        if before is ABSENT or type(after) is str:
            out[name] = after
            continue
        child = kind.named.get(name, kind.element)
        out[name] = after if child is None else merge(child, before, after)
    return out


def _merge_lists(kind: ListType, live: Any, applied: Any) -> Any:
    old = live if isinstance(live, list) else []
    new = applied if isinstance(applied, list) else []
    if kind.atomic or not (old or new):
        return applied
    applied_items = dict(zip(kind.elements_of(new), new, strict=True))
    elements = kind.elements_of(old)
    live_items: dict[str, Any] = {}
    for element, item in zip(elements, old, strict=True):
        # An applied item is not merged into one of several live items with the same key.
        live_items[element] = None if element in live_items else item
    out: list[Any] = []
    for element, position in _merged_order(elements, list(applied_items), live_items):
        if element not in applied_items:
            out.append(old[position])
        else:
            out.append(merge(kind.element, live_items.get(element, ABSENT), applied_items[element]))
    return out


def _merged_order(live: list[str], applied: list[str], live_items: dict[str, Any]) -> list[tuple[str, int]]:
    """Return the elements of the merged list, with their indexes in the live list (-1 for applied items).

    The applied items keep their order. Items that only the live list has stay as close as possible to their old
    position.
    """
    in_applied = set(applied)
    shared = [element for element in applied if element in live_items]
    following = iter(shared)
    next_shared = next(following, None)
    out: list[tuple[str, int]] = []
    done: set[str] = set()
    i = j = 0
    while i < len(live) or j < len(applied):
        if i < len(live) and j < len(applied):
            if live[i] == applied[j]:
                out.append((live[i], i))
                done.add(live[i])
                i, j = i + 1, j + 1
                next_shared = next(following, None)
                continue
            if live[i] in in_applied and next_shared is not None and next_shared != live[i]:
                i += 1
                continue
        if i < len(live):
            if live[i] not in in_applied:
                out.append((live[i], i))
                i += 1
                continue
            if live[i] in done:
                i += 1
        if j < len(applied):
            out.append((applied[j], -1))
            done.add(applied[j])
            if next_shared == applied[j]:
                next_shared = next(following, None)
            j += 1
    return out


def remove_fields(atom: Atom, value: Any, fields: Node) -> Any:
    """Return a value without some fields; None for a list or map of which nothing is left.

    An atomic value is removed as a whole.
    """
    kind = kind_of(atom, value)
    if isinstance(kind, MapType):
        return _remove_members(kind, value, fields) if isinstance(value, dict) else None
    if isinstance(kind, ListType):
        return _remove_items(kind, value, fields) if isinstance(value, list) else None
    return value


def _remove_members(kind: MapType, value: dict[str, Any], fields: Node) -> Any:
    if kind.atomic:
        return None
    out: dict[str, Any] = {}
    for name, item in value.items():
        element, child = kind.child(name)
        node = fields.get(element)
        if node is not None and is_member(node):
            continue
        out[name] = item if node is None or child is None else remove_fields(child, item, node)
    return out or None


def _remove_items(kind: ListType, value: list[Any], fields: Node) -> Any:
    if kind.atomic:
        return None
    out: list[Any] = []
    for element, item in zip(kind.elements_of(value), value, strict=True):
        node = fields.get(element)
        if node is not None and is_member(node):
            continue
        out.append(item if node is None else remove_fields(kind.element, item, node))
    return out or None
