"""Custom storage: an object that stores the objects of a declared class, in place of the server's storage.

It has methods for the operations that it supports, and the resource has the corresponding verbs. Objects are instances
of the class, whose field `metadata` (ObjectMeta) has their names. A request has the user and, in its `metadata`, name
and namespace.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from steersman.library.hooks import Request

T = TypeVar("T")
G = TypeVar("G", covariant=True)

_METHODS: Final = ("get", "list", "watch", "create", "update", "delete")
_VERBS: Final = {
    "delete": {"delete"},
    "deletecollection": {"delete", "list"},
    "get": {"get"},
    "list": {"list"},
    "patch": {"update"},
    "create": {"create"},
    "update": {"update"},
    "watch": {"watch"},
}
"""The methods that a verb needs, in the order of custom resources' verbs."""


@dataclass(frozen=True, slots=True)
class Event(Generic[T]):
    """An event of a watch: `type` is ADDED, MODIFIED or DELETED."""

    type: str
    object: T


class Getter(Protocol[G]):
    """A storage that supports `get`."""

    async def get(self, request: Request[Any]) -> G | None:
        """Return the object, None if there is none."""
        ...


class Lister(Protocol[G]):
    """A storage that supports `list`. The server applies selectors, and drops objects of other namespaces."""

    async def list(self, request: Request[Any]) -> Iterable[G]:
        """Return the objects of a namespace, or all objects."""
        ...


class Watcher(Protocol[T]):
    """A storage that supports `watch`, in addition to `list`."""

    def watch(self, request: Request[Any], resource_version: str) -> AsyncIterator[Event[T]]:
        """Yield the changes after the version of a list or an object; after now for "".

        The iterator is closed when the client ends the watch. Raises `expired` for a version from which it cannot
        resume.
        """
        ...


class Creater(Protocol[T]):
    """A storage that supports `create`. Without `get` the result is only sent back, and objects have no names."""

    async def create(self, request: Request[T], obj: T) -> T:
        """Return the object as stored. Raises `already_exists`."""
        ...


class Updater(Protocol[T]):
    """A storage that supports `update` and `patch`, in addition to `get`."""

    async def update(self, request: Request[T], obj: T) -> T:
        """Replace `request.old` by the object, and return it as stored. Raises `conflict` if another write came first."""
        ...


class Deleter(Protocol[T]):
    """A storage that supports `delete` and, with `list`, `deletecollection`, in addition to `get`."""

    async def delete(self, request: Request[T], obj: T) -> None:
        """Delete the object if it still exists."""
        ...


def verbs_of_storage(storage: object) -> tuple[str, ...]:
    """Return the verbs that a storage supports. Raises TypeError if it supports none, or lacks a method that another
    needs.
    """
    able = {name for name in _METHODS if callable(getattr(storage, name, None))}
    name = type(storage).__name__
    if not able:
        raise TypeError(f"{name} has none of the methods {', '.join(_METHODS)}")
    for verb, needed in (("update", "get"), ("delete", "get"), ("watch", "list")):
        if verb in able and needed not in able:
            raise TypeError(f"{name} has {verb} without {needed}")
    return tuple(verb for verb, methods in _VERBS.items() if methods <= able)
