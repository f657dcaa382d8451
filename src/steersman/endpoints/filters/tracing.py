"""Tracing of requests (WithTracing): the start of each filter (`filterlatency.TrackStarted`), and the end of a request.

These filters are only in the chain of requests that are traced. They are plain functions between the others, and note
times alone: attributes of the steps are made from the answered request when a trace is read.
"""

from __future__ import annotations

from collections.abc import Awaitable
from time import monotonic
from typing import Final

from steersman.authentication.user import SYSTEM_MASTERS
from steersman.endpoints.answered import answered
from steersman.endpoints.request import Filter, Handler, Request
from steersman.endpoints.spans import TRACE_FIELDS
from steersman.endpoints.streamed import StreamedBody
from steersman.flowcontrol.fairness import Fairness
from steersman.net.message import Response
from steersman.tracing.readers import Readers
from steersman.tracing.trace import COMPONENT, FILTER, OWN, SERVER, StepKind, Trace, current_recorder, cut, new_span_id

SPANS: Final = frozenset(
    {"authentication", "audit", "constrainedimpersonation", "priorityandfairness", "authorization"}
)
"""Filters that kube-apiserver exports as spans."""
_CLIENT_LEFT: Final = 499
"""Code of a request without an answer, as reverse proxies log it."""


def entering(name: str) -> Filter:
    """Return a filter that begins the step of the filter behind it.

    The step encloses all that the filter passes the request on to, as kube-apiserver's spans do.
    """
    kind = _kind_of_filter(name)

    def enter(request: Request, next_: Handler) -> Awaitable[Response]:
        if (recorder := current_recorder()) is not None:
            recorder.marks += (kind, monotonic(), None)
        return next_(request)

    return enter


def entering_with_user(name: str) -> Filter:
    """Return a filter behind authentication that notes the user, and begins the step of the filter behind it.

    The span of the request begins here, as its trace depends on the user: it is that of a trusted client, or a new one.
    """
    kind = _kind_of_filter(name)

    def enter(request: Request, next_: Handler) -> Awaitable[Response]:
        if (recorder := current_recorder()) is not None:
            trace, marks = recorder.trace, recorder.marks
            trace.user = request.user
            if (sampling := trace.sampling) is not None:
                sampling.decide(trace.propagated, trusted=not _TRUSTED.isdisjoint(request.user.groups))
                trace.span_id = new_span_id()
                marks += (StepKind(span_name(request), SERVER, stays_open=True), monotonic(), None)
            marks += (kind, monotonic(), None)
        return next_(request)

    return enter


def _kind_of_filter(name: str) -> StepKind:
    return StepKind(name, FILTER if name in SPANS else OWN, stays_open=True, is_filter=True)


_TRUSTED: Final = frozenset({SYSTEM_MASTERS, "system:monitoring"})
"""Groups of users whose trace context is honoured."""


def span_name(request: Request) -> str:
    """Return the name of a request's span (`getSpanNameFromRequestInfo`)."""
    info = request.info
    if not info.resource_request:
        return str(cut(request.method))
    action = info.action
    parts = ["apis" if info.path.startswith("/apis/") else "api", action.group, action.version]
    if action.namespace:
        parts += ["namespaces", "{:namespace}"]
    parts += [action.resource, "{:name}" if action.name else "", action.subresource]
    return str(cut(f"{request.method} /{'/'.join(part for part in parts if part)}"))


# The handler

_OPERATIONS: Final = {
    "get": "Get",
    "list": "List",
    "create": "Create",
    "update": "Update",
    "patch": "Patch",
    "delete": "Delete",
    "deletecollection": "Delete",
}
"""Spans of kube-apiserver's handlers, by verb."""


_STEPS: Final = {verb: StepKind(name, COMPONENT, TRACE_FIELDS, stays_open=True) for verb, name in _OPERATIONS.items()}
_STEPS["watch"] = StepKind("watch", stays_open=True)
_HANDLER: Final = StepKind("handler", stays_open=True)


def traced_handler(handle: Handler) -> Handler:
    """Return a handler that begins the step of the request's operation before `handle`."""

    def traced(request: Request) -> Awaitable[Response]:
        if (recorder := current_recorder()) is not None:
            info = request.info
            kind = _STEPS.get(info.action.verb, _HANDLER) if info.resource_request else _HANDLER
            recorder.marks += (kind, monotonic(), None)
        return handle(request)

    return traced


# The whole request


class Endings:
    """Ends traces, and passes them to their readers."""

    def __init__(self, readers: Readers, fairness: Fairness | None) -> None:
        self._readers: Final = readers
        self._fairness: Final = fairness

    def finish(self, trace: Trace, request: Request, response: Response) -> None:
        """End the trace at the end of the answer, also of a body that is still being produced."""
        body = response.body
        if isinstance(body, bytes):
            self._end(trace, request, response.status, len(body))
        elif type(body) is StreamedBody:
            body.on_request_end(lambda: self._end(trace, request, response.status, body.size))
        elif isinstance(body, list):
            self._end(trace, request, response.status, sum(map(len, body)))
        else:
            first = request.http.on_request_end

            def over() -> None:
                if first is not None:
                    first()
                self._end(trace, request, response.status, None)

            request.http.on_request_end = over

    def abandon(self, trace: Trace, request: Request) -> None:
        """End the trace of a request whose client left before there was an answer."""
        self._end(trace, request, _CLIENT_LEFT, None)

    def _end(self, trace: Trace, request: Request, code: int, size: int | None) -> None:
        if self._readers.is_needed(trace):
            trace.id = request.audit_id if len(request.audit_id) <= _LONGEST_ID else str(cut(request.audit_id))
            trace.answered = answered(trace, self._fairness, request, code, size)
            self._readers.end(trace)


_LONGEST_ID: Final = 64
