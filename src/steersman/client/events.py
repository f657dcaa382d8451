"""Recorder for core/v1 events, as client-go's: repeated events are counted, floods of events are dropped.

The limits are those of client-go's EventCorrelator.
"""

from __future__ import annotations

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
from steersman.work import simulated_time
from steersman.work.bounded_cache import BoundedCache
from steersman.work.token_bucket import TokenBucket

K = TypeVar("K", bound=tuple[str, ...])
T = TypeVar("T")

_MAX_QUEUED: Final = 1000
_MAX_REMEMBERED: Final = 8192
"""Most remembered events and objects, as in client-go. An eviction keeps at least the newest half."""
_LONGEST_KEPT: Final = 512
"""Longest message in characters that is remembered as it is. Of longer ones a digest is remembered."""
_SIMILAR: Final = 10
_SIMILAR_WITHIN: Final = 600.0
_BURST: Final = 25
_REFILL: Final = 300.0


class Recorder(Protocol):
    """Records events about objects for users."""

    def event(self, about: ObjectReference, type_: str, reason: str, message: str) -> None:
        """Record an event; `type_` is Normal or Warning. It is written later, or dropped if there are too many."""
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


class _Similar(Struct):
    """The messages recorded about one object with one reason."""

    messages: set[str] = field(default_factory=set)
    at: float = 0.0


class _WrittenEvent(Struct):
    """A written event, whose count rises when the event repeats."""

    name: str
    namespace: str
    count: int
    first: str


def _get_or_create(cache: BoundedCache[K, T], key: K, make: Callable[[], T]) -> T:
    cached = cache[key]
    if cached is None:
        cached = make()
        cache.keep(key, cached)
    return cached


class Broadcaster(EventWriter[Event]):
    """Writes the events of several recorders, one at a time."""

    def __init__(self, client: Client) -> None:
        super().__init__(client, writers=1, most=_MAX_QUEUED)
        self._buckets: BoundedCache[tuple[str, ...], TokenBucket] = BoundedCache(_MAX_REMEMBERED)
        self._similar: BoundedCache[tuple[str, ...], _Similar] = BoundedCache(_MAX_REMEMBERED)
        self._written: BoundedCache[tuple[str, ...], _WrittenEvent] = BoundedCache(_MAX_REMEMBERED)

    def recorder(self, component: str, host: str = "") -> Recorder:
        """Return the event recorder of a component on a host."""
        return _ComponentRecorder(self, EventSource(component=component, host=host))

    def forget(self) -> None:
        """Forget all recorded events, because the server has lost them: repetitions then start new events."""
        for each in (self._buckets, self._similar, self._written):
            each.forget()

    def put(self, event: Event) -> None:
        """Queue an event, unless the rate limit of its object is exceeded.

        From the tenth different message about one object and reason on, messages are marked as combined.
        """
        now = simulated_time.time()
        source = event.source.component, event.source.host, event.involved_object.uid or event.involved_object.name
        if _get_or_create(self._buckets, source, _new_bucket).take():
            return
        alike = (*source, event.type, event.reason)
        similar = _get_or_create(self._similar, alike, _Similar)
        if now - similar.at > _SIMILAR_WITHIN:
            similar.messages.clear()
        similar.at = now
        similar.messages.add(_message_key(event.message))
        if len(similar.messages) >= _SIMILAR:
            similar.messages.pop()
            event.message = f"(combined from similar events): {event.message}"
            event.reporting_component = event.reporting_instance = ""
        self._enqueue(event)

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
            "" if combined else _message_key(event.message),
        )
        written = self._written[key]
        if written is not None:
            patch = {"count": written.count + 1, "lastTimestamp": event.last_timestamp, "message": event.message}
            if await self._patch_event(EVENTS, written.name, written.namespace, patch):
                written.count += 1
                return
            event.count = written.count + 1
            event.first_timestamp = written.first
        await self._client.create(EVENTS, event)
        metadata = event.metadata
        self._written.keep(
            key, _WrittenEvent(metadata.name, metadata.namespace, event.count, event.first_timestamp or "")
        )


def _new_bucket() -> TokenBucket:
    """Return the token bucket of the events about one object."""
    return TokenBucket(_BURST, 1 / _REFILL, simulated_time.time)


def _message_key(message: str) -> str:
    """Return the message, or a digest of a long one: messages may repeat long texts of users, and many are remembered."""
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
