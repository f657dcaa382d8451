"""Encoded documents: each made once and kept within a bound."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable

from steersman.work.single_flight import SingleFlight


class EncodedDocuments:
    """Bytes by key, least recently used ones forgotten once all together exceed `limit` bytes.

    The latest is kept whatever its size, so that a document is not made again for every request.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._kept: OrderedDict[Hashable, bytes] = OrderedDict()
        self._pending: SingleFlight[Hashable, bytes] = SingleFlight()
        self.size = 0
        """Bytes kept."""

    async def get(self, key: Hashable, make: Callable[[], Awaitable[bytes]]) -> bytes:
        """The bytes of `key`; `make` makes them if they are not there, once for all who wait for them.

        Raises what `make` raises. A waiter that is cancelled does not stop the making.
        """
        if (data := self._kept.get(key)) is not None:
            self._kept.move_to_end(key)
            return data
        return await self._pending.do(key, lambda: self._made(key, make))

    async def _made(self, key: Hashable, make: Callable[[], Awaitable[bytes]]) -> bytes:
        self._kept[key] = data = await make()
        self.size += len(data)
        while self.size > self._limit and len(self._kept) > 1:
            _, forgotten = self._kept.popitem(last=False)
            self.size -= len(forgotten)
        return data
