"""Interface of audit backends, and combinations of backends."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Generator, Sequence
from typing import Any, Final, Protocol

Records = Sequence[bytes]
"""Events as JSON after kind and apiVersion, up to the end: `"level":"Metadata",...}`."""

CLOSE_SECONDS: Final = 10.0
"""Seconds that a stopping server waits for pending events.

Upstream retries as often as at other times, which takes minutes if the other server does not answer.
"""


class RecordResult(ABC):
    """Awaitable result of a write: True if the events were recorded."""

    __slots__ = ()

    @abstractmethod
    def __await__(self) -> Generator[Any, None, bool]: ...

    @abstractmethod
    def add_done_callback(self, callback: Callable[[], None]) -> None:
        """Call `callback` when the result is known, or at once if it is known already."""


class Backend(Protocol):
    """A destination of audit events.

    If a backend is `deferred`, it completes events in the order of `process` calls, and the results of early events are
    ignored: a request continues at once, and only its response waits for its last event. That result is a RecordResult.
    """

    deferred: bool

    def process(self, records: Records) -> Awaitable[bool] | None:
        """Accept events, and return an awaitable that is True if they were recorded; None means they count as recorded.

        Called on the event loop. Must neither block nor raise.
        """
        ...

    async def close(self) -> None:
        """Wait until all accepted events are completed. `process` must not be called afterwards."""
        ...


class IgnoringErrors:
    """Wrapper that waits for a backend but ignores its failures (mode `blocking`)."""

    def __init__(self, backend: Backend, *, in_order: bool) -> None:
        """Create the wrapper; `in_order` is True if the backend completes events in order."""
        self._backend: Final = backend
        self.deferred = in_order

    def process(self, records: Records) -> Awaitable[bool] | None:
        """See Backend."""
        waiting = self._backend.process(records)
        return waiting if waiting is None or self.deferred else _ignored(waiting)

    async def close(self) -> None:
        """See Backend."""
        await self._backend.close()


async def _ignored(waiting: Awaitable[bool]) -> bool:
    await waiting
    return True


class Union:
    """Several backends that each receive every event; a request waits for all of them."""

    deferred = False

    def __init__(self, backends: Sequence[Backend]) -> None:
        self._backends: Final = tuple(backends)

    def process(self, records: Records) -> Awaitable[bool] | None:
        """See Backend."""
        return together([each for backend in self._backends if (each := backend.process(records)) is not None])

    async def close(self) -> None:
        """See Backend."""
        await asyncio.gather(*(each.close() for each in self._backends))


def together(waiting: Sequence[Awaitable[bool]]) -> Awaitable[bool] | None:
    """Return an awaitable that is True if all of `waiting` are True; None if `waiting` is empty."""
    if len(waiting) < 2:
        return waiting[0] if waiting else None
    return _all(waiting)


async def _all(waiting: Sequence[Awaitable[bool]]) -> bool:
    return all(await asyncio.gather(*waiting))
