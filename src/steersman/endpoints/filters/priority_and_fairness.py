"""Queueing of requests by priority and fairness (WithPriorityAndFairness)."""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections.abc import Callable
from functools import partial
from typing import Final

from steersman.api.meta.v1 import ListOptions
from steersman.audit.latencies import QUEUE_WAIT
from steersman.endpoints.metrics import RequestMetrics
from steersman.endpoints.parameters import decode_parameters
from steersman.endpoints.request import Filter, Handler, Request
from steersman.endpoints.responses import NOSNIFF, TEXT_TYPE
from steersman.endpoints.streamed import SMALL, ends_at_once
from steersman.flowcontrol.counts import DURATIONS
from steersman.flowcontrol.estimates import (
    ONE_SEAT,
    WATCHES_PER_SEAT,
    Estimate,
    Stored,
    estimate_list,
    estimate_write,
)
from steersman.flowcontrol.fairness import Fairness, Flow
from steersman.flowcontrol.matching import Digest
from steersman.flowcontrol.queue_set import Ticket
from steersman.machinery.errors.status import StatusError
from steersman.machinery.values.times import monotonic
from steersman.net.message import Response

StoredObjects = Callable[[str, str], Stored | None]
"""Function (group, plural) -> statistics of a resource's stored objects, None for a resource of other servers."""

_READING: Final = frozenset({"get", "list", "watch"})
_TOLD: Final = frozenset({"create", "update", "patch", "delete"})
"""Verbs that cause watch events, except for the creation of a service account's token."""
_LONGEST_WAIT: Final = 60.0
_TOO_MANY: Final = b"Too many requests, please try again later.\n"


def with_priority_and_fairness(
    fairness: Fairness, stored: StoredObjects, metrics: RequestMetrics, default_wait: float
) -> Filter:
    """Return a filter by which a request waits for its seat; 429 if its queue is full, or after a quarter of its time.

    Long-running requests do not wait, except for the start of a watch. A large answer keeps its seat until the client
    has received it, a small answer or a refusal until it is passed to the connection, and a watch until its initial
    objects are sent. A request without a deadline waits at most `default_wait` seconds.
    """
    metrics.count_inflight(lambda: (fairness.running[0], fairness.running[1]))
    running, watches, flows = fairness.running, fairness.watches, fairness.flows

    def over(flow: Flow, ticket: Ticket, is_writing: int) -> None:
        running[is_writing] -= 1
        seconds = flow.seats.finish(ticket)
        series = flow.counts.regular
        series[bisect_left(DURATIONS, seconds)] += 1
        series[-1] += seconds
        if flow.level.is_quiescing:
            fairness.left(flow)

    async def in_turn(request: Request, next_: Handler) -> Response:
        # every request passes here: this code avoids calls where it can
        info = request.info
        action, user = info.action, request.user
        verb = action.verb
        if info.long_running and verb != "watch":
            return await next_(request)
        path = None if info.resource_request else info.path
        key = (user.name, user.groups, verb, action.resource, action.namespace, action.group, action.subresource, path)
        flow = flows[key] or fairness.find(key, Digest(user.name, user.groups, action, path))
        request.flow = flow
        counts = flow.counts
        estimate = ONE_SEAT
        if verb == "list" or verb == "watch":
            estimate = _estimate_list(request, flow, stored)
        elif verb in _TOLD and not (action.subresource == "token" and action.resource == "serviceaccounts"):
            watchers = watches.interested(action)
            if watchers == 0:
                counts.unwatched += 1
            else:
                request.watchers = watchers
                counts.observe_watches(watchers)
                if watchers >= WATCHES_PER_SEAT:
                    estimate = estimate_write(watchers, flow.level.most_seats)
        if estimate is ONE_SEAT:
            counts.narrow += 1
            ticket = flow.seats.start(counts, flow.hand, request, request.received)
        else:
            counts.estimated(max(estimate.initial, estimate.final))
            ticket = flow.seats.start(counts, flow.hand, request, request.received, *estimate)
        request.estimate = estimate
        request.ticket = ticket
        if ticket is None:
            counts.waited_for(0.0, queued=False)
            return _refused(fairness, metrics, request, flow)
        if ticket.started < 0.0 and not await _seated(fairness, request, flow, ticket, default_wait):
            return _refused(fairness, metrics, request, flow)
        is_writing = verb not in _READING
        running[is_writing] += 1
        if verb == "watch" and path is None:
            return await _watched(fairness, request, flow, ticket, next_)
        try:
            response = await next_(request)
        except BaseException:
            over(flow, ticket, is_writing)
            raise
        response.headers += flow.headers
        body = response.body
        if (type(body) is bytes and len(body) <= SMALL) or ends_at_once(request, response):
            over(flow, ticket, is_writing)
        else:
            request.http.on_request_end = partial(over, flow, ticket, is_writing)
        return response

    return in_turn


def _estimate_list(request: Request, flow: Flow, stored: StoredObjects) -> Estimate:
    info = request.info
    if not info.resource_request:
        return ONE_SEAT
    action = info.action
    return estimate_list(
        _list_options(request) if request.http.query else _NO_OPTIONS,
        lambda: stored(action.group, action.resource),
        flow.level.most_seats,
        is_watch=action.verb == "watch",
        is_of_one=bool(info.authorized_action.name),
        has_selector=any(info.selectors),
    )


_NO_OPTIONS: Final = ListOptions()


def _list_options(request: Request) -> ListOptions | None:
    """Return the options of a list except for its selectors, None if they are malformed."""
    parameters = request.parameters(_ESTIMATED)
    if any(len(parameters.get(each, "")) > _LONGEST_NUMBER for each in _NUMBERS):
        return None  # avoids building an error that quotes a long value
    try:
        return decode_parameters(ListOptions, parameters)
    except StatusError:
        return None


_NUMBERS: Final = ("limit", "timeoutSeconds")
_LONGEST_NUMBER: Final = 1_000
"""Limit of characters of a 64-bit number; longer texts are malformed."""
_ESTIMATED: Final = (
    "limit",
    "continue",
    "resourceVersion",
    "resourceVersionMatch",
    "sendInitialEvents",
    "timeoutSeconds",
)
"""Parameters of a list that determine its seats, or that may be malformed."""


async def _seated(fairness: Fairness, request: Request, flow: Flow, ticket: Ticket, default_wait: float) -> bool:
    """Wait until the request has its seat; return False if it has waited too long."""
    loop = asyncio.get_running_loop()
    turn: asyncio.Future[None] = loop.create_future()

    def decided() -> None:
        if not turn.done():
            turn.set_result(None)

    def time_is_up() -> None:
        flow.seats.give_up(ticket)
        decided()

    ticket.decided = decided
    wait = (request.deadline - request.received) / 4 if request.deadline else default_wait
    until = request.received + min(wait, _LONGEST_WAIT)
    timer = loop.call_later(max(until - monotonic(), 0.0), time_is_up)
    try:
        await turn
    except BaseException:
        if flow.seats.give_up(ticket):
            fairness.left(flow)
        elif ticket.started >= 0.0:
            flow.seats.finish(ticket)
            fairness.left(flow)
        raise
    finally:
        timer.cancel()
        waited = fairness.clock() - ticket.arrived
        flow.counts.waited_for(waited, queued=True)
        flow.counts.in_vain += ticket.started < 0.0
        if request.audit is not None:
            request.audit.add_latency(QUEUE_WAIT, waited)
    if ticket.started >= 0.0:
        return True
    fairness.left(flow)
    return False


async def _watched(fairness: Fairness, request: Request, flow: Flow, ticket: Ticket, next_: Handler) -> Response:
    """Start a watch, which counts for the cost of later writes; release its seat once the watch is initialized."""
    field_selector = request.info.selectors[0] if request.http.query else ""
    forget = fairness.watches.register(request.info.authorized_action, field_selector)
    has_seat = True

    def initialized() -> None:
        nonlocal has_seat
        if has_seat:
            has_seat = False
            fairness.running[0] -= 1
            flow.counts.watched(flow.seats.finish(ticket))
            fairness.left(flow)

    def over() -> None:
        initialized()
        forget()

    request.initialized = initialized
    try:
        response = await next_(request)
    except BaseException:
        over()
        raise
    response.headers += flow.headers
    if ends_at_once(request, response):
        over()
    else:
        request.http.on_request_end = over
    return response


def _refused(fairness: Fairness, metrics: RequestMetrics, request: Request, flow: Flow) -> Response:
    """Return the 429 answer and count it; its Retry-After depends on earlier refusals."""
    fairness.left(flow)
    labels = metrics.labels(request.info, dry_run=False)
    metrics.total.inc((*labels, "429"))
    metrics.terminations.inc((labels[0], *labels[2:], "429"))
    seconds = fairness.refused.note(flow.level.name)
    headers = [TEXT_TYPE, NOSNIFF, ("retry-after", str(seconds)), *flow.headers]
    return Response(429, headers, _TOO_MANY)
