"""Connections to one server that are kept for the next request, as Go's transport keeps them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from steersman.net.upgrade import UpgradedConnection

MOST_IDLE: Final = 25
IDLE_SECONDS: Final = 90.0


class KeptConnections:
    """Gives connections, old ones first; `dial` makes new ones. Those that nobody has used for a while are closed."""

    def __init__(self, dial: Callable[[], Awaitable[UpgradedConnection]]) -> None:
        self._dial = dial
        self._idle: list[tuple[UpgradedConnection, float]] = []
        """Each with the time of the loop when it was given back, the last one last."""
        self._timer: asyncio.TimerHandle | None = None
        self._is_closed = False

    async def take(self) -> tuple[UpgradedConnection, bool]:
        """A connection, and whether it has carried requests before: the other side may be about to close it. Raises
        what `dial` raises."""
        while self._idle:
            connection, _ = self._idle.pop()
            if connection.is_idle:
                return connection, True
            connection.close()
        return await self._dial(), False

    def give_back(self, connection: UpgradedConnection) -> None:
        """Keeps a connection that can carry another request."""
        if self._is_closed or len(self._idle) >= MOST_IDLE or not connection.is_idle:
            connection.close()
            return
        loop = asyncio.get_running_loop()
        self._idle.append((connection, loop.time()))
        if self._timer is None:
            self._timer = loop.call_later(IDLE_SECONDS, self._sweep)

    def _sweep(self) -> None:
        """Closes what has been idle for long."""
        self._timer = None
        loop = asyncio.get_running_loop()
        long_ago = loop.time() - IDLE_SECONDS
        while self._idle and (self._idle[0][1] <= long_ago or not self._idle[0][0].is_idle):
            self._idle.pop(0)[0].close()
        if self._idle:
            self._timer = loop.call_at(self._idle[0][1] + IDLE_SECONDS, self._sweep)

    def close(self) -> None:
        """Closes those that are idle, and from now on every one that is given back."""
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for connection, _ in self._idle:
            connection.close()
        self._idle.clear()
