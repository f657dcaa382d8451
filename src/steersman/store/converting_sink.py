"""Watch events converted to the version of the request, where objects may be stored in another version."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Final, Protocol

from steersman.kinds.open import OpenKind
from steersman.machinery.errors.status import StatusError
from steersman.rest.capabilities import Sink, WatchHandle, WatchStart
from steersman.storage.cache.entry import Entry, WatchEvent
from steersman.store.selection import Accept
from steersman.work.backoff import Backoff, Retries

logger = logging.getLogger(__name__)

WAITING_LIMIT: Final = 8 << 20
"""The most bytes of objects that may wait for conversion in one watch. Beyond it the watch ends, and the client resumes
from its last version.
"""
_EVENT_SIZE: Final = 500
_TOGETHER: Final = 500
"""The most events that are converted together."""
BACKOFF: Final = Backoff(0.2, 5.0)
"""Pauses before retries of a failed conversion, without which the event cannot be sent."""


class Converts(Protocol):
    """The interface to convert entries."""

    async def converted(self, kind: OpenKind, items: Sequence[Entry], *, anew: bool = False) -> Sequence[Entry]:
        """Return the entries in the version of `kind`, in the same order; `anew` ignores conversions cached with an
        entry. Raises StatusError.
        """
        ...


class ConvertingSink:
    """A sink between a cache that sends all events, and a watcher that sees one version and the objects that `accept`
    selects.

    Events keep their order: while one waits for its conversion, later ones wait, too.
    """

    def __init__(self, store: Converts, kind: OpenKind, accept: Accept | None, sink: Sink) -> None:
        self._store = store
        self._kind = kind
        self._accept = accept
        self._sink = sink
        self._waiting: list[WatchEvent] = []
        self._waiting_size = 0
        self._task: asyncio.Task[None] | None = None
        self._handle: WatchHandle | None = None
        self._is_over = False

    def begun(self, start: WatchStart) -> WatchStart:
        """Return the start of the watch for its watcher, with initial entries that are not converted yet."""
        self._handle = start.handle
        if self._is_over:
            start.handle.cancel()
        current_revision = start.current_revision
        return WatchStart(
            start.initial,
            start.revision,
            self,
            lambda: current_revision() if self._task is None else None,
            start.last_change,
        )

    def cancel(self) -> None:
        """End the watch."""
        self._is_over = True
        self._waiting = []
        if self._handle is not None:
            self._handle.cancel()
        if self._task is not None:
            self._task.cancel()

    # Called by the cache

    def deliver(self, event: WatchEvent) -> None:
        """Pass an event on, immediately if no conversion is needed."""
        if self._is_over:
            return
        if self._task is None and all(map(self._is_own, self._looked_at(event))):
            self._tell(event, event.entry if event.type != "DELETED" else None, event.before)
            return
        self._waiting.append(event)
        self._waiting_size += _EVENT_SIZE + len(event.entry.body)
        if self._waiting_size > WAITING_LIMIT:
            self.cancel()
            self._sink.failed(None)
        elif self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._convert())
            self._task.add_done_callback(self._ended)

    def failed(self, error: StatusError | None) -> None:
        """Pass on that the watch has ended because of an error."""
        self.cancel()
        self._sink.failed(error)

    async def drain(self) -> None:
        """See rest.capabilities.Sink."""
        if self._task is not None:
            await asyncio.wait((self._task,))
        await self._sink.drain()

    # Conversion

    def _looked_at(self, event: WatchEvent) -> list[Entry]:
        """Return the entries that an event needs: the current one unless it is deleted, and the previous one if that is
        sent or tested.
        """
        found = [] if event.type == "DELETED" else [event.entry]
        if event.before is not None and (self._accept is not None or event.type == "DELETED"):
            found.append(event.before)
        return found

    def _is_own(self, entry: Entry) -> bool:
        return self._kind.version_of(entry.body) == self._kind.api_version

    async def _convert(self) -> None:
        """Convert and deliver waiting events, including those that arrive meanwhile."""
        while self._waiting:
            some, self._waiting = self._waiting[:_TOGETHER], self._waiting[_TOGETHER:]
            self._waiting_size -= sum(_EVENT_SIZE + len(each.entry.body) for each in some)
            entries = [entry for event in some for entry in self._looked_at(event)]
            converted = iter(await self._converted(entries))
            for event in some:
                count = len(self._looked_at(event))
                found = [next(converted) for _ in range(count)]
                current = None if event.type == "DELETED" else found[0]
                self._tell(event, current, found[-1] if event.before is not None else None)

    async def _converted(self, entries: Sequence[Entry]) -> Sequence[Entry]:
        """Return entries in the version of the watch, retrying until the conversion succeeds."""
        retries = Retries(BACKOFF)
        while True:
            try:
                return await self._store.converted(self._kind, entries)
            except StatusError as error:
                if not retries.failures:
                    logger.warning(
                        "a watch of %s waits for a conversion that failed: %.1000s", self._kind.gvk, error.message
                    )
            await retries.pause()

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._task = None
        if task.cancelled():
            return
        if (error := task.exception()) is not None:
            logger.error("a watch of %s failed", self._kind.gvk, exc_info=error)
            self.failed(None)
        elif self._waiting and not self._is_over:  # it arrived after the task's loop had ended
            self._task = asyncio.get_running_loop().create_task(self._convert())
            self._task.add_done_callback(self._ended)

    def _tell(self, event: WatchEvent, current: Entry | None, before: Entry | None) -> None:
        """Deliver an event as the watcher sees it. `before` need not be converted if it is not tested."""
        accept = self._accept
        if self._is_over:
            return
        is_accepted = current is not None and (accept is None or accept(current))
        if accept is None:
            was_accepted = before is not None
        else:
            was_accepted = before is not None and accept(before)
        if is_accepted:
            assert current is not None
            self._sink.deliver(self._shared(event, "MODIFIED" if was_accepted else "ADDED", current))
        elif was_accepted:
            assert before is not None
            self._sink.deliver(self._shared(event, "DELETED", before))

    def _shared(self, event: WatchEvent, type_: str, entry: Entry) -> WatchEvent:
        """Return the event of this type that all watchers of this version share, so that it is encoded once."""
        known = event.representations
        if known is None:
            known = event.representations = {}
        key = (self._kind.api_version, type_)
        found: WatchEvent | None = known.get(key)
        if found is None:
            if entry.revision != event.revision:
                body = self._kind.at_revision(self._kind.value_of(entry.body), event.revision)
                entry = Entry(entry.key, body, event.revision)
            found = known[key] = WatchEvent(type_, entry, event.revision)
        return found
