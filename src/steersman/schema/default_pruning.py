"""Pruning of the defaults in a schema by the schema itself, before they are used.

Follows k8s.io/apiextensions-apiserver `schema/defaulting` (PruneDefaults, SurroundingObjectFunc).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from steersman.machinery.errors.field import Path

from .embedded import Coercion
from .equality import copied, same
from .nodes import DEFAULTS_BELOW, MISSING, Node, Plain
from .pruning import Pruning

Steps = tuple[str | None, ...]
"""A path from an object to a part: names of members, None for the only item of a list."""

Changes = dict[Steps, Any]
"""Pruned defaults by the paths of the schemas that declare them; MISSING for a default that is dropped."""


def object_with(value: Any, steps: Steps) -> Any:
    """Return an object that has nothing but a value at that path."""
    for step in reversed(steps):
        value = [value] if step is None else {step: value}
    return value


def pruned_defaults(root: Node) -> Changes:
    """Return the defaults that change when their schema prunes them, and those with malformed metadata."""
    changes: Changes = {}
    for steps, default in _defaults(root, ()):
        found = _pruned(default, steps, root) if default.__class__ is dict or default.__class__ is list else default
        if found is MISSING or not same(found, default):
            changes[steps] = found
    return changes


def _defaults(node: Node, steps: Steps) -> Iterator[tuple[Steps, Any]]:
    if node.default is not MISSING:
        yield steps, node.default
    if not node.traits & DEFAULTS_BELOW:
        return
    if isinstance(node.additional, Node):
        yield from _defaults(node.additional, (*steps, "*"))
    if node.items is not None:
        yield from _defaults(node.items, (*steps, None))
    for name, child in node.properties.items():
        yield from _defaults(child, (*steps, name))


def _pruned(default: Any, steps: Steps, root: Node) -> Any:
    obj = object_with(copied(default), steps)
    if obj.__class__ is not dict:
        return default
    Coercion(lenient=True).object(obj, root, Path())
    Pruning().resource(obj, root)
    found: Any = obj
    for step in steps:
        if step is None:
            if not found:
                return MISSING
            found = found[0]
        elif found.__class__ is not dict or step not in found:
            return MISSING
        else:
            found = found[step]
    return found


def with_defaults(plain: Mapping[str, Any], changes: Changes, steps: Steps = ()) -> Plain:
    """Return a copy of a schema with changed defaults."""
    out = dict(plain)
    if steps in changes:
        del out["default"]
        if changes[steps] is not MISSING:
            out["default"] = changes[steps]
    for name, step in (("items", None), ("additionalProperties", "*")):
        if isinstance(out.get(name), Mapping):
            out[name] = with_defaults(out[name], changes, (*steps, step))
    if out.get("properties"):
        out["properties"] = {
            name: with_defaults(each, changes, (*steps, name)) for name, each in out["properties"].items()
        }
    return out
