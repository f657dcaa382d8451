"""Subscribers that lag behind the storage below, because their events take long to read."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Final, Protocol

_PATIENCE: Final = 3.0
"""Seconds that a request waits for subscribers, the same as a read waits for a cache."""


class LaggingFeed(Protocol):
    """A subscriber with waiting events."""

    delivered: int
    """The revision up to which no event waits."""
    caught_up: asyncio.Event
    """Set when no event waits any more."""


class LaggingFeeds:
    """The lagging subscribers of one storage, or of several."""

    def __init__(self) -> None:
        self.feeds: Final[set[LaggingFeed]] = set()

    def wait_for(self, revision: int) -> Awaitable[None] | None:
        """Return an awaitable that completes once all subscribers have reached a revision, or after _PATIENCE seconds.

        Returns None if none lags.
        """
        return self._wait(revision) if self.feeds else None

    async def wait_until(self, revision: int) -> None:
        """Return once all subscribers have reached a revision."""
        for feed in [feed for feed in self.feeds if feed.delivered < revision]:
            await feed.caught_up.wait()

    async def _wait(self, revision: int) -> None:
        try:
            async with asyncio.timeout(_PATIENCE):
                await self.wait_until(revision)
        except TimeoutError:
            return
