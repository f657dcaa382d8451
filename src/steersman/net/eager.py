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
from asyncio.tasks import _enter_task, _leave_task
from collections.abc import Coroutine, Generator
from typing import Any


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


class _Resumed(Coroutine[Any, Any, None]):
    """A coroutine that has run up to its first wait: yields that future first, then continues the coroutine.

    Code in later steps of the task must see `running` as the current task, as the first part did: a timeout entered in
    the first part has stored that object and will cancel it.
    """

    __slots__ = ("_coroutine", "_first", "_started")

    def __init__(self, coroutine: Coroutine[Any, Any, None], first: Any) -> None:
        self._coroutine = coroutine
        self._first = first
        self._started = False

    def send(self, value: Any) -> Any:
        if self._started:
            return self._coroutine.send(value)
        self._started = True
        first, self._first = self._first, None
        return first

    def throw(self, *error: Any) -> Any:
        if not self._started:
            self._started = True
            first, self._first = self._first, None
            # A task cancelled before its first step first cancels the future that it waits for, as every task does.
            if first is not None and first.cancel():
                return first
        return self._coroutine.throw(*error)

    def close(self) -> None:
        self._coroutine.close()

    def __await__(self) -> Generator[Any, Any, None]:
        raise TypeError("only a task may run this")


def _start_by_hand(loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None] | None:
    """Run the coroutine up to its first wait; return its task, or None if it has ended. Raises what the coroutine
    raises.
    """
    context = contextvars.copy_context()
    running = Running()
    as_task: Any = running
    outer = asyncio.current_task(loop)
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
    task = loop.create_task(_Resumed(coroutine, first), context=context)
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
