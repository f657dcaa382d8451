"""Lifetime of requests: deadlines, and refusal during shutdown.

Upstream has a filter for each task: WithCacheControl, WithWatchTerminationDuringShutdown, WithWaitGroup,
WithRequestDeadline, WithTimeoutForNonLongRunningRequests, WithWarningRecorder.
"""

from __future__ import annotations

import asyncio
import types
from collections.abc import Generator
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
from steersman.net.eager import resumed
from steersman.net.message import Response

if TYPE_CHECKING:
    from steersman.audit.trail import Auditor

_CACHE_CONTROL: Final = ("cache-control", "no-cache, private")
_SECOND: Final = 1_000_000_000
"""A second in nanoseconds."""
_LONGEST: Final = 1_000
"""Limit of characters of a timeout. Go accepts any number of terms; usual timeouts have one or two."""


class Ending(Protocol):
    """A server that may be shutting down."""

    shutting_down: bool
    """True once the server is shutting down."""


class WaitGroup:
    """Count of short requests in flight. Once `closed`, no more are accepted."""

    def __init__(self) -> None:
        self.running = 0
        self.closed = False
        self._idle = asyncio.Event()

    def leave(self) -> None:
        """Count the end of a request."""
        self.running -= 1
        if self.closed and not self.running:
            self._idle.set()

    async def close(self) -> None:
        """Accept no more requests, and wait until none is left."""
        self.closed = True
        if self.running:
            await self._idle.wait()


def with_lifetime(
    server: Ending, group: WaitGroup, longest: float, metrics: RequestMetrics, auditor: Auditor | None = None
) -> Filter:
    """Return a filter that enforces the lifetime of requests.

    - It sets `request.deadline` from `?timeout=`, at most `longest` seconds ahead. At the deadline the handler is
      cancelled and the answer is 504; an answer that has begun ends. A malformed timeout is answered with 400.
    - A write that storage has accepted is committed nevertheless, as after a client's departure.
    - Long-running requests have no deadline.
    - During shutdown new watches get 503; once the `group` of short requests is closed, all requests do. A request
      counts in the group until the end of its answer.
    - It adds the handlers' warnings, and `Cache-Control: no-cache, private` unless the handler has set that field.
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
                if refusal is None:
                    step = next_(request).__await__()
                    try:
                        awaited = [next(step)]  # most requests never wait, and then need no timer
                    except StopIteration as done:
                        response = done.value
                    else:
                        response = await _in_time(request, step, awaited, metrics)
                    if type(response.body) is StreamedBody:
                        _limit_body(request, response.body, metrics)
                    if request.warnings:
                        add_warnings(request, response)
                else:
                    response = refusal
            except BaseException:
                group.leave()
                raise
            if type(response.body) is StreamedBody:
                response.body.on_request_end(group.leave)
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
    """Shorten the deadline if the query demands it; return the refusal of a malformed timeout, otherwise None."""
    text = request.parameter("timeout")
    if not text:
        return None
    try:
        timeout = _duration(text) / _SECOND
    except DurationError as error:
        reason = f"invalid timeout specified in the request URL - {error}"
        refusal = bad_request(reason)
        return refused(auditor, request, reason, lambda: error_response(request, refusal))
    if 0 < timeout < longest:
        request.deadline = request.received + timeout
    return None


def _duration(text: str) -> int:
    """Return a duration in nanoseconds. Raises DurationError, also for long texts, as the sender is not authenticated
    yet.
    """
    if len(text) > _LONGEST:
        raise DurationError(f"time: invalid duration {quote(text)}")
    return parse_duration(text)


@types.coroutine
def _in_time(
    request: Request, step: Generator[Any, None, Response], awaited: list[Any], metrics: RequestMetrics
) -> Generator[Any, None, Response]:
    """Return the answer of `step`, which waits for the future in `awaited`, or 504 if the deadline passes."""
    limit = _Limit(asyncio.current_task())
    timer = asyncio.get_running_loop().call_later(request.deadline - monotonic(), limit.reached)
    try:
        return (yield from resumed(step, awaited))
    except asyncio.CancelledError:
        if not limit.passed:
            raise
        limit.task.uncancel()
        _count(request, metrics)
        return error_response(request, timeout("Timeout: request did not complete within the allotted timeout"))
    finally:
        timer.cancel()


def _limit_body(request: Request, body: StreamedBody, metrics: RequestMetrics) -> None:
    """End a streamed body at the deadline."""
    limit = _Limit(asyncio.current_task())
    timer = asyncio.get_running_loop().call_later(request.deadline - monotonic(), limit.reached)

    def over() -> None:
        timer.cancel()
        if limit.passed:
            _count(request, metrics)

    body.on_request_end(over)


def _count(request: Request, metrics: RequestMetrics) -> None:
    verb, _, *rest = metrics.labels(request.info, dry_run=False)
    metrics.terminations.inc((verb, *rest, "504"))


class _Limit:
    """Cancels a task at a deadline and remembers it; costs a third of asyncio.timeout."""

    __slots__ = ("passed", "task")

    def __init__(self, task: asyncio.Task[Any] | None) -> None:
        assert task is not None
        self.task = task
        self.passed = False

    def reached(self) -> None:
        """Cancel the task, as the deadline has passed."""
        self.passed = True
        self.task.cancel()
