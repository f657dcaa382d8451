"""Events about objects, as client-go's recorder makes them: what repeats is counted, what floods is left out.

The limits are those of client-go's EventCorrelator.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from hashlib import sha256
from typing import Any, Final, Protocol, TypeVar

from msgspec import Struct, field

from steersman.api.core.v1 import Event, EventSource, ObjectReference
from steersman.api.meta.v1 import ObjectMeta
from steersman.client.api_resource import APIResource, Object
from steersman.client.client import Client
from steersman.client.event_writer import EventWriter
from steersman.client.resources import EVENTS
from steersman.machinery.values import times
from steersman.work.bounded_cache import BoundedCache

K = TypeVar("K", bound=tuple[str, ...])
T = TypeVar("T")

_QUEUED: Final = 1000
_MOST_KNOWN: Final = 8192
"""Events and objects of which half, those that came last, are remembered at least, as many as by client-go."""
_LONGEST_KEPT: Final = 512
"""Characters of a message that is remembered as it is."""
_SIMILAR: Final = 10
_SIMILAR_WITHIN: Final = 600.0
_BURST: Final = 25
_REFILL: Final = 300.0


class Recorder(Protocol):
    """Tells users what happens to an object."""

    def event(self, about: ObjectReference, type_: str, reason: str, message: str) -> None:
        """Says it; `type_` is Normal or Warning. It is written later, or left out where there are too many."""
        ...


def reference(resource: APIResource[Any], obj: Object) -> ObjectReference:
    """Return the reference to an object that an event is about."""
    metadata = obj.metadata
    return ObjectReference(
        kind=resource.kind,
        namespace=metadata.namespace,
        name=metadata.name,
        uid=metadata.uid,
        api_version=resource.api_version,
        resource_version=metadata.resource_version,
    )


def metadata_of_event(about: ObjectReference) -> ObjectMeta:
    """Return the metadata of a new event about an object."""
    return ObjectMeta(name=f"{about.name}.{time.time_ns():x}", namespace=about.namespace or "default")


class _Bucket(Struct):
    """How many events about an object may still be told: some at once, then one each five minutes."""

    left: float = _BURST
    at: float = 0.0

    def take(self, now: float) -> bool:
        self.left = min(_BURST, self.left + (now - self.at) / _REFILL)
        self.at = now
        if self.left < 1:
            return False
        self.left -= 1
        return True


class _Similar(Struct):
    """Messages told of one object with one reason."""

    messages: set[str] = field(default_factory=set)
    at: float = 0.0


class _Told(Struct):
    """An event that was written, to be counted when it comes again."""

    name: str
    namespace: str
    count: int
    first: str


def _known(cache: BoundedCache[K, T], key: K, make: Callable[[], T]) -> T:
    found = cache[key]
    if found is None:
        found = make()
        cache.keep(key, found)
    return found


class Broadcaster(EventWriter[Event]):
    """Writes the events of several recorders, one after the other."""

    def __init__(self, client: Client) -> None:
        super().__init__(client, writers=1, most=_QUEUED)
        self._buckets: BoundedCache[tuple[str, ...], _Bucket] = BoundedCache(_MOST_KNOWN)
        self._similar: BoundedCache[tuple[str, ...], _Similar] = BoundedCache(_MOST_KNOWN)
        self._told: BoundedCache[tuple[str, ...], _Told] = BoundedCache(_MOST_KNOWN)

    def recorder(self, component: str, host: str = "") -> Recorder:
        """Return the recorder of a component, and of the host it runs on."""
        return _ComponentRecorder(self, EventSource(component=component, host=host))

    def forget(self) -> None:
        """Begin to count anew: what was told is gone from the server."""
        for each in (self._buckets, self._similar, self._told):
            each.forget()

    def put(self, event: Event) -> None:
        """Queues an event, if it is not one too many."""
        now = asyncio.get_running_loop().time()
        source = event.source.component, event.source.host, event.involved_object.uid or event.involved_object.name
        if not _known(self._buckets, source, lambda: _Bucket(at=now)).take(now):
            return
        alike = (*source, event.type, event.reason)
        similar = _known(self._similar, alike, _Similar)
        if now - similar.at > _SIMILAR_WITHIN:
            similar.messages.clear()
        similar.at = now
        similar.messages.add(_short(event.message))
        if len(similar.messages) >= _SIMILAR:
            similar.messages.pop()
            event.message = f"(combined from similar events): {event.message}"
            event.reporting_component = event.reporting_instance = ""
        self._put(event)

    async def _write(self, event: Event) -> None:
        combined = event.message.startswith("(combined from")
        key = (
            event.source.component,
            event.source.host,
            event.involved_object.uid,
            event.involved_object.name,
            event.involved_object.field_path,
            event.type,
            event.reason,
            "" if combined else _short(event.message),
        )
        told = self._told[key]
        if told is not None:
            patch = {"count": told.count + 1, "lastTimestamp": event.last_timestamp, "message": event.message}
            if await self._change(EVENTS, told.name, told.namespace, patch):
                told.count += 1
                return
            event.count = told.count + 1
            event.first_timestamp = told.first
        await self._client.create(EVENTS, event)
        metadata = event.metadata
        self._told.keep(key, _Told(metadata.name, metadata.namespace, event.count, event.first_timestamp or ""))


def _short(message: str) -> str:
    """The message, or a digest of a long one: messages repeat what users write, and many are remembered."""
    if len(message) <= _LONGEST_KEPT:
        return message
    return sha256(message.encode("utf-8", "surrogatepass")).hexdigest()


class _ComponentRecorder:
    def __init__(self, broadcaster: Broadcaster, source: EventSource) -> None:
        self._broadcaster = broadcaster
        self._source = source

    def event(self, about: ObjectReference, type_: str, reason: str, message: str) -> None:
        now = times.now()
        self._broadcaster.put(
            Event(
                metadata=metadata_of_event(about),
                involved_object=about,
                reason=reason,
                message=message,
                source=self._source,
                first_timestamp=now,
                last_timestamp=now,
                count=1,
                type=type_,
                reporting_component=self._source.component,
                reporting_instance=self._source.host,
            )
        )
