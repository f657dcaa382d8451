"""The record of one request: marks of named steps, events and attributes, with times.

Recording is cheap, reading is not: a request appends three values for each mark to one list, and nothing is named,
nested or printed until somebody reads the trace (`tracing.steps`). The recorder is ambient: a context variable holds it,
None while the request is not traced. Code on the way of every request writes

    if (recorder := current_recorder()) is not None:
        with recorder.begin(DECODE):
            ...

Other work, which may run beside other steps of the request, is a branch:

    with step("policy x", binding="y") as opened:
        ...

Times are seconds of `time.monotonic`.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar, Token
from random import getrandbits
from types import TracebackType
from typing import Any, Final, Protocol, TypeVar
from urllib.parse import urlsplit

from msgspec import Struct

from steersman.tracing.propagation import TRACEPARENT, Propagated, traceparent
from steersman.tracing.sampling import Sampling

MARK: Final = 3
"""Items of one mark in the list: the operation, its time or name, and its value."""
MAX_MARKS: Final = 3_000
"""Most marks of one recorder; further marks are only counted."""
MAX_BRANCHES: Final = 500
"""Most branches of one trace; further branches are only counted."""
MAX_TEXT: Final = 256
"""Most characters of an attribute; a longer text is cut."""
_FULL: Final = MARK * MAX_MARKS

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

Pairs = tuple[tuple[str, str], ...]
"""Names of attributes, and of the facts about the whole request that are their values."""


class StepKind(Struct, frozen=True, eq=False):
    """Declaration of a step: everything that is the same for each step of this name.

    `scope` is the instrumentation scope of a step that kube-apiserver exports as a span of the same name, OWN for other
    steps. A step that `stays_open` is a filter's or a handler's: all later ones are within it, until the request is
    answered. `shared` are attributes that only spans have, `derived` are attributes that every reader sees; both are
    facts about the request. `before` and `after` are events of the enclosing step next to this one; the ones after
    are left out for a step that has failed, unless `after_failure`. `first` are events at the start of the step. A step
    that `encodes` an answer has events with the size of the answer. A step that `follows` ends the open one. A step with
    an `argument`, the name of an attribute, begins with its value alone: that costs no dict for each request.
    """

    name: str
    scope: str = OWN
    shared: Pairs = ()
    derived: Pairs = ()
    attributes: Mapping[str, Value] = {}
    before: tuple[str, ...] = ()
    first: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    after_failure: bool = False
    stays_open: bool = False
    is_filter: bool = False
    encodes: bool = False
    follows: bool = False
    argument: str = ""


class Chosen(Struct, frozen=True):
    """Operation of a mark that has, in place of the time, the object that a union of authorizers or authenticators has
    chosen. Its type is an attribute of the open step, if that is `step`.
    """

    attribute: str
    step: str


class OuterEvent(Struct, frozen=True):
    """Operation of a mark that is an event of the enclosing step `step`."""

    name: str
    step: str


END: Final = object()
"""Operation of a mark that ends the open step."""
FAILED: Final = object()
"""Operation of a mark with the reason of an error that has passed the open step."""
SET: Final = object()
"""Operation of a mark that sets an attribute of the open step; it has the name instead of the time."""


class Recorder(Struct, eq=False):
    """Marks of steps that follow each other or nest, and the context manager that ends the open step.

    Code on the hottest paths appends its marks itself. A step that has begun so must end so, also after an error.
    """

    marks: list[Any] = []

    @property
    def trace(self) -> Trace:
        """The trace of the request."""
        raise NotImplementedError

    def begin(self, kind: StepKind, attributes: Mapping[str, Any] | Value | None = None) -> Recorder:
        """Begin a step, and return the context manager that ends it. An attribute whose value is not a `Value` is
        printed when the trace is read. A kind with an `argument` has the value of this attribute.
        """
        marks = self.marks
        if len(marks) < _FULL:
            marks += (kind, _now(), attributes)
        else:
            self.trace.dropped += 1
        return self

    def __enter__(self) -> Recorder:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        marks = self.marks
        if error is not None:
            self.fail(error)
        if len(marks) < _FULL:  # a full list has no end of a step either: each open step ends with the one around it
            marks += (END, _now(), None)

    def fail(self, error: BaseException) -> None:
        """Note an error at the open step, unless a step within it has noted the error."""
        trace = self.trace
        reason = ""
        if trace.error is not error:
            trace.error = error
            reason = getattr(error, "reason", "") or type(error).__name__
        self._mark(FAILED, reason)

    def set(self, name: str, value: Any) -> None:
        """Set an attribute of the open step; a long text is cut when the trace is read."""
        if len(self.marks) < _FULL:
            self.marks += (SET, name, value)

    def fail_open(self, error: BaseException) -> None:
        """Note an error at the open step, and end the step."""
        self.fail(error)
        self.marks += (END, _now(), None)

    def add_event(self, name: str, /, **attributes: Value) -> None:
        """Add an event of the open step at this moment."""
        marks = self.marks
        if len(marks) < _FULL:
            marks += (name, _now(), attributes)
        else:
            self.trace.dropped += 1

    def add_outer_event(self, event: OuterEvent) -> None:
        """Add an event of an enclosing step at this moment."""
        self._mark(event, None)

    def _mark(self, operation: object, value: Any) -> None:
        if len(self.marks) < _FULL:
            self.marks += (operation, _now(), value)


class Branch(Recorder, eq=False, kw_only=True):
    """A step with marks of its own, as it may run beside others. `id` is its span id, `ended` is 0 while it is open."""

    kind: StepKind
    attributes: Mapping[str, Any]
    id: int
    began: float
    ended: float = 0.0
    _trace: Trace | None = None

    @property
    def trace(self) -> Trace:
        """The trace of the request. Raises AttributeError after the end of the branch."""
        if self._trace is None:
            raise AttributeError("the branch has ended")
        return self._trace

    def end(self, error: BaseException | None) -> None:
        """End the branch at this moment."""
        if error is not None:
            self.fail(error)
        self.ended = _now()
        self._trace = None  # the trace refers to its branches


class Branching:
    """The context manager that opens and ends a branch, which is the recorder of the context in between."""

    __slots__ = ("_branch", "_token")

    def __init__(self, parent: Recorder, branch: Branch) -> None:
        self._branch: Final = branch
        parent.marks += (branch, branch.began, None)

    def __enter__(self) -> Branch:
        self._token = _current.set(self._branch)
        return self._branch

    def __exit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        _current.reset(self._token)
        self._branch.end(error)


class Answered(Protocol):
    """The facts about an answered request, as references to what the request has had."""

    @property
    def id(self) -> str:
        """The request's audit ID."""
        ...

    @property
    def size(self) -> int | None:
        """The bytes of the answer's body; None if they are not known."""
        ...

    @property
    def handler(self) -> StepKind:
        """The step of the request's handler."""
        ...

    def line(self, trace: Trace) -> dict[str, Any]:
        """Return the facts that every reader sees, by name."""
        ...

    def span_facts(self, trace: Trace) -> dict[str, Any]:
        """Return the facts that only spans need, by name."""
        ...

    def of_filter(self, trace: Trace, name: str) -> dict[str, Any]:
        """Return the attributes of a filter's step."""
        ...


class Trace(Recorder, eq=False):
    """The record of one request: its marks, and the facts about the whole request.

    `unix` is the start in seconds since 1970. `filters` are the steps of the filters, those that begin at the same time
    together, and `entered` are the times at which they and the handler began, in this order. `propagated` is the trace
    context that the client sent. `answered` is set at the end of the request. `answered_at` is the time at which the
    handler returned an answer whose body is produced later, else 0. `object_name` is the name of a created object.
    `user` is the authenticated user, before impersonation. `is_unchanged` is True for a write that has changed nothing.
    `changed` are the paths of the fields that an update has changed, None unless `reads_changes`.
    `error` is the last error that has passed a step. `sampling` is None unless traces are exported. `span_id` is the id
    of the request's own span, `span` its declaration.
    """

    began: float = 0.0
    unix: float = 0.0
    propagated: Propagated | None = None
    readers: tuple[Any, ...] = ()
    filters: tuple[tuple[StepKind, ...], ...] = ()
    entered: list[float] = []
    ended: float = 0.0
    answered_at: float = 0.0
    answered: Answered | None = None
    object_name: str = ""
    user: Any = None
    is_unchanged: bool = False
    reads_changes: bool = False
    changed: list[str] | None = None
    error: BaseException | None = None
    sampling: Sampling | None = None
    span_id: int = 0
    span: StepKind | None = None
    dropped: int = 0
    branch_count: int = 0
    _facts: dict[str, Any] | None = None

    @property
    def trace(self) -> Trace:
        """This trace."""
        return self

    @property
    def id(self) -> str:
        """The request's audit ID, "" until it is answered."""
        return "" if self.answered is None else self.answered.id

    @property
    def facts(self) -> dict[str, Any]:
        """All facts about an answered request, computed at the first use."""
        if self._facts is None:
            answered = self.answered
            line = {} if answered is None else {"id": self.id, **answered.line(self)}
            self._facts = line if answered is None else {**line, **answered.span_facts(self)}
        return self._facts

    @property
    def seconds(self) -> float:
        """The duration of an ended trace."""
        return max(self.ended - self.began, 0.0)

    @property
    def size(self) -> int:
        """The number of marks, also those of branches."""
        found = len(self.marks)
        if self.branch_count:
            waiting: list[Recorder] = [self]
            found = 0
            while waiting:
                marks = waiting.pop().marks
                found += len(marks)
                waiting += [each for each in marks[::MARK] if isinstance(each, Branch)]
        return found // MARK


class Unrecorded:
    """A step that is not recorded."""

    __slots__ = ()

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        return None


_PORTS: Final = {"http": 80, "https": 443}
UNRECORDED: Final = Unrecorded()
_now: Final = time.monotonic
_current: Final[ContextVar[Recorder | None]] = ContextVar("recorder", default=None)

current_recorder: Final[Callable[[], Recorder | None]] = _current.get
"""Return the recorder of the request that is being worked on; None if the request is not traced."""
record: Final[Callable[[Recorder | None], Token[Recorder | None]]] = _current.set
"""Make a recorder the current one; returns a token for `stop_recording`."""
stop_recording: Final[Callable[[Token[Recorder | None]], None]] = _current.reset
"""Restore the recorder from before the `record` that returned the token."""


def new_span_id() -> int:
    """Return a span id: 64 random bits, not 0."""
    return getrandbits(64) or 1


def step(name: str, /, **attributes: Value) -> Branching | Unrecorded:
    """Return a context manager for a branch of the traced request; it yields the branch, or None if nothing is
    recorded.
    """
    return branch(StepKind(name), attributes)


def branch(kind: StepKind, attributes: Mapping[str, Any]) -> Branching | Unrecorded:
    """Return a context manager for a branch of this kind; it yields the branch, or None if nothing is recorded."""
    parent = _current.get()
    if parent is None:
        return UNRECORDED
    trace = parent.trace
    if trace.branch_count >= MAX_BRANCHES or len(parent.marks) >= _FULL:
        trace.dropped += 1
        return UNRECORDED
    trace.branch_count += 1
    made = Branch(kind=kind, attributes=attributes, id=new_span_id(), began=_now(), _trace=trace)
    return Branching(parent, made)


async def recorded(
    recorder: Recorder, kind: StepKind, work: Awaitable[R], attributes: Mapping[str, Value] | Value | None = None
) -> R:
    """Return the result of `work`, awaited in a step."""
    marks = recorder.marks
    try:
        marks += (kind, _now(), attributes)
        result = await work
        marks += (END, _now(), None)
    except BaseException as error:
        recorder.fail_open(error)
        raise
    return result


def in_step(kind: StepKind, work: Awaitable[R]) -> Awaitable[R]:
    """Return `work`, in a step if the request is traced."""
    recorder = _current.get()
    return work if recorder is None else recorded(recorder, kind, work)


def call_span(method: str, **attributes: Value) -> Branching | Unrecorded:
    """Return a context manager for the span of a gRPC call (otelgrpc); `method` has the form package.Service/Method."""
    return branch(StepKind(method, CALL), {"rpc.method": method, "rpc.system.name": "grpc", **attributes})


def http_client_span(method: str, url: str) -> Branching | Unrecorded:
    """Return a context manager for the span of an HTTP request to another server (otelhttp)."""
    parts = urlsplit(url)
    port = parts.port or _PORTS.get(parts.scheme, 0)
    about: dict[str, Value] = {
        "http.request.method": method,
        "url.full": cut(url),
        "server.address": parts.hostname or "",
        "server.port": port,
    }
    return branch(StepKind(f"HTTP {method}", CLIENT), about)


def outgoing() -> list[tuple[str, str]]:
    """Return the header fields that pass the trace context of the request on to another server."""
    recorder = _current.get()
    if recorder is None:
        return []
    trace = recorder.trace
    sampling, propagated = trace.sampling, trace.propagated
    fields: list[tuple[str, str]] = []
    if sampling is not None and sampling.trace_id:
        span_id = recorder.id if isinstance(recorder, Branch) else trace.span_id
        fields.append((TRACEPARENT, traceparent(sampling.trace_id, span_id, sampled=sampling.sampled)))
        if sampling.state:
            fields.append(("tracestate", sampling.state))
    elif propagated is not None and propagated.trace_id:
        fields.append((TRACEPARENT, traceparent(*propagated[:2], sampled=propagated.is_sampled)))
        if propagated.state:
            fields.append(("tracestate", propagated.state))
    if propagated is not None and propagated.baggage:
        fields.append(("baggage", propagated.baggage))
    return fields


def add_event(name: str, /, **attributes: Value) -> None:
    """Add an event to the open step, if the request is traced."""
    recorder = _current.get()
    if recorder is not None:
        recorder.add_event(name, **attributes)


def cut(value: Value) -> Value:
    """Return `value`, a text with at most MAX_TEXT characters."""
    return value[:MAX_TEXT] + "..." if isinstance(value, str) and len(value) > MAX_TEXT else value
