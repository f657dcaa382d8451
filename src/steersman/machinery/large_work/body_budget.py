"""A budget for the bytes of large request bodies in memory; bodies beyond it wait unread in their connections."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final

from steersman.machinery.errors.status import too_many_requests
from steersman.work.threads import MAX_WAITING

MAX_BYTES: Final = 16 << 20
"""The most bytes of one user's large bodies, each counted from its reading until the response is sent."""
_IN_ALL: Final = 64 << 20
"""The most bytes of all users' large bodies. Each user may have one body regardless of this limit."""


class _Share:
    """The bytes that one user's bodies use, and a queue of waiting bodies: the size and the future of each."""

    __slots__ = ("size", "waiting")

    def __init__(self) -> None:
        self.size = 0
        self.waiting: deque[tuple[int, asyncio.Future[None]]] = deque()


class BodyBudget:
    """A budget for large request bodies with a share for each user; used on the event loop only."""

    def __init__(self) -> None:
        self.shares: Final[dict[str, _Share]] = {}
        """Shares in use by user."""

    async def acquire(self, user: str, size: int) -> None:
        """Wait until the budget allows a body of `size` bytes. The caller must call `release` afterwards.

        Raises StatusError 429 if MAX_WAITING bodies of this user wait already.
        """
        share = self.shares.setdefault(user, _Share())
        if not share.waiting and self._fits(share, size):
            share.size += size
            return
        if len(share.waiting) >= MAX_WAITING:
            raise too_many_requests("too many requests, please try again later", 1)
        turn = asyncio.get_running_loop().create_future()
        share.waiting.append((size, turn))
        try:
            await turn
        except BaseException:
            if turn.done() and not turn.cancelled():
                self.release(user, size)
            elif (size, turn) in share.waiting:
                share.waiting.remove((size, turn))
            raise

    def release(self, user: str, size: int) -> None:
        """Return `size` bytes to the budget, and admit the next waiting bodies of the user."""
        share = self.shares[user]
        share.size -= size
        while share.waiting and self._fits(share, share.waiting[0][0]):
            size, turn = share.waiting.popleft()
            if not turn.done():
                share.size += size
                turn.set_result(None)
        if not share.size:
            del self.shares[user]

    def _fits(self, share: _Share, size: int) -> bool:
        return not share.size or share.size + size <= min(MAX_BYTES, _IN_ALL // len(self.shares))
