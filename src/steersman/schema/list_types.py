"""Duplicates in sets and in lists with keys (k8s.io/apiextensions-apiserver `schema/listtype`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from steersman.machinery.errors import field
from steersman.machinery.errors.field import FieldError, Path
from steersman.work.threads import paced

from .equality import as_in_json, as_key
from .nodes import LISTS_BELOW, Node

_UNSPECIFIED: Final = object()
"""The key of an item that has none."""


def list_errors(value: Any, node: Node, path: Path) -> Iterator[FieldError]:
    """Yield the errors of duplicates in a value and its parts."""
    if not node.traits & LISTS_BELOW:
        return
    if value.__class__ is dict:
        if isinstance(node.additional, Node) and node.additional.traits & LISTS_BELOW:
            for name, item in paced(value.items()):
                yield from list_errors(item, node.additional, path[name])
        for name, item in paced(value.items()):
            child = node.properties.get(name)
            if child is not None and child.traits & LISTS_BELOW:
                yield from list_errors(item, child, path / name)
    elif value.__class__ is list:
        if node.list_type == "set":
            yield from (field.duplicate(path[number], value[number]) for number in _repeated(map(_key, paced(value))))
        elif node.list_type == "map":
            yield from _map_errors(value, node, path)
        if node.items is not None and node.items.traits & LISTS_BELOW:
            for number, item in enumerate(paced(value)):
                yield from list_errors(item, node.items, path[number])


def _repeated(keys: Iterable[Any]) -> Iterator[int]:
    """Yield the indexes at which a key occurs for the second time; later occurrences are not reported."""
    times: dict[Any, int] = {}
    for number, key in enumerate(keys):
        times[key] = times.get(key, 0) + 1
        if times[key] == 2:
            yield number


def _key(value: Any) -> Any:
    """Return a hashable that is equal for the same items of a set: scalars by Go type, other values by their JSON."""
    if value.__class__ is dict or value.__class__ is list:
        return as_key(as_in_json(value))
    return as_key(value)


def _map_errors(value: list[Any], node: Node, path: Path) -> Iterator[FieldError]:
    for number, item in enumerate(paced(value)):
        if item is not None and item.__class__ is not dict:
            yield field.invalid(path[number], item, "must be an object for an array of list-type map")
            return
    names = node.map_keys
    keys = [{name: item[name] for name in names if name in item} if item else {} for item in paced(value)]
    if len(names) == 1:
        repeated = _repeated(_key(key[names[0]]) if key else _UNSPECIFIED for key in keys)
    else:
        repeated = _repeated(map(_key, keys))
    yield from (field.duplicate(path[number], keys[number]) for number in repeated)
