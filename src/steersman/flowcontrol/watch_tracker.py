"""Counts of watches affected by a write (k8s.io/apiserver `util/flowcontrol/watch_tracker.go`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from steersman.machinery.identity.action import Action
from steersman.machinery.selectors import fields

_INDEXED: Final = {"pods": "spec.nodeName"}
"""Field by which a resource's watch cache indexes watches, by resource."""
_LONGEST: Final = 4096
"""Limit of characters of a field selector that is parsed."""


class WatchTracker:
    """Open watches by group and resource: of all objects, of a namespace, of one object."""

    __slots__ = ("_by_resource",)

    def __init__(self) -> None:
        self._by_resource: dict[tuple[str, str], dict[tuple[str, str], int]] = {}

    def register(self, action: Action, field_selector: str) -> Callable[[], None]:
        """Count a watch; return the function that ends the count, to be called once.

        A watch of the pods of one node is not counted: nearly all writes affect other nodes' pods.
        """
        indexed = _INDEXED.get(action.resource)
        if indexed is not None and field_selector and _required(field_selector, indexed):
            return _nothing
        resource, target = (action.group, action.resource), (action.namespace, action.name)
        counts = self._by_resource.setdefault(resource, {})
        counts[target] = counts.get(target, 0) + 1

        def forget() -> None:
            left = counts[target] - 1
            if left:
                counts[target] = left
                return
            del counts[target]
            if not counts and self._by_resource.get(resource) is counts:
                del self._by_resource[resource]

        return forget

    def interested(self, action: Action) -> int:
        """Return the number of watches of all objects of the resource, of the action's namespace, or of the object
        itself.
        """
        counts = self._by_resource.get((action.group, action.resource))
        if counts is None:
            return 0
        namespace, name = action.namespace, action.name
        watchers = counts.get(("", ""), 0)
        if namespace:
            watchers += counts.get((namespace, ""), 0)
        if name:
            watchers += counts.get((namespace, name), 0)
        return watchers


def _required(field_selector: str, field: str) -> str:
    """Return the value that a selector requires of a field, "" for none."""
    if field not in field_selector or len(field_selector) > _LONGEST:
        return ""
    try:
        return fields.parse(field_selector).requires_exact_match(field) or ""
    except ValueError:
        return ""


def _nothing() -> None:
    """Do nothing: the watch was not counted."""
