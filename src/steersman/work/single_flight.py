"""Single flight: concurrent callers that need the same result share one computation of it, in a task of the server.

The task works on the server's account, not on the account of the first caller (`offloading.begin_task`).

- A caller that is cancelled stops waiting; the task goes on for the other callers.
- After the last caller is gone, the task goes on, or is cancelled if `outlives_callers` is False.
- If the task fails, every waiting caller gets its error, and the next caller starts a new computation. An error for
  which no caller waits is dropped.
- If the task itself is cancelled, every waiting caller gets CancelledError.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Generator, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any, Generic, TypeVar

from steersman.work.offloading import begin_task

K = TypeVar("K")
R = TypeVar("R")


class Flight(Generic[R]):
    """One shared computation, in progress or finished. Await it for the result; it raises what `make` raises."""

    __slots__ = ("_callers", "_on_end", "_outlives_callers", "_task", "is_over")

    def __init__(
        self,
        make: Callable[[], Awaitable[R]],
        *,
        outlives_callers: bool = True,
        on_end: Callable[[Flight[R]], None] | None = None,
        name: str | None = None,
    ) -> None:
        """Start the task.

        `on_end` is called in the same step of the event loop in which the task ends or is cancelled.
        """
        self.is_over = False
        """True once the computation has succeeded, failed or been cancelled."""
        self._callers = 0
        self._on_end = on_end
        self._outlives_callers = outlives_callers
        self._task = begin_task(self._run(make), name=name)
        self._task.add_done_callback(_retrieve_error)

    @property
    def has_failed(self) -> bool:
        """True if the computation has failed or been cancelled."""
        task = self._task
        return self.is_over and (not task.done() or task.cancelled() or task.exception() is not None)

    @property
    def is_cancelled(self) -> bool:
        """True if the task has ended by cancellation."""
        return self._task.cancelled()

    def on_result(self, take: Callable[[R], None]) -> None:
        """Call `take` with the result once the computation succeeds; never if it fails."""

        def done(task: asyncio.Task[R]) -> None:
            if not task.cancelled() and task.exception() is None:
                take(task.result())

        self._task.add_done_callback(done)

    def cancel(self) -> None:
        """Cancel the task. Callers that still wait get CancelledError."""
        self._end()
        self._task.cancel()

    async def ended(self) -> None:
        """Wait until the task has ended, whatever its outcome."""
        if not self._task.done():
            await asyncio.wait((self._task,))

    def __await__(self) -> Generator[Any, None, R]:
        return self._result().__await__()

    @contextmanager
    def counted_as_caller(self) -> Iterator[None]:
        """Count as one more caller inside the block, so that the task is not cancelled for want of callers."""
        self._callers += 1
        try:
            yield
        finally:
            self._leave()

    async def _result(self) -> R:
        task = self._task
        if not task.done():
            waiter = task.get_loop().create_future()
            wake = partial(_wake, waiter)
            task.add_done_callback(wake)
            self._callers += 1
            try:
                await waiter
            finally:
                task.remove_done_callback(wake)
                self._leave()
        try:
            return task.result()
        finally:
            del self, task  # an error's traceback refers to this frame, so this frame must not refer to the error

    def _leave(self) -> None:
        self._callers -= 1
        if not self._callers and not self._outlives_callers and not self._task.done():
            self.cancel()

    async def _run(self, make: Callable[[], Awaitable[R]]) -> R:
        try:
            return await make()
        finally:
            self._end()
            del self  # as in `_result`

    def _end(self) -> None:
        if self.is_over:
            return
        self.is_over = True
        if self._on_end is not None:
            self._on_end(self)


class SingleFlight(Generic[K, R]):
    """Flights by key: concurrent callers with the same key share one computation. Results are not kept."""

    __slots__ = ("_flights", "_name", "_outlives_callers")

    def __init__(self, *, outlives_callers: bool = True, name: str | None = None) -> None:
        """Create an empty group. `name` is the name of the tasks."""
        self._flights: dict[K, Flight[R]] = {}
        self._name = name
        self._outlives_callers = outlives_callers

    def __len__(self) -> int:
        """Return the number of keys with a computation in progress."""
        return len(self._flights)

    def get(self, key: K) -> Flight[R] | None:
        """Return the flight in progress of `key`, or None."""
        return self._flights.get(key)

    async def do(self, key: K, make: Callable[[], Awaitable[R]]) -> R:
        """Return the result of `key`, computed by `make` unless a flight is in progress. Raises what `make` raises."""
        return await self.begin(key, make)

    def begin(self, key: K, make: Callable[[], Awaitable[R]]) -> Flight[R]:
        """Return the flight in progress of `key`, or start one."""
        return self._flights.get(key) or self._begin((key,), make)

    def begin_all(self, keys: Iterable[K], make: Callable[[list[K]], Awaitable[R]]) -> list[Flight[R]]:
        """Return the flights of `keys`.

        One new flight is started for all keys that have none, with `make(these keys)`.
        """
        flights: dict[Flight[R], None] = {}
        missing = []
        for key in keys:
            flight = self._flights.get(key)
            if flight is None:
                missing.append(key)
            else:
                flights[flight] = None
        if missing:
            flights[self._begin(missing, partial(make, missing))] = None
        return list(flights)

    def _begin(self, keys: Collection[K], make: Callable[[], Awaitable[R]]) -> Flight[R]:
        def forget(ended: Flight[R]) -> None:
            for key in keys:
                if self._flights.get(key) is ended:
                    del self._flights[key]

        flight = Flight(make, outlives_callers=self._outlives_callers, on_end=forget, name=self._name)
        self._flights.update(dict.fromkeys(keys, flight))
        return flight

    def cancel(self) -> None:
        """Cancel all flights in progress."""
        for flight in list(self._flights.values()):
            flight.cancel()

    async def stop(self) -> None:
        """Cancel all flights in progress and wait until their tasks have ended."""
        flights = list(self._flights.values())
        self.cancel()
        for flight in flights:
            await flight.ended()


async def results(flights: Iterable[Flight[R]]) -> list[R]:
    """Return the results of several flights, and count as a caller of all of them meanwhile. Raises the first error."""
    asked = list(flights)
    with ExitStack() as asking:
        for each in asked:
            asking.enter_context(each.counted_as_caller())
        return [await each for each in asked]


def _wake(waiter: asyncio.Future[None], _: asyncio.Task[Any]) -> None:
    if not waiter.done():
        waiter.set_result(None)


def _retrieve_error(task: asyncio.Task[Any]) -> None:
    """Retrieve the task's error, as every caller may be gone and asyncio would log it."""
    if not task.cancelled():
        task.exception()
