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
"""(namespace, name): waits until an object is visible that another server may just have written. Raises StatusError."""

T = TypeVar("T")
R = TypeVar("R")

_MAX_REMEMBERED: Final = 10_000
"""The most namespaces for which results are cached."""
_EMPTY_SECONDS: Final = 30.0
"""Seconds for which the absence of objects in a namespace is trusted."""


class Reading(Generic[T]):
    """A projection that the server reads from stored objects often, with `make` as its function.

    `make` gets an object that has only the members on `paths` (JSON names, e.g. `status.phase`). Its result is cached
    with the object until that changes, so the result must be immutable.
    """

    __slots__ = ("make", "paths")

    def __init__(self, make: Callable[[Any], T], *paths: str) -> None:
        self.make = make
        self.paths = paths


class Objects(Protocol):
    """Access to the objects of one resource. The context gives the namespace.

    Objects may be large (machinery.large_work.sizes). Methods that return whole objects are asynchronous, as large
    objects are decoded in worker threads; the caller owns the objects. The other methods decode only the members of a
    `Reading`, or nothing.
    """

    async def get(self, ctx: Context, name: str) -> Any:
        """Return an object. Raises StatusError NotFound."""
        ...

    async def get_item(self, ctx: Context, name: str) -> Item:
        """Return an object of the cache, encoded in the version of the context. Raises StatusError NotFound."""
        ...

    async def list_items(self, ctx: Context, options: ListOptions) -> Sequence[Item]:
        """Return the items of a list request, in the version of the context. Raises StatusError."""
        ...

    async def wait_until_current(self) -> None:
        """Wait until the cache has every write that was committed before, also by other servers.

        Returns at once if no other server writes. Raises StatusError 429, 504.
        """
        ...

    async def try_wait_until_current(self) -> bool:
        """Wait like `wait_until_current`, but return False on a timeout. Raises StatusError 429."""
        ...

    async def refresh(self, namespace: str, name: str) -> None:
        """Make an object visible to the calls that follow, which another server may just have written.

        Waits until the cache is current. If that takes too long, reads the object from storage. Raises StatusError 429,
        500.
        """
        ...

    async def get_cached(self, namespace: str, name: str) -> Any | None:
        """Return the object in the cache, None if there is none. `namespace` is "" for cluster-scoped objects."""
        ...

    def iterate_cached(self, namespace: str = "") -> AsyncIterator[tuple[Any, bool]]:
        """Yield every object of a namespace ("" for all), each with True if it is large (for `offload_if`).

        Other tasks run between objects.
        """
        ...

    def is_cached(self, namespace: str, name: str) -> bool:
        """Return True if the object is in the cache."""
        ...

    def names(self, namespace: str = "") -> Iterator[tuple[str, str]]:
        """Return namespace and name of every object of a namespace ("" for all)."""
        ...

    def read_cached(self, namespace: str, name: str, reading: Reading[T]) -> T | None:
        """Return the projection of an object in the cache, None if there is no such object."""
        ...

    def read_all_cached(self, namespace: str, reading: Reading[T]) -> list[T]:
        """Return the projections of all objects of a namespace ("" for all); only for kinds that have few objects."""
        ...

    async def read_all(self, namespace: str, reading: Reading[T]) -> list[T]:
        """Return the projections of all objects of a namespace ("" for all), however many or large."""
        ...

    async def read_stored(self, namespace: str, reading: Reading[T]) -> tuple[list[T], bool]:
        """Read the projections from storage instead of the cache. Returns them and the answer of `takes_long`.

        Raises StatusError 429, 500.
        """
        ...

    def takes_long(self, namespace: str) -> bool:
        """Return True if work on the projections of all objects of a namespace takes long."""
        ...

    def iterate_current(self, namespace: str, reading: Reading[T]) -> AsyncIterator[tuple[str, T]]:
        """Yield name and projection of every object that a namespace has now, however many.

        Reads from storage if the cache lags behind. Large objects are read in the worker threads and never cached, as
        their projections may be large too. Raises StatusError.
        """
        ...

    def count(self, namespace: str = "") -> int:
        """Return the number of objects in a namespace ("" for all)."""
        ...

    def change_count(self) -> int:
        """Return a number that differs after each change of any object, for invalidating what was derived from all
        objects.
        """
        ...

    def subscribe(self, changed: Callable[[], None]) -> None:
        """Subscribe `changed`, which is called in the same step of the event loop in which an object changes."""
        ...

    def is_empty(self) -> bool:
        """Return True if there are no objects, and no other server can have created any unseen."""
        ...

    async def create(self, ctx: Context, obj: Any) -> Any:
        """Create an object with the resource's strategy; `ctx.dry_run` is honoured. Raises StatusError."""
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
        """Replace the object by `change(current)` and return it; retry if another write came first.

        `change` may modify its argument and return it. The strategy is that of the (sub)resource unless given. With
        `owned` the server becomes the owner of the fields that it changes; without, ownership stays as it is. Raises
        StatusError, and whatever `change` raises.
        """
        ...

    async def delete(self, ctx: Context, name: str, options: DeleteOptions | None = None) -> Any:
        """Delete an object as the DELETE verb does. Raises StatusError."""
        ...


class Presence:
    """Tracks whether a resource has any objects; `changed` is called after it becomes empty or gets its first object."""

    def __init__(self, objects: Objects, changed: Callable[[], None]) -> None:
        self._objects = objects
        self._changed = changed
        self.is_empty = objects.is_empty()
        objects.subscribe(self._check)

    def _check(self) -> None:
        is_empty = self._objects.is_empty()
        if is_empty is not self.is_empty:
            self.is_empty = is_empty
            self._changed()


async def no_look_up(namespace: str, name: str) -> None:
    """Do nothing: the `LookUp` of a cache that no other server writes behind."""


class _Check(Generic[T]):
    """The last check of a namespace: its time in seconds of the monotonic clock, and the result if the cache lacks it."""

    __slots__ = ("at", "result")

    def __init__(self, at: float, result: tuple[T, bool] | None) -> None:
        self.at = at
        self.result = result


class NamespaceCache(Generic[R, T]):
    """A cache of values derived from the objects of each namespace.

    `make` derives a value from the `reading`s of a namespace's objects, sorted by name; from nothing for a namespace
    without objects. Results are cached until any object changes.

    Another server may have created the first object of an empty namespace. So an empty namespace is checked again every
    30 s, as upstream's plugins do that have such a cache. The check reads from storage if the watch cache lags too far
    behind.
    """

    def __init__(self, objects: Objects, reading: Reading[R], make: Callable[[Sequence[R]], T]) -> None:
        self._objects = objects
        self._change_count = objects.change_count
        self._reading = reading
        self._make = make
        self._seen_count = -1
        self._values: BoundedCache[str, tuple[T, bool, bool]] = BoundedCache(_MAX_REMEMBERED)
        self._checks: BoundedCache[str, _Check[T]] = BoundedCache(_MAX_REMEMBERED)
        self._checking: SingleFlight[str, _Check[T]] = SingleFlight()

    async def get(self, namespace: str) -> tuple[T, bool]:
        """Return the value of `namespace`, and True if work with the value takes long. Raises StatusError."""
        value, takes_long, is_any = await self._get_cached(namespace)
        if is_any:
            return value, takes_long
        check = self._checks[namespace]
        if check is None or times.monotonic() - check.at >= _EMPTY_SECONDS:
            check = await self._checking.do(namespace, partial(self._check_storage, namespace))
            value, takes_long, is_any = await self._get_cached(namespace)
        return (value, takes_long) if is_any or check.result is None else check.result

    async def _check_storage(self, namespace: str) -> _Check[T]:
        check: _Check[T] = _Check(times.monotonic(), None)
        if not await self._objects.try_wait_until_current():
            result, takes_long = await self._objects.read_stored(namespace, self._reading)
            check.result = (self._make(result), takes_long) if result else None
        self._checks.keep(namespace, check)
        return check

    async def _get_cached(self, namespace: str) -> tuple[T, bool, bool]:
        """Return the value, True if work with it takes long, and True if the namespace has objects."""
        changed = self._change_count()
        if changed != self._seen_count:
            self._seen_count = changed
            self._values.forget()
        value = self._values[namespace]
        if value is None:
            takes_long = self._objects.takes_long(namespace)
            result = await self._objects.read_all(namespace, self._reading)
            value = self._make(result), takes_long, bool(result)
            if changed == self._seen_count == self._change_count():
                self._values.keep(namespace, value)
        return value
