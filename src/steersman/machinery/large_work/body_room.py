"""How many bytes of large bodies are in memory at once: the others wait in the connections, unread."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final

from steersman.machinery.errors.status import too_many_requests
from steersman.work.threads import MAX_WAITING

MAX_BYTES: Final = 16 << 20
"""Of the large bodies of one user's requests, from when they are read until the request has been answered."""
_IN_ALL: Final = 64 << 20
"""What users share. Each may have one body however many they are."""


class _Share:
    """What one user has, and what waits to be read: of each the bytes, and who waits."""

    __slots__ = ("size", "waiting")

    def __init__(self) -> None:
        self.size = 0
        self.waiting: deque[tuple[int, asyncio.Future[None]]] = deque()


class BodyRoom:
    """Room for large bodies, by user; used on the loop only."""

    def __init__(self) -> None:
        self._shares: dict[str, _Share] = {}

    async def enter(self, user: str, size: int) -> None:
        """Waits until there is room for a body of so many bytes; to be followed by `leave`.

        Raises StatusError 429 if as many of the user's wait as may.
        """
        share = self._shares.setdefault(user, _Share())
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
                self.leave(user, size)
            elif (size, turn) in share.waiting:
                share.waiting.remove((size, turn))
            raise

    def leave(self, user: str, size: int) -> None:
        """Makes room for the next bodies of the user."""
        share = self._shares[user]
        share.size -= size
        while share.waiting and self._fits(share, share.waiting[0][0]):
            size, turn = share.waiting.popleft()
            if not turn.done():
                share.size += size
                turn.set_result(None)
        if not share.size:
            del self._shares[user]

    def _fits(self, share: _Share, size: int) -> bool:
        return not share.size or share.size + size <= min(MAX_BYTES, _IN_ALL // len(self._shares))
