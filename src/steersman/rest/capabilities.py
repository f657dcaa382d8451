"""The capabilities of a resource: one Protocol per capability, each with its error contract.

A storage implements the capabilities that its resource offers, and the installer makes a route for each. Objects are
passed as `Item`s, which are encoded already, so that a read decodes only what it needs. `body` is the JSON of the hub
version without the opening brace, kind and apiVersion: `"metadata":{...},...}`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, NamedTuple, Protocol, TypeGuard, TypeVar, runtime_checkable
from weakref import WeakKeyDictionary

from msgspec import Struct, field

from steersman.api.meta.v1 import DeleteOptions
from steersman.machinery.errors.status import StatusError
from steersman.machinery.selectors import fields, labels
from steersman.rest.context import Context
from steersman.rest.strategy import Strategy


class Item(Protocol):
    """An encoded object at a revision. `representations` holds its other encodings, which are made on demand."""

    body: bytes
    revision: int
    representations: dict[Any, Any] | None


class Encoded(Struct):
    """An Item that is in no cache: the result of a dry run, or a deleted object."""

    body: bytes
    revision: int = 0
    representations: dict[Any, Any] | None = None


EXACT: Final = "Exact"


class ListOptions(Struct):
    """Options of a list or watch request. `resource_version` is as sent: "", "0" or a decimal number."""

    label_selector: labels.Selector = field(default_factory=labels.Selector)
    field_selector: fields.Selector = field(default_factory=fields.Selector)
    resource_version: str = ""
    resource_version_match: str = ""
    limit: int = 0
    continue_token: str = ""
    allow_watch_bookmarks: bool = False
    send_initial_events: bool | None = None
    timeout_seconds: int | None = None


class Listing(Struct):
    """A list: its items, their revision, and the data for requesting the next page.

    `any_large` is False if none of the items is large (machinery.large_work.sizes), so that it need not be checked.
    """

    items: Sequence[Item]
    revision: int
    continue_token: str = ""
    remaining: int | None = None
    any_large: bool = True


class WatchEvent(Protocol):
    """A change for a watcher: `type` is ADDED, MODIFIED or DELETED.

    `entry` is the object after the change, or the last state of a deleted object. All watchers of the event share
    `representations`, so that each encoding is made once.
    """

    type: str
    entry: Item
    revision: int
    representations: dict[Any, Any] | None


class Sink(Protocol):
    """The receiver of a watch's events. `deliver` and `failed` are called on the event loop and return at once."""

    def deliver(self, event: Any) -> None:
        """Receive one event; events come in revision order.

        The first event may come before `watch` has returned the initial objects. The receiver passes on the initial
        objects first.
        """
        ...

    def failed(self, error: StatusError | None) -> None:
        """Receive the end of a watch that ended by itself: no more events come.

        `error` is not None if the watch cannot be resumed from its last revision, and says why.
        """
        ...

    async def drain(self) -> None:
        """Return once the receiver has consumed most of the delivered events; awaited while older events are replayed."""
        ...


class WatchHandle(Protocol):
    """A running watch."""

    def cancel(self) -> None:
        """End the watch; the receiver gets no more events."""
        ...


Make = Callable[[Any | None], Awaitable[Any]]
"""Makes the object to store from the current one (None if there is none), which it must not change."""
CheckCreate = Callable[[Any], Awaitable[None]]
CheckUpdate = Callable[[Any, Any], Awaitable[None]]
CheckDelete = Callable[[Any], Awaitable[None]]


class ResourceStorage(Protocol):
    """Base of every capability: the storage that implements a resource (upstream's rest.Storage), and can decode its
    items.
    """

    def decode(self, item: Item) -> Any:
        """Return the object as a Struct of the hub version. The caller owns it."""
        ...

    def remember(self, item: Item, kind: object, encoded: bytes) -> None:
        """Keep another encoding of the object in `item.representations` if the cache has room for it."""
        ...


@runtime_checkable
class Getter(ResourceStorage, Protocol):
    async def get(self, ctx: Context, name: str, resource_version: str = "") -> Item:
        """Return the object.

        Raises StatusError NotFound, Timeout (a resourceVersion of the future), BadRequest (an invalid one).
        """
        ...


@runtime_checkable
class Lister(ResourceStorage, Protocol):
    async def list(self, ctx: Context, options: ListOptions) -> Listing:
        """Return the objects that the selectors match, of the context's namespace (of all namespaces if it is empty).

        Raises StatusError Expired, Timeout, BadRequest.
        """
        ...


@runtime_checkable
class Watcher(ResourceStorage, Protocol):
    async def watch(self, ctx: Context, options: ListOptions, sink: Sink) -> WatchStart:
        """Start a watch. Raises StatusError as `list` does, and Expired if the revision is compacted."""
        ...


class WatchStart(Struct):
    """The start of a watch: the initial objects (None if none are to be sent), and the revision from which it goes on."""

    initial: Sequence[Item] | None
    revision: int
    handle: WatchHandle
    current_revision: Callable[[], int | None]
    """Returns the revision up to which every event has been delivered, for bookmarks; None while older events are still
    being replayed.
    """
    last_change: Callable[[], int]
    """Returns the revision of the last change of any object of the resource."""


@runtime_checkable
class Creater(ResourceStorage, Protocol):
    async def create(self, ctx: Context, obj: Any, check: CheckCreate | None = None) -> Item:
        """Store a new object and return it. Raises StatusError AlreadyExists, Invalid, BadRequest and what `check`
        raises.
        """
        ...


class Change(Struct):
    """An update: `make` makes the new object, under the rules of `subresource` ("" for the resource itself).

    The object must have the UID `uid`, unless that is empty. With `may_create` a missing object is created, even if
    its kind does not allow create on update. `strategy` replaces that of the (sub)resource, for the server's own
    writes.
    """

    make: Make
    uid: str = ""
    subresource: str = ""
    may_create: bool = False
    check_create: CheckCreate | None = None
    check_update: CheckUpdate | None = None
    strategy: Strategy[Any] | None = None


class Updated(NamedTuple):
    """The result of an update; `is_new` says that the object did not exist before."""

    item: Item
    is_new: bool


class Deleted(NamedTuple):
    """The result of a delete: with `is_gone` the last state, otherwise the object marked for deletion."""

    item: Item
    is_gone: bool


@runtime_checkable
class Updater(ResourceStorage, Protocol):
    async def update(self, ctx: Context, name: str, change: Change) -> Updated:
        """Replace the object by the result of `change.make`, and retry if another write came first.

        Raises StatusError NotFound, Conflict, Invalid and what `make` and the checks raise.
        """
        ...


@runtime_checkable
class GracefulDeleter(ResourceStorage, Protocol):
    async def delete(
        self, ctx: Context, name: str, options: DeleteOptions, check: CheckDelete | None = None
    ) -> Deleted:
        """Delete the object, or mark it for deletion. Raises StatusError NotFound, Conflict, Invalid."""
        ...


@runtime_checkable
class CollectionDeleter(ResourceStorage, Protocol):
    async def delete_collection(
        self, ctx: Context, delete_options: DeleteOptions, options: ListOptions, check: CheckDelete | None = None
    ) -> Listing:
        """Delete the objects that `list` with these options returns, and return them."""
        ...


@runtime_checkable
class Answerer(ResourceStorage, Protocol):
    async def answer(self, ctx: Context, obj: Any) -> Any:
        """Return the answer to an object that is sent and not stored: an object or a Status. Raises StatusError."""
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
    """Return True if `storage` has a capability. Each class is inspected once."""
    return capability in _capabilities_of(type(storage))


def verbs_of(storage: ResourceStorage) -> frozenset[str]:
    """Return the verbs that a storage supports."""
    return frozenset(verb for capability, verbs in _VERBS if provides(storage, capability) for verb in verbs)


def _capabilities_of(kind: type) -> frozenset[type]:
    found = _capabilities.get(kind)
    if found is None:
        found = _capabilities[kind] = frozenset(each for each, _ in _VERBS if issubclass(kind, each))
    return found


_capabilities: Final[WeakKeyDictionary[type, frozenset[type]]] = WeakKeyDictionary()
"""Capabilities by class: checking a class against a Protocol is slow, above all before Python 3.12."""
