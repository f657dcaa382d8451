"""The contract of what takes events, and what is built of several."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Generator, Sequence
from typing import Any, Final, Protocol

Records = Sequence[bytes]
"""Events, each as the JSON of its members behind kind and apiVersion, up to its end: `"level":"Metadata",...}`."""

CLOSE_SECONDS: Final = 10.0
"""For which a server that ends waits until events are taken. Upstream tries as often as always, which takes minutes
where nobody answers."""


class Written(ABC):
    """Events that are on their way: waited for, it is whether they are kept."""

    __slots__ = ()

    @abstractmethod
    def __await__(self) -> Generator[Any, None, bool]: ...

    @abstractmethod
    def then(self, callback: Callable[[], None]) -> None:
        """Calls back once that is known: at once if it is."""


class Backend(Protocol):
    """Takes events.

    Of one that is `deferred` nobody looks at what becomes of events, and they are done with in the order in which they
    came: a request goes on at once, and its answer waits for its last event only, which is Written.
    """

    deferred: bool

    def process(self, records: Records) -> Awaitable[bool] | None:
        """Takes events; whether they are kept. None: they are, as far as anybody is told. Called on the loop, without
        waiting; must not raise."""
        ...

    async def close(self) -> None:
        """Returns when all that was taken is done with. Nothing is taken any more."""
        ...


class IgnoringErrors:
    """A backend that is waited for, but whose errors refuse no request (mode blocking)."""

    def __init__(self, backend: Backend, *, in_order: bool) -> None:
        """`in_order` says that the backend keeps the order of events."""
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
    """Several backends, each of which takes every event; a request waits for all of them."""

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
    """Whether all are true, None where there are none."""
    if len(waiting) < 2:
        return waiting[0] if waiting else None
    return _all(waiting)


async def _all(waiting: Sequence[Awaitable[bool]]) -> bool:
    return all(await asyncio.gather(*waiting))
