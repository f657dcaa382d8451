"""Which fields a strategy resets before it stores an object, so that no writer comes to own them.

A filter takes a field set and returns what is left of it (structured-merge-diff `fieldpath.Filter`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from .field_set import EMPTY, LEAF, FieldSet, recursive_difference, set_of
from .path_elements import SELF

Filter = Callable[[FieldSet], FieldSet]

ANY: Final = "*"
"""Stands for every element in the paths of `only`."""


def _elements(path: str) -> tuple[str, ...]:
    return tuple(each if each == ANY or each[1:2] == ":" else "f:" + each for each in path.split("/"))


def excluding(*paths: str) -> Filter:
    """Leaves out some fields and all below them: `excluding("status", "metadata/labels")`."""
    excluded = set_of(_elements(path) for path in paths)
    return lambda fields: recursive_difference(fields, excluded)


def only(*paths: str) -> Filter:
    """Leaves nothing but what lies on or below some fields: `only("spec/containers/*/resources")`."""
    pattern: dict[str, Any] = {}
    for path in paths:
        node = pattern
        for element in _elements(path):
            node = node.setdefault(element, {})
    return lambda fields: _matching(fields, pattern)


def _matching(fields: FieldSet, pattern: Mapping[str, Any]) -> FieldSet:
    """The elements that match stay; of their children those that match what follows, or all at a pattern's end."""
    if not pattern:
        return fields
    out: dict[str, Any] = {}
    for element, node in fields.items():
        following = pattern.get(ANY, pattern.get(element))
        if element == SELF or following is None:
            continue
        inner = _matching(node, following) if node else EMPTY
        if not following:
            out[element] = node
        elif not node or SELF in node:
            out[element] = {SELF: LEAF, **inner} if inner else LEAF
        elif inner:
            out[element] = inner
    return out
