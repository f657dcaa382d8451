"""Tracing of requests (WithTracing): a step for each filter (`filterlatency.TrackStarted`), and the facts about a whole request.

These filters are only in the chain of requests that are traced.
"""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import Any, Final

from steersman.authentication.user import SYSTEM_MASTERS
from steersman.endpoints.filters.audit import request_uri
from steersman.endpoints.request import Filter, Handler, Request
from steersman.endpoints.spans import TRACE_FIELDS, protocol, scope_of, verb_of
from steersman.endpoints.streamed import StreamedBody
from steersman.flowcontrol.fairness import Fairness
from steersman.machinery.identity.action import NO_ACTION
from steersman.net.message import Response
from steersman.tracing.readers import Readers
from steersman.tracing.trace import (
    FILTER,
    MAX_TEXT,
    OWN,
    SERVER,
    Step,
    Trace,
    close_step,
    current_step,
    cut,
    open_step,
    span,
    step,
)

Note = Callable[[Step, Request], None]
"""Function that adds to a filter's step the facts that the filter has found out about the request."""

SPANS: Final = frozenset(
    {"authentication", "audit", "constrainedimpersonation", "priorityandfairness", "authorization"}
)
"""Filters that kube-apiserver exports as spans."""
_TOLD: Final = frozenset({"create", "update", "patch", "delete"})
"""Verbs of writes to one object."""
_CLIENT_LEFT: Final = 499
"""Code of a request without an answer, as reverse proxies log it."""


def entering(note: Note | None, name: str) -> Filter:
    """Return a filter that notes what the filter before it has found out, and opens the step of the filter behind it.

    `note` belongs to the filter before. The step of a filter encloses all that it passes the request on to, as
    kube-apiserver's spans do.
    """
    scope = FILTER if name in SPANS else OWN

    async def between(request: Request, next_: Handler) -> Response:
        before = current_step()
        if before is None or (opened := before.trace.open(before, name, {}, scope=scope)) is None:
            return await next_(request)
        if before.parent is not None:
            before.passed_on = opened.began
            if note is not None:
                note(before, request)
        token = open_step(opened)
        try:
            return await next_(request)
        except BaseException as error:
            opened.fail(error)
            raise
        finally:
            close_step(token)
            opened.ended = monotonic()

    return between


def leaving(note: Note | None) -> Filter:
    """Return a filter that notes what the last filter has found out."""

    async def behind(request: Request, next_: Handler) -> Response:
        last = current_step()
        if last is not None and last.parent is not None:
            last.passed_on = monotonic()
            if note is not None:
                note(last, request)
        return await next_(request)

    return behind


async def with_tracing(request: Request, next_: Handler) -> Response:
    """Open the span of the request, and choose its trace: that of a trusted client, or a new one."""
    before = current_step()
    if before is None or (sampling := before.trace.sampling) is None:
        return await next_(request)
    sampling.decide(before.trace.propagated, trusted=not _TRUSTED.isdisjoint(request.user.groups))
    opened = before.trace.open(before, span_name(request), {}, scope=SERVER)
    if opened is None:
        return await next_(request)
    with opened:
        return await next_(request)


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


# Facts of the filters


def note_user(opened: Step, request: Request) -> None:
    """Note the authenticated or impersonated user."""
    if opened.name == "authentication":
        opened.attributes.setdefault("authenticator", "cache of valid tokens")
    known = opened.trace.facts.get("user")
    opened.trace.facts["user"] = request.user.name
    if request.user.name == known:
        return
    opened.set("user", request.user.name)
    opened.set("groups", ",".join(request.user.groups))


def note_id(opened: Step, request: Request) -> None:
    """Note the request's id."""
    opened.trace.id = str(cut(request.audit_id))


def note_flow(fairness: Fairness | None, opened: Step, request: Request) -> None:
    """Note flow schema, priority level, seats, the seconds in the queue, and for a write the watches it is told to."""
    flow = request.flow
    if flow is None or fairness is None:
        return
    opened.set("flowSchema", flow.schema)
    opened.set("priorityLevel", flow.level.name)
    opened.set("seats", request.estimate.initial)
    ticket = request.ticket
    if ticket is not None and ticket.started >= 0.0:
        opened.set("queueSeconds", round(max(ticket.started - ticket.arrived, 0.0), 6))
    action = request.info.action
    if action.verb in _TOLD:
        opened.set("watchers", fairness.watches.interested(action))


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


def traced_handler(handle: Handler) -> Handler:
    """Return a handler that runs `handle` in the step of the request's operation."""

    async def traced(request: Request) -> Response:
        info = request.info
        name = _OPERATIONS.get(info.action.verb) if info.resource_request else None
        if name is None:
            with step("watch" if info.action.verb == "watch" and info.resource_request else "handler"):
                return await handle(request)
        with span(name, TRACE_FIELDS):
            return await handle(request)

    return traced


# The whole request


def finish(readers: Readers, trace: Trace, request: Request, response: Response) -> None:
    """Pass the trace to its readers at the end of the answer, also of a body that is still being produced."""
    body = response.body
    if type(body) is StreamedBody:
        body.on_request_end(lambda: _end(readers, trace, request, response.status, body.size))
    elif isinstance(body, bytes):
        _end(readers, trace, request, response.status, len(body))
    elif isinstance(body, list):
        _end(readers, trace, request, response.status, sum(map(len, body)))
    else:
        first = request.http.on_request_end

        def over() -> None:
            if first is not None:
                first()
            _end(readers, trace, request, response.status, None)

        request.http.on_request_end = over


def abandon(readers: Readers, trace: Trace, request: Request) -> None:
    """Pass on the trace of a request whose client left before there was an answer."""
    trace.root.set("error", "the client left")
    _end(readers, trace, request, _CLIENT_LEFT, None)


def _end(readers: Readers, trace: Trace, request: Request, code: int, size: int | None) -> None:
    if not readers.is_needed(trace):
        return
    trace.id = str(cut(request.audit_id))
    trace.facts = facts(request, code, size)
    trace.facts["name"] = trace.facts["name"] or trace.object_name
    readers.end(trace)


def facts(request: Request, code: int, size: int | None) -> dict[str, Any]:
    """Return the facts about an answered request; texts that a client chooses are cut. It has no query, header field
    but the user agent and Accept, or body, as these may contain secrets.
    """
    info = getattr(request, "info", None)  # absent if the path was unintelligible
    user = getattr(request, "user", None)  # absent if the request was not authenticated
    action = info.action if info is not None and info.resource_request else NO_ACTION
    verb = NO_ACTION.verb if info is None else info.action.verb
    found = {
        "verb": verb or request.method,
        "method": request.method,
        "path": request.path,
        "apiGroup": action.group,
        "apiVersion": action.version,
        "resource": action.resource,
        "subresource": action.subresource,
        "namespace": action.namespace,
        "name": action.name,
        "pathName": action.name,
        "user": "" if user is None else user.name,
        "userAgent": request.headers.get("user-agent", ""),
        "sourceIP": request.http.peer.host,
        "protocol": protocol(request),
        "accept": request.headers.get("accept", ""),
        "scope": scope_of(action),
        "metricsVerb": verb_of(request, verb),
        "host": request.http.host,
        "scheme": request.http.scheme,
        "target": request_uri(request),
    }
    if sum(map(len, found.values())) > MAX_TEXT:
        found = {name: str(cut(each)) for name, each in found.items()}
    return {**found, "sourcePort": request.http.peer.port, "code": code, "bytes": size}
