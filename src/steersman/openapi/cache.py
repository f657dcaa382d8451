"""A bounded cache of encoded documents."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable

from steersman.work.single_flight import SingleFlight


class EncodedDocuments:
    """An LRU cache of bytes by key, whose total size is limited to `limit` bytes.

    The newest entry is kept whatever its size, so that a large document is not built again for every request.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._kept: OrderedDict[Hashable, bytes] = OrderedDict()
        self._pending: SingleFlight[Hashable, bytes] = SingleFlight()
        self.size = 0
        """The total size of the entries in bytes."""

    async def get(self, key: Hashable, make: Callable[[], Awaitable[bytes]]) -> bytes:
        """Return the bytes of `key`, made by `make` if they are not cached, in a single flight for concurrent callers.

        Raises what `make` raises. The cancellation of a caller does not cancel the flight.
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
