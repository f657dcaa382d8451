"""Storage of kinds that are not stored: computed ones (componentstatuses) and those that only answer (reviews)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from steersman.kinds.kind import Kind
from steersman.machinery.errors import status as errors
from steersman.machinery.identity.schema import GroupResource
from steersman.rest.capabilities import Encoded, Item, Listing, ListOptions
from steersman.rest.context import Context


class _Unstored:
    """Items that are created for one answer and not cached."""

    def __init__(self, kind: Kind[Any]) -> None:
        self._kind = kind

    def remember(self, item: Item, kind: object, encoded: bytes) -> None:
        """Do nothing: nothing is cached."""

    def decode(self, item: Item) -> Any:
        """Return the decoded object of an item."""
        return self._kind.decode(item.body)


class AnsweringStorage(_Unstored):
    """Storage of a kind that only answers: `answerer` returns the answer to an object."""

    def __init__(self, kind: Kind[Any], answerer: Callable[[Context, Any], Awaitable[Any]]) -> None:
        super().__init__(kind)
        self._answerer = answerer

    async def answer(self, ctx: Context, obj: Any) -> Any:
        """Return the answer to `obj`. See rest.capabilities.Answerer."""
        return await self._answerer(ctx, obj)


class ComputedStorage(_Unstored):
    """Read-only storage of a computed kind: `reader` returns all objects."""

    def __init__(
        self, kind: Kind[Any], group_resource: GroupResource, reader: Callable[[Context], Sequence[Any]]
    ) -> None:
        super().__init__(kind)
        self._group_resource = group_resource
        self._reader = reader

    async def get(self, ctx: Context, name: str, resource_version: str = "") -> Item:
        """Return the object with this name. Raises StatusError NotFound."""
        for obj in self._reader(ctx):
            if obj.metadata.name == name:
                return Encoded(self._kind.body(obj))
        raise errors.not_found(self._group_resource, name)

    async def list(self, ctx: Context, options: ListOptions) -> Listing:
        """Return all objects that match the selectors; the list has no resourceVersion."""
        items = [
            Encoded(self._kind.body(obj))
            for obj in self._reader(ctx)
            if options.label_selector.matches(obj.metadata.labels)
            and options.field_selector.matches({"metadata.name": obj.metadata.name})
        ]
        return Listing(items, 0)
