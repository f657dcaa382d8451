"""Waiting for a revision to be reached."""

from __future__ import annotations

import asyncio
import heapq
from itertools import count


class Progress:
    """Waiters for revisions, which are woken once all events up to the revision have been delivered."""

    def __init__(self) -> None:
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._order = count()

    def wait(self, revision: int) -> asyncio.Future[None]:
        """Return a future that completes at `revision`; cancel it to stop waiting."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._drop_cancelled()
        heapq.heappush(self._waiting, (revision, next(self._order), future))
        return future

    def reached(self, revision: int) -> None:
        """Wake the waiters for `revision` and earlier ones."""
        while self._waiting and self._waiting[0][0] <= revision:
            future = heapq.heappop(self._waiting)[2]
            if not future.done():
                future.set_result(None)

    def fail(self, error: Exception) -> None:
        """End all waiting with `error`."""
        waiting, self._waiting = self._waiting, []
        for _, _, future in waiting:
            if not future.done():
                future.set_exception(error)

    def _drop_cancelled(self) -> None:
        """Remove cancelled waiters, so that those for revisions that never come do not accumulate."""
        if len(self._waiting) >= 64 and any(future.done() for _, _, future in self._waiting):
            self._waiting = [each for each in self._waiting if not each[2].done()]
            heapq.heapify(self._waiting)
