"""Capabilities of a resource on a custom storage (see library.storage and rest.capabilities)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from steersman.api.meta.v1 import DeleteOptions, ObjectMeta
from steersman.kinds.open import OpenObject
from steersman.library.declaration import Declaration
from steersman.library.hooks import DELETE, UPDATE, Objects, Request
from steersman.library.instances import Instances
from steersman.library.models import ModelError
from steersman.library.storage import Event, verbs_of_storage
from steersman.library.user_code import NoJson, check_values, kept_running
from steersman.machinery.errors import status as errors
from steersman.machinery.errors.status import StatusError
from steersman.machinery.identity.names import generate_name
from steersman.net.ascii import is_digits
from steersman.rest.bound import BoundResource
from steersman.rest.capabilities import (
    Change,
    CheckCreate,
    CheckDelete,
    Deleted,
    Encoded,
    Item,
    Listing,
    ListOptions,
    Sink,
    Updated,
    WatchStart,
)
from steersman.rest.context import Context
from steersman.store import metadata
from steersman.store.write_rules import WriteRules
from steersman.work.offloading import offload

logger = logging.getLogger(__name__)

GET: Final = "GET"
LIST: Final = "LIST"
WATCH: Final = "WATCH"
CREATE: Final = "CREATE"


@dataclass(slots=True)
class _WatchEvent:
    """An event of a watch; see rest.capabilities.WatchEvent."""

    type: str
    entry: Encoded
    revision: int
    representations: dict[Any, Any] | None = None


class _CustomObjects(WriteRules[OpenObject]):
    """The objects of a class in a custom storage."""

    def __init__(
        self,
        bound: BoundResource[OpenObject],
        own: Any,
        instances: Instances,
        objects_of: Callable[[type[Any]], Objects[Any]],
    ) -> None:
        self.resource = bound.resource
        self.kind = bound.resource.kind
        self.strategy = bound.strategy
        self._bound = bound
        self._own = own
        self._instances = instances
        self._objects_of = objects_of

    def decode(self, item: Item) -> OpenObject:
        """Return the object of an item; see ResourceStorage."""
        return self.kind.decode(item.body)

    def remember(self, item: Item, kind: object, encoded: bytes) -> None:
        """Do nothing, as items are not cached."""

    def _metadata(self, ctx: Context, name: str) -> ObjectMeta:
        return ObjectMeta(name=name, namespace=ctx.action.namespace)

    def _request(
        self, operation: str, ctx: Context, meta: ObjectMeta, old: Any = None, subresource: str = ""
    ) -> Request[Any]:
        return Request(operation, meta, old, subresource, ctx, self._objects_of)

    def _instance(self, obj: OpenObject) -> Any:
        """Return an instance of an object. Raises StatusError 500 if the object does not fit the class."""
        try:
            return self._instances.stored_instance(obj)
        except ModelError as error:
            raise errors.plain_internal(f"{self.kind.name} {obj.metadata.name} does not fit: {error}") from None

    def _method_name(self, verb: str) -> str:
        return f"{type(self._own).__name__}.{verb}"

    async def _call(self, verb: str, *given: Any) -> Any:
        """Call a method of the storage, and return its result. Raises what it raises, UserCodeFailed."""
        with kept_running(self._method_name(verb), may_wait=True):
            return await getattr(self._own, verb)(*given)

    def _to_object(self, instance: Any) -> OpenObject:
        """Return the object of an instance. Raises StatusError 500 for values that JSON cannot represent."""
        try:
            check_values(instance)
        except NoJson as error:
            raise errors.plain_internal(
                f"the storage of {self.kind.name} returned a value that JSON cannot represent: {error}"
            ) from None
        return self._instances.to_object(instance)

    def to_item(self, instance: Any) -> tuple[OpenObject, Encoded]:
        """Return an instance as an object and as an encoded item."""
        obj = self._to_object(instance)
        return obj, self._encode(obj)

    def _encode(self, obj: OpenObject) -> Encoded:
        return Encoded(self.kind.body(obj), _revision(obj.metadata.resource_version))


class CustomAnswers(_CustomObjects):
    """The capability of a custom storage without `get`, which only answers posted objects."""

    def _validate(self, ctx: Context, obj: OpenObject) -> None:
        found = list(self.strategy.validate(ctx, obj))
        if found:
            raise errors.invalid(self.resource.group_kind, obj.metadata.name, found)

    async def answer(self, ctx: Context, obj: OpenObject) -> OpenObject:
        """Validate the object and return the storage's answer; see rest.capabilities.Answerer."""
        await offload(self._validate, ctx, obj)
        made = self._to_object(
            await self._call("create", self._request(CREATE, ctx, obj.metadata), self._instance(obj))
        )
        made.metadata.managed_fields = []
        return made


class CustomStorage(_CustomObjects):
    """All other capabilities on a custom storage, with the server's usual rules for writes (rest.capabilities).

    The verbs of the resource determine which of them are served.
    """

    # Reads

    async def get(self, ctx: Context, name: str, resource_version: str = "") -> Item:
        """Return an object; see Getter. The storage decides about the version."""
        return self._encode(await self._require(ctx, name))

    async def list(self, ctx: Context, options: ListOptions) -> Listing:
        """Return a list; see Lister. It has one page; its version is the highest of its objects."""
        found = [self._encode(each) for each in await self._list_matching(ctx, options)]
        return Listing(found, max((each.revision for each in found), default=0))

    async def watch(self, ctx: Context, options: ListOptions, sink: Sink) -> WatchStart:
        """Start a watch; see Watcher. Without a version, or with 0, the existing objects come first."""
        version = "" if options.resource_version == "0" else options.resource_version
        initial = None
        if options.send_initial_events or (not version and options.send_initial_events is None):
            initial = [self._encode(each) for each in await self._list_matching(ctx, options)]
        with kept_running(self._method_name("watch")):
            events = self._own.watch(self._request(WATCH, ctx, self._metadata(ctx, "")), version)
        watching = _Watching(self, ctx, options, sink, events)
        revision = max((each.revision for each in initial or ()), default=_revision(version))
        watching.revision = revision
        return WatchStart(initial, revision, watching, lambda: watching.revision, lambda: watching.revision)

    async def _list_matching(self, ctx: Context, options: ListOptions) -> Sequence[OpenObject]:
        found: Iterable[Any] = await self._call("list", self._request(LIST, ctx, self._metadata(ctx, "")))
        with kept_running(self._method_name("list")):
            return [each for each in map(self._to_object, found) if self.matches(ctx, options, each)]

    def matches(self, ctx: Context, options: ListOptions, obj: OpenObject) -> bool:
        """Return True if an object is in the namespace and the selectors match it."""
        meta = obj.metadata
        if ctx.action.namespace and meta.namespace != ctx.action.namespace:
            return False
        if not options.label_selector.matches(meta.labels):
            return False
        if options.field_selector.empty:
            return True
        fields = {name: read(obj) for name, read in self.resource.selectable_fields.items()}
        return options.field_selector.matches(
            {**fields, "metadata.name": meta.name, "metadata.namespace": meta.namespace}
        )

    async def _require(self, ctx: Context, name: str) -> OpenObject:
        """Return the object of a name. Raises StatusError 404."""
        found = await self._get(ctx, name)
        if found is None:
            raise errors.not_found(self.resource.group_resource, name)
        return self._to_object(found)

    async def _get(self, ctx: Context, name: str) -> Any:
        return await self._call("get", self._request(GET, ctx, self._metadata(ctx, name)))

    # Writes

    async def create(self, ctx: Context, obj: OpenObject, check: CheckCreate | None = None) -> Item:
        """Create an object; see Creater."""
        meta = obj.metadata
        metadata.fill_system_fields(meta)
        if not meta.name and meta.generate_name:
            meta.name = generate_name(meta.generate_name)
        await self._run_inquiry(ctx, obj, None)
        await offload(self.before_create, ctx, obj)
        if check is not None:
            await check(obj)
        if ctx.dry_run:
            return self._encode(obj)
        finish = await self._begin_write(ctx, obj, None)
        made = self._to_object(await self._call("create", self._request(CREATE, ctx, meta), self._instance(obj)))
        await finish()
        return self._encode(made)

    async def update(self, ctx: Context, name: str, change: Change) -> Updated:
        """Update an object; see Updater. It is not retried after a conflict with another write."""
        if change.may_create and await self._get(ctx, name) is None:
            made = await change.make(None)
            made.metadata.resource_version = ""
            return Updated(await self.create(ctx, made, change.check_create), True)
        old = await self._require(ctx, name)
        if change.uid and change.uid != old.metadata.uid:
            raise errors.conflict(self.resource.group_resource, name, "the UID in the precondition is another one's")
        new: OpenObject = await change.make(old)
        version = new.metadata.resource_version
        if version and version != old.metadata.resource_version:
            raise errors.conflict(self.resource.group_resource, name, errors.OPTIMISTIC_LOCK)
        strategy = change.strategy or self._bound.substrategies.get(change.subresource, self.strategy)
        await self._run_inquiry(ctx, new, old, change.subresource)
        await offload(self.before_update, ctx, new, old, strategy)
        if change.check_update is not None:
            await change.check_update(new, old)
        if ctx.dry_run:
            return Updated(self._encode(new), False)
        finish = await self._begin_write(ctx, new, old, change.subresource)
        request = self._request(UPDATE, ctx, new.metadata, self._instance(old), change.subresource)
        changed = self._to_object(await self._call("update", request, self._instance(new)))
        await finish()
        return Updated(self._encode(changed), False)

    async def delete(
        self, ctx: Context, name: str, options: DeleteOptions, check: CheckDelete | None = None
    ) -> Deleted:
        """Delete an object; see GracefulDeleter. The storage decides about finalizers."""
        found = await self._require(ctx, name)
        return Deleted(await self._delete(ctx, found, options, check), True)

    async def delete_collection(
        self, ctx: Context, delete_options: DeleteOptions, options: ListOptions, check: CheckDelete | None = None
    ) -> Listing:
        """Delete the listed objects; see CollectionDeleter."""
        matching = await self._list_matching(ctx, options)
        return Listing([await self._delete(ctx, each, delete_options, check) for each in matching], 0)

    async def _delete(self, ctx: Context, obj: OpenObject, options: DeleteOptions, check: CheckDelete | None) -> Item:
        metadata.check_preconditions(options, obj.metadata, self.resource.group_kind)
        if check is not None:
            await check(obj)
        if not ctx.dry_run:
            instance = self._instance(obj)
            await self._call("delete", self._request(DELETE, ctx, obj.metadata, instance), instance)
            if self._bound.allocator is not None:
                await self._bound.allocator.release(ctx, obj)
        return self._encode(obj)

    async def _run_inquiry(self, ctx: Context, new: OpenObject, old: OpenObject | None, subresource: str = "") -> None:
        """Run the inquiry, whose hooks may refuse the write. Raises StatusError."""
        if (inquiry := self._bound.inquiries.get(subresource)) is not None:
            await inquiry.look_up(ctx, new, old)

    async def _begin_write(
        self, ctx: Context, new: OpenObject, old: OpenObject | None, subresource: str = ""
    ) -> Callable[[], Awaitable[None]]:
        """Return a function that reports the successful write to the allocator, whose hooks react to it."""
        bound = self._bound
        allocator = bound.suballocators.get(subresource) if subresource else bound.allocator
        finish = None if allocator is None else await allocator.allocate(ctx, new, old)

        async def finish_write() -> None:
            waiting = None if finish is None else finish(True)
            if waiting is not None:
                await waiting

        return finish_write


class _Watching:
    """A running watch: passes on the events of a storage until it is cancelled or the storage ends it."""

    def __init__(self, storage: CustomStorage, ctx: Context, options: ListOptions, sink: Sink, events: Any) -> None:
        self.revision = 0
        self._storage = storage
        self._ctx = ctx
        self._options = options
        self._sink = sink
        self._events = events
        self._seen: set[tuple[str, str]] = set()
        self._task = asyncio.get_running_loop().create_task(self._follow(), name=f"watching {storage.kind.name}")

    def cancel(self) -> None:
        """Cancel the watch; see WatchHandle."""
        self._task.cancel()

    async def _follow(self) -> None:
        error: StatusError | None = None
        try:
            with kept_running(f"a watch of {self._storage.kind.name}", may_wait=True):
                async for event in self._events:
                    self._deliver(event)
                    await self._sink.drain()
        except StatusError as found:
            error = found
        except Exception:
            logger.exception("a watch of %s has failed", self._storage.kind.name)
            error = errors.plain_internal("the watch has failed")
        finally:
            with suppress(RuntimeError), kept_running(f"a watch of {self._storage.kind.name}", may_wait=True):
                await self._events.aclose()  # RuntimeError: it is being closed already
        self._sink.failed(error)

    def _deliver(self, event: Event[Any]) -> None:
        obj, item = self._storage.to_item(event.object)
        self.revision = max(self.revision, item.revision)
        if self._storage.matches(self._ctx, self._options, obj):
            self._sink.deliver(_WatchEvent(event.type, item, item.revision))


def _revision(version: str) -> int:
    """Return a version as a number; 0 for a version of another form, which only the storage understands."""
    return int(version) if is_digits(version) else 0


def custom_storage(
    declaration: Declaration, bound: BoundResource[OpenObject], objects_of: Callable[[type[Any]], Objects[Any]]
) -> CustomAnswers | CustomStorage:
    """Return the storage implementation of a resource with a custom storage."""
    kind = CustomStorage if "get" in verbs_of_storage(declaration.storage) else CustomAnswers
    return kind(bound, declaration.storage, Instances(declaration), objects_of)
