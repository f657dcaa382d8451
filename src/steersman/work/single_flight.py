"""Single flight: a result that many ask for at once is made once, in a task of the server, for all of them.

The task works on the server's account, not on that of the request that asked first (`offloading.begin_task`).

- An asker that is cancelled leaves; the task goes on for the others.
- When every asker has left, the task goes on, or is cancelled where `outlives_askers` is False.
- When the task fails, every asker that waits gets its error, and the next asker has the result made again. An error
  for which nobody waits is dropped.
- When the task itself is cancelled, every asker that waits gets CancelledError.
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
    """One result that is being made, or has been. Await it for the result; it raises what `make` raises."""

    __slots__ = ("_asking", "_on_end", "_outlives_askers", "_task", "is_over")

    def __init__(
        self,
        make: Callable[[], Awaitable[R]],
        *,
        outlives_askers: bool = True,
        on_end: Callable[[Flight[R]], None] | None = None,
        name: str | None = None,
    ) -> None:
        """Start the task. `on_end` is called in the same step as the task ends, or is cancelled."""
        self.is_over = False
        """True once the result has been made, or making it has failed or was cancelled."""
        self._asking = 0
        self._on_end = on_end
        self._outlives_askers = outlives_askers
        self._task = begin_task(self._run(make), name=name)
        self._task.add_done_callback(_take_note)

    @property
    def has_failed(self) -> bool:
        """True if making the result has failed or was cancelled."""
        task = self._task
        return self.is_over and (not task.done() or task.cancelled() or task.exception() is not None)

    @property
    def is_cancelled(self) -> bool:
        """True if the task has ended by being cancelled."""
        return self._task.cancelled()

    def on_result(self, take: Callable[[R], None]) -> None:
        """Have `take` called with the result once it is made; it is not called if that fails."""

        def done(task: asyncio.Task[R]) -> None:
            if not task.cancelled() and task.exception() is None:
                take(task.result())

        self._task.add_done_callback(done)

    def cancel(self) -> None:
        """Cancel the task. Who still waits gets CancelledError."""
        self._end()
        self._task.cancel()

    async def ended(self) -> None:
        """Return once the task has ended, however it has."""
        if not self._task.done():
            await asyncio.wait((self._task,))

    def __await__(self) -> Generator[Any, None, R]:
        return self._result().__await__()

    @contextmanager
    def asked(self) -> Iterator[None]:
        """Count as one more asker within this block."""
        self._asking += 1
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
            self._asking += 1
            try:
                await waiter
            finally:
                task.remove_done_callback(wake)
                self._leave()
        try:
            return task.result()
        finally:
            del self, task  # the traceback of an error knows this frame, which is not to know who has the error

    def _leave(self) -> None:
        self._asking -= 1
        if not self._asking and not self._outlives_askers and not self._task.done():
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
    """Results by key, each of which is made once for all who ask for it meanwhile. No result is kept."""

    __slots__ = ("_flights", "_name", "_outlives_askers")

    def __init__(self, *, outlives_askers: bool = True, name: str | None = None) -> None:
        """`name` is that of the tasks."""
        self._flights: dict[K, Flight[R]] = {}
        self._name = name
        self._outlives_askers = outlives_askers

    def __len__(self) -> int:
        """Return the number of keys whose results are being made."""
        return len(self._flights)

    def get(self, key: K) -> Flight[R] | None:
        """Return the flight of a key whose result is being made."""
        return self._flights.get(key)

    async def do(self, key: K, make: Callable[[], Awaitable[R]]) -> R:
        """Return the result of `key`, which `make` makes unless that is under way. Raises what `make` raises."""
        return await self.begin(key, make)

    def begin(self, key: K, make: Callable[[], Awaitable[R]]) -> Flight[R]:
        """Return the flight of a key, begun now unless it is under way."""
        return self._flights.get(key) or self._begin((key,), make)

    def begin_all(self, keys: Iterable[K], make: Callable[[list[K]], Awaitable[R]]) -> list[Flight[R]]:
        """Return the flights of several keys, one of which is begun now for all keys that are not under way."""
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

        flight = Flight(make, outlives_askers=self._outlives_askers, on_end=forget, name=self._name)
        self._flights.update(dict.fromkeys(keys, flight))
        return flight

    def cancel(self) -> None:
        """Cancel everything that is under way."""
        for flight in list(self._flights.values()):
            flight.cancel()

    async def stop(self) -> None:
        """Cancel everything that is under way, and return once it has ended."""
        flights = list(self._flights.values())
        self.cancel()
        for flight in flights:
            await flight.ended()


async def results(flights: Iterable[Flight[R]]) -> list[R]:
    """Return the results of several flights, waiting for all of them from now on. Raises the first error."""
    asked = list(flights)
    with ExitStack() as asking:
        for each in asked:
            asking.enter_context(each.asked())
        return [await each for each in asked]


def _wake(waiter: asyncio.Future[None], _: asyncio.Task[Any]) -> None:
    if not waiter.done():
        waiter.set_result(None)


def _take_note(task: asyncio.Task[Any]) -> None:
    """Retrieve the error: all who waited for the task may have left."""
    if not task.cancelled():
        task.exception()
