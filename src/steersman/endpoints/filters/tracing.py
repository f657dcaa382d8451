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
from steersman.endpoints.request import Handler, Request
from steersman.endpoints.streamed import StreamedBody
from steersman.net.message import Response
from steersman.tracing.readers import Readers
from steersman.tracing.trace import FILTER, OWN, SERVER, StepKind, Trace, cut, new_span_id

SPANS: Final = frozenset(
    {"authentication", "audit", "constrainedimpersonation", "priorityandfairness", "authorization"}
)
"""Filters that kube-apiserver exports as spans."""
_CLIENT_LEFT: Final = 499
"""Code of a request without an answer, as reverse proxies log it."""


def kind_of_filter(name: str) -> StepKind:
    """Return the step of a filter. It encloses all that the filter passes the request on to, as kube-apiserver's spans
    do.
    """
    return StepKind(name, FILTER if name in SPANS else OWN, stays_open=True, is_filter=True)


def enter(request: Request, next_: Handler) -> Awaitable[Response]:
    """Note the start of the filter, or the handler, behind this one."""
    request.entered.append(monotonic())
    return next_(request)


def enter_with_user(request: Request, next_: Handler) -> Awaitable[Response]:
    """Note the authenticated user, and the start of the filter behind this one.

    The span of the request begins here, as its trace depends on the user: it is that of a trusted client, or a new one.
    """
    trace = request.trace
    trace.user = request.user
    if (sampling := trace.sampling) is not None:
        sampling.decide(trace.propagated, trusted=not _TRUSTED.isdisjoint(request.user.groups))
        trace.span_id = new_span_id()
        trace.span = StepKind(span_name(request), SERVER, stays_open=True)
    request.entered.append(monotonic())
    return next_(request)


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


class Endings:
    """Ends traces, and passes them to their readers."""

    def __init__(self, readers: Readers) -> None:
        self._readers: Final = readers

    def finish(self, trace: Trace, request: Request, response: Response) -> None:
        """End the trace at the end of the answer, also of a body that is still being produced."""
        body = response.body
        if isinstance(body, bytes):
            self.end(trace, request, response.status, len(body))
        elif isinstance(body, list):
            self.end(trace, request, response.status, sum(map(len, body)))
        else:
            self._finish_later(trace, request, response)

    def _finish_later(self, trace: Trace, request: Request, response: Response) -> None:
        body, first = response.body, request.http.on_request_end
        trace.answered_at = monotonic()
        about = answered(request, response.status, None, self._readers.reads_spans)
        if about.action.verb == "watch":
            trace.answered = about
            self._readers.open(trace)
        if type(body) is StreamedBody:
            body.on_request_end(lambda: self.end(trace, request, response.status, body.size))
            return

        def over() -> None:
            if first is not None:
                first()
            self.end(trace, request, response.status, None)

        request.http.on_request_end = over

    def abandon(self, trace: Trace, request: Request) -> None:
        """End the trace of a request whose client left before there was an answer."""
        self.end(trace, request, _CLIENT_LEFT, None)

    def end(self, trace: Trace, request: Request, code: int, size: int | None) -> None:
        """End the trace of an answered request with a body of `size` bytes, and pass it to its readers."""
        trace.ended = ended = monotonic()
        if trace.error is not None:
            trace.error = None  # its traceback refers to frames
        readers = self._readers
        if ended - trace.began >= readers.least_seconds:
            trace.answered = answered(request, code, size, readers.reads_spans)
            readers.end(trace)
