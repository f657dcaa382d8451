"""Permits for requests with large bodies: the data made from a body takes many times its size."""

from __future__ import annotations

import asyncio
from typing import Final

MOST: Final = 6
"""The most permits. Processing an object of 1 MB (decoding, validation, comparison) takes some 60 MB."""


class Permits:
    """A semaphore for requests whose large bodies have been read; used on the event loop only.

    The next permit goes to a user with the fewest, and among these to the smallest body, as most large requests are
    short.
    """

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self.by_user: Final[dict[str, int]] = {}
        """Permits in use by user."""
        self._waiting: list[tuple[Permit, asyncio.Future[None]]] = []

    async def acquire(self, permit: Permit) -> None:
        """Wait for a permit."""
        if sum(self.by_user.values()) < self._most:
            self._give(permit)
            return
        turn = asyncio.get_running_loop().create_future()
        waiting = (permit, turn)
        self._waiting.append(waiting)
        try:
            await turn
        except BaseException:
            if turn.done() and not turn.cancelled():
                self.release(permit)
            elif waiting in self._waiting:
                self._waiting.remove(waiting)
            raise

    def release(self, permit: Permit) -> None:
        """Release a permit and hand it to the next waiting request."""
        left = self.by_user[permit.user] - 1
        if left:
            self.by_user[permit.user] = left
        else:
            del self.by_user[permit.user]
        waiting = [each for each in self._waiting if not each[1].done()]
        if not waiting:
            self._waiting.clear()
            return
        following = min(waiting, key=lambda each: (self.by_user.get(each[0].user, 0), each[0].size))
        waiting.remove(following)
        self._waiting = waiting
        self._give(following[0])
        following[1].set_result(None)

    def _give(self, permit: Permit) -> None:
        self.by_user[permit.user] = self.by_user.get(permit.user, 0) + 1


class Permit:
    """The permit of one request, acquired when work on its body begins. `size` is the body's size in bytes."""

    __slots__ = ("_is_acquired", "_permits", "size", "user")

    def __init__(self, permits: Permits, user: str, size: int) -> None:
        self._permits = permits
        self._is_acquired = False
        self.user = user
        self.size = size

    async def acquire(self) -> None:
        """Acquire the permit, unless this request has it already."""
        if not self._is_acquired:
            await self._permits.acquire(self)
            self._is_acquired = True

    def release(self) -> None:
        """Release the permit if this request has it."""
        if self._is_acquired:
            self._is_acquired = False
            self._permits.release(self)
