"""Correlation of an object with its old version, so that errors of unchanged parts can be ignored.

Follows k8s.io/apiserver `pkg/cel/common` (CorrelatedObject, MapList).
"""

from __future__ import annotations

from typing import Any

from steersman.machinery.errors.field import quote
from steersman.work.threads import give_way, paced

from .equality import same
from .nodes import Node

_SCALARS = (bool, int, float, str)


class Correlated:
    """A value, its old value, and its schema.

    Members of objects correlate by name, list items only in lists with keys. Comparisons are cached, so a tree of these
    objects takes time linear in both values however often it is used.
    """

    __slots__ = ("_below", "_equal", "_keyed", "new", "node", "old")

    def __init__(self, new: Any, old: Any, node: Node) -> None:
        self.new = new
        self.old = old
        self.node = node
        self._below: dict[str | int, Correlated | None] | None = None
        self._equal: bool | None = None
        self._keyed: dict[Any, Any] | None = None
        """The old items of a list with keys, by their keys."""

    def key(self, name: str) -> Correlated | None:
        """Return the correlation of a member; None if the old object or the schema does not have it."""
        new, old = self.new, self.old
        if new.__class__ is not dict or old.__class__ is not dict or name not in new or name not in old:
            return None
        below = self._below
        if below is None:
            below = self._below = {}
        elif name in below:
            return below[name]
        child = self.node.child(name)
        found = below[name] = None if child is None else Correlated(new[name], old[name], child)
        return found

    def index(self, number: int) -> Correlated | None:
        """Return the correlation of an item of a list with keys; None if no old item has the same keys."""
        new, old, node = self.new, self.old, self.node
        if node.list_type != "map" or new.__class__ is not list or old.__class__ is not list:
            return None
        below = self._below
        if below is None:
            below = self._below = {}
        elif number in below:
            return below[number]
        before = self._old_item(new[number])
        if before is None or node.items is None:
            correlated = None
        else:
            correlated = Correlated(new[number], before, node.items)
        below[number] = correlated
        return correlated

    def _old_item(self, item: Any) -> Any:
        if self._keyed is None:
            self._keyed = {}
            if self.node.types == ("array",) and self.node.map_keys:
                for each in paced(self.old):
                    key = self._key(each)
                    if key is not None:
                        self._keyed.setdefault(key, each)
        key = self._key(item)
        return None if key is None else self._keyed.get(key)

    def _key(self, item: Any) -> Any:
        if item.__class__ is not dict:
            return None
        keys = self.node.map_keys
        if len(keys) == 1:
            value = item.get(keys[0])
            return (value.__class__, value) if value.__class__ in _SCALARS else None
        values = [item.get(name) for name in keys]
        if any(value.__class__ not in _SCALARS for value in values):
            return None
        return "\0".join(map(_printed, values))

    def is_same(self) -> bool:
        """Return True if nothing was changed. An object with a member that the schema does not have counts as changed."""
        if self._equal is None:
            self._equal = self._compare()
        return self._equal

    def _compare(self) -> bool:
        give_way()
        new, old = self.new, self.old
        if new.__class__ is dict and old.__class__ is dict:
            if len(new) != len(old):
                return False
            members = (self.key(name) for name in new)
            return all(member is not None and member.is_same() for member in members)
        if new.__class__ is list and old.__class__ is list:
            if len(new) != len(old):
                return False
            if self.node.list_type != "map":
                return same(new, old)
            items = (self.index(number) for number in range(len(new)))
            return all(item is not None and item.is_same() for item in items)
        return same(new, old)


def _printed(value: Any) -> str:
    """Return one of several keys as upstream prints it. Floats have six digits, so that different floats may collide."""
    match value:
        case bool():
            return "true" if value else "false"
        case float():
            return f"{value:f}"
        case int():
            return str(value)
    return quote(value)
