"""Tracing of requests: a step for each filter (`filterlatency.TrackStarted`), and the facts about a whole request.

These filters are only in the chain of requests that are traced.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

from steersman.endpoints.request import Filter, Handler, Request
from steersman.endpoints.spans import trace_fields
from steersman.endpoints.streamed import StreamedBody
from steersman.flowcontrol.fairness import Fairness
from steersman.machinery.identity.action import NO_ACTION
from steersman.net.message import Response
from steersman.tracing.readers import Readers
from steersman.tracing.trace import Step, Trace, current_step, cut, span, step

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


def around(name: str) -> Filter:
    """Return a filter that opens a step for the next filter."""
    opened = span if name in SPANS else step

    async def traced(request: Request, next_: Handler) -> Response:
        with opened(name):
            return await next_(request)

    return traced


def behind(note: Note | None) -> Filter:
    """Return a filter that notes what the previous one has found out, and that it has passed the request on."""

    async def passed(request: Request, next_: Handler) -> Response:
        opened = current_step()
        if opened is not None and opened.parent is not None:
            opened.passed_on = time.monotonic()
            if note is not None:
                note(opened, request)
        return await next_(request)

    return passed


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
        with span(name, **trace_fields(request)):
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
    trace.id = str(cut(request.audit_id))
    trace.facts = facts(request, code, size)
    trace.facts["name"] = trace.facts["name"] or trace.object_name
    readers.end(trace)


def facts(request: Request, code: int, size: int | None) -> dict[str, Any]:
    """Return the facts about an answered request; texts that a client chooses are cut. It has no query, header field
    but the user agent, or body, as these may contain secrets.
    """
    info = getattr(request, "info", None)  # absent if the path was unintelligible
    user = getattr(request, "user", None)  # absent if the request was not authenticated
    action = NO_ACTION if info is None else info.action
    of_resource = info is not None and info.resource_request
    return {
        "verb": cut(action.verb or request.method),
        "method": cut(request.method),
        "path": cut(request.path),
        "apiGroup": cut(action.group) if of_resource else "",
        "apiVersion": cut(action.version) if of_resource else "",
        "resource": cut(action.resource) if of_resource else "",
        "subresource": cut(action.subresource) if of_resource else "",
        "namespace": cut(action.namespace) if of_resource else "",
        "name": cut(action.name) if of_resource else "",
        "user": "" if user is None else cut(user.name),
        "userAgent": cut(request.headers.get("user-agent", "")),
        "sourceIP": request.http.peer.host,
        "protocol": request.http.version,
        "code": code,
        "bytes": size,
    }
