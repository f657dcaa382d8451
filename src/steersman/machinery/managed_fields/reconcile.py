"""Adaptation of field sets to a schema that has changed since they were written (structured-merge-diff `typed`).

A part that has become atomic is owned as a whole by each manager that owned some of it. A part that is no longer atomic
stays unchanged.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from steersman.work.threads import give_way

from .field_set import LEAF, FieldSet, Node, is_member
from .fields_v1 import REMEMBERED, decode_fields
from .path_elements import SELF
from .schema import DEDUCED_ATOM, Atom, ListType, MapType, Schema


def decode_reconciled(data: bytes, schema: Schema) -> FieldSet:
    """Decode FieldsV1 and adapt the set to `schema`. Raises FieldsError."""
    return _decode(data, schema) if len(data) <= REMEMBERED else _decode.__wrapped__(data, schema)


@lru_cache(maxsize=512)
def _decode(data: bytes, schema: Schema) -> FieldSet:
    return reconcile(decode_fields(data)[0], schema)


def reconcile(fields: FieldSet, schema: Schema) -> FieldSet:
    """Return `fields` adapted to `schema`; the same object if nothing changes."""
    kind = schema.root.map
    if kind is None or _is_open(kind):
        return fields
    return _children(kind, fields)


def _children(kind: MapType | ListType, fields: Node) -> Node:
    give_way()
    changed: dict[str, Any] | None = None
    for element, node in fields.items():
        if element == SELF:
            continue
        child = kind.child(element[2:])[1] if isinstance(kind, MapType) else kind.element
        if child is None:
            continue
        reconciled = _node(child, node)
        if reconciled is not node:
            changed = dict(fields) if changed is None else changed
            changed[element] = reconciled
    return fields if changed is None else changed


def _node(atom: Atom, node: Node) -> Node:
    """Return a node adapted to its atom. If an atom may be several kinds, a map takes precedence, as upstream."""
    is_whole = is_member(node) and not node
    if atom.map is not None:
        if _is_open(atom.map):
            return node
        if atom.map.atomic:
            return node if is_whole else LEAF
        return _children(atom.map, node) if node else node
    if atom.scalar or atom.list is None:
        return node
    if atom.list.atomic:
        return node if is_whole else LEAF
    return _children(atom.list, node) if node else node


def _is_open(kind: MapType) -> bool:
    return not kind.named and kind.element is DEDUCED_ATOM
