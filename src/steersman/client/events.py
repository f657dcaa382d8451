"""Events about objects, as client-go's recorder makes them: what repeats is counted, what floods is left out.

The limits are those of client-go's EventCorrelator.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict, deque
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Final, Protocol

from steersman.api.core.v1 import Event, EventSource, ObjectReference
from steersman.api.meta.v1 import ObjectMeta
from steersman.client.api_resource import APIResource, Object
from steersman.client.client import STRATEGIC_MERGE_PATCH, Client
from steersman.client.errors import is_not_found
from steersman.client.resources import EVENTS
from steersman.client.transport import Unreachable
from steersman.machinery.errors.status import StatusError
from steersman.machinery.values import times

logger = logging.getLogger(__name__)

_QUEUED: Final = 1000
_MOST_KNOWN: Final = 4096
_LONGEST_KEPT: Final = 512
"""Characters of a message that is remembered as it is."""
_SIMILAR: Final = 10
_SIMILAR_WITHIN: Final = 600.0
_BURST: Final = 25
_REFILL: Final = 300.0
_TRIES: Final = 12
_WAIT: Final = 10.0


class Recorder(Protocol):
    """Tells users what happens to an object."""

    def event(self, about: ObjectReference, type_: str, reason: str, message: str) -> None:
        """Says it; `type_` is Normal or Warning. It is written later, or left out where there are too many."""
        ...


def reference(resource: APIResource[Any], obj: Object) -> ObjectReference:
    """Which object an event is about."""
    metadata = obj.metadata
    return ObjectReference(
        kind=resource.kind,
        namespace=metadata.namespace,
        name=metadata.name,
        uid=metadata.uid,
        api_version=resource.api_version,
        resource_version=metadata.resource_version,
    )


@dataclass(slots=True)
class _Bucket:
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


@dataclass(slots=True)
class _Similar:
    """Messages told of one object with one reason."""

    messages: set[str] = field(default_factory=set)
    at: float = 0.0


@dataclass(slots=True)
class _Told:
    """An event that was written, to be counted when it comes again."""

    name: str
    namespace: str
    count: int
    first: str


class _Known(OrderedDict[Any, Any]):
    """The things that were used last."""

    def use(self, key: Any, make: Any) -> Any:
        found = self.get(key)
        if found is None:
            found = self[key] = make()
            if len(self) > _MOST_KNOWN:
                self.popitem(last=False)
        else:
            self.move_to_end(key)
        return found


class Broadcaster:
    """Writes the events of several recorders, one after the other; `await stop()` writes what is left."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._waiting: deque[Event] = deque()
        self._writing = False
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._buckets: _Known = _Known()
        self._similar: _Known = _Known()
        self._told: _Known = _Known()

    def recorder(self, component: str, host: str = "") -> Recorder:
        """Says things as a component, and as the host it runs on."""
        return _ComponentRecorder(self, EventSource(component=component, host=host))

    def start(self) -> None:
        """Begins to write."""
        self._task = asyncio.create_task(self._write_all(), name="events")

    async def stop(self) -> None:
        """Ends without what has not been written."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    @property
    def idle(self) -> bool:
        """Whether everything is written."""
        return not self._waiting and not self._writing

    def forget(self) -> None:
        """Begins to count anew: what was told is gone from the server."""
        for each in (self._buckets, self._similar, self._told):
            each.clear()

    def put(self, event: Event) -> None:
        """Queues an event, if it is not one too many."""
        now = asyncio.get_running_loop().time()
        source = event.source.component, event.source.host, event.involved_object.uid or event.involved_object.name
        if not self._buckets.use(source, lambda: _Bucket(at=now)).take(now):
            return
        alike = (*source, event.type, event.reason)
        similar: _Similar = self._similar.use(alike, _Similar)
        if now - similar.at > _SIMILAR_WITHIN:
            similar.messages.clear()
        similar.at = now
        similar.messages.add(_short(event.message))
        if len(similar.messages) >= _SIMILAR:
            similar.messages.pop()
            event.message = f"(combined from similar events): {event.message}"
            event.reporting_component = event.reporting_instance = ""
        if len(self._waiting) < _QUEUED:
            self._waiting.append(event)
            self._wake.set()

    async def _write_all(self) -> None:
        while True:
            self._writing = True
            while self._waiting:
                await self._write_somehow(self._waiting.popleft())
            self._writing = False
            self._wake.clear()
            await self._wake.wait()

    async def _write_somehow(self, event: Event) -> None:
        for _ in range(_TRIES):
            try:
                await self._write(event)
            except StatusError as error:
                expected = error.code in (403, 404)  # its namespace is being deleted, or gone
                logger.log(logging.DEBUG if expected else logging.WARNING, "an event was refused: %s", error)
            except Unreachable as error:
                logger.warning("an event cannot be written yet: %s", error)
                await asyncio.sleep(_WAIT)
                continue
            return

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
        told: _Told | None = self._told.get(key)
        if told is not None:
            patch = {"count": told.count + 1, "lastTimestamp": event.last_timestamp, "message": event.message}
            try:
                await self._client.patch(EVENTS, told.name, told.namespace, patch, media=STRATEGIC_MERGE_PATCH)
            except StatusError as error:
                if not is_not_found(error):
                    raise
                event.count = told.count + 1
                event.first_timestamp = told.first
            else:
                told.count += 1
                return
        await self._client.create(EVENTS, event)
        self._told.pop(key, None)
        self._told.use(
            key, lambda: _Told(event.metadata.name, event.metadata.namespace, event.count, event.first_timestamp or "")
        )


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
        now, nanoseconds = times.now(), int(times.moment() * 1e9)
        metadata = ObjectMeta(name=f"{about.name}.{nanoseconds:x}", namespace=about.namespace or "default")
        self._broadcaster.put(
            Event(
                metadata=metadata,
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
