"""Takes out of values what their schema does not know: k8s.io/apiextensions-apiserver `schema/pruning`, `defaulting`.

Both functions change what they are given.
"""

from __future__ import annotations

from typing import Any, Final

from steersman.machinery.lane.threads import paced

from .nodes import EMBEDDED, MISSING, NULLABLE, PRESERVE, Node
from .unknown_fields import UnknownFields, Where

_META_FIELDS: Final = frozenset({"apiVersion", "kind", "metadata"})


def prune_object(obj: dict[str, Any], node: Node, *, want_unknown: bool) -> list[str]:
    """Prunes an object, or an embedded one, but for its kind, apiVersion and metadata.

    Gives the sorted paths of what was taken out, if they are wanted.
    """
    unknown = UnknownFields(kept=want_unknown)
    _prune_members(obj, node, is_resource=True, where=None, unknown=unknown)
    return sorted(unknown.paths)


def prune(value: Any, node: Node) -> None:
    """Prunes a value inside of an object."""
    _prune(value, node, None, UnknownFields(kept=False))


def _prune(value: Any, node: Node | None, where: Where, unknown: UnknownFields) -> None:
    if value.__class__ is dict:
        if node is None:
            if unknown.are_kept:
                for name in value:
                    unknown.add(where, name)
            value.clear()
        else:
            _prune_members(value, node, is_resource=bool(node.traits & EMBEDDED), where=where, unknown=unknown)
    elif value.__class__ is list:
        if node is not None and node.traits & PRESERVE:
            _prune_preserved(value, node, where, unknown)
            return
        items = None if node is None else node.items
        for number, item in enumerate(paced(value)):
            if item.__class__ is dict or item.__class__ is list:
                _prune(item, items, (where, f"[{number}]"), unknown)


def _prune_members(
    value: dict[str, Any], node: Node, *, is_resource: bool, where: Where, unknown: UnknownFields
) -> None:
    find, additional = node.properties.get, node.additional
    others = additional if isinstance(additional, Node) else None
    is_preserving = node.traits & PRESERVE
    gone: list[str] = []
    for name, item in paced(value.items()):
        child = find(name)
        if child is None:
            if is_resource and name in _META_FIELDS:
                continue
            if additional is None:
                if not is_preserving:
                    gone.append(name)
                continue
            child = others
        if (item.__class__ is dict or item.__class__ is list) and not (is_resource and name in _META_FIELDS):
            _prune(item, child, (where, name), unknown)
    for name in gone:
        if where is not None or name not in _META_FIELDS:
            unknown.add(where, name)
        del value[name]


def _prune_preserved(value: Any, node: Node | None, where: Where, unknown: UnknownFields) -> None:
    """Prunes items of a list that is kept as it is, where the schema says more of them."""
    if node is None:
        return
    if value.__class__ is list:
        for number, item in enumerate(paced(value)):
            _prune_preserved(item, node.items, (where, f"[{number}]"), unknown)
    elif value.__class__ is dict:
        find, additional = node.properties.get, node.additional
        others = additional if isinstance(additional, Node) else None
        is_resource = node.traits & EMBEDDED
        for name, item in paced(value.items()):
            if is_resource and name in _META_FIELDS:
                continue
            child = find(name)
            if child is not None or additional is not None:
                _prune(item, child if child is not None else others, (where, name), unknown)


def drop_nulls(value: Any, node: Node) -> None:
    """Takes out nulls that are neither allowed nor replaced by a default."""
    if value.__class__ is dict:
        find, additional = node.properties.get, node.additional
        others = additional if isinstance(additional, Node) else None
        gone: list[str] = []
        for name, item in paced(value.items()):
            if item is None:
                child = find(name, others)
                if child is not None and not child.traits & NULLABLE and child.default is MISSING:
                    gone.append(name)
            elif item.__class__ is dict or item.__class__ is list:
                child = find(name, others)
                if child is not None:
                    drop_nulls(item, child)
        for name in gone:
            del value[name]
    elif node.items is not None:
        for item in paced(value):
            if item.__class__ is dict or item.__class__ is list:
                drop_nulls(item, node.items)
