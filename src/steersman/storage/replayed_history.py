"""History of a storage that keeps events but no records of writes: a replay of the events."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final, Protocol

from steersman.storage.interface import (
    Change,
    Changes,
    Compacted,
    Deliver,
    Event,
    KeyValue,
    StorageUnavailable,
    Subscription,
)

_MOST_BYTES: Final = 16 << 20
"""The most bytes of values of one page; older writes of it are left to the next page."""
_ATTEMPTS: Final = 3


class _Replaying(Protocol):
    """The part of a Storage that a replay needs."""

    @property
    def compact_revision(self) -> int: ...

    async def get(self, key: str, *, revision: int = 0) -> KeyValue | None: ...

    async def subscribe(self, prefix: str, *, after_revision: int, deliver: Deliver) -> Subscription: ...


async def replayed_history(storage: _Replaying, prefix: str, before: int, limit: int, *, is_key: bool) -> Changes:
    """Return a page of writes; see interface.Storage.history. Every page costs a replay of all events of the prefix.

    If all events of one key are in the page, the value that the oldest of them replaced is its last item.
    """
    page: deque[Event] = deque()
    oldest: Event | None = None
    size = 0
    more = False

    def take(events: Sequence[Event]) -> None:
        nonlocal oldest, size, more
        for event in events:
            if is_key and event.key != prefix:
                continue
            oldest = oldest or event
            if before and event.revision >= before:
                return
            page.append(event)
            size += _size(event)
            while len(page) > limit or (size > _MOST_BYTES and len(page) > 1):
                size -= _size(page.popleft())
                more = True

    since = storage.compact_revision
    for _ in range(_ATTEMPTS):
        try:
            (await storage.subscribe(prefix, after_revision=since, deliver=take)).cancel()
            break
        except Compacted as error:
            since, oldest, size, more = error.revision, None, 0, False
            page.clear()
    else:
        raise StorageUnavailable("history is compacted while it is read")
    items = [Change(event, None) for event in reversed(page)]
    if is_key and not more:
        first = oldest.previous if oldest is not None else await storage.get(prefix)
        if first is not None and (not before or first.mod_revision < before):
            more = len(items) == limit
            items += [Change(Event(first.mod_revision, prefix, first, None), None, is_oldest=True)][
                : limit - len(items)
            ]
    return Changes(items, more)


def _size(event: Event) -> int:
    return sum(len(each.value) for each in (event.current, event.previous) if each is not None)
