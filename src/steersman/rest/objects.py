"""Typed access to the objects of a resource from inside the server, for strategies and admission plugins."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any, Final, Generic, Protocol, TypeVar

from steersman.api.meta.v1 import DeleteOptions
from steersman.machinery.slow_lane import SlowLane
from steersman.rest.context import Context

T = TypeVar("T")

_MAX_REMEMBERED: Final = 10_000
"""Namespaces that are remembered at a time."""


class Objects(Protocol):
    """The objects of one resource. The context gives the namespace.

    Objects are decoded anew for each caller, who may change what it gets.
    """

    async def get(self, ctx: Context, name: str) -> Any:
        """Raises StatusError NotFound."""
        ...

    def find(self, namespace: str, name: str) -> Any | None:
        """The object in the cache, None if there is none. `namespace` is "" for cluster-scoped ones."""
        ...

    def known(self, namespace: str, name: str, make: Callable[[Any], T]) -> T | None:
        """What `make` makes of the object in the cache, None if there is none.

        It is made once and kept until the object changes, so it must be immutable and `make` always the same function:
        for facts that requests ask for again and again.
        """
        ...

    def list(self, namespace: str = "") -> Iterable[Any]:
        """Every object of a namespace, or of all."""
        ...

    def each_known(self, namespace: str, make: Callable[[Any], T], lane: SlowLane) -> AsyncIterator[tuple[str, T]]:
        """The name of every object of a namespace, and what `make` makes of it, as `known`, however many there are.

        For large objects it is made in the lane, and each time, as what is made of them may be large too.
        """
        ...

    def count(self, namespace: str = "") -> int:
        """How many `list` gives."""
        ...

    def changed(self) -> int:
        """Another number after each change of any of them: what was made of a list is good until it changes."""
        ...

    async def create(self, ctx: Context, obj: Any) -> Any:
        """Creates with the resource's strategy; `ctx.dry_run` is honoured. Raises StatusError."""
        ...

    async def update(
        self, ctx: Context, name: str, change: Callable[[Any], Any], *,
        subresource: str = "", strategy: Any = None, owned: bool = True,
    ) -> Any:  # fmt: skip
        """Replaces the object by `change(current)` under the (sub)resource's strategy, or the given one, trying again
        when another write came first. `change` may change in place and return the object. With `owned` the server
        becomes the owner of what it changes; without, who owns what stays. Raises StatusError, also whatever `change`
        raises."""
        ...

    async def delete(self, ctx: Context, name: str, options: DeleteOptions | None = None) -> Any:
        """Deletes as the DELETE verb does. Raises StatusError."""
        ...


class ByNamespace(Generic[T]):
    """What `make` makes of the objects of a namespace, sorted by name. It is remembered until any of them changes, as
    is that a namespace has none (then it is made of nothing)."""

    def __init__(self, objects: Objects, make: Callable[[Iterable[Any]], T]) -> None:
        self._objects = objects
        self._objects_changed = objects.changed
        self._make = make
        self._changed = -1
        self._made: dict[str, T] = {}

    def of(self, namespace: str) -> T:
        """What was made of those of `namespace`."""
        changed = self._objects_changed()
        if changed != self._changed:
            self._changed = changed
            self._made.clear()
        made = self._made.get(namespace)
        if made is None:
            if len(self._made) >= _MAX_REMEMBERED:
                self._made.clear()
            made = self._made[namespace] = self._make(self._objects.list(namespace))
        return made
