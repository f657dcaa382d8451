"""Storage of one's own: what serves the objects of a declared class, in place of the server's storage.

It has the methods that it can do, and the resource the verbs of these. Objects are instances of the class, whose field
`metadata` (ObjectMeta) has their names; a request says who asks, and in its `metadata` which name and namespace.
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
"""The methods that a verb takes, in the order in which custom resources have them."""


@dataclass(frozen=True, slots=True)
class Event(Generic[T]):
    """What a watch tells: `type` is ADDED, MODIFIED or DELETED."""

    type: str
    object: T


class Getter(Protocol[G]):
    """Serves `get`."""

    async def get(self, request: Request[Any]) -> G | None:
        """The object, None if there is none."""
        ...


class Lister(Protocol[G]):
    """Serves `list`. Selectors are the server's business, and so are other namespaces than the one asked for."""

    async def list(self, request: Request[Any]) -> Iterable[G]:
        """The objects of a namespace, or all of them."""
        ...


class Watcher(Protocol[T]):
    """Serves `watch`, for what can be listed."""

    def watch(self, request: Request[Any], resource_version: str) -> AsyncIterator[Event[T]]:
        """What changes after a version that a list had, or an object; "": from now on. It is closed when nobody
        listens any more. Raises `expired` for a version from which it cannot go on."""
        ...


class Creater(Protocol[T]):
    """Serves `create`. A storage that cannot `get` answers: what it gives is sent back, and nothing has a name."""

    async def create(self, request: Request[T], obj: T) -> T:
        """The object as it is now. Raises `already_exists`."""
        ...


class Updater(Protocol[T]):
    """Serves `update` and `patch`, for what can be got."""

    async def update(self, request: Request[T], obj: T) -> T:
        """Puts the object in the place of `request.old`; what it is now. Raises `conflict` if another was quicker."""
        ...


class Deleter(Protocol[T]):
    """Serves `delete`, and with `list` `deletecollection`, for what can be got."""

    async def delete(self, request: Request[T], obj: T) -> None:
        """Deletes the object, if it is there still."""
        ...


def verbs_of_storage(storage: object) -> tuple[str, ...]:
    """The verbs that a storage can do. Raises TypeError for one that can do none, or one without what it rests on."""
    able = {name for name in _METHODS if callable(getattr(storage, name, None))}
    name = type(storage).__name__
    if not able:
        raise TypeError(f"{name} has none of the methods {', '.join(_METHODS)}")
    for verb, needed in (("update", "get"), ("delete", "get"), ("watch", "list")):
        if verb in able and needed not in able:
            raise TypeError(f"{name} has {verb} without {needed}")
    return tuple(verb for verb, methods in _VERBS.items() if methods <= able)
