"""The generic store: create, get and update on storage, with a strategy's hooks.

Follows k8s.io/apiserver `registry/generic/registry/store.go`. Deletion, listing and watching are in their own modules.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from functools import cached_property, partial
from time import monotonic
from typing import Any, Final, Generic, ParamSpec, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from steersman.api.meta.v1 import DeleteOptions
from steersman.audit.latencies import STORAGE
from steersman.machinery.errors import field
from steersman.machinery.errors import status as errors
from steersman.machinery.errors.go_numbers import parse_uint
from steersman.machinery.errors.status import StatusError
from steersman.machinery.identity.names import generate_name
from steersman.machinery.identity.schema import GroupKind, go_package
from steersman.machinery.large_work.sizes import SURELY_SMALL, is_large
from steersman.rest.allocator import Allocator, Inquiry
from steersman.rest.capabilities import (
    EXACT,
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
from steersman.rest.resource import KEYS
from steersman.rest.strategy import Strategy
from steersman.storage.cache.entry import Entry
from steersman.storage.interface import Undecodable, Unreadable
from steersman.store import deletion, listing, metadata, watching
from steersman.store.changed_fields import changed_fields
from steersman.store.storage_errors import available, committed, may_be_stored
from steersman.store.stored_objects import StoredObjects
from steersman.store.uninterrupted import uninterrupted
from steersman.store.write_rules import META, WriteRules
from steersman.tracing.trace import COMPONENT, END, SET, Recorder, StepKind, current_recorder, in_step
from steersman.work.offloading import mark_large, offload, offload_if

T = TypeVar("T")
P = ParamSpec("P")

Find = Callable[[Context, ListOptions], Awaitable[Listing]]

_UNSTRUCTURED: Final = "unstructured.Unstructured"
"""Go's type of objects without a schema in code."""
_AUDIT_ID: Final = (("audit-id", "id"),)
_VALIDATION: Final = StepKind("validation")
_NAME_ATTEMPTS: Final = 8
_UPDATE_ATTEMPTS: Final = 1000
_MUCH_TO_COMPARE: Final = 32 << 10
"""Bytes of two states of an object whose comparison takes a worker thread."""
MAX_SIZE: Final = 3 << 20
"""The most bytes of a stored object. etcd takes 1.5 MiB of protobuf, which is shorter than JSON for most objects."""


class _Rules(Struct, Generic[T], frozen=True):
    """The rules of an update: the strategy of the resource or of a subresource, with its allocator and inquiry."""

    strategy: Strategy[T]
    allocator: Allocator[T] | None
    inquiry: Inquiry[T] | None


class Store(StoredObjects[T], WriteRules[T]):
    """All capabilities of a stored resource (rest.capabilities), for one `Resource`."""

    async def get(self, ctx: Context, name: str, resource_version: str = "") -> Item:
        """See rest.capabilities.Getter."""
        if self.is_cold:
            await self.warm()
        if ctx.as_of and not self.has_own_storage:
            return await listing.get_at(self, ctx, name, ctx.as_of)
        from_storage = self.cacher.undecryptable is not None
        if resource_version and resource_version != "0":
            await self.wait_fresh(listing.parse_version(resource_version, plain=True))
        elif not resource_version and not self.is_newest_for(ctx):
            from_storage = not await self.becomes_current() or from_storage
        key = self.key(ctx.action.namespace, name)
        entry = await self.stored(key) if from_storage else self.cacher.get(key)
        if entry is None:
            raise self.not_found(ctx, name)
        return entry

    async def list(self, ctx: Context, options: ListOptions) -> Listing:
        """See rest.capabilities.Lister."""
        if self.is_cold:
            await self.warm()
        return await listing.list_items(self, ctx, options)

    async def watch(self, ctx: Context, options: ListOptions, sink: Sink) -> WatchStart:
        """See rest.capabilities.Watcher."""
        if self.is_cold:
            await self.warm()
        return await watching.watch(self, ctx, options, sink, self.accept(ctx, options))

    async def delete(
        self, ctx: Context, name: str, options: DeleteOptions, check: CheckDelete | None = None
    ) -> Deleted:
        """See rest.capabilities.GracefulDeleter."""
        if self.is_cold:
            await self.warm()
        return await deletion.delete(self, ctx, name, options, check)

    async def delete_collection(
        self, ctx: Context, delete_options: DeleteOptions, options: ListOptions, check: CheckDelete | None = None
    ) -> Listing:
        """See rest.capabilities.CollectionDeleter."""
        return await self._delete_found(ctx, delete_options, options, check, self.list)

    async def _delete_found(
        self, ctx: Context, delete_options: DeleteOptions, options: ListOptions, check: CheckDelete | None, find: Find
    ) -> Listing:
        """Delete the objects that `find` returns for these options."""
        if self.is_cold:
            await self.warm()
        # upstream lists in pages, and a page without resourceVersionMatch is exactly of the version that it names
        if options.resource_version not in ("", "0") and not options.resource_version_match:
            options = replace(options, resource_version_match=EXACT)
        return await deletion.delete_collection(self, ctx, delete_options, partial(find, ctx, options), check)

    # Create

    def create(self, ctx: Context, obj: T, check: CheckCreate | None = None) -> Coroutine[Any, Any, Item]:
        """See rest.capabilities.Creater. A generated name that exists already is generated again, up to _NAME_ATTEMPTS
        times.
        """
        if self.is_cold or self.resource.takes_long:
            return self._create_slowly(ctx, obj, check)
        meta: Any = obj.metadata  # type: ignore[attr-defined]
        if not meta.name and meta.generate_name:
            return self._create_under_new_name(ctx, obj, check)
        creating = self._create_with(self.allocator, ctx, obj, check, None)
        return creating if self.allocator is None else uninterrupted(creating)

    async def _create_slowly(self, ctx: Context, obj: T, check: CheckCreate | None) -> Item:
        """Create an object of a kind that is used for the first time or takes long."""
        if self.is_cold:
            await self.warm()
        if self.resource.takes_long:
            mark_large()
        meta: Any = obj.metadata  # type: ignore[attr-defined]
        if not meta.name and meta.generate_name:
            return await self._create_under_new_name(ctx, obj, check)
        return await self._create(ctx, obj, check)

    async def _create_under_new_name(self, ctx: Context, obj: T, check: CheckCreate | None) -> Item:
        """Create an object under a generated name."""
        meta: Any = obj.metadata  # type: ignore[attr-defined]
        base = meta.generate_name
        pristine = await offload(self.kind.value, obj)
        for attempt in range(_NAME_ATTEMPTS):
            meta.name = generate_name(base)
            try:
                return await self._create(ctx, obj, check)
            except StatusError as error:
                if error.reason != "AlreadyExists" or error.name != meta.name or attempt == _NAME_ATTEMPTS - 1:
                    raise
                obj = await offload(self.kind.decode, self.kind.body_of(pristine))
                meta = obj.metadata  # type: ignore[attr-defined]
        raise AssertionError("unreachable")

    async def _create(
        self, ctx: Context, obj: T, check: CheckCreate | None, *, takes: bool = True, key: str | None = None
    ) -> Item:
        """Create an object.

        With `takes` the kind's Allocator reserves addresses and the like for the object. `key` is the storage key if it
        does not follow from the name.
        """
        if self.allocator is None or not takes:
            return await self._create_with(None, ctx, obj, check, key)
        return await uninterrupted(self._create_with(self.allocator, ctx, obj, check, key))

    async def _create_with(
        self, allocator: Allocator[T] | None, ctx: Context, obj: T, check: CheckCreate | None, key: str | None
    ) -> Item:
        metadata.fill_system_fields(obj.metadata)  # type: ignore[attr-defined]
        inquiry = self.inquiries.get("")
        if inquiry is not None:
            await inquiry.look_up(ctx, obj, None)
        settle = None if allocator is None else await allocator.allocate(ctx, obj, None)
        stored = False
        try:
            await in_step(_VALIDATION, offload(self.before_create, ctx, obj))
            if check is not None:
                await check(obj)
            recorder = current_recorder()
            if recorder is None:
                item = await self._commit_create(ctx, obj, key)
            else:
                item = await self._created(recorder, ctx, obj, key)
            stored = not ctx.dry_run
            return item
        except StatusError as error:
            if may_be_stored(error):
                settle = None  # the object may own what was reserved for it; if not, a repair releases it
            raise
        finally:
            if settle is not None:
                await _await_hook(settle(stored))

    async def _created(self, recorder: Recorder, ctx: Context, obj: T, key: str | None) -> Item:
        """Create an object in the span of a creation."""
        meta: Any = obj.metadata  # type: ignore[attr-defined]
        key = key or self.key(meta.namespace, meta.name)
        marks = recorder.marks
        try:
            marks += (self._spans[0], monotonic(), key.removeprefix(KEYS))
            item = await self._commit_create(ctx, obj, key)
            recorder.trace.object_name = meta.name
            marks += (SET, "revision", item.revision, END, monotonic(), None)
        except BaseException as error:
            recorder.fail_open(error)
            raise
        return item

    @cached_property
    def _spans(self) -> tuple[StepKind, StepKind]:
        """Spans of a creation and of an update in storage."""
        resource, kind = self.resource, self.kind
        about = {
            "type": f"*{_UNSTRUCTURED if kind.is_open else f'{go_package(kind.group)}.{kind.name}'}",
            "group": resource.group,
            "resource": resource.plural,
        }
        return (
            StepKind(
                "Create etcd3", COMPONENT, _AUDIT_ID, attributes=about, first=("About to Encode",), argument="key"
            ),
            StepKind("GuaranteedUpdate etcd3", COMPONENT, _AUDIT_ID, attributes=about, argument="key"),
        )

    async def _commit_create(self, ctx: Context, obj: T, key: str | None) -> Item:
        meta: Any = obj.metadata  # type: ignore[attr-defined]
        recorder = current_recorder()
        if meta.resource_version and not ctx.dry_run:  # as upstream's storage, which a dry run does not reach
            if _is_version(meta.resource_version):
                raise errors.plain_internal("resourceVersion should not be set on objects to be created")
            meta.resource_version = ""
        if key is None:
            key = self.key(meta.namespace, meta.name)
        value = await self.encoded(ctx, obj)
        if recorder is not None:
            recorder.marks += ("Encode succeeded", monotonic(), {"len": len(value)})
        if ctx.dry_run:
            if await self._is_there(key):
                raise self._taken(ctx, key, meta.name, generated=bool(meta.generate_name))
            if meta.resource_version:
                return Encoded(await offload(self.kind.body, obj))
            return Encoded(self.kind.body_as_read(value))
        if len(value) > MAX_SIZE:
            raise _too_large()
        if "check_stored" in self.strategy.does:
            self.strategy.check_stored(ctx, obj)
        adding = committed(self.storage.create(key, value + b"\n", ttl=self.ttl))
        stored = await (adding if ctx.audit is None else ctx.audit.timed(STORAGE, adding))
        if stored is None:
            raise self._taken(ctx, key, meta.name, generated=bool(meta.generate_name))
        if recorder is not None:
            recorder.add_event("Txn call succeeded")
        return self.item(key, stored.mod_revision, value)

    async def _is_there(self, key: str) -> bool:
        if self.cacher.undecryptable is None:
            return await self.newest(key) is not None
        try:
            return await self.storage.get(key) is not None
        except (Undecodable, Unreadable):
            return True

    def _taken(self, ctx: Context, key: str, name: str, *, generated: bool = False) -> StatusError:
        error = errors.already_exists(self.qualified(ctx), name)
        if generated:
            error = errors.generate_name_conflict(self.qualified(ctx), name)
        entry = self.cacher.get(key) if self.cacher.ready else None
        if entry is not None and b'"deletionTimestamp":"' in entry.body:
            existing = self.kind.partial_decoder(("metadata.deletionTimestamp",))(entry.body)
            if existing.metadata.deletion_timestamp is not None:
                error.message = f"object is being deleted: {error.message}"
        return error

    # Update

    def update(self, ctx: Context, name: str, change: Change) -> Coroutine[Any, Any, Updated]:
        """See rest.capabilities.Updater."""
        updating = self._update(ctx, name, change)
        recorder = current_recorder()
        return updating if recorder is None else self._updated(recorder, self.key(ctx.action.namespace, name), updating)

    async def _updated(self, recorder: Recorder, key: str, updating: Awaitable[Updated]) -> Updated:
        """Return the result of `updating`, awaited in the span of an update."""
        with recorder.begin(self._spans[1], key.removeprefix(KEYS)):
            updated = await updating
            recorder.set("revision", updated.item.revision)
            return updated

    async def _update(self, ctx: Context, name: str, change: Change) -> Updated:
        if self.is_cold:
            await self.warm()
        rules = self._rules(change)
        key = self.key(ctx.action.namespace, name)
        optimistic = self.is_optimistic(ctx)
        for _ in range(_UPDATE_ATTEMPTS):
            entry = await (self.find(key) if optimistic else self.newest(key))
            if entry is None:
                if optimistic:
                    optimistic = False
                    continue
                if not (change.may_create or rules.strategy.allow_create_on_update):
                    raise self.not_found(ctx, name)
                created = await self._create_on_update(ctx, key, change, rules)
                if created is not None:
                    return Updated(created, True)
                continue
            if (
                (len(entry.body) > SURELY_SMALL and is_large(entry.body))
                or self.resource.takes_long
                or self.kind.takes_long
            ):
                mark_large()
            work = self._update_once(ctx, key, entry, change, rules)
            try:
                item = await (work if rules.allocator is None else uninterrupted(work))
            except StatusError as error:
                if not optimistic or not await self.is_outdated(key, entry, error):
                    raise
                item = None
            if item is not None and not (optimistic and item is entry and await self.is_outdated(key, entry)):
                return Updated(item, False)
            optimistic = False
        raise errors.server_timeout(self.resource.group_resource, "update", 1)

    def _rules(self, change: Change) -> _Rules[T]:
        if change.strategy is not None:
            allocator = self.allocator if change.strategy is self.strategy else None
            return _Rules(change.strategy, allocator, None)
        strategy = self.substrategies.get(change.subresource, self.strategy)
        allocator = self.allocator if strategy is self.strategy else self.suballocators.get(change.subresource)
        return _Rules(strategy, allocator, self.inquiries.get(change.subresource))

    async def _create_on_update(self, ctx: Context, key: str, change: Change, rules: _Rules[T]) -> Item | None:
        """Return the created object; None if another request created it first, so that it must be updated.

        Like upstream's, it is stored under the requested name, even if a webhook has renamed it. A subresource that may
        create reserves nothing for the object (a Service created through its status has no address), like upstream.
        """
        obj = await change.make(None)
        meta = obj.metadata
        if change.uid:
            raise self._wrong_uid(ctx, key, meta.name, change.uid, "")
        parse_resource_version(meta.resource_version)
        meta.resource_version = ""
        try:
            return await self._create(ctx, obj, change.check_create, takes=rules.strategy is self.strategy, key=key)
        except StatusError as error:
            if error.reason == "AlreadyExists":
                return None
            raise

    async def _update_once(self, ctx: Context, key: str, entry: Entry, change: Change, rules: _Rules[T]) -> Item | None:
        """Try to update an object; return None if another write came first and the object must be read again."""
        recorder = current_recorder()
        old: Any = await self.read(ctx, entry)
        if recorder is not None:
            recorder.add_event("initial value restored")
        if change.uid and change.uid != old.metadata.uid:
            raise self._wrong_uid(ctx, key, old.metadata.name, change.uid, old.metadata.uid)
        new: Any = await change.make(old)
        strategy, allocator, inquiry = rules.strategy, rules.allocator, rules.inquiry
        self._check_version(ctx, new.metadata, old.metadata.name, entry.revision, strategy)
        if inquiry is not None:
            await inquiry.look_up(ctx, new, old)
        settle = None if allocator is None else await allocator.allocate(ctx, new, old)
        stored = False
        try:
            await in_step(_VALIDATION, offload(self.before_update, ctx, new, old, strategy))
            if change.check_update is not None:
                await change.check_update(new, old)
            if (
                old.metadata.deletion_timestamp is not None
                and metadata.should_delete_during_update(new.metadata, old.metadata)
                and strategy.may_delete_during_update(ctx, new, old)
            ):
                return await deletion.delete_after_update(self, ctx, key, entry, new)
            if recorder is not None:
                recorder.add_event("About to Encode")
            value = await self.encoded(ctx, new)
            if recorder is not None:
                recorder.add_event("Encode succeeded", len=len(value))
            if self.kind.shows(entry.body, value, entry.revision) and not await self._is_stale(key, entry, value):
                if recorder is not None:
                    recorder.trace.is_unchanged, recorder.trace.changed = True, None
                return entry
            if ctx.dry_run:
                return Encoded(self.kind.present(value, entry.revision), entry.revision)
            if len(value) > MAX_SIZE:
                raise _too_large()
            if recorder is not None and recorder.trace.reads_changes:
                is_much = len(entry.body) + len(value) > _MUCH_TO_COMPARE
                states = b"{" + entry.body, b"{" + self.kind.present(value, entry.revision)
                recorder.trace.changed = await offload_if(is_much, changed_fields, *states)
            replacing = self.replace(key, value, entry.revision)
            written = await (replacing if ctx.audit is None else ctx.audit.timed(STORAGE, replacing))
            if recorder is not None:
                recorder.add_event("Txn call completed")
            if written is None:
                return None
            if recorder is not None:
                recorder.add_event("Transaction committed")
            stored = True
            return self.item(key, written.mod_revision, value)
        except StatusError as error:
            if may_be_stored(error):
                settle = None  # the object may own what was reserved for it, now or before; a repair releases the rest
            raise
        finally:
            if settle is not None:
                await _await_hook(settle(stored))

    async def _is_stale(self, key: str, entry: Entry, value: bytes) -> bool:
        """Return True if an unchanged object must be written nevertheless.

        That is so if it is stored in another version or form, or would now be encrypted differently.
        """
        if self.storage.seals and await available(self.storage.is_stale(key)):
            return True
        if not self.kind.refits:
            return False
        stored = await available(self.storage.get(key))
        return (
            stored is not None and stored.mod_revision == entry.revision and stored.value.removesuffix(b"\n") != value
        )

    def _check_version(self, ctx: Context, meta: Any, name: str, revision: int, strategy: Strategy[T]) -> None:
        """Raise StatusError if the new object was not made from this version of the old one.

        A missing version fits any, if the strategy allows that.
        """
        version = parse_resource_version(meta.resource_version) if meta.resource_version else 0
        if not version:
            if not strategy.allow_unconditional_update:
                resource = self.resource.group_resource
                path = META / "resourceVersion"
                detail = "must be specified for an update"
                raise errors.invalid(
                    GroupKind(resource.group, resource.resource), name, [field.invalid(path, 0, detail)]
                )
            meta.resource_version = str(revision)
            return
        if version != revision:
            raise errors.conflict(self.qualified(ctx), name, errors.OPTIMISTIC_LOCK)

    def _wrong_uid(self, ctx: Context, key: str, name: str, wanted: str, found: str) -> StatusError:
        # upstream's dry run does not reach the code that adds the prefix of all keys
        shown_key = key.removeprefix(KEYS) if ctx.dry_run else key
        reason = (
            f"StorageError: invalid object, Code: 4, Key: {shown_key}, ResourceVersion: 0, AdditionalErrorMsg: "
            f"Precondition failed: UID in precondition: {wanted}, UID in object meta: {found}"
        )
        return errors.conflict(self.resource.group_resource, name, reason)


def parse_resource_version(text: str) -> int:
    """Parse the resourceVersion of a sent object, 0 for none. Raises StatusError 500 with Go's message, as upstream."""
    if not text:
        return 0
    try:
        return parse_uint(text)
    except ValueError as error:
        raise errors.plain_internal(str(error)) from None


def _is_version(text: str) -> bool:
    """Return True for a valid version above 0; any other text is ignored on a new object."""
    try:
        return parse_uint(text) > 0
    except ValueError:
        return False


def _too_large() -> StatusError:
    """Return 500 in etcd's words for an object that is larger than a client could send back."""
    return errors.plain_internal("etcdserver: request is too large")


async def _await_hook(result: Any) -> None:
    """Await the result of a release hook if it is a coroutine."""
    if asyncio.iscoroutine(result):
        await result
