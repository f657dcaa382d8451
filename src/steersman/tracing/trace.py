"""The record of one request: named steps with start, duration, attributes and events.

The open step is ambient: a context variable holds it, None while the request is not traced. Code that may be traced
writes

    with step("decode", bytes=len(data)):
        ...

or, where a request that is not traced must not pay for the attributes,

    if (opened := current_step()) is not None:
        opened.set("bytes", len(data))

Times are seconds of `time.monotonic`.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar, Token
from random import getrandbits
from types import TracebackType
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

from steersman.tracing.propagation import TRACEPARENT, Propagated, traceparent
from steersman.tracing.sampling import Sampling

MAX_STEPS: Final = 1_000
"""Most steps of one trace; further steps are only counted."""
MAX_EVENTS: Final = 1_000
"""Most events of one trace; further events are only counted."""
MAX_TEXT: Final = 256
"""Most characters of an attribute; a longer text is cut."""

R = TypeVar("R")

Value = str | int | float | bool


OWN: Final = ""
"""Scope of a step of this server's own."""
COMPONENT: Final = "k8s.io/component-base/tracing"
FILTER: Final = "k8s.op/apiserver/pkg/endpoints/filterlatency"
SERVER: Final = "server"
CLIENT: Final = "client"
CALL: Final = "call"
"""Scopes of kube-apiserver's spans: of handlers and storage, of filters, of the request itself, of requests to other
servers, and of gRPC calls.
"""

Event = tuple[str, float, Mapping[str, Value]]
"""A moment within a step: its name, time and attributes."""
Shared = tuple[tuple[str, str], ...]
"""Attributes of a step that are facts about the whole request: names of attributes and of facts."""


class Step:
    """A timed operation of a trace, and the context manager that opens and ends it.

    `passed_on` is the moment at which a filter passed the request on, None for other steps: the filter's own duration
    ends then, although the step encloses all that follows. `scope` is the instrumentation scope of a step that
    kube-apiserver exports as a span of the same name, OWN for other steps. An attribute whose value is not a `Value` is
    printed when the trace is read.
    """

    __slots__ = (
        "_id",
        "_token",
        "attributes",
        "began",
        "ended",
        "events",
        "name",
        "parent",
        "passed_on",
        "scope",
        "shared",
        "trace",
    )

    def __init__(
        self, trace: Trace, parent: Step | None, name: str, attributes: dict[str, Any], shared: Shared, scope: str
    ) -> None:
        self.trace = trace
        self.parent = parent
        self.name = name
        self.scope = scope
        self.attributes = attributes
        self.shared = shared
        self.events: list[Event] | None = None
        self.passed_on: float | None = None
        self.ended: float | None = None
        self._token: Token[Step | None] | None = None
        self._id = 0
        self.began = time.monotonic()

    @property
    def id(self) -> int:
        """The span id: 64 random bits, drawn at the first use."""
        if not self._id:
            self._id = getrandbits(64) or 1
        return self._id

    def __enter__(self) -> Step:
        self._token = _open.set(self)
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        token, self._token = self._token, None
        if token is not None:
            _open.reset(token)
        if error is not None:
            self.fail(error)
        self.ended = time.monotonic()

    def fail(self, error: BaseException) -> None:
        """Note an error, unless a step within this one has noted it."""
        if self.trace.error is not error:
            self.trace.error = error
            self.attributes.setdefault("error", getattr(error, "reason", "") or type(error).__name__)

    def set(self, name: str, value: Value) -> None:
        """Set an attribute; a long text is cut."""
        self.attributes[name] = cut(value)

    def add_event(self, name: str, /, **attributes: Value) -> None:
        """Add an event at this moment."""
        trace = self.trace
        if trace.event_count >= MAX_EVENTS:
            trace.dropped += 1
            return
        trace.event_count += 1
        event = (name, time.monotonic(), attributes)
        if self.events is None:
            self.events = [event]
        else:
            self.events.append(event)

    @property
    def seconds(self) -> float:
        """The duration so far; of a filter its own part, without what it passed the request on to."""
        until = self.passed_on or self.ended or time.monotonic()
        return until - self.began


class Trace:
    """The record of one request: its steps in the order of their starts, and the facts about the whole request.

    `id` is the request's audit ID, "" until it is known. `object_name` is the name of a created object. `error` is the
    last error that has passed a step. `unix` is the start in seconds since 1970. `facts` is set at
    the end of the request. `propagated` is the trace context that the client sent. `sampling` is None unless traces are
    exported.
    """

    __slots__ = (
        "began",
        "dropped",
        "ended",
        "error",
        "event_count",
        "facts",
        "id",
        "object_name",
        "propagated",
        "readers",
        "root",
        "sampling",
        "steps",
        "unix",
    )

    def __init__(self, name: str, propagated: Propagated | None = None) -> None:
        self.id = ""
        self.object_name = ""
        self.unix: Final = time.time()
        self.facts: dict[str, Any] = {}
        self.propagated = propagated
        self.sampling: Sampling | None = None
        self.readers: tuple[Any, ...] = ()
        self.dropped = 0
        self.error: BaseException | None = None
        self.event_count = 0
        self.root: Final = Step(self, None, name, {}, (), OWN)
        self.steps: Final = [self.root]
        self.began: Final = self.root.began
        self.ended: float | None = None

    def open(
        self, parent: Step, name: str, attributes: dict[str, Any], shared: Shared = (), *, scope: str
    ) -> Step | None:
        """Return a new step below `parent`; None if the trace has no room for it. Texts that a client has chosen must
        be cut.
        """
        if not self.readers:
            return None  # only its context is passed on
        if len(self.steps) >= MAX_STEPS:
            self.dropped += 1
            return None
        found = Step(self, parent, name, attributes, shared, scope)
        self.steps.append(found)
        return found

    @property
    def seconds(self) -> float:
        """The duration of an ended trace."""
        return (self.ended or self.began) - self.began

    @property
    def needs_filters(self) -> bool:
        """True if a reader needs the steps of filters."""
        return any(each.reads_filters for each in self.readers) or self.sampling is not None

    def end(self) -> None:
        """End the root step at this moment."""
        self.error = None  # its traceback refers to frames
        self.ended = self.root.ended = time.monotonic()


class Unrecorded:
    """A step that is not recorded."""

    __slots__ = ()

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        return None


_PORTS: Final = {"http": 80, "https": 443}
UNRECORDED: Final = Unrecorded()
_open: Final[ContextVar[Step | None]] = ContextVar("step", default=None)

current_step: Final[Callable[[], Step | None]] = _open.get
"""Return the open step of the request that is being worked on; None if it is not traced."""


def step(name: str, /, **attributes: Value) -> Step | Unrecorded:
    """Return a context manager for a step of the traced request; it yields the step, or None if nothing is recorded."""
    return _opened(name, attributes, (), scope=OWN)


def span(name: str, shared: Shared = (), /, **attributes: Value) -> Step | Unrecorded:
    """Return a context manager for a step that kube-apiserver exports as a span of this name."""
    return _opened(name, attributes, shared, scope=COMPONENT)


async def within(work: Awaitable[R], name: str, shared: Shared = (), /, **attributes: Value) -> R:
    """Return the result of `work`, awaited in a step that kube-apiserver exports as a span of this name.

    A caller on a hot path writes `work if current_step() is None else within(work, ...)`.
    """
    with _opened(name, attributes, shared, scope=COMPONENT):
        return await work


async def within_step(work: Awaitable[R], name: str, /, **attributes: Value) -> R:
    """Return the result of `work`, awaited in a step of this server's own."""
    with _opened(name, attributes, (), scope=OWN):
        return await work


def in_step(name: str, work: Awaitable[R]) -> Awaitable[R]:
    """Return `work`, in a step of this server's own if the request is traced."""
    return work if _open.get() is None else within_step(work, name)


def _opened(name: str, attributes: dict[str, Value], shared: Shared, *, scope: str) -> Step | Unrecorded:
    parent = _open.get()
    if parent is None:
        return UNRECORDED
    return parent.trace.open(parent, name, attributes, shared, scope=scope) or UNRECORDED


def call_span(method: str, **attributes: Value) -> Step | Unrecorded:
    """Return a context manager for the span of a gRPC call (otelgrpc); `method` has the form package.Service/Method."""
    return _opened(method, {"rpc.method": method, "rpc.system.name": "grpc", **attributes}, (), scope=CALL)


def http_client_span(method: str, url: str) -> Step | Unrecorded:
    """Return a context manager for the span of an HTTP request to another server (otelhttp)."""
    parts = urlsplit(url)
    port = parts.port or _PORTS.get(parts.scheme, 0)
    about: dict[str, Value] = {
        "http.request.method": method,
        "url.full": cut(url),
        "server.address": parts.hostname or "",
        "server.port": port,
    }
    return _opened(f"HTTP {method}", about, (), scope=CLIENT)


def outgoing() -> list[tuple[str, str]]:
    """Return the header fields that pass the trace context of the request on to another server."""
    opened = _open.get()
    if opened is None:
        return []
    trace = opened.trace
    sampling, propagated = trace.sampling, trace.propagated
    fields: list[tuple[str, str]] = []
    if sampling is not None and sampling.trace_id:
        fields.append((TRACEPARENT, traceparent(sampling.trace_id, opened.id, sampled=sampling.sampled)))
        if sampling.state:
            fields.append(("tracestate", sampling.state))
    elif propagated is not None and propagated.trace_id:
        fields.append((TRACEPARENT, traceparent(*propagated[:2], sampled=propagated.is_sampled)))
        if propagated.state:
            fields.append(("tracestate", propagated.state))
    if propagated is not None and propagated.baggage:
        fields.append(("baggage", propagated.baggage))
    return fields


open_step: Final[Callable[[Step | None], Token[Step | None]]] = _open.set
"""Make a step the open one; returns a token for `close_step`."""
close_step: Final[Callable[[Token[Step | None]], None]] = _open.reset
"""Restore the open step from before the `open_step` that returned the token."""


def add_event(name: str, /, **attributes: Value) -> None:
    """Add an event to the open step, if there is one."""
    opened = _open.get()
    if opened is not None:
        opened.add_event(name, **attributes)


def cut(value: Value) -> Value:
    """Return `value`, a text with at most MAX_TEXT characters."""
    return value[:MAX_TEXT] + "..." if isinstance(value, str) and len(value) > MAX_TEXT else value
