"""Typed access to the objects of a resource from inside the server, for strategies and admission plugins."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from functools import partial
from typing import Any, Final, Generic, Protocol, TypeVar

from steersman.api.meta.v1 import DeleteOptions
from steersman.machinery.values import times
from steersman.rest.capabilities import Item, ListOptions
from steersman.rest.context import Context
from steersman.work.bounded_cache import BoundedCache
from steersman.work.single_flight import SingleFlight

LookUp = Callable[[str, str], Awaitable[None]]
"""(namespace, name): returns once an object is known that others may just have written. Raises StatusError."""

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

    Objects may be large (machinery.large_work.sizes). Whole ones, which are the caller's own, come from methods
    that wait, as large ones are decoded in the worker threads; the others decode the members of a `Reading` alone, or
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

    async def catches_up(self) -> bool:
        """The same; False if it does not come to have everything in time. Raises StatusError 429."""
        ...

    async def look_up(self, namespace: str, name: str) -> None:
        """Has an object known, in what follows, that others may just have written: as the cache has it, once that has
        everything that was committed before, or out of storage, if that takes too long. Raises StatusError 429, 500."""
        ...

    async def find(self, namespace: str, name: str) -> Any | None:
        """The object in the cache, None if there is none. `namespace` is "" for cluster-scoped ones."""
        ...

    def every(self, namespace: str = "") -> AsyncIterator[tuple[Any, bool]]:
        """Return every object of a namespace, or of all, each with True if it is large (for `offload_if`).

        The event loop is given to others in between."""
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

    async def read_stored(self, namespace: str, reading: Reading[T]) -> tuple[list[T], bool]:
        """Read the objects that are stored now, whatever the cache has; True if they are much, as `is_much` says.

        Raises StatusError 429, 500."""
        ...

    def is_much(self, namespace: str) -> bool:
        """Return True if work on what was read out of all objects of a namespace takes long."""
        ...

    def each_now(self, namespace: str, reading: Reading[T]) -> AsyncIterator[tuple[str, T]]:
        """The name of every object there is in a namespace now, and what is read out of it, as `known`, however many
        there are. Out of storage, if the cache stays behind. Raises StatusError.

        Large objects are read in the worker threads, and each time, as what is read out of them may be large too.
        """
        ...

    def count(self, namespace: str = "") -> int:
        """How many objects there are in a namespace, or in all."""
        ...

    def changed(self) -> int:
        """Another number after each change of any of them: what was made of all is good until it changes."""
        ...

    def follow(self, changed: Callable[[], None]) -> None:
        """Have `changed` called in the turn of the event loop in which any of them changes."""
        ...

    def are_none(self) -> bool:
        """Return True if there are none, and no other server can have made any that this one does not know of."""
        ...

    async def create(self, ctx: Context, obj: Any) -> Any:
        """Creates with the resource's strategy; `ctx.dry_run` is honoured. Raises StatusError."""
        ...

    async def update(
        self,
        ctx: Context,
        name: str,
        change: Callable[[Any], Any],
        *,
        subresource: str = "",
        strategy: Any = None,
        owned: bool = True,
    ) -> Any:
        """Replaces the object by `change(current)` under the (sub)resource's strategy, or the given one, trying again
        when another write came first. `change` may change in place and return the object. With `owned` the server
        becomes the owner of what it changes; without, who owns what stays. Raises StatusError, also whatever `change`
        raises."""
        ...

    async def delete(self, ctx: Context, name: str, options: DeleteOptions | None = None) -> Any:
        """Deletes as the DELETE verb does. Raises StatusError."""
        ...


class Presence:
    """The knowledge whether a resource has any objects; `changed` is called when it has others than none or none."""

    def __init__(self, objects: Objects, changed: Callable[[], None]) -> None:
        self._objects = objects
        self._changed = changed
        self.are_none = objects.are_none()
        objects.follow(self._look)

    def _look(self) -> None:
        are_none = self._objects.are_none()
        if are_none is not self.are_none:
            self.are_none = are_none
            self._changed()


async def all_known(namespace: str, name: str) -> None:
    """Looks up nothing: of a cache behind which nobody else writes."""


class _Looked(Generic[T]):
    """When it was looked into, in seconds of the monotonic clock, and what was found that the cache does not have."""

    __slots__ = ("at", "found")

    def __init__(self, at: float, found: tuple[T, bool] | None) -> None:
        self.at = at
        self.found = found


class ByNamespace(Generic[R, T]):
    """What `make` makes of that which `reading` finds in the objects of a namespace, sorted by name. It is remembered
    until any of them changes, as is that a namespace has none (then it is made of nothing).

    A namespace that has none may have got its first through another server: every 30 s that is looked into, as the
    plugins of upstream do which live from this. What is found then in storage, where the cache is too far behind,
    counts as long.
    """

    def __init__(self, objects: Objects, reading: Reading[R], make: Callable[[Sequence[R]], T]) -> None:
        self._objects = objects
        self._objects_changed = objects.changed
        self._reading = reading
        self._make = make
        self._changed = -1
        self._made: BoundedCache[str, tuple[T, bool, bool]] = BoundedCache(_MAX_REMEMBERED)
        self._looked: BoundedCache[str, _Looked[T]] = BoundedCache(_MAX_REMEMBERED)
        self._looking: SingleFlight[str, _Looked[T]] = SingleFlight()

    async def of(self, namespace: str) -> tuple[T, bool]:
        """Return what was made of the objects of `namespace`; True if work with it takes long. Raises StatusError."""
        made, is_much, is_any = await self._of(namespace)
        if is_any:
            return made, is_much
        looked = self._looked[namespace]
        if looked is None or times.monotonic() - looked.at >= _LOOKED:
            looked = await self._looking.do(namespace, partial(self._look, namespace))
            made, is_much, is_any = await self._of(namespace)
        return (made, is_much) if is_any or looked.found is None else looked.found

    async def _look(self, namespace: str) -> _Looked[T]:
        looked: _Looked[T] = _Looked(times.monotonic(), None)
        if not await self._objects.catches_up():
            found, is_much = await self._objects.read_stored(namespace, self._reading)
            looked.found = (self._make(found), is_much) if found else None
        self._looked.keep(namespace, looked)
        return looked

    async def _of(self, namespace: str) -> tuple[T, bool, bool]:
        """The same, and whether there are any."""
        changed = self._objects_changed()
        if changed != self._changed:
            self._changed = changed
            self._made.forget()
        made = self._made[namespace]
        if made is None:
            is_much = self._objects.is_much(namespace)
            found = await self._objects.read_all(namespace, self._reading)
            made = self._make(found), is_much, bool(found)
            if changed == self._changed == self._objects_changed():
                self._made.keep(namespace, made)
        return made
