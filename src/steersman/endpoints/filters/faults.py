"""Injection of faults into requests, right before their handlers."""

from __future__ import annotations

import asyncio
from typing import Any, Final, cast

from steersman.endpoints.filters.faulty_watch import FaultyWatch
from steersman.endpoints.request import Filter, Handler, Request
from steersman.endpoints.responses import error_response
from steersman.faults.body_names import MOST_BYTES, name_in
from steersman.faults.fault import GARBAGE, LONGEST, Fault, Met, Status, usual_reason
from steersman.faults.fault_set import ANNOTATION, RESOURCE, FaultSet
from steersman.faults.interception import Cut, Interception, OpenWatch
from steersman.faults.stale_reads import Read
from steersman.machinery.errors import status as errors
from steersman.machinery.errors.status import StatusError, plain_internal
from steersman.machinery.identity.action import Action
from steersman.net.ascii import is_digits
from steersman.net.body import IncomingBody
from steersman.net.connection import is_pulled, is_pushed
from steersman.net.message import BodyAborted, Response
from steersman.rest.capabilities import EXACT
from steersman.tracing.trace import step

_LONGEST_AGENT: Final = 1024
_WITH_BODY: Final = frozenset({"create", "update", "patch", "delete"})
_READS: Final = frozenset({"get", "list"})
_READ_OPTIONS: Final = ("resourceVersion", "resourceVersionMatch", "continue")
_LONGEST: Final = 20
"""Digits of a revision."""
_MOST_DIGITS: Final = len(str(MOST_BYTES))
_MODIFIED: Final = "the object has been modified; please apply your changes to the latest version and try again"


class ConnectionCut(asyncio.CancelledError):
    """Ends a request as the departure of its client does: the connection is cut off without an answer."""


def with_faults(faults: FaultSet) -> Filter:
    """Return a filter that lets active faults happen to the requests that they hit."""

    async def faulty(request: Request, next_: Handler) -> Response:
        interceptor = faults.interceptor
        if interceptor is None:
            return await (_with_fault(faults, request, next_) if faults.has_requests else next_(request))
        met = None if _is_spared(request) else await _met(faults, request, peeks=True)
        observed = None if met is None else interceptor.begin(met)
        if observed is None:
            return await _with_fault(faults, request, next_)
        return await _intercepted(observed, request, lambda inner: _with_fault(faults, inner, next_))

    return faulty


async def _with_fault(faults: FaultSet, request: Request, next_: Handler) -> Response:
    if not faults.has_requests or _is_spared(request):
        return await next_(request)
    fault = await _fault_of(faults, request)
    if fault is not None and fault.is_stale:
        request.as_of = faults.past(fault, _read_of(request))
    response = await (next_(request) if fault is None else _inject(faults, fault, request, next_))
    if faults.needs_reads:
        _note_shown(faults, request, response)
    return response


async def _fault_of(faults: FaultSet, request: Request) -> Fault | None:
    """Return the fault that hits a request, None if none does."""
    candidates = faults.of_action(request.info.action)
    if not candidates:
        return None
    return faults.choose(await _met(faults, request, peeks=any(each.needs_names for each in candidates)))


def _note_shown(faults: FaultSet, request: Request, response: Response) -> None:
    """Note the revision that an answer shows to its connection."""
    action, peer, body = request.info.action, request.http.peer, response.body
    resource = (action.group, action.resource)
    if action.verb == "watch" and is_pushed(body):
        response.body = faults.watched(peer, resource, cast("OpenWatch", body))
    else:
        faults.note_shown(peer, resource, request.as_of)


def _read_of(request: Request) -> Read | None:
    """Return a get or list that a lagging cache might answer; None for other requests."""
    action = request.info.action
    if action.verb not in _READS or action.subresource:
        return None
    query = request.parameters(_READ_OPTIONS)
    version = query.get("resourceVersion") or ""
    if query.get("continue") or query.get("resourceVersionMatch") == EXACT or not (is_digits(version) or not version):
        return None
    return Read(version, (action.group, action.resource), request.http.peer) if len(version) < _LONGEST else None


def _is_spared(request: Request) -> bool:
    """Return True for a request that no fault may hit."""
    action = request.info.action
    return not request.info.resource_request or (action.group, action.resource) == RESOURCE


async def _met(faults: FaultSet, request: Request, *, peeks: bool) -> Met:
    """Return the facts about a request; `peeks` is True if they include the name in the body of a create."""
    action = request.info.action
    agent = request.headers.get("user-agent", "")[:_LONGEST_AGENT]
    user, name, body = request.user, action.name, b""
    is_nameless = action.verb == "create" and not name
    if peeks and (is_nameless or faults.interceptor is not None):
        body = await _peek(request)
    if is_nameless and body:
        name = name_in(body).name
    read = _read_of(request) if faults.needs_reads else None
    return Met(action, user.name, user.groups, agent, name, read, body)


async def _peek(request: Request) -> bytes:
    """Return the body of a write, which the handler reads again; b"" for one of unknown or large size."""
    length = request.headers.get("content-length", "")
    action = request.info.action
    if action.verb not in _WITH_BODY or action.subresource == "proxy" or not is_digits(length):
        return b""
    if len(length) > _MOST_DIGITS or int(length) > MOST_BYTES:
        return b""
    try:
        body = await request.http.body.read(MOST_BYTES)
    except BodyAborted as error:
        raise plain_internal(str(error)) from None
    again = IncomingBody(expected=len(body))
    if body:
        again.feed(body)
    again.finish()
    request.http.body = again
    return body


async def _intercepted(observed: Interception, request: Request, next_: Handler) -> Response:
    """Let an observer see a request, and decide on its answer. Raises ConnectionCut."""
    instead = await observed.before()
    if instead is not None:
        return _instead(request, instead)
    try:
        response = await next_(request)
    except StatusError as error:
        await observed.after(error.code)
        raise
    instead = await observed.after(response.status)
    if instead is not None:
        await _abandon(response)
        return _instead(request, instead)
    body: Any = response.body
    if request.info.action.verb == "watch" and is_pushed(body):
        response.body = observed.watch(body)
    return response


def _instead(request: Request, instead: Status | Cut) -> Response:
    """Return the error in place of an answer. Raises ConnectionCut."""
    if isinstance(instead, Cut):
        raise ConnectionCut
    return error_response(request, status_error(instead, request.info.action))


async def _inject(faults: FaultSet, fault: Fault, request: Request, next_: Handler) -> Response:
    """Let a fault happen to a request. Raises ConnectionCut."""
    effect = fault.spec.effect
    if request.audit is not None:
        request.audit.annotate(ANNOTATION, fault.name)
    with step("Injected fault", fault=fault.name):
        if fault.before:
            await fault.wait(fault.before)
        if fault.clock_advance and faults.advance_clock is not None:
            faults.advance_clock(fault.clock_advance)
        if effect.hang:
            await fault.wait(LONGEST)
        if effect.cut:
            raise ConnectionCut
        if effect.garbage:
            return Response(200, [("content-type", "text/html")], GARBAGE)
        if effect.status is not None:
            return error_response(request, status_error(effect.status, request.info.action))
        response = await next_(request)
        if fault.after:
            await fault.wait(fault.after)
        if effect.lose_answer:
            await _abandon(response)
            raise ConnectionCut
    body: Any = response.body
    if fault.affects_watches and request.info.action.verb == "watch" and is_pushed(body):
        response.body = FaultyWatch(fault, body)
    return response


async def _abandon(response: Response) -> None:
    """Release a response that nobody gets."""
    body: Any = response.body
    if is_pushed(body):
        body.closed()
    elif is_pulled(body):
        await body.aclose()


def status_error(status: Status, action: Action) -> StatusError:
    """Return the error of a fault, with the usual message of its code where the fault has none."""
    reason = status.reason or usual_reason(status.code)
    usual = _usual(status.code, action)
    message = status.message or usual.message
    return StatusError(
        status.code,
        reason,
        message,
        name=action.name,
        group=action.group,
        kind=action.resource,
        retry_after=status.retry_after_seconds,
    )


def _usual(code: int, action: Action) -> StatusError:
    resource, name = action.group_resource, action.name
    if code == 409:
        return errors.conflict(resource, name, _MODIFIED)
    if code == 404:
        return errors.not_found(resource, name)
    if code == 410:
        return errors.expired("The resourceVersion for the provided watch is too old.")
    if code == 403:
        return errors.forbidden(resource, name, "injected fault")
    if code == 429:
        return errors.too_many_requests("Too many requests, please try again later.")
    if code == 503:
        return errors.service_unavailable("the server is currently unable to handle the request")
    if code == 504:
        return errors.server_timeout(resource, action.verb, 0)
    return StatusError(code, usual_reason(code), f"injected fault: {code}")
