"""Kinds that are not stored: those that are computed (componentstatuses), and those that only answer (reviews)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from steersman.machinery.errors import status as errors
from steersman.rest.capabilities import Encoded, Item, Listing, ListOptions
from steersman.rest.context import Context
from steersman.rest.resource import Resource


class ComputedStorage:
    """Get and list of a resource with a `reader`; for one with a `creater` only the decoding of its answers."""

    def __init__(self, resource: Resource[Any], services: Any) -> None:
        self._resource = resource
        self._services = services

    def _objects(self, ctx: Context) -> Sequence[Any]:
        assert self._resource.reader is not None
        return self._resource.reader(self._services, ctx)

    async def get(self, ctx: Context, name: str, resource_version: str = "") -> Item:
        """The object of that name. Raises StatusError NotFound."""
        for obj in self._objects(ctx):
            if obj.metadata.name == name:
                return Encoded(self._resource.kind.body(obj))
        raise errors.not_found(self._resource.group_resource, name)

    async def list(self, ctx: Context, options: ListOptions) -> Listing:
        """Every object that the selectors select; such lists have no version."""
        items = [
            Encoded(self._resource.kind.body(obj))
            for obj in self._objects(ctx)
            if options.label_selector.matches(obj.metadata.labels)
            and options.field_selector.matches({"metadata.name": obj.metadata.name})
        ]
        return Listing(items, 0)

    def remember(self, item: Item, kind: object, encoded: bytes) -> None:
        """Keeps nothing: items are made for one answer."""

    def decode(self, item: Item) -> Any:
        """The object of an item."""
        return self._resource.kind.decode(item.body)
