"""Watchers of the cache: who they are, which change concerns them, and what they see of it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from typing import Final

from steersman.storage.entry import Change, Entry, WatchEvent
from steersman.storage.keys import parent

logger = logging.getLogger(__name__)

Accept = Callable[[Entry], bool]
DeliverEvent = Callable[[WatchEvent], None]
Closed = Callable[[Exception], None]
Present = Callable[[bytes, int], bytes]
Drain = Callable[[], Awaitable[None]]

HELD_LIMIT: Final = 10_000
"""Events that may wait for a watcher while it is being replayed older ones."""
HELD_BYTES: Final = 32 << 20
"""Bytes of objects that may wait with them."""


class WatchTooSlow(Exception):
    """More happened during a replay than the cache holds back for one watcher; it has to start over."""


class Watcher:
    """A running watch, from the caller's side: something to cancel.

    `deliver` is what the cache calls; while older events are replayed it is swapped for a buffer, after the end for
    nothing at all.
    """

    __slots__ = ("_closed", "_deliver", "_watchers", "accept", "active", "deliver", "held", "held_size",
                 "replay", "target")  # fmt: skip

    def __init__(
        self, watchers: Watchers, target: str, accept: Accept | None, deliver: DeliverEvent, closed: Closed | None
    ) -> None:
        self.target = target
        self.accept = accept
        self.deliver = deliver
        self.active = True
        self.held: list[WatchEvent] = []
        self.held_size = 0
        self.replay: asyncio.Task[None] | None = None
        self._deliver = deliver
        self._closed = closed
        self._watchers = watchers

    def cancel(self) -> None:
        """Ends the watch; nothing is called any more."""
        if not self.active:
            return
        self.active = False
        self.deliver = _ignore
        self.held = []
        self._watchers.remove(self)
        if self.replay is not None:
            self.replay.cancel()

    def end(self, error: Exception) -> None:
        """Ends the watch from the cache's side and says why."""
        if not self.active:
            return
        self.cancel()
        if self._closed is not None:
            try:
                self._closed(error)
            except Exception:
                logger.exception("a watcher of %s failed at its end", self.target)

    def hold(self) -> None:
        """Collects events while older ones are replayed."""
        self.deliver = self._hold

    def _hold(self, event: WatchEvent) -> None:
        self.held_size += len(event.entry.body)
        if len(self.held) >= HELD_LIMIT or self.held_size > HELD_BYTES:
            self.end(WatchTooSlow("more events than may wait during the replay of older ones"))
        else:
            self.held.append(event)

    def take_held(self) -> list[WatchEvent]:
        """What was collected; from here on it is collected anew."""
        taken, self.held = self.held, []
        self.held_size = 0
        return taken

    def skip_until(self, revision: int) -> None:
        """Drops events up to `revision`, which is in the future."""

        def gate(event: WatchEvent) -> None:
            if event.revision > revision:
                self.deliver = self._deliver
                self._deliver(event)

        self.deliver = gate

    def release(self) -> None:
        """Delivers directly from here on; nothing may be held any more."""
        if self.active:
            self.deliver = self._deliver

    def deliver_replayed(self, event: WatchEvent) -> None:
        """Delivers an older event, past the buffer."""
        if self.active:
            try:
                self._deliver(event)
            except Exception as error:
                fail(self, error)


def _ignore(event: WatchEvent) -> None:
    """Stands for the callback of a watcher that has ended."""


def fail(watcher: Watcher, error: Exception) -> None:
    """Ends a watcher whose callback raised, so that it harms nobody else."""
    logger.error("a watcher of %s failed and is ended", watcher.target, exc_info=error)
    watcher.end(error)


class Announcement:
    """A change on its way to watchers. Each of the events it can be is made once, when first needed.

    `plain` is the event for those who select nothing.
    """

    __slots__ = ("_added", "_change", "_deleted", "_modified", "_present", "plain")

    def __init__(self, change: Change, present: Present) -> None:
        self._change = change
        self._present = present
        self._added: WatchEvent | None = None
        self._modified: WatchEvent | None = None
        self._deleted: WatchEvent | None = None
        if change.current is None:
            self.plain = self.deleted()
        elif change.previous is None:
            self.plain = self.added()
        else:
            self.plain = self.modified()

    def added(self) -> WatchEvent:
        """The object came to be, or into the selection."""
        if self._added is None:
            assert self._change.current is not None
            self._added = WatchEvent("ADDED", self._change.current, self._change.revision)
        return self._added

    def modified(self) -> WatchEvent:
        """The object changed."""
        if self._modified is None:
            assert self._change.current is not None
            self._modified = WatchEvent("MODIFIED", self._change.current, self._change.revision)
        return self._modified

    def deleted(self) -> WatchEvent:
        """The object was deleted, or left the selection: what it was before, at the revision of the change."""
        if self._deleted is None:
            change = self._change
            assert change.previous is not None
            assert change.previous_value is not None
            body = self._present(change.previous_value, change.revision)
            left = Entry(change.key, body, change.revision, change.previous.attributes)
            self._deleted = WatchEvent("DELETED", left, change.revision)
        return self._deleted

    def selected(self, accept: Accept) -> WatchEvent | None:
        """The event for those who select: what the change is to them, None if nothing."""
        change = self._change
        was = change.previous is not None and accept(change.previous)
        if change.current is not None and accept(change.current):
            return self.modified() if was else self.added()
        return self.deleted() if was else None


class Watchers:
    """The watchers by what they watch, so that a change costs only those whom it concerns.

    A target is a directory (it ends with a slash: all, or one namespace) or a single key.
    """

    def __init__(self, prefix: str, present: Present) -> None:
        self._prefix = prefix
        self._present = present
        self._targets: dict[str, dict[Watcher, None]] = {}
        self._snapshots: dict[str, tuple[Watcher, ...]] = {}
        """What a change's callbacks walk over, as they may add and remove watchers."""
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Watcher]:
        return iter([watcher for watchers in self._targets.values() for watcher in watchers])

    def add(self, watcher: Watcher) -> None:
        """Adds a watcher to those of its target."""
        self._targets.setdefault(watcher.target, {})[watcher] = None
        self._snapshots.pop(watcher.target, None)
        self._count += 1

    def remove(self, watcher: Watcher) -> None:
        """Forgets a watcher."""
        watchers = self._targets.get(watcher.target)
        if watchers is None or watcher not in watchers:
            return
        del watchers[watcher]
        self._snapshots.pop(watcher.target, None)
        self._count -= 1
        if not watchers:
            del self._targets[watcher.target]

    def announce(self, change: Change) -> None:
        """Tells everyone concerned of a change."""
        targets = self._targets
        if not targets:
            return
        key = change.key
        directory = parent(key)
        announcement = None
        for target in (self._prefix, directory, key) if directory != self._prefix else (directory, key):
            if target not in targets:
                continue
            if announcement is None:
                announcement = Announcement(change, self._present)
            watchers = self._snapshots.get(target)
            if watchers is None:
                watchers = self._snapshots[target] = tuple(targets[target])
            _tell(watchers, announcement)

    def announce_to(self, watcher: Watcher, change: Change) -> None:
        """Replays a change to one watcher."""
        try:
            announcement = Announcement(change, self._present)
            accept = watcher.accept
            event = announcement.plain if accept is None else announcement.selected(accept)
        except Exception as error:
            fail(watcher, error)
        else:
            if event is not None:
                watcher.deliver_replayed(event)


def _tell(watchers: tuple[Watcher, ...], announcement: Announcement) -> None:
    plain = announcement.plain
    for watcher in watchers:
        try:
            accept = watcher.accept
            if accept is None:
                watcher.deliver(plain)
            else:
                event = announcement.selected(accept)
                if event is not None:
                    watcher.deliver(event)
        except Exception as error:
            fail(watcher, error)
