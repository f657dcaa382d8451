"""Informers: local copies of all objects of a resource, with indexes and change handlers (client-go tools/cache)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, Generic, TypeVar, cast

import msgspec

from steersman.api.meta.v1 import PartialObjectMetadata
from steersman.client.api_resource import APIResource, Object
from steersman.client.client import Client, Event, Pages
from steersman.client.errors import is_expired, is_invalid
from steersman.client.transport import Unreachable
from steersman.machinery.errors.status import StatusError
from steersman.work.backoff import Backoff, Retries
from steersman.work.yielding import time_sliced

logger = logging.getLogger(__name__)

O = TypeVar("O", bound=Object)  # noqa: E741

Key = tuple[str, str]
"""Namespace and name of an object."""

INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"
"""Annotation of the bookmark that follows the initial events of a watch."""
_BACKOFF: Final = Backoff(0.8, 30.0, jitter=1.0)
_PAGE: Final = 500
"""Most objects of one page of a list."""
_NORMAL_WATCH: Final = 10.0
"""Seconds that a watch must have lasted for its end to be normal: the back-off then starts afresh."""


class TooLarge(Exception):
    """The objects of a resource exceed the informer's size limit."""


_EXPECTED_ERRORS: Final = (StatusError, Unreachable, msgspec.DecodeError)


def key_of(obj: Object) -> Key:
    """Return the namespace and the name of an object."""
    return obj.metadata.namespace, obj.metadata.name


def new_or_old(old: O | None, new: O | None) -> O:
    """Return the object of a change: `new`, or `old` if the object was deleted."""
    one = new or old
    assert one is not None
    return one


class Informer(Generic[O]):
    """Local copy of a resource's objects, kept current by a watch (client-go SharedIndexInformer).

    Call `start()`, then await the initial sync. Returned objects are shared: copy an object before changing it. Objects
    have no managedFields. Handlers are called with the object before and after a change, None where it does not exist,
    in the order of the changes. A handler that is added later is called for all present objects. Handlers must neither
    wait nor raise.
    """

    def __init__(
        self,
        client: Client,
        resource: APIResource[O],
        *,
        namespace: str = "",
        label_selector: str = "",
        field_selector: str = "",
        transform: Callable[[O], None] | None = None,
        most_bytes: int = 0,
    ) -> None:
        """Create an informer of the objects of `namespace` (all if empty) that both selectors select.

        `transform` changes each object before it is stored, such as dropping unused fields. With `most_bytes` the JSON
        of all objects may have so many bytes together; beyond that the informer keeps no object and does not sync.
        """
        self.resource: Final = resource
        self._transform = transform
        self._size_limit = _SizeLimit(most_bytes) if most_bytes else None
        self._client = client
        self._namespace = namespace
        self._label_selector = label_selector
        self._field_selector = field_selector
        self._objects: dict[str, dict[str, O]] = {}
        self._indexes: dict[str, _Index[O]] = {}
        self._handlers: list[Callable[[O | None, O | None], None]] = []
        self._failure_handlers: list[Callable[[Exception], None]] = []
        self._synced = asyncio.Event()
        self._resource_version = ""
        self._not_listed: set[Key] | None = None
        self._uses_lists = False
        self._attempts: set[asyncio.Future[None]] = set()
        """Futures of the callers that wait for the first attempt."""
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start to follow the resource. Further calls do nothing."""
        if self._task is None:
            self._task = asyncio.create_task(
                self._watch_repeatedly(), name=f"informer of {self.resource.group_resource}"
            )

    async def stop(self) -> None:
        """Stop following the resource. The objects stay as they are."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def wait_until_synced(self) -> None:
        """Return once all objects of the initial list are present and all handlers have been called for them."""
        await self._synced.wait()

    async def wait_for_first_attempt(self) -> None:
        """Return once the informer has synced.

        Raises StatusError, Unreachable or msgspec.DecodeError if an attempt to follow the resource fails first.
        """
        if not self._synced.is_set():
            attempt: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._attempts.add(attempt)
            try:
                await attempt
            finally:
                self._attempts.discard(attempt)

    @property
    def has_synced(self) -> bool:
        """Return True once all objects of the initial list are present and all handlers have been called for them."""
        return self._synced.is_set()

    def on_change(self, handler: Callable[[O | None, O | None], None]) -> None:
        """Call `handler(old, new)` now for each present object, and from now on at every change."""
        self._handlers.append(handler)
        for obj in self.list():
            handler(None, obj)

    def on_failure(self, handler: Callable[[Exception], None]) -> None:
        """Call `handler(error)` after every failed attempt to follow the resource, in place of a line in the log.

        The error is a StatusError, Unreachable or a msgspec.DecodeError. The informer tries again after a pause.
        """
        self._failure_handlers.append(handler)

    def add_index(self, name: str, values: Callable[[O], Iterable[str]]) -> None:
        """Add an index of the objects by the values that `values` returns. An existing index of that name stays."""
        if name in self._indexes:
            return
        index = self._indexes[name] = _Index(values)
        for obj in self.list():
            index.update(None, obj)

    def get(self, namespace: str, name: str) -> O | None:
        """Return the object of that name, None if there is none."""
        in_namespace = self._objects.get(namespace)
        return None if in_namespace is None else in_namespace.get(name)

    def list(self, namespace: str | None = None) -> Sequence[O]:
        """Return the objects of a namespace, or of all namespaces."""
        if namespace is not None:
            return list(self._objects.get(namespace, {}).values())
        return [obj for in_namespace in self._objects.values() for obj in in_namespace.values()]

    def count(self, namespace: str) -> int:
        """Return the number of objects in a namespace."""
        return len(self._objects.get(namespace, ()))

    def indexed(self, index: str, value: str) -> Sequence[O]:
        """Return the objects that have this value in an index."""
        return list(self._indexes[index].objects.get(value, {}).values())

    def count_indexed(self, index: str, value: str) -> int:
        """Return the number of objects that have this value in an index."""
        return len(self._indexes[index].objects.get(value, ()))

    def __len__(self) -> int:
        return sum(map(len, self._objects.values()))

    def __iter__(self) -> Iterator[O]:
        return iter(self.list())

    async def _watch_repeatedly(self) -> None:
        retries = Retries(_BACKOFF)
        while True:
            started = asyncio.get_running_loop().time()
            was_known = bool(self._resource_version)
            try:
                await self._watch()
            except TooLarge as error:
                logger.warning("%s cannot be followed: %s", self.resource.group_resource, error)
                await self._remove_all()
            except _EXPECTED_ERRORS as error:
                if isinstance(error, StatusError) and is_expired(error):
                    self._resource_version = ""
                    if was_known:
                        continue  # list all objects again: such a list cannot be expired
                elif isinstance(error, StatusError) and is_invalid(error) and not (was_known or self._uses_lists):
                    self._uses_lists = True  # the server is older than 1.32, or has the feature gate WatchList disabled
                    continue
                self._report(error)
            except Exception:
                logger.exception("watch of %s failed", self.resource.group_resource)
            if asyncio.get_running_loop().time() - started > _NORMAL_WATCH:
                retries.reset()
            else:
                await retries.pause()

    def _report(self, error: Exception) -> None:
        """Report a failed attempt to everyone who waits for attempts and to the failure handlers, or in the log."""
        for attempt in self._attempts:
            if not attempt.done():
                attempt.set_exception(error)
        for handler in self._failure_handlers:
            handler(error)
        if not self._failure_handlers:
            logger.warning("watch of %s failed: %s", self.resource.group_resource, error)

    async def _watch(self) -> None:
        """Follow the resource until the server ends the watch. Without a known resourceVersion, list all objects first."""
        fresh = not self._resource_version
        if fresh:
            self._not_listed = {key_of(obj) for obj in self.list()}
            if self._size_limit is not None:
                self._size_limit.clear()
        try:
            if fresh and self._uses_lists:
                await self._list_all()
                fresh = False
            watching = self._client.watch(
                self.resource,
                self._namespace,
                resource_version=self._resource_version,
                initial_events=fresh,
                label_selector=self._label_selector,
                field_selector=self._field_selector,
            )
            async with watching as batches:
                async for batch in batches:
                    for event in batch:
                        if self._size_limit is not None:
                            self._size_limit.count(event)
                        self._apply_event(event)
        finally:
            if self._not_listed is not None:
                self._resource_version = ""  # the initial events were incomplete

    async def _list_all(self) -> None:
        """Read a list of all objects, in pages, instead of the initial events of a watch."""
        pages = Pages(self.resource)
        while pages.more:
            listed = await self._client.list(
                self.resource,
                self._namespace,
                label_selector=self._label_selector,
                field_selector=self._field_selector,
                limit=_PAGE,
                continue_token=pages.token,
            )
            async for obj in time_sliced(listed.items):
                if self._size_limit is not None:
                    self._size_limit.count(Event("ADDED", obj, len(self.resource.encode(obj))))
                self._apply_object(obj, gone=False)
            pages.advance(listed.metadata.continue_)
        self._finish_initial_list()
        self._resource_version = listed.metadata.resource_version

    async def _remove_all(self) -> None:
        """Remove all objects and notify the handlers of each removal."""
        self._resource_version = ""
        async for obj in time_sliced(self.list()):
            self._apply_object(obj, gone=True)

    def _apply_event(self, event: Event[O]) -> None:
        metadata = event.object.metadata
        if event.type == "BOOKMARK":
            if self._not_listed is not None and INITIAL_EVENTS_END in metadata.annotations:
                self._finish_initial_list()
        else:
            self._apply_object(event.object, gone=event.type == "DELETED")
        if self._not_listed is None:
            self._resource_version = metadata.resource_version

    def _apply_object(self, obj: O, *, gone: bool) -> None:
        obj.metadata.managed_fields = []
        if self._transform is not None:
            self._transform(obj)
        namespace, name = key = key_of(obj)
        if self._not_listed is not None:
            self._not_listed.discard(key)
        if gone:
            self.remove(obj)
            return
        old = self.get(namespace, name)
        if old is None or old.metadata.resource_version != obj.metadata.resource_version:
            self.put(obj)

    def put(self, obj: O) -> None:
        """Store an object, replace an older state of it, and notify the handlers."""
        namespace, name = key_of(obj)
        in_namespace = self._objects.get(namespace)
        if in_namespace is None:
            in_namespace = self._objects[namespace] = {}
        old = in_namespace.get(name)
        in_namespace[name] = obj
        self._reindex(old, obj)
        if old is not None and old.metadata.uid != obj.metadata.uid:  # deleted and created again between two watches
            self._notify(old, None)
            old = None
        self._notify(old, obj)

    def remove(self, obj: O) -> None:
        """Remove an object, if it is present, and notify the handlers with `obj`, its last state."""
        namespace, name = key_of(obj)
        in_namespace = self._objects.get(namespace)
        old = None if in_namespace is None else in_namespace.pop(name, None)
        if in_namespace is None or old is None:
            return
        if not in_namespace:
            del self._objects[namespace]
        self._reindex(old, None)
        self._notify(obj, None)

    def _reindex(self, old: O | None, new: O | None) -> None:
        for index in self._indexes.values():
            index.update(old, new)

    def _notify(self, old: O | None, new: O | None) -> None:
        for handler in self._handlers:
            try:
                handler(old, new)
            except Exception:  # a faulty handler must stop neither the other handlers nor the watch
                logger.exception("a change handler of %s failed", self.resource.group_resource)

    def _finish_initial_list(self) -> None:
        """Finish a full list: notify handlers of the deletion of each known object that the list did not have."""
        for namespace, name in self._not_listed or ():
            found = self._objects.get(namespace, {})
            old = found.pop(name, None)
            if not found:
                self._objects.pop(namespace, None)
            if old is not None:
                self._reindex(old, None)
                self._notify(old, None)
        self._not_listed = None
        self._synced.set()
        for attempt in self._attempts:
            if not attempt.done():
                attempt.set_result(None)


class _Index(Generic[O]):
    def __init__(self, values: Callable[[O], Iterable[str]]) -> None:
        self._values = values
        self.objects: dict[str, dict[Key, O]] = {}

    def update(self, old: O | None, new: O | None) -> None:
        if old is not None:
            key = key_of(old)
            for value in self._values(old):
                current = self.objects.get(value)
                if current is not None:
                    current.pop(key, None)
                    if not current:
                        del self.objects[value]
        if new is not None:
            key = key_of(new)
            for value in self._values(new):
                self.objects.setdefault(value, {})[key] = new


class _SizeLimit:
    """Limit of the JSON bytes of all objects of an informer."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._total = 0
        self._sizes: dict[Key, int] = {}

    def count(self, event: Event[Any]) -> None:
        """Count the object of an event. Raises TooLarge if the limit would be exceeded."""
        if event.type == "BOOKMARK":
            return
        key = key_of(event.object)
        self._total -= self._sizes.pop(key, 0)
        if event.type == "DELETED":
            return
        if self._total + event.size > self._most:
            raise TooLarge(f"its objects exceed the limit of {self._most} bytes")
        self._sizes[key] = event.size
        self._total += event.size

    def clear(self) -> None:
        """Set the count to zero, before all objects are listed again."""
        self._total = 0
        self._sizes.clear()


class Informers:
    """One shared informer for each resource (client-go SharedInformerFactory)."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._informers: dict[tuple[APIResource[Any], type[Any], str], Informer[Any]] = {}
        self._started = False

    def for_resource(self, resource: APIResource[O], *, field_selector: str = "") -> Informer[O]:
        """Return the shared informer of a resource, limited by `field_selector`.

        The informer starts with `start()` of this factory, or at once if the factory has started already.
        """
        key = resource, resource.type, field_selector
        informer = self._informers.get(key)
        if informer is None:
            informer = self._informers[key] = Informer(self._client, resource, field_selector=field_selector)
            if self._started:
                informer.start()
        return cast("Informer[O]", informer)

    def find_whole(self, resource: APIResource[Any]) -> Informer[Any] | None:
        """Return the informer of a resource that keeps all its objects whole, None if there is none.

        An informer with a field selector, or of metadata only, does not count.
        """
        for (asked_for, type_, field_selector), found in self._informers.items():
            if asked_for == resource and type_ is not PartialObjectMetadata and not field_selector:
                return found
        return None

    def start(self) -> None:
        """Start all informers, and each later one when it is first requested."""
        self._started = True
        for each in self._informers.values():
            each.start()

    async def wait_until_synced(self) -> None:
        """Return once all present informers have synced."""
        for each in list(self._informers.values()):
            await each.wait_until_synced()

    async def stop(self) -> None:
        """Stop all informers."""
        for each in self._informers.values():
            await each.stop()
