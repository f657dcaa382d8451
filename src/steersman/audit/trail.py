"""One request on its way into the audit trail (k8s.io/apiserver `AuditContext`)."""

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
    Recorded,
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
"""Bytes of objects from which an event is encoded beside the loop."""


class Auditor:
    """Says what is recorded of each request, and where it goes."""

    def __init__(self, rules: Rules, backend: Backend, metrics: AuditMetrics) -> None:
        self._rules: Final = rules
        self._later: Final[set[asyncio.Future[bool]]] = set()
        self.backend: Final = backend
        self.metrics: Final = metrics
        self.errors: Final = Errors(metrics)

    def recorded(self, user: UserInfo | None, action: Action, path: str | None) -> Recorded | None:
        """What is recorded of a request, None for nothing; `user` is None for one who is not known, and `path` for a
        request about a resource."""
        recorded = self._rules.recorded(user, action, path)
        self.metrics.levels.inc(recorded.labels)
        return None if recorded.level is Level.NONE else recorded

    def begin(
        self,
        recorded: Recorded,
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
        """What a request leaves in the trail; it was `received` at this second of the monotonic clock."""
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

    def later(self, waiting: Awaitable[bool] | None) -> None:
        """Has something done that nobody waits for before the end."""
        if waiting is not None:
            self._begun(waiting)

    async def done(self, waiting: Awaitable[bool] | None) -> bool:
        """What it gives; it goes on when who waits for it does not wait any more."""
        return waiting is None or await shielded(self._begun(waiting))

    def _begun(self, waiting: Awaitable[bool]) -> asyncio.Future[bool]:
        future = asyncio.ensure_future(waiting)
        self._later.add(future)
        future.add_done_callback(self._later.discard)
        return future

    async def close(self) -> None:
        """Returns when everything is recorded, or nothing has become of it for a while."""
        if self._later:
            _, left = await asyncio.wait(tuple(self._later), timeout=CLOSE_SECONDS)
            for each in left:
                each.cancel()
            await asyncio.gather(*left, return_exceptions=True)
        await self.backend.close()


def timed(trail: Trail | None, layer: str, wait: Awaitable[R]) -> Awaitable[R]:
    """The same; the time that it takes counts where it is recorded."""
    return wait if trail is None else trail.timed(layer, wait)


def event_user(user: UserInfo) -> EventUser:
    """A user as events show them."""
    found = EventUser(username=user.name, uid=user.uid, groups=list(user.groups))
    if user.extra:
        found.extra = {key: list(values) for key, values in user.extra.items()}
    return found


class Trail:
    """The event of one request, which is recorded anew at each stage."""

    __slots__ = (
        "_annotations",
        "_auditor",
        "_event",
        "_late",
        "_latencies",
        "_pending",
        "_received",
        "_recorded",
        "_request",
        "_response",
        "level",
        "took",
    )

    def __init__(self, auditor: Auditor, event: Event, recorded: Recorded, received: float) -> None:
        self._auditor = auditor
        self._event = event
        self._recorded = recorded
        self._annotations: dict[str, str] = {}
        self._latencies = Latencies()
        self.took: Final = self._latencies.took
        self._received = received
        self._late: dict[str, str] | None = None
        self._request: Sequence[bytes] | None = None
        self._response: Sequence[bytes] | None = None
        self._pending: Awaitable[bool] | None = None
        self.level: Level = recorded.level

    # What is told on the way

    @property
    def wants_response(self) -> bool:
        """Whether objects that are answered are recorded."""
        return self.level is Level.REQUEST_RESPONSE

    def annotate(self, key: str, value: str, level: Level = Level.METADATA) -> None:
        """Adds an annotation, where so much is recorded; what was said first under a key counts."""
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
        """Adds annotations that are not there yet when a long answer begins."""
        self._late = {**annotations}

    async def timed(self, layer: str, wait: Awaitable[R]) -> R:
        """Waits for something, which counts as time of a layer."""
        began = monotonic()
        try:
            return await wait
        finally:
            self.took(layer, monotonic() - began)

    def impersonated(self, user: UserInfo, constraint: str) -> None:
        """The request is made for another user from here on."""
        self._event.impersonated_user = event_user(user)
        if constraint:
            self._event.authentication_metadata = AuthenticationMetadata(impersonation_constraint=constraint)

    def request_object(self, metadata: ObjectMeta | None, document: Callable[[], bytes]) -> None:
        """The object that was sent: its metadata complete what is known of the object that the request is about, and
        its JSON is recorded where requests are."""
        reference = self._event.object_ref
        if metadata is not None and reference is not None:
            reference.namespace = reference.namespace or metadata.namespace
            reference.name = reference.name or metadata.name
            reference.uid = reference.uid or metadata.uid
            reference.resource_version = reference.resource_version or metadata.resource_version
        if self.level >= Level.REQUEST:
            data = document()
            self._request = (without_managed_fields(data) if self._recorded.omits_managed_fields else data,)

    def patch(self, data: bytes) -> None:
        """The patch that was sent. One that is no JSON is not recorded, and counted as lost."""
        if self.level < Level.REQUEST:
            return
        try:
            self._request = (compact(data),)
        except NotJSON:
            self._auditor.errors.lost("audit", "the patch is no JSON", (self._record(),))

    def response_object(self, pieces: Sequence[bytes]) -> None:
        """The JSON of what is answered, in pieces and in one line."""
        if self.wants_response:
            self._response = pieces

    def response_status(self, status: Mapping[str, Any]) -> None:
        """The Status that is answered."""
        told = {key: value for key, value in status.items() if key not in ("kind", "apiVersion", "metadata")}
        self._event.response_status = from_plain(Status, told)

    @property
    def is_answered(self) -> bool:
        """Whether anything is known of the answer."""
        return self._event.response_status is not None

    def response_code(self, code: int) -> None:
        """The code of what is answered."""
        if self._event.response_status is None:
            self._event.response_status = Status(code=code)
        else:
            self._event.response_status.code = code

    # Its stages

    def receive(self) -> Awaitable[bool] | None:
        """Records that the request has come. What is returned is to be waited for before anything is done: False
        refuses the request."""
        waiting = self.process(REQUEST_RECEIVED)
        if waiting is None or not self._auditor.backend.deferred:
            return waiting
        self._pending = waiting
        return None

    def complete(self) -> Awaitable[bool] | None:
        """Records the end; what is returned is to be waited for before the answer is sent."""
        if self._late is not None:
            for key, value in self._late.items():
                self.annotate(key, value)
        if self._event.verb != "watch":
            for key, value in self._latencies.annotations(monotonic() - self._received).items():
                self.annotate(key, value)
        return self.process(RESPONSE_COMPLETE) or self._pending  # what is done last is done after the rest

    def finish(self) -> None:
        """Records the end of an answer for which nobody waits."""
        self._auditor.later(self.complete())

    def process(self, stage: str) -> Awaitable[bool] | None:
        """Records the event at a stage; see Backend.process."""
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
        """The event as it is now; see backends.backend.Records."""
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
"""The second that was stamped last, and its text."""


def _timestamp(seconds: float) -> str:
    """A MicroTime of seconds since 1970."""
    global _second
    whole = int(seconds)
    known, text = _second
    if known != whole:
        text = datetime.fromtimestamp(whole, UTC).strftime("%Y-%m-%dT%H:%M:%S")
        _second = whole, text
    return f"{text}.{int((seconds - whole) * 1e6):06d}Z"
