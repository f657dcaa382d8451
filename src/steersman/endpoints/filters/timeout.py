"""Ends requests that take too long (WithTimeoutForNonLongRunningRequests)."""

from __future__ import annotations

import asyncio
from typing import Any

from steersman.endpoints.metrics import RequestMetrics
from steersman.endpoints.request import Filter, Handler, Request
from steersman.endpoints.responses import error_response
from steersman.endpoints.streamed import StreamedBody
from steersman.machinery.errors.status import timeout
from steersman.machinery.values.times import monotonic
from steersman.net.message import Response

_MESSAGE = "request did not complete within the allotted timeout"


def with_timeout(metrics: RequestMetrics) -> Filter:
    """504 when `request.deadline` passes, or the end of an answer that has begun; what was being done is cancelled.

    A write that storage has taken on is committed all the same, as it would be had the client gone away.
    """

    def count(request: Request) -> None:
        verb, _, *rest = metrics.labels(request.info, dry_run=False)
        metrics.terminations.inc((verb, *rest, "504"))

    def limit_body(request: Request, body: StreamedBody) -> None:
        limit = _Limit(asyncio.current_task())
        timer = asyncio.get_running_loop().call_later(request.deadline - monotonic(), limit.reached)

        def over() -> None:
            timer.cancel()
            if limit.passed:
                count(request)

        body.when_over(over)

    async def time_limit(request: Request, next_: Handler) -> Response:
        if not request.deadline:
            return await next_(request)
        step = next_(request).__await__()
        try:
            awaited = [next(step)]  # most requests never wait, and then need no timer
        except StopIteration as done:
            result: Response = done.value
            if type(result.body) is StreamedBody:
                limit_body(request, result.body)
            return result
        limit = _Limit(asyncio.current_task())
        timer = asyncio.get_running_loop().call_later(request.deadline - monotonic(), limit.reached)
        try:
            response: Response = await _Resumed(step, awaited)
            if type(response.body) is StreamedBody:
                limit_body(request, response.body)
            return response
        except asyncio.CancelledError:
            if not limit.passed:
                raise
            limit.task.uncancel()
            count(request)
            return error_response(request, timeout(f"Timeout: {_MESSAGE}"))
        finally:
            timer.cancel()

    return time_limit


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
