"""Audit of single requests (k8s.io/apiserver `AuditContext`)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, TypeVar

import msgspec

from steersman.api.audit.v1 import AuthenticationMetadata, Event, ObjectReference
from steersman.api.authentication.v1 import UserInfo as EventUser
from steersman.api.meta.v1 import ObjectMeta, Status
from steersman.audit.backends.backend import CLOSE_SECONDS, Backend
from steersman.audit.documents import NotJSON, as_go_escapes, compact, without_managed_fields
from steersman.audit.errors import Errors
from steersman.audit.latencies import Latencies
from steersman.audit.metrics import AuditMetrics
from steersman.audit.policy import (
    REQUEST_RECEIVED,
    RESPONSE_COMPLETE,
    Level,
    RequestAuditConfig,
    Rules,
)
from steersman.authentication.user import UserInfo
from steersman.machinery.codec.serializer import from_plain
from steersman.machinery.identity.action import Action
from steersman.machinery.values.times import monotonic, unix_now
from steersman.work.offloading import offload_if
from steersman.work.shielding import shielded

logger = logging.getLogger(__name__)

R = TypeVar("R")

_ENCODER: Final = msgspec.json.Encoder(order="deterministic")
_LARGE: Final = 64 << 10
"""Size of objects in bytes from which an event is encoded in a worker thread."""


class Auditor:
    """The audit policy and backend of a server; creates the trail of each request."""

    def __init__(self, rules: Rules, backend: Backend, metrics: AuditMetrics) -> None:
        self._rules: Final = rules
        self._later: Final[set[asyncio.Future[bool]]] = set()
        self.backend: Final = backend
        self.metrics: Final = metrics
        self.errors: Final = Errors(metrics)

    def config_for(self, user: UserInfo | None, action: Action, path: str | None) -> RequestAuditConfig | None:
        """Return the policy's settings for a request, or None if it is not recorded.

        `user` is None if the request is not authenticated. `path` is None for requests about a resource.
        """
        recorded = self._rules.config_for(user, action, path)
        self.metrics.levels.inc(recorded.labels)
        return None if recorded.level is Level.NONE else recorded

    def start_trail(
        self,
        recorded: RequestAuditConfig,
        user: UserInfo | None,
        action: Action,
        *,
        about_resource: bool,
        audit_id: str,
        uri: str,
        source_ips: list[str],
        user_agent: str,
        received: float,
    ) -> Trail:
        """Create the trail of a request; `received` is in seconds of the monotonic clock."""
        event = Event(
            level=recorded.labels[0],
            audit_id=audit_id,
            request_uri=uri,
            verb=action.verb,
            source_ips=source_ips,
            user_agent=user_agent,
            request_received_timestamp=_timestamp(unix_now() - monotonic() + received),
        )
        if user is not None:
            event.user = event_user(user)
        if about_resource:
            event.object_ref = ObjectReference(
                resource=action.resource,
                namespace=action.namespace,
                name=action.name,
                api_group=action.group,
                api_version=action.version,
                subresource=action.subresource,
            )
        return Trail(self, event, recorded, received)

    def run_in_background(self, waiting: Awaitable[bool] | None) -> None:
        """Run an awaitable in the background; `close` waits for it."""
        if waiting is not None:
            self._start(waiting)

    async def wait_for(self, waiting: Awaitable[bool] | None) -> bool:
        """Return the result of an awaitable (True for None). It continues if the caller is cancelled."""
        return waiting is None or await shielded(self._start(waiting))

    def _start(self, waiting: Awaitable[bool]) -> asyncio.Future[bool]:
        future = asyncio.ensure_future(waiting)
        self._later.add(future)
        future.add_done_callback(self._later.discard)
        return future

    async def close(self) -> None:
        """Wait for pending events (up to CLOSE_SECONDS), and close the backend."""
        if self._later:
            _, left = await asyncio.wait(tuple(self._later), timeout=CLOSE_SECONDS)
            for each in left:
                each.cancel()
            await asyncio.gather(*left, return_exceptions=True)
        await self.backend.close()


def timed(trail: Trail | None, layer: str, wait: Awaitable[R]) -> Awaitable[R]:
    """Return `wait`, with its duration added to a layer of the trail if there is one."""
    return wait if trail is None else trail.timed(layer, wait)


def event_user(user: UserInfo) -> EventUser:
    """Convert a user to the form in events."""
    found = EventUser(username=user.name, uid=user.uid, groups=list(user.groups))
    if user.extra:
        found.extra = {key: list(values) for key, values in user.extra.items()}
    return found


class Trail:
    """The event of one request, which is recorded at each stage."""

    __slots__ = (
        "_annotations",
        "_auditor",
        "_end_annotations",
        "_event",
        "_latencies",
        "_pending",
        "_received",
        "_recorded",
        "_request",
        "_response",
        "add_latency",
        "level",
    )

    def __init__(self, auditor: Auditor, event: Event, recorded: RequestAuditConfig, received: float) -> None:
        self._auditor = auditor
        self._event = event
        self._recorded = recorded
        self._annotations: dict[str, str] = {}
        self._latencies = Latencies()
        self.add_latency: Final = self._latencies.add
        self._received = received
        self._end_annotations: dict[str, str] | None = None
        self._request: Sequence[bytes] | None = None
        self._response: Sequence[bytes] | None = None
        self._pending: Awaitable[bool] | None = None
        self.level: Level = recorded.level

    # Members of the event

    @property
    def wants_response(self) -> bool:
        """True if response objects are recorded."""
        return self.level is Level.REQUEST_RESPONSE

    def annotate(self, key: str, value: str, level: Level = Level.METADATA) -> None:
        """Add an annotation if `level` is recorded. If the key exists, its first value stays."""
        if level > self.level:
            return
        before = self._annotations.setdefault(key, value)
        if before != value:
            logger.warning(
                'Failed to set annotations["%s"] to "%s" for audit:"%s", it has already been set to "%s"',
                key,
                value,
                self._event.audit_id,
                before,
            )

    def annotate_at_end(self, annotations: Mapping[str, str]) -> None:
        """Store annotations to be added at the end of a long-running response."""
        self._end_annotations = {**annotations}

    async def timed(self, layer: str, wait: Awaitable[R]) -> R:
        """Await `wait` and add its duration to a layer."""
        began = monotonic()
        try:
            return await wait
        finally:
            self.add_latency(layer, monotonic() - began)

    def set_impersonated_user(self, user: UserInfo, constraint: str) -> None:
        """Record the impersonated user."""
        self._event.impersonated_user = event_user(user)
        if constraint:
            self._event.authentication_metadata = AuthenticationMetadata(impersonation_constraint=constraint)

    def set_request_object(self, metadata: ObjectMeta | None, document: Callable[[], bytes]) -> None:
        """Record the object in the request.

        Its metadata complete the reference to the object. `document` returns its JSON, and is only called if request
        objects are recorded.
        """
        reference = self._event.object_ref
        if metadata is not None and reference is not None:
            reference.namespace = reference.namespace or metadata.namespace
            reference.name = reference.name or metadata.name
            reference.uid = reference.uid or metadata.uid
            reference.resource_version = reference.resource_version or metadata.resource_version
        if self.level >= Level.REQUEST:
            data = document()
            self._request = (without_managed_fields(data) if self._recorded.omits_managed_fields else data,)

    def set_patch(self, data: bytes) -> None:
        """Record the patch in the request. A patch that is not JSON is not recorded, but counted as lost."""
        if self.level < Level.REQUEST:
            return
        try:
            self._request = (compact(data),)
        except NotJSON:
            self._auditor.errors.lost("audit", "the patch is not JSON", (self._record(),))

    def set_response_object(self, pieces: Sequence[bytes]) -> None:
        """Record the JSON of the response object, given in pieces and without line breaks."""
        if self.wants_response:
            self._response = pieces

    def set_response_status(self, status: Mapping[str, Any]) -> None:
        """Record the Status of the response."""
        told = {key: value for key, value in status.items() if key not in ("kind", "apiVersion", "metadata")}
        self._event.response_status = from_plain(Status, told)

    @property
    def is_answered(self) -> bool:
        """True if the status of the response is known."""
        return self._event.response_status is not None

    def set_response_code(self, code: int) -> None:
        """Record the response's status code."""
        if self._event.response_status is None:
            self._event.response_status = Status(code=code)
        else:
            self._event.response_status.code = code

    # Stages

    def record_arrival(self) -> Awaitable[bool] | None:
        """Record the arrival of the request. Await the result before acting; False rejects the request."""
        waiting = self.record_stage(REQUEST_RECEIVED)
        if waiting is None or not self._auditor.backend.deferred:
            return waiting
        self._pending = waiting
        return None

    def record_end(self) -> Awaitable[bool] | None:
        """Record the end. Await the result before sending the response."""
        if self._end_annotations is not None:
            for key, value in self._end_annotations.items():
                self.annotate(key, value)
        if self._event.verb != "watch":
            for key, value in self._latencies.annotations(monotonic() - self._received).items():
                self.annotate(key, value)
        # the backend is deferred, so the last result implies the earlier ones
        return self.record_stage(RESPONSE_COMPLETE) or self._pending

    def record_end_in_background(self) -> None:
        """Record the end of a response, without waiting for the result."""
        self._auditor.run_in_background(self.record_end())

    def record_stage(self, stage: str) -> Awaitable[bool] | None:
        """Record the event at a stage; see Backend.process."""
        if stage in self._recorded.omitted_stages:
            return None
        event = self._event
        event.stage = stage
        now = event.request_received_timestamp if stage is REQUEST_RECEIVED else _timestamp(unix_now())
        event.stage_timestamp = now
        event.annotations = self._annotations
        self._auditor.metrics.events.inc()
        objects = self._request is not None or self._response is not None
        if objects and _size(self._request) + _size(self._response) > _LARGE:
            return self._process_large()
        return self._auditor.backend.process((self._record(),))

    async def _process_large(self) -> bool:
        record = await offload_if(True, self._record)
        waiting = self._auditor.backend.process((record,))
        return True if waiting is None else await waiting

    def _record(self) -> bytes:
        """Encode the current event; see backends.backend.Records."""
        event = self._event
        if self._request is not None:
            event.request_object = msgspec.Raw(b"".join(self._request))
        if self._response is not None:
            event.response_object = msgspec.Raw(self._response_json(self._response))
        return as_go_escapes(_ENCODER.encode(event)[1:])

    def _response_json(self, pieces: Sequence[bytes]) -> bytes:
        data = b"".join(pieces)
        if data.endswith(b"\n"):
            data = data[:-1]
        return without_managed_fields(data) if self._recorded.omits_managed_fields else data


def _size(pieces: Iterable[bytes] | None) -> int:
    return 0 if pieces is None else sum(map(len, pieces))


_second: tuple[int, str] = (-1, "")
"""The last formatted second (since the epoch) and its text."""


def _timestamp(seconds: float) -> str:
    """Format seconds since the epoch as a MicroTime."""
    global _second
    whole = int(seconds)
    known, text = _second
    if known != whole:
        text = datetime.fromtimestamp(whole, UTC).strftime("%Y-%m-%dT%H:%M:%S")
        _second = whole, text
    return f"{text}.{int((seconds - whole) * 1e6):06d}Z"
