"""What the endpoints ask of a resource: one Protocol per capability, each with its error contract.

A storage has those capabilities that its resource is to have; the installer asks which, and makes routes for them.
Objects come as `Item`s, encoded already, so that a read decodes nothing it need not. `body` is the JSON of the hub
version without the opening brace, kind and apiVersion: `"metadata":{...},...}`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Protocol, TypeGuard, TypeVar, runtime_checkable
from weakref import WeakKeyDictionary

from msgspec import Struct

from steersman.api.meta.v1 import DeleteOptions
from steersman.machinery.errors.status import StatusError
from steersman.machinery.selectors import fields, labels
from steersman.rest.context import Context
from steersman.rest.strategy import Strategy


class Item(Protocol):
    """An object at a revision, encoded. `representations` holds other encodings of it, made on demand."""

    body: bytes
    revision: int
    representations: dict[Any, Any] | None


class Encoded(Struct):
    """An Item that is not in any cache: the result of a dry run, or what was deleted."""

    body: bytes
    revision: int = 0
    representations: dict[Any, Any] | None = None


EXACT: Final = "Exact"


@dataclass(slots=True)
class ListOptions:
    """What a list or watch asks for. `resource_version` is as sent: "", "0" or a number's text."""

    label_selector: labels.Selector = field(default_factory=labels.Selector)
    field_selector: fields.Selector = field(default_factory=fields.Selector)
    resource_version: str = ""
    resource_version_match: str = ""
    limit: int = 0
    continue_token: str = ""
    allow_watch_bookmarks: bool = False
    send_initial_events: bool | None = None
    timeout_seconds: int | None = None


@dataclass(slots=True)
class Listing:
    """A list: its items, the revision they are of, and what is needed to ask for more of it.

    `any_large` is False where none of the items is large (machinery.large_work.sizes), so that they need not be
    weighed.
    """

    items: Sequence[Item]
    revision: int
    continue_token: str = ""
    remaining: int | None = None
    any_large: bool = True


class WatchEvent(Protocol):
    """A change for a watcher: `type` is ADDED, MODIFIED or DELETED; `entry` is the object after it, or before it was
    deleted.

    `representations` is shared by all watchers of the event, so that it is encoded once.
    """

    type: str
    entry: Item
    revision: int
    representations: dict[Any, Any] | None


class Sink(Protocol):
    """Where a watch delivers. `deliver` and `failed` are called on the loop and return at once."""

    def deliver(self, event: Any) -> None:
        """One event, in revision order. The first may come before `watch` has returned with the objects there are, and
        are to be told after them."""
        ...

    def failed(self, error: StatusError | None) -> None:
        """The watch has ended by itself; nothing more comes. The error says why it cannot go on from where it is, if
        that is so."""
        ...

    async def drain(self) -> None:
        """Returns once most of what was delivered has been taken; awaited while older events are replayed."""
        ...


class WatchHandle(Protocol):
    """A running watch."""

    def cancel(self) -> None: ...


Make = Callable[[Any | None], Awaitable[Any]]
"""From the present object (None: there is none), which is not to be changed, to the one to store."""
CheckCreate = Callable[[Any], Awaitable[None]]
CheckUpdate = Callable[[Any, Any], Awaitable[None]]
CheckDelete = Callable[[Any], Awaitable[None]]


class ResourceStorage(Protocol):
    """What implements a resource, whatever it can do (upstream's rest.Storage): its objects can be read."""

    def decode(self, item: Item) -> Any:
        """The object as a Struct of the hub version, its own copy."""
        ...

    def remember(self, item: Item, kind: object, encoded: bytes) -> None:
        """Keeps another encoding of the object in `item.representations`, if there is room."""
        ...


@runtime_checkable
class Getter(ResourceStorage, Protocol):
    async def get(self, ctx: Context, name: str, resource_version: str = "") -> Item:
        """The object. Raises StatusError NotFound, Timeout (a version of the future), BadRequest (no version)."""
        ...


@runtime_checkable
class Lister(ResourceStorage, Protocol):
    async def list(self, ctx: Context, options: ListOptions) -> Listing:
        """The objects of the context's namespace (all, if empty) that the selectors select.

        Raises StatusError Expired, Timeout, BadRequest."""
        ...


@runtime_checkable
class Watcher(ResourceStorage, Protocol):
    async def watch(self, ctx: Context, options: ListOptions, sink: Sink) -> WatchStart:
        """Starts a watch. Raises StatusError as `list` does, Expired if the version is no longer kept."""
        ...


@dataclass(slots=True)
class WatchStart:
    """How a watch begins: the objects there are (None: none are to be sent), and the revision it goes on from."""

    initial: Sequence[Item] | None
    revision: int
    handle: WatchHandle
    current_revision: Callable[[], int | None]
    """The revision up to which everything has been delivered, for bookmarks; None while older events are still being
    delivered."""
    last_change: Callable[[], int]
    """The revision of the last change of any object of the resource."""


@runtime_checkable
class Creater(ResourceStorage, Protocol):
    async def create(self, ctx: Context, obj: Any, check: CheckCreate | None = None) -> Item:
        """Stores a new object. Raises StatusError AlreadyExists, Invalid, BadRequest and what `check` raises."""
        ...


class Change(Struct):
    """A change of an object: `make` makes it, under the rules of the `subresource` ("" for the resource itself).

    `uid` must be that of the object unless empty. With `may_create` it is made where there is none, also of kinds that
    are not made this way. A `strategy` stands in place of that of the (sub)resource, for the server's own writes.
    """

    make: Make
    uid: str = ""
    subresource: str = ""
    may_create: bool = False
    check_create: CheckCreate | None = None
    check_update: CheckUpdate | None = None
    strategy: Strategy[Any] | None = None


class Updated(NamedTuple):
    """What a change made, and whether there was nothing before."""

    item: Item
    is_new: bool


class Deleted(NamedTuple):
    """What was deleted, and whether it is gone; otherwise it is marked as being deleted."""

    item: Item
    is_gone: bool


@runtime_checkable
class Updater(ResourceStorage, Protocol):
    async def update(self, ctx: Context, name: str, change: Change) -> Updated:
        """Replaces the object by what the change makes of it, trying again when another write came first.

        Raises StatusError NotFound, Conflict, Invalid and what `make` and the checks raise."""
        ...


@runtime_checkable
class GracefulDeleter(ResourceStorage, Protocol):
    async def delete(
        self, ctx: Context, name: str, options: DeleteOptions, check: CheckDelete | None = None
    ) -> Deleted:
        """Deletes, or marks as being deleted. Raises StatusError NotFound, Conflict, Invalid."""
        ...


@runtime_checkable
class CollectionDeleter(ResourceStorage, Protocol):
    async def delete_collection(
        self, ctx: Context, delete_options: DeleteOptions, options: ListOptions, check: CheckDelete | None = None
    ) -> Listing:
        """Deletes what `list` with these options finds; those objects."""
        ...


@runtime_checkable
class Answerer(ResourceStorage, Protocol):
    async def answer(self, ctx: Context, obj: Any) -> Any:
        """What is answered to an object that is sent, and not stored: an object, or a Status. Raises StatusError."""
        ...


_VERBS: Final[tuple[tuple[type, tuple[str, ...]], ...]] = (
    (Getter, ("get",)),
    (Lister, ("list",)),
    (Watcher, ("watch",)),
    (Creater, ("create",)),
    (Answerer, ("create",)),
    (Updater, ("update", "patch")),
    (GracefulDeleter, ("delete",)),
    (CollectionDeleter, ("deletecollection",)),
)


_Capability = TypeVar("_Capability", bound=ResourceStorage)


def provides(storage: ResourceStorage, capability: type[_Capability]) -> TypeGuard[_Capability]:
    """Whether a storage has one of these capabilities: its class has it or not, and is looked through once."""
    return capability in _capabilities_of(type(storage))


def verbs_of(storage: ResourceStorage) -> frozenset[str]:
    """The verbs that a storage can do."""
    return frozenset(verb for capability, verbs in _VERBS if provides(storage, capability) for verb in verbs)


def _capabilities_of(kind: type) -> frozenset[type]:
    found = _capabilities.get(kind)
    if found is None:
        found = _capabilities[kind] = frozenset(each for each, _ in _VERBS if issubclass(kind, each))
    return found


_capabilities: Final[WeakKeyDictionary[type, frozenset[type]]] = WeakKeyDictionary()
"""Of classes that were looked through: asking a Protocol takes long, above all before Python 3.12."""
