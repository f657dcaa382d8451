"""Field sets in the form of FieldsV1 (sigs.k8s.io/structured-merge-diff `fieldpath.Set`).

A set maps path elements to nodes. A node has the same form: an empty node is a member without children, and a node with
children is itself a member if it contains ".". Sets are immutable and share their parts. An operation returns an
unchanged part as the same object, so `is` tells whether anything changed. Elements are in the order of FieldsV1.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from steersman.work.threads import give_way

from .path_elements import SELF, order

Node = Mapping[str, Any]
FieldSet = Node

LEAF: Final[dict[str, Any]] = {}
"""A member without children."""
EMPTY: Final[FieldSet] = {}
"""The empty set."""


def is_member(node: Node) -> bool:
    """Return True if the element of a node is itself in the set."""
    return not node or SELF in node


def set_of(paths: Iterable[Iterable[str]]) -> FieldSet:
    """Return the set of some paths, each a sequence of path elements (`f:spec`, `f:replicas`)."""
    return union_of(_one_path(path) for path in paths)


def fields_at(*paths: str) -> FieldSet:
    """Return the set of some named fields: `fields_at("status", "metadata/labels")`."""
    return set_of(tuple("f:" + name for name in path.split("/")) for path in paths)


def _one_path(path: Iterable[str]) -> FieldSet:
    node: Node = LEAF
    for element in reversed(tuple(path)):
        node = {element: node}
    return node


def union_of(sets: Iterable[FieldSet]) -> FieldSet:
    """Return the union of the sets. Each set is copied a logarithmic number of times."""
    level = list(sets)
    while len(level) > 1:
        pairs = zip(level[::2], level[1::2], strict=False)
        level = [union(a, b) for a, b in pairs] + level[len(level) & ~1 :]
    return level[0] if level else EMPTY


def in_order(node: dict[str, Any]) -> dict[str, Any]:
    """Return a node with its own elements sorted."""
    keys = list(node)
    ordered = sorted(keys, key=order) if any(key[0] in "kvi" for key in keys) else sorted(keys)
    return node if keys == ordered else {key: node[key] for key in ordered}


def union(a: FieldSet, b: FieldSet) -> FieldSet:
    """Return the union of two sets."""
    give_way()
    if not b or a is b:
        return a
    if not a:
        return b
    changed: dict[str, Any] | None = None
    for key, node in b.items():
        mine = a.get(key)
        merged = node if mine is None else _union_nodes(mine, node)
        if merged is not mine:
            if changed is None:
                changed = dict(a)
            changed[key] = merged
    if changed is None:
        return a
    return in_order(changed) if len(changed) > len(a) else changed


def _union_nodes(a: Node, b: Node) -> Node:
    if a is b or not (a or b):
        return a
    if not b:
        return a if SELF in a else {SELF: LEAF, **a}
    if not a:
        return b if SELF in b else {SELF: LEAF, **b}
    return union(a, b)


def difference(a: FieldSet, b: FieldSet) -> FieldSet:
    """Return the members of `a` that are not in `b`. A removed parent does not remove its children."""
    give_way()
    changed: dict[str, Any] | None = None
    small, large = (a, b) if len(a) < len(b) else (b, a)
    for key in small:
        if key in large and key != SELF:
            node, other = a[key], b[key]
            if node:
                rest = _difference_nodes(node, other)
            else:
                rest = None if not other or SELF in other else node
            if rest is not node:
                if changed is None:
                    changed = dict(a)
                if rest is None:
                    del changed[key]
                else:
                    changed[key] = rest
    return a if changed is None else changed


def _difference_nodes(a: Node, b: Node) -> Node | None:
    """Return the rest of a node that has children; None if nothing is left."""
    rest = difference(a, b)
    if SELF not in a:
        return rest or None
    if is_member(b):
        rest = {key: node for key, node in rest.items() if key != SELF}
        return rest or None
    return LEAF if len(rest) == 1 else rest


def recursive_difference(a: FieldSet, b: FieldSet) -> FieldSet:
    """Return the members of `a` that are neither in `b` nor below a member of `b`."""
    give_way()
    changed: dict[str, Any] | None = None
    for key, other in b.items():
        node = a.get(key)
        if node is None or key == SELF:
            continue
        rest: Node | None = None
        if not is_member(other):
            rest = recursive_difference(node, other) if node else node
            if node and not rest:
                rest = None
            elif len(rest) == 1 and SELF in rest:
                rest = LEAF
        if rest is not node:
            if changed is None:
                changed = dict(a)
            if rest is None:
                del changed[key]
            else:
                changed[key] = rest
    return a if changed is None else changed


def intersection(a: FieldSet, b: FieldSet) -> FieldSet:
    """Return the members of both sets."""
    give_way()
    out: dict[str, Any] = {}
    for key, node in a.items():
        other = b.get(key)
        if other is None or key == SELF:
            continue
        both = is_member(node) and is_member(other)
        inner = intersection(node, other) if node and other else EMPTY
        if inner:
            out[key] = {SELF: LEAF, **inner} if both else inner
        elif both:
            out[key] = LEAF
    return out


def contains(fields: FieldSet, path: Iterable[str]) -> bool:
    """Return True if a path is a member."""
    node: Node | None = fields
    member = False
    for element in path:
        node = node.get(element) if node is not None else None
        if node is None:
            return False
        member = is_member(node)
    return member


def paths(fields: FieldSet, prefix: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the path of every member: first those of a level, then those below each element, in upstream's order."""
    children = [(key, node) for key, node in fields.items() if key != SELF]
    for key, node in children:
        if is_member(node):
            yield (*prefix, key)
    for key, node in children:
        if node:
            yield from paths(node, (*prefix, key))
