"""A barrier for new requests: each waits until this server knows all writes that were committed before it arrived.

If several servers write to one storage, each learns of the others' writes some milliseconds late. Objects that decide
about requests (rights, policies, webhooks, quotas, definitions, accounts) are in that storage, too. So a request first
reads the newest revision from storage, together with all concurrent requests. It continues once every subscriber has
processed all events up to that revision, which is nearly always so already. A server that is alone on its storage reads
nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import Final

from steersman.storage.interface import Answered, Storage, StorageUnavailable
from steersman.work.yielding import run_in_slices

logger = logging.getLogger(__name__)

PATIENCE: Final = 3.0
"""Seconds that a request waits, the same as a read waits for a cache."""
_WOKEN: Final = 8
"""Requests that continue in one turn of the event loop."""


class WriteBarrier:
    """Reads of the newest revision of `storage`, one at a time, that requests wait for.

    While storage does not answer, or does not deliver committed events, no request waits: requests are decided by the
    known state, and each new request starts another attempt unless one is running.
    """

    def __init__(
        self,
        storage: Storage,
        ask: Callable[[Answered], None] | None = None,
        *,
        is_alone: Callable[[], bool] = lambda: False,
        patience: float = PATIENCE,
    ) -> None:
        """Take the storage. `ask` requests its newest revision (by default with `current_revision`) and may raise
        StorageUnavailable.

        While `is_alone` returns True, all acknowledged writes are known, and nothing is read.
        """
        self._storage = storage
        self._ask = ask or self._ask_current_revision
        self._is_alone = is_alone
        self._patience = patience
        self._waiting: list[asyncio.Future[int]] = []
        """Requests that wait for the next read."""
        self._is_asking = False
        self._question: asyncio.Task[None] | None = None
        self._catching_up: set[asyncio.Task[None]] = set()
        self._is_closed = False
        self.is_silent = False
        """True if the last requests waited in vain."""

    def wait_for_newest(self) -> asyncio.Future[int] | int:
        """Return the present newest revision, or a future of it that completes when all its events are processed.

        The result is 0 if it cannot be determined in time.
        """
        if self._is_alone():
            return self._storage.revision
        if self.is_silent:
            if not self._is_asking and not self._catching_up:
                self._ask_for([])
            return 0
        waiter: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        if not self._is_asking:
            self._ask_next()
        return waiter

    async def stop(self) -> None:
        """Stop reading, and let all waiting requests continue."""
        self._is_closed = True
        self.is_silent = True
        ended = list(self._catching_up)
        if self._question is not None:
            ended.append(self._question)
        for each in ended:
            each.cancel()
        await asyncio.gather(*ended, return_exceptions=True)
        _complete(self._waiting, 0)

    def _ask_next(self) -> None:
        waiters, self._waiting = self._waiting, []
        self._ask_for(waiters)

    def _ask_for(self, waiters: list[asyncio.Future[int]]) -> None:
        if self._is_closed:
            _complete(waiters, 0)
            return
        timer = asyncio.get_running_loop().call_later(self._patience, self._give_up, waiters, "it does not answer")
        self._is_asking = True
        try:
            self._ask(partial(self._answered, waiters, timer))
        except StorageUnavailable as error:
            self._answered(waiters, timer, error)

    def _ask_current_revision(self, answered: Answered) -> None:
        self._question = asyncio.get_running_loop().create_task(self._ask_storage(answered))

    async def _ask_storage(self, answered: Answered) -> None:
        found: int | StorageUnavailable = StorageUnavailable("the server ends")
        try:
            found = await self._storage.current_revision()
        except StorageUnavailable as error:
            found = error
        finally:
            answered(found)

    def _answered(
        self, waiters: list[asyncio.Future[int]], timer: asyncio.TimerHandle, newest: int | StorageUnavailable
    ) -> None:
        self._is_asking = False
        if not isinstance(newest, int):
            timer.cancel()
            waiting, self._waiting = waiters + self._waiting, []
            waiters.clear()
            self._give_up(waiting, str(newest))
            return
        if newest > self._storage.revision:
            catching_up = asyncio.get_running_loop().create_task(self._catch_up(newest, waiters, timer))
            self._catching_up.add(catching_up)
            catching_up.add_done_callback(self._catching_up.discard)
        else:
            timer.cancel()
            self._succeed(newest, waiters)
        if self._waiting:
            self._ask_next()

    async def _catch_up(self, newest: int, waiters: list[asyncio.Future[int]], timer: asyncio.TimerHandle) -> None:
        try:
            await self._storage.wait_until(newest)
            self._succeed(newest, waiters)
        except StorageUnavailable as error:
            self._give_up(waiters, str(error))
        finally:
            timer.cancel()
            _complete(waiters, 0)

    def _succeed(self, newest: int, waiters: list[asyncio.Future[int]]) -> None:
        if self.is_silent and not self._is_closed:
            self.is_silent = False
            logger.info("requests wait again for the acknowledged writes of other servers")
        _complete(waiters, newest)

    def _give_up(self, waiters: list[asyncio.Future[int]], why: str) -> None:
        if not self.is_silent:
            self.is_silent = True
            logger.warning(
                "storage does not report its newest revision, requests are decided by the known state: %s", why
            )
        _complete(waiters, 0)


def _complete(waiters: list[asyncio.Future[int]], newest: int) -> None:
    """Let requests continue, a few in each turn of the event loop, and clear the list."""
    waiting = waiters[::-1]
    waiters.clear()

    def complete_some() -> bool:
        for _ in range(min(_WOKEN, len(waiting))):
            waiter = waiting.pop()
            if not waiter.done():
                waiter.set_result(newest)
        return bool(waiting)

    run_in_slices(complete_some, 0.0)
