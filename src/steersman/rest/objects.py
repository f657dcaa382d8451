"""Typed access to the objects of a resource from inside the server, for strategies and admission plugins."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from math import inf
from typing import Any, Final, Generic, Protocol, TypeVar

from steersman.api.meta.v1 import DeleteOptions
from steersman.machinery.large_work.slow_lane import SlowLane
from steersman.machinery.values import times
from steersman.rest.capabilities import Item, ListOptions
from steersman.rest.context import Context

CatchUp = Callable[[], Awaitable[None]]
"""Returns once a cache has everything that was committed before. Raises StatusError."""

T = TypeVar("T")
R = TypeVar("R")

_MAX_REMEMBERED: Final = 10_000
"""Namespaces that are remembered at a time."""
_LOOKED: Final = 30.0
"""Seconds for which it is believed that a namespace has none."""


class Reading(Generic[T]):
    """What the server reads out of stored objects again and again: `make` makes it of an object that has the members
    on `paths` (`status.phase`, in the names of JSON) and no others.

    It is kept with the object until that changes, so it must be immutable.
    """

    __slots__ = ("make", "paths")

    def __init__(self, make: Callable[[Any], T], *paths: str) -> None:
        self.make = make
        self.paths = paths


class Objects(Protocol):
    """The objects of one resource. The context gives the namespace.

    Objects may be large (machinery.large_work.slow_lane). Whole ones, which are the caller's own, come from methods
    that wait, as large ones are decoded in the slow lane; the others decode the members of a `Reading` alone, or
    nothing.
    """

    async def get(self, ctx: Context, name: str) -> Any:
        """Raises StatusError NotFound."""
        ...

    async def item(self, ctx: Context, name: str) -> Item:
        """The object as the cache has it, encoded in the version of the context. Raises StatusError NotFound."""
        ...

    async def items(self, ctx: Context, options: ListOptions) -> Sequence[Item]:
        """What a list comes to, in the version of the context. Raises StatusError."""
        ...

    async def catch_up(self) -> None:
        """Returns once the cache has everything that was committed before, by other servers too: at once where nobody
        else writes. Raises StatusError 429, 504."""
        ...

    async def find(self, namespace: str, name: str) -> Any | None:
        """The object in the cache, None if there is none. `namespace` is "" for cluster-scoped ones."""
        ...

    def every(self, namespace: str = "") -> AsyncIterator[tuple[Any, SlowLane | None]]:
        """Every object of a namespace, or of all, and where to work on it (machinery.large_work.slow_lane.done). Others
        have the loop in between."""
        ...

    def has(self, namespace: str, name: str) -> bool:
        """Whether the object is in the cache."""
        ...

    def names(self, namespace: str = "") -> Iterator[tuple[str, str]]:
        """Namespace and name of every object of a namespace, or of all."""
        ...

    def known(self, namespace: str, name: str, reading: Reading[T]) -> T | None:
        """What is read out of the object in the cache, None if there is none."""
        ...

    def known_all(self, namespace: str, reading: Reading[T]) -> list[T]:
        """What is read out of every object of a namespace, or of all: for kinds of which there are few."""
        ...

    async def read_all(self, namespace: str, reading: Reading[T]) -> list[T]:
        """The same for any number of them, and for readings of what may be large."""
        ...

    def lane(self, namespace: str) -> SlowLane | None:
        """Where to work on what was read out of all objects of a namespace; None if that is little."""
        ...

    def each_known(self, namespace: str, reading: Reading[T], lane: SlowLane) -> AsyncIterator[tuple[str, T]]:
        """The name of every object of a namespace, and what is read out of it, as `known`, however many there are.

        Large objects are read in the lane, and each time, as what is read out of them may be large too.
        """
        ...

    def count(self, namespace: str = "") -> int:
        """How many objects there are in a namespace, or in all."""
        ...

    def changed(self) -> int:
        """Another number after each change of any of them: what was made of all is good until it changes."""
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


async def already_current() -> None:
    """Of a cache behind which nobody else writes."""


class ByNamespace(Generic[R, T]):
    """What `make` makes of that which `reading` finds in the objects of a namespace, sorted by name. It is remembered
    until any of them changes, as is that a namespace has none (then it is made of nothing).

    A namespace that has none may have got its first through another server: every 30 s that is looked into, as the
    plugins of upstream do which live from this.
    """

    def __init__(self, objects: Objects, reading: Reading[R], make: Callable[[Sequence[R]], T]) -> None:
        self._objects = objects
        self._objects_changed = objects.changed
        self._reading = reading
        self._make = make
        self._changed = -1
        self._made: dict[str, tuple[T, SlowLane | None, bool]] = {}
        self._looked: dict[str, float] = {}

    async def of(self, namespace: str) -> tuple[T, SlowLane | None]:
        """What was made of those of `namespace`, and where to work with it if it is large. Raises StatusError."""
        made, lane, is_any = await self._of(namespace)
        if not is_any and self._is_to_look(namespace):
            await self._objects.catch_up()
            made, lane, _ = await self._of(namespace)
        return made, lane

    def _is_to_look(self, namespace: str) -> bool:
        now = times.monotonic()
        if now - self._looked.get(namespace, -inf) < _LOOKED:
            return False
        if len(self._looked) >= _MAX_REMEMBERED:
            self._looked.clear()
        self._looked[namespace] = now
        return True

    async def _of(self, namespace: str) -> tuple[T, SlowLane | None, bool]:
        """The same, and whether there are any."""
        changed = self._objects_changed()
        if changed != self._changed:
            self._changed = changed
            self._made.clear()
        made = self._made.get(namespace)
        if made is None:
            lane = self._objects.lane(namespace)
            found = await self._objects.read_all(namespace, self._reading)
            made = self._make(found), lane, bool(found)
            if changed == self._changed == self._objects_changed():
                if len(self._made) >= _MAX_REMEMBERED:
                    self._made.clear()
                self._made[namespace] = made
        return made
