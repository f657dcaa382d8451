"""Defaulting of values (k8s.io/apiextensions-apiserver `schema/defaulting`)."""

from __future__ import annotations

from typing import Any

from steersman.work.threads import paced

from .equality import copied
from .nodes import DEFAULTS_BELOW, MISSING, NULLABLE, Node


def default(value: Any, node: Node) -> None:
    """Set the defaults of missing parts of a value, in place; a null that is not allowed counts as missing."""
    if not node.traits & DEFAULTS_BELOW:
        return
    if value.__class__ is dict:
        _default_members(value, node)
    elif value.__class__ is list and node.items is not None:
        items = node.items
        replaced = items.default is not MISSING and not items.traits & NULLABLE
        for number, item in enumerate(paced(value)):
            if item is None and replaced:
                item = value[number] = copied(items.default)
            if item.__class__ is dict or item.__class__ is list:
                default(item, items)


def _default_members(value: dict[str, Any], node: Node) -> None:
    for name, child in node.defaulted:
        if name not in value or (value[name] is None and not child.traits & NULLABLE):
            value[name] = copied(child.default)
    additional = node.additional
    others = additional if isinstance(additional, Node) else None
    if others is None and len(node.deep) < len(value):
        for name, child in node.deep:
            item = value.get(name)
            if item.__class__ is dict or item.__class__ is list:
                default(item, child)
        return
    find = node.properties.get
    for name, item in paced(value.items()):
        below = find(name, others)
        if below is None:
            continue
        if item is None and below.default is not MISSING and not below.traits & NULLABLE:
            item = value[name] = copied(below.default)  # no name is added, so the iteration may continue
        if item.__class__ is dict or item.__class__ is list:
            default(item, below)
