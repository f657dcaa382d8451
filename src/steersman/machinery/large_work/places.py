"""Permits for requests with large bodies: the data made from a body takes many times its size."""

from __future__ import annotations

import asyncio
from typing import Final

MOST: Final = 6
"""The most permits. Processing an object of 1 MB (decoding, validation, comparison) takes some 60 MB."""


class Places:
    """A semaphore for requests whose large bodies have been read; used on the event loop only.

    The next permit goes to a user with the fewest, and among these to the smallest body, as most large requests are
    short.
    """

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._taken: dict[str, int] = {}
        self._waiting: list[tuple[Place, asyncio.Future[None]]] = []

    async def take(self, place: Place) -> None:
        """Wait for a permit."""
        if sum(self._taken.values()) < self._most:
            self._give(place)
            return
        turn = asyncio.get_running_loop().create_future()
        waiting = (place, turn)
        self._waiting.append(waiting)
        try:
            await turn
        except BaseException:
            if turn.done() and not turn.cancelled():
                self.give_back(place)
            elif waiting in self._waiting:
                self._waiting.remove(waiting)
            raise

    def give_back(self, place: Place) -> None:
        """Release a permit and hand it to the next waiting request."""
        left = self._taken[place.user] - 1
        if left:
            self._taken[place.user] = left
        else:
            del self._taken[place.user]
        waiting = [each for each in self._waiting if not each[1].done()]
        if not waiting:
            self._waiting.clear()
            return
        following = min(waiting, key=lambda each: (self._taken.get(each[0].user, 0), each[0].size))
        waiting.remove(following)
        self._waiting = waiting
        self._give(following[0])
        following[1].set_result(None)

    def _give(self, place: Place) -> None:
        self._taken[place.user] = self._taken.get(place.user, 0) + 1


class Place:
    """The permit of one request, acquired when work on its body begins. `size` is the body's size in bytes."""

    __slots__ = ("_is_taken", "_places", "size", "user")

    def __init__(self, places: Places, user: str, size: int) -> None:
        self._places = places
        self._is_taken = False
        self.user = user
        self.size = size

    async def acquire(self) -> None:
        """Acquire the permit, unless this request has it already."""
        if not self._is_taken:
            await self._places.take(self)
            self._is_taken = True

    def give_back(self) -> None:
        """Release the permit if this request has it."""
        if self._is_taken:
            self._is_taken = False
            self._places.give_back(self)
