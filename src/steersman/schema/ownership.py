"""Schemas for field ownership of custom resources, derived from compiled schemas."""

from __future__ import annotations

from typing import Any, Final

from steersman.machinery.managed_fields import Schema, custom_schema
from steersman.work.threads import give_way

from .nodes import ATOMIC_MAP, EMBEDDED, MISSING, PRESERVE, Node, Plain

_TRAITS: Final = (
    (PRESERVE, "x-kubernetes-preserve-unknown-fields", True),
    (EMBEDDED, "x-kubernetes-embedded-resource", True),
    (ATOMIC_MAP, "x-kubernetes-map-type", "atomic"),
)


def ownership_of(root: Node) -> Schema:
    """Return the ownership schema of a kind with this compiled schema."""
    return custom_schema(_plain(root))


def _plain(node: Node) -> Plain:
    """Return the parts of a schema that determine ownership, as JSON data."""
    give_way()
    out: dict[str, Any] = {name: said for trait, name, said in _TRAITS if node.traits & trait}
    if len(node.types) == 1:
        out["type"] = node.types[0]
    if node.declared_format:
        out["format"] = node.declared_format
    if node.list_type:
        out["x-kubernetes-list-type"] = node.list_type
    if node.map_keys:
        out["x-kubernetes-list-map-keys"] = node.map_keys
    if node.default is not MISSING:
        out["default"] = node.default
    if node.properties:
        out["properties"] = {name: _plain(each) for name, each in node.properties.items()}
    if node.items is not None:
        out["items"] = _plain(node.items)
    if node.additional is not None:
        out["additionalProperties"] = _plain(node.additional) if isinstance(node.additional, Node) else node.additional
    return out
