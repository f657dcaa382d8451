"""Eager start of coroutines: run up to the first wait in the caller, without a task unless the coroutine waits.

A request that is answered from memory never waits; a task for it would cost two more iterations of the event loop.

Inside the coroutine all of asyncio works as in a task (timeout(), TaskGroup, cancel(), context variables), and
`asyncio.current_task()` is the object that cancels it. The part before the first wait runs inside the caller; therefore
it must not rely on other callbacks of the event loop having run since the start.
"""

from __future__ import annotations

import asyncio
import contextvars
import sys
import types
from asyncio.tasks import _current_tasks, _enter_task, _leave_task  # type: ignore[attr-defined]
from collections.abc import Coroutine, Generator
from typing import Any, TypeVar

T = TypeVar("T")


class Running:
    """Stand-in for the current task before the first wait, and proxy for the task that is created then.

    It has the methods that asyncio's timeout and TaskGroup call on their task.
    """

    __slots__ = ("__weakref__", "_cancelled", "_message", "_task")

    def __init__(self) -> None:
        self._task: asyncio.Task[None] | None = None
        self._cancelled = 0
        self._message: Any = None

    def adopt(self, task: asyncio.Task[None]) -> None:
        """Pass all calls on to `task` from now on, a cancellation requested so far included."""
        self._task = task
        for _ in range(self._cancelled):
            task.cancel(self._message)

    def cancel(self, msg: Any = None) -> bool:
        """Request the cancellation of the work (`Task.cancel`)."""
        if self._task is not None:
            return self._task.cancel(msg)
        self._cancelled += 1
        self._message = msg
        return True

    def cancelling(self) -> int:
        """Return the number of pending cancellation requests (`Task.cancelling`)."""
        return self._cancelled if self._task is None else self._task.cancelling()

    def uncancel(self) -> int:
        """Take back a cancellation request, and return the number of those left (`Task.uncancel`)."""
        if self._task is not None:
            return self._task.uncancel()
        self._cancelled = max(0, self._cancelled - 1)
        return self._cancelled

    def done(self) -> bool:
        """Return True if the work has ended (`Task.done`)."""
        return self._task is not None and self._task.done()

    def get_name(self) -> str:
        """Return the name of the task (`Task.get_name`)."""
        return "eager" if self._task is None else self._task.get_name()


@types.coroutine
def resumed(step: Generator[Any, None, T], awaited: list[Any]) -> Generator[Any, None, T]:
    """Continue `step`, a coroutine or the iterator of an awaitable, which has run to a wait for the future in `awaited`.

    Returns and raises what `step` returns and raises. The future is removed from the list during the wait: a
    failed future refers to its error, and the error to this frame. If the frame referred to the future, the cycle
    would need the garbage collector.
    """
    while awaited:
        try:
            yield awaited.pop()
        except BaseException as error:
            try:
                awaited.append(step.throw(error))
            except StopIteration as done:
                result: T = done.value
                return result
    return (yield from step)


@types.coroutine
def _resumed_by_task(coroutine: Coroutine[Any, Any, None], awaited: list[Any]) -> Generator[Any, None, None]:
    """Continue a coroutine as `resumed` does, in a task whose first step is still to come.

    The caller advances this generator to its first `yield`: only a generator that has begun can catch the cancellation
    of its task before the first step.
    """
    try:
        yield
    except BaseException as error:
        # A task cancelled before its first step first cancels the future that it waits for, as every task does.
        if awaited[0] is None or not awaited[0].cancel():
            try:
                awaited[0] = coroutine.throw(error)
            except StopIteration:
                return
    step: Any = coroutine
    yield from resumed(step, awaited)


def _start_by_hand(loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None] | None:
    """Run the coroutine up to its first wait; return its task, or None if it has ended. Raises what the coroutine
    raises.
    """
    context = contextvars.copy_context()
    running = Running()
    as_task: Any = running
    outer = _current_tasks.get(loop)  # as asyncio.current_task, which is written in Python
    if outer is not None:
        _leave_task(loop, outer)
    _enter_task(loop, as_task)
    try:
        first = context.run(coroutine.send, None)
    except StopIteration:
        return None
    finally:
        _leave_task(loop, as_task)
        if outer is not None:
            _enter_task(loop, outer)
    rest: Any = _resumed_by_task(coroutine, [first])
    rest.send(None)
    task = loop.create_task(rest, context=context)
    running.adopt(task)
    return task


def _start_eagerly(loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None] | None:
    """Run the coroutine up to its first wait; return its task, or None if it has ended. Raises what the coroutine
    raises.
    """
    task = asyncio.Task(coroutine, loop=loop, eager_start=True)  # type: ignore[call-arg]
    if not task.done():
        return task
    if not task.cancelled():
        task.result()  # raises the exception of the coroutine
    return None


start = _start_eagerly if sys.version_info >= (3, 12) else _start_by_hand
"""`start(loop, coroutine)` runs the coroutine up to its first wait; it returns its task, or None if it has ended.

Raises the exceptions that the coroutine raises before its first wait.
"""
