"""The time of a request: how long it may take, and what becomes of it while the server goes down.

Upstream has a filter for each: WithCacheControl, WithWatchTerminationDuringShutdown, WithWaitGroup, WithRequestDeadline,
WithTimeoutForNonLongRunningRequests, WithWarningRecorder.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, Protocol

from steersman.endpoints.filters.audit import refused
from steersman.endpoints.filters.warnings import add_warnings
from steersman.endpoints.metrics import RequestMetrics
from steersman.endpoints.request import Filter, Handler, Request
from steersman.endpoints.responses import error_response
from steersman.endpoints.streamed import StreamedBody
from steersman.machinery.errors.field import quote
from steersman.machinery.errors.status import StatusError, bad_request, timeout
from steersman.machinery.values.durations import DurationError, parse_duration
from steersman.machinery.values.times import monotonic
from steersman.net.message import Response

if TYPE_CHECKING:
    from steersman.audit.trail import Auditor

_CACHE_CONTROL: Final = ("cache-control", "no-cache, private")
_SECOND: Final = 1_000_000_000
"""In nanoseconds."""
_LONGEST: Final = 1_000
"""Characters of a timeout. Go takes any number of terms; the usual ones have one or two."""


class Ending(Protocol):
    """A server that may be going down."""

    shutting_down: bool
    """True once the server is going down."""


class WaitGroup:
    """Short requests in flight. Once `closed`, no more are let in."""

    def __init__(self) -> None:
        self.running = 0
        self.closed = False
        self._idle = asyncio.Event()

    def leave(self) -> None:
        """One less."""
        self.running -= 1
        if self.closed and not self.running:
            self._idle.set()

    async def close(self) -> None:
        """Lets no more in and returns once none is left."""
        self.closed = True
        if self.running:
            await self._idle.wait()


def with_lifetime(
    server: Ending, group: WaitGroup, longest: float, metrics: RequestMetrics, auditor: Auditor | None = None
) -> Filter:
    """Sets `request.deadline` from `?timeout=`, at most `longest` seconds: 504 when it passes, or the end of an answer
    that has begun, and what was being done is cancelled. 400 for a timeout that cannot be read.

    A write that storage has taken on is committed all the same, as it would be had the client gone away. Long-running
    requests have no deadline. While the server goes down new watches get 503, and so do all requests once the `group` of
    short ones is closed, in which each is counted until its answer is over. Sends the warnings of handlers, and
    `Cache-Control: no-cache, private` unless the handler chose another.
    """

    async def lifetime(request: Request, next_: Handler) -> Response:
        if request.info.long_running:
            if server.shutting_down and request.info.action.verb == "watch":
                response = _going_down(request)
            else:
                response = await next_(request)
                if request.warnings:
                    add_warnings(request, response)
        elif group.closed:
            response = _going_down(request)
        else:
            group.running += 1
            try:
                request.deadline = request.received + longest
                refusal = _shorten(request, longest, auditor) if request.http.query else None
                response = refusal or await _in_time(request, next_, metrics)
            except BaseException:
                group.leave()
                raise
            if type(response.body) is StreamedBody:
                response.body.when_over(group.leave)
            else:
                group.leave()
        for name, _ in response.headers:
            if name == "cache-control":
                return response
        response.headers.append(_CACHE_CONTROL)
        return response

    return lifetime


def _going_down(request: Request) -> Response:
    return error_response(request, StatusError(503, "ServiceUnavailable", "apiserver is shutting down", retry_after=1))


# Deadlines


def _shorten(request: Request, longest: float, auditor: Auditor | None) -> Response | None:
    """Bring the deadline forward, if the query says so; return the refusal of a timeout that cannot be read."""
    text = request.parameter("timeout")
    if not text:
        return None
    try:
        asked = _duration(text) / _SECOND
    except DurationError as error:
        reason = f"invalid timeout specified in the request URL - {error}"
        refusal = bad_request(reason)
        return refused(auditor, request, reason, lambda: error_response(request, refusal))
    if 0 < asked < longest:
        request.deadline = request.received + asked
    return None


def _duration(text: str) -> int:
    """Nanoseconds. Raises DurationError, also for one that is long: nobody has been asked who sent it."""
    if len(text) > _LONGEST:
        raise DurationError(f"time: invalid duration {quote(text)}")
    return parse_duration(text)


async def _in_time(request: Request, next_: Handler, metrics: RequestMetrics) -> Response:
    """Return what `next_` answers, or 504 when the deadline has passed."""
    step = next_(request).__await__()
    try:
        awaited = [next(step)]  # most requests never wait, and then need no timer
    except StopIteration as done:
        response: Response = done.value
    else:
        limit = _Limit(asyncio.current_task())
        timer = asyncio.get_running_loop().call_later(request.deadline - monotonic(), limit.reached)
        try:
            response = await _Resumed(step, awaited)
        except asyncio.CancelledError:
            if not limit.passed:
                raise
            limit.task.uncancel()
            _count(request, metrics)
            return error_response(request, timeout("Timeout: request did not complete within the allotted timeout"))
        finally:
            timer.cancel()
    if type(response.body) is StreamedBody:
        _limit_body(request, response.body, metrics)
    if request.warnings:
        add_warnings(request, response)
    return response


def _limit_body(request: Request, body: StreamedBody, metrics: RequestMetrics) -> None:
    """End a body that is still being made when the deadline passes."""
    limit = _Limit(asyncio.current_task())
    timer = asyncio.get_running_loop().call_later(request.deadline - monotonic(), limit.reached)

    def over() -> None:
        timer.cancel()
        if limit.passed:
            _count(request, metrics)

    body.when_over(over)


def _count(request: Request, metrics: RequestMetrics) -> None:
    verb, _, *rest = metrics.labels(request.info, dry_run=False)
    metrics.terminations.inc((verb, *rest, "504"))


class _Limit:
    """Cancels a task when its time is up, and remembers that it did; asyncio.timeout at a third of the cost."""

    __slots__ = ("passed", "task")

    def __init__(self, task: asyncio.Task[Any] | None) -> None:
        assert task is not None
        self.task = task
        self.passed = False

    def reached(self) -> None:
        """The time is up."""
        self.passed = True
        self.task.cancel()


class _Resumed:
    """Goes on with an awaitable that has already been stepped to its first suspension.

    What it waits for is in a list, and not there while it is waited for: a future that failed knows its error, which
    knows this frame; if the frame knew the future, all that they hold would be left to the collection of garbage.
    """

    __slots__ = ("_awaited", "_step")

    def __init__(self, step, awaited) -> None:  # type: ignore[no-untyped-def]
        self._step = step
        self._awaited = awaited

    def __await__(self):  # type: ignore[no-untyped-def]
        awaited = self._awaited
        step = self._step
        while True:
            try:
                sent = yield awaited.pop()
            except BaseException as error:
                try:
                    awaited.append(step.throw(error))
                except StopIteration as done:
                    return done.value
            else:
                try:
                    awaited.append(step.send(sent))
                except StopIteration as done:
                    return done.value
