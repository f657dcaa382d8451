"""Watchers of the cache, and the selection of the changes and events that they get."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from itertools import islice
from time import perf_counter
from typing import Final

from steersman.storage.cache.entry import Change, Entry, WatchEvent
from steersman.storage.cache.index import ValueOf
from steersman.storage.keys import parent
from steersman.work.yielding import run_in_slices

logger = logging.getLogger(__name__)

Accept = Callable[[Entry], bool]
DeliverEvent = Callable[[WatchEvent], None]
Closed = Callable[[Exception], None]
Present = Callable[[bytes, int], bytes]
Drain = Callable[[], Awaitable[None]]

HELD_LIMIT: Final = 10_000
"""The most events that may wait for a watcher while older ones are replayed."""
HELD_BYTES: Final = 32 << 20
"""The most bytes of objects in these events."""

TURN: Final = 0.005
"""Seconds for which changes are delivered before the event loop gets a turn."""
Place = tuple[str, str | None]
"""The watched target, and the value that objects must have, None for all objects."""

MOST_UNTOLD: Final = 1_000
"""The most changes that may wait for delivery; beyond it the writer delivers them before it continues."""


class WatchTooSlow(Exception):
    """The error of a watch with more events during a replay than the cache keeps for one watcher; it must relist."""


class Watcher:
    """A running watch, which its owner can cancel.

    The cache calls `deliver`; it is replaced by a buffer while older events are replayed, and by a no-op after the end.
    A `prompt` watcher gets each change in its own turn of the event loop, however many other watchers there are.
    """

    __slots__ = (
        "_closed",
        "_deliver",
        "_watchers",
        "accept",
        "active",
        "deliver",
        "held",
        "held_size",
        "place",
        "prompt",
        "replay",
        "target",
    )

    def __init__(
        self,
        watchers: Watchers,
        target: str,
        accept: Accept | None,
        deliver: DeliverEvent,
        closed: Closed | None,
        *,
        value: str | None = None,
        prompt: bool = False,
    ) -> None:
        self.target = target
        self.place: Place = (target, value)
        self.accept = accept
        self.deliver = deliver
        self.prompt = prompt
        self.active = True
        self.held: list[WatchEvent] = []
        self.held_size = 0
        self.replay: asyncio.Task[None] | None = None
        self._deliver = deliver
        self._closed = closed
        self._watchers = watchers

    def cancel(self) -> None:
        """End the watch; no callback is called any more."""
        if not self.active:
            return
        self.active = False
        self.deliver = _ignore
        self.held = []
        self._watchers.remove(self)
        if self.replay is not None:
            self.replay.cancel()
            self.replay = None  # the task refers to this watch

    def end(self, error: Exception) -> None:
        """End the watch because of an error, which is passed to `closed`."""
        if not self.active:
            return
        self.cancel()
        if self._closed is not None:
            try:
                self._closed(error)
            except Exception:
                logger.exception("a watcher of %s failed in its callback for the end", self.target)

    def hold(self) -> None:
        """Buffer events while older ones are replayed."""
        self.deliver = self._hold

    def _hold(self, event: WatchEvent) -> None:
        self.held_size += len(event.entry.body)
        if len(self.held) >= HELD_LIMIT or self.held_size > HELD_BYTES:
            self.end(WatchTooSlow("more events than may wait during the replay of older ones"))
        else:
            self.held.append(event)

    def take_held(self) -> list[WatchEvent]:
        """Return the buffered events, and start a new buffer."""
        taken, self.held = self.held, []
        self.held_size = 0
        return taken

    def skip_until(self, revision: int) -> None:
        """Drop events up to `revision`, which is in the future."""

        def gate(event: WatchEvent) -> None:
            if event.revision > revision:
                self.deliver = self._deliver
                self._deliver(event)

        self.deliver = gate

    def release(self) -> None:
        """Deliver directly from now on; the buffer must be empty."""
        if self.active:
            self.deliver = self._deliver

    def deliver_replayed(self, event: WatchEvent) -> None:
        """Deliver an older event, bypassing the buffer."""
        if self.active:
            try:
                self._deliver(event)
            except Exception as error:
                fail(self, error)


def _ignore(event: WatchEvent) -> None:
    """Ignore events for a watcher that has ended."""


def fail(watcher: Watcher, error: Exception) -> None:
    """End a watcher whose callback raised an error, so that other watchers are not affected."""
    logger.error("a watcher of %s failed and its watch has ended", watcher.target, exc_info=error)
    watcher.end(error)


class Announcement:
    """A change that is delivered to watchers. Each of its possible events is created once, at first use.

    `plain` is the event for watchers without a selector.
    """

    __slots__ = ("_added", "_body_at", "_change", "_deleted", "_modified", "plain")

    def __init__(self, change: Change, body_at: Present) -> None:
        self._change = change
        self._body_at = body_at
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
        """Return the event of an object that was created or became selected."""
        if self._added is None:
            assert self._change.current is not None
            self._added = WatchEvent("ADDED", self._change.current, self._change.revision)
        return self._added

    def modified(self) -> WatchEvent:
        """Return the event of an object that was changed."""
        if self._modified is None:
            change = self._change
            assert change.current is not None
            self._modified = WatchEvent("MODIFIED", change.current, change.revision, change.previous)
        return self._modified

    def deleted(self) -> WatchEvent:
        """Return the event of an object that was deleted or is no longer selected: its old state, with the new
        revision.
        """
        if self._deleted is None:
            change = self._change
            assert change.previous is not None
            body = self._body_at(change.previous.body, change.revision)
            left = Entry(change.key, body, change.revision)
            left.selectable = change.previous.selectable
            self._deleted = WatchEvent("DELETED", left, change.revision, change.previous)
        return self._deleted

    def selected(self, accept: Accept) -> WatchEvent | None:
        """Return the event for a watcher with a selector, None if the change does not concern it."""
        change = self._change
        was = change.previous is not None and accept(change.previous)
        if change.current is not None and accept(change.current):
            return self.modified() if was else self.added()
        return self.deleted() if was else None


class _Telling:
    """A change that is yet to be delivered to the watchers from index `at` on, except for prompt ones."""

    __slots__ = ("announcement", "at", "watchers")

    def __init__(self, announcement: Announcement, watchers: tuple[Watcher, ...], at: int) -> None:
        self.announcement = announcement
        self.watchers = watchers
        self.at = at


class Watchers:
    """The watchers by their targets, so that a change only costs the watchers that it concerns.

    A target is a directory (it ends with a slash: all objects, or one namespace) or a single key. Watchers of objects
    with a certain value (`value_of`) are kept separately. If delivery takes long, because there are many watchers or
    expensive selectors, it continues in later turns of the event loop, change by change.
    """

    def __init__(self, prefix: str, body_at: Present, value_of: ValueOf | None = None) -> None:
        self._prefix = prefix
        self._body_at = body_at
        self._value_of = value_of
        self._places: dict[Place, dict[Watcher, None]] = {}
        self._by_value = 0
        """The number of watchers of objects with a certain value."""
        self._snapshots: dict[Place, tuple[Watcher, ...]] = {}
        """Copies to iterate over while callbacks add and remove watchers."""
        self._count = 0
        self._untold: deque[_Telling] = deque()
        self._until = 0.0

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Watcher]:
        return iter([watcher for watchers in self._places.values() for watcher in watchers])

    def add(self, watcher: Watcher) -> None:
        """Add a watcher to those of its target."""
        place = watcher.place
        self._places.setdefault(place, {})[watcher] = None
        self._snapshots.pop(place, None)
        self._count += 1
        self._by_value += place[1] is not None

    def remove(self, watcher: Watcher) -> None:
        """Remove a watcher."""
        place = watcher.place
        watchers = self._places.get(place)
        if watchers is None or watcher not in watchers:
            return
        del watchers[watcher]
        self._snapshots.pop(place, None)
        self._count -= 1
        self._by_value -= place[1] is not None
        if not watchers:
            del self._places[place]

    @property
    def all_told(self) -> bool:
        """Return True if every watcher has all events."""
        return not self._untold

    def take_all(self) -> list[Watcher]:
        """Remove and return all watchers; only their end is still to be reported."""
        found = list(self)
        self._untold.clear()
        self._places, self._snapshots = {}, {}
        self._count = self._by_value = 0
        return found

    def begin_turn(self) -> None:
        """Start a time slice for the changes of this turn of the event loop."""
        self._until = perf_counter() + TURN

    def announce(self, change: Change) -> None:
        """Deliver a change to all watchers that it concerns, now or after earlier changes."""
        if not self._places:
            return
        key = change.key
        directory = parent(key)
        targets = (self._prefix, directory, key) if directory != self._prefix else (directory, key)
        concerned = self._at(targets, None, ())
        if self._by_value and self._value_of is not None:
            before = None if change.previous is None else self._value_of(change.previous)
            now = None if change.current is None else self._value_of(change.current)
            for value in (now,) if now == before else (before, now):
                if value is not None:
                    concerned = self._at(targets, value, concerned)
        if not concerned:
            return
        announcement = Announcement(change, self._body_at)
        at = 0 if self._untold else _tell(concerned, 0, announcement, self._until)
        if at < len(concerned):
            self._tell_later(_Telling(announcement, concerned, at))

    def _at(self, targets: tuple[str, ...], value: str | None, concerned: tuple[Watcher, ...]) -> tuple[Watcher, ...]:
        """Return `concerned` and the watchers of one of the targets with this value."""
        places = self._places
        for target in targets:
            place = (target, value)
            if place not in places:
                continue
            watchers = self._snapshots.get(place)
            if watchers is None:
                watchers = self._snapshots[place] = tuple(places[place])
            concerned = concerned + watchers if concerned else watchers
        return concerned

    def _tell_later(self, telling: _Telling) -> None:
        for watcher in islice(telling.watchers, telling.at, None):
            if watcher.prompt:
                _tell((watcher,), 0, telling.announcement, 0.0)
        if not self._untold:
            asyncio.get_running_loop().call_soon(run_in_slices, self._go_on, 0.0)
        self._untold.append(telling)
        while len(self._untold) > MOST_UNTOLD:
            self._tell_oldest(float("inf"))

    def _go_on(self) -> bool:
        """Deliver waiting changes for the length of a time slice; return True if some remain."""
        until = perf_counter() + TURN
        while self._untold and self._tell_oldest(until):
            pass
        return bool(self._untold)

    def _tell_oldest(self, until: float) -> bool:
        """Deliver the oldest waiting change until `until`; return True if all its watchers have it."""
        oldest = self._untold[0]
        oldest.at = _tell(oldest.watchers, oldest.at, oldest.announcement, until, prompt_too=False)
        if oldest.at < len(oldest.watchers):
            return False
        self._untold.popleft()
        return True

    def announce_to(self, watcher: Watcher, change: Change) -> None:
        """Replay a change to one watcher."""
        try:
            announcement = Announcement(change, self._body_at)
            accept = watcher.accept
            event = announcement.plain if accept is None else announcement.selected(accept)
        except Exception as error:
            fail(watcher, error)
        else:
            if event is not None:
                watcher.deliver_replayed(event)


def _tell(
    watchers: tuple[Watcher, ...], start: int, announcement: Announcement, until: float, *, prompt_too: bool = True
) -> int:
    """Deliver a change to the watchers from `start` on until the time `until`, at least to one.

    Returns the index after the last watcher that was reached. A look at the clock is cheap compared with a selector,
    but not compared with a delivery.
    """
    plain = announcement.plain
    at = start
    for watcher in islice(watchers, start, None) if start else watchers:
        at += 1
        if watcher.prompt and not prompt_too:
            continue
        try:
            accept = watcher.accept
            if accept is None:
                watcher.deliver(plain)
                if at & 15:
                    continue
            else:
                event = announcement.selected(accept)
                if event is not None:
                    watcher.deliver(event)
        except Exception as error:
            fail(watcher, error)
        if perf_counter() > until:
            break
    return at
