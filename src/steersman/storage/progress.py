"""Waiting for a revision to be reached."""

from __future__ import annotations

import asyncio
import heapq
from itertools import count


class Progress:
    """Wakes those who wait for a revision, once everybody has been told of it."""

    def __init__(self) -> None:
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._order = count()

    def wait(self, revision: int) -> asyncio.Future[None]:
        """A future that completes at `revision`; cancel it to stop waiting."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._drop_cancelled()
        heapq.heappush(self._waiting, (revision, next(self._order), future))
        return future

    def reached(self, revision: int) -> None:
        """Wakes those who wait for `revision` or an earlier one."""
        while self._waiting and self._waiting[0][0] <= revision:
            future = heapq.heappop(self._waiting)[2]
            if not future.done():
                future.set_result(None)

    def fail(self, error: Exception) -> None:
        """Ends all waiting with `error`."""
        waiting, self._waiting = self._waiting, []
        for _, _, future in waiting:
            if not future.done():
                future.set_exception(error)

    def _drop_cancelled(self) -> None:
        """Keeps waiters for revisions that never come from piling up."""
        if len(self._waiting) >= 64 and any(future.done() for _, _, future in self._waiting):
            self._waiting = [each for each in self._waiting if not each[2].done()]
            heapq.heapify(self._waiting)
