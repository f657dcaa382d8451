"""Pruning of unknown fields (k8s.io/apiextensions-apiserver `schema/pruning`, `defaulting`).

Values are changed in place.
"""

from __future__ import annotations

from typing import Any, Final

from steersman.work.threads import paced

from .nodes import EMBEDDED, MISSING, NULLABLE, PRESERVE, Node, Plain

_META_FIELDS: Final = frozenset({"apiVersion", "kind", "metadata"})
_MOST_TEXT: Final = 16 << 20
"""The most characters of all collected paths, because clients choose the names in them."""

PathLink = tuple[Any, str] | None
"""The path to a value as a linked list, printed when needed: the path to the parent, and a name or `[number]`."""


class Pruning:
    """The pruning of one object. Kind, apiVersion and metadata of it and of embedded resources are left alone.

    With `nulls`, nulls are removed that are neither allowed nor replaced by a default. With `want_unknown`, `unknown`
    has the paths of removed fields (`spec.list[0].field`), without those of nulls.
    """

    __slots__ = ("_nulls", "_text_budget", "unknown")

    def __init__(self, *, nulls: bool = False, want_unknown: bool = False) -> None:
        self._nulls = nulls
        self._text_budget = _MOST_TEXT if want_unknown else -1
        self.unknown: list[str] = []

    def resource(self, obj: Plain, node: Node) -> None:
        """Prune a resource, even if its schema does not mark it as one."""
        self._members(obj, node, None, EMBEDDED)

    def value(self, value: Any, node: Node | None, link: PathLink = None) -> None:
        """Prune a value. Without a schema all members of objects are removed."""
        if value.__class__ is dict:
            if node is not None:
                self._members(value, node, link, node.traits & EMBEDDED)
            else:
                if self._text_budget >= 0:
                    for name in value:
                        self._add_unknown(link, name)
                value.clear()
        elif value.__class__ is list:
            if node is not None and node.traits & PRESERVE:
                self._preserved(value, node, link)
                return
            items = None if node is None else node.items
            for number, item in enumerate(paced(value)):
                kind = item.__class__
                if kind is dict or kind is list:
                    self.value(item, items, (link, f"[{number}]"))

    def _members(self, value: Plain, node: Node, link: PathLink, is_resource: int) -> None:
        properties = node.properties
        gone: list[str] | None = None
        unknown: list[str] | None = None
        for name, item in paced(value.items()):
            kind = item.__class__
            if name in properties:
                child: Node | None = properties[name]
            elif is_resource and name in _META_FIELDS:
                continue
            elif node.additional is not None:
                child = node.additional if isinstance(node.additional, Node) else None
            else:
                if not node.traits & PRESERVE:
                    unknown = [name] if unknown is None else [*unknown, name]
                continue
            if kind is dict or kind is list:
                if not is_resource or name not in _META_FIELDS:
                    self.value(item, child, (link, name))
                elif self._nulls and child is not None:
                    drop_nulls(item, child)
            elif item is None and self._nulls and _is_to_be_dropped(child):
                gone = [name] if gone is None else [*gone, name]
        for name in unknown or ():
            if self._text_budget >= 0 and (link is not None or name not in _META_FIELDS):
                self._add_unknown(link, name)
            del value[name]
        for name in gone or ():
            del value[name]

    def _preserved(self, value: Any, node: Node | None, link: PathLink) -> None:
        """Prune items of a list that preserves unknown fields, where the schema declares parts of them."""
        if node is None:
            return
        if value.__class__ is list:
            for number, item in enumerate(paced(value)):
                self._preserved(item, node.items, (link, f"[{number}]"))
        elif value.__class__ is dict:
            for name, item in paced(value.items()):
                if node.traits & EMBEDDED and name in _META_FIELDS:
                    continue
                child = node.properties.get(name)
                if child is not None or node.additional is not None:
                    self.value(item, child or node.child(name), (link, name))
            if self._nulls:
                _drop_members(value, node)

    def _add_unknown(self, link: PathLink, name: str) -> None:
        path = _written((link, name))
        self._text_budget -= len(path)
        self.unknown.append(path)


def _written(link: PathLink) -> str:
    steps: list[str] = []
    while link is not None:
        link, step = link
        steps.append(step if link is None or step.startswith("[") else f".{step}")
    return "".join(reversed(steps))


def drop_nulls(value: Any, node: Node) -> None:
    """Remove nulls that are neither allowed nor replaced by a default."""
    if value.__class__ is dict:
        for name, item in paced(value.items()):
            if item.__class__ is dict or item.__class__ is list:
                child = node.child(name)
                if child is not None:
                    drop_nulls(item, child)
        _drop_members(value, node)
    elif value.__class__ is list and node.items is not None:
        for item in paced(value):
            drop_nulls(item, node.items)


def _drop_members(value: Plain, node: Node) -> None:
    gone = [name for name, item in paced(value.items()) if item is None and _is_to_be_dropped(node.child(name))]
    for name in gone:
        del value[name]


def _is_to_be_dropped(node: Node | None) -> bool:
    """Return True if the schema neither allows a null nor has a default that replaces it."""
    return node is not None and not node.traits & NULLABLE and node.default is MISSING
