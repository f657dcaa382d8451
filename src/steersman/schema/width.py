"""An upper bound of the work that a schema does for one value."""

from __future__ import annotations

from collections.abc import Iterator

from .nodes import Node


def width_of(root: Node) -> int:
    """Return the largest number of checks for a value at any position.

    Counted are enumerated values, required and defaulted members, and the checks of all alternatives. Nested
    alternatives multiply, because they are checked as often.
    """
    widths: dict[int, int] = {}
    widest = 0
    places = [root]
    seen = {id(root)}
    while places:
        node = places.pop()
        widest = max(widest, _width(node, widths))
        for each in _below(node):
            if id(each) not in seen:
                seen.add(id(each))
                places.append(each)
    return widest


def _width(node: Node, known: dict[int, int]) -> int:
    """Return the width of one node; nodes are shared, so the results are cached."""
    found = known.get(id(node))
    if found is not None:
        return found
    width = 1 + sum(_width(each, known) for _, each in node.defaulted)
    checks = node.checks
    if checks is not None:
        width += len(checks.enum or ()) + len(checks.required)
        for each in _alternatives(node):
            width += _width(each, known) + sum(_width(below, known) for below in each.properties.values())
            if each.items is not None:
                width += _width(each.items, known)
    known[id(node)] = width
    return width


def _alternatives(node: Node) -> Iterator[Node]:
    checks = node.checks
    if checks is None:
        return
    yield from (*checks.all_of, *checks.any_of, *checks.one_of)
    if checks.negated is not None:
        yield checks.negated


def _below(node: Node) -> Iterator[Node]:
    yield from node.properties.values()
    if isinstance(node.additional, Node):
        yield node.additional
    if node.items is not None:
        yield node.items
    yield from _alternatives(node)
