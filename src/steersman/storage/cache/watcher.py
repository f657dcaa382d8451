"""Watchers of the cache: who they are, which change concerns them, and what they see of it."""

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
"""Events that may wait for a watcher while it is being replayed older ones."""
HELD_BYTES: Final = 32 << 20
"""Bytes of objects that may wait with them."""

_TURN: Final = 0.005
"""Seconds for which watchers are told of changes before others have the loop."""
Place = tuple[str, str | None]
"""What is watched, and the value that must be held for it, None if all of it is."""

_UNTOLD: Final = 1_000
"""Changes that may wait to be told; whoever makes more than that waits until there are fewer."""


class WatchTooSlow(Exception):
    """More happened during a replay than the cache holds back for one watcher; it has to start over."""


class Watcher:
    """A running watch, from the caller's side: something to cancel.

    `deliver` is what the cache calls; while older events are replayed it is swapped for a buffer, after the end for
    nothing at all. `prompt` is a watcher that is told in the turn of the change, however many others there are.
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
        """Ends the watch; nothing is called any more."""
        if not self.active:
            return
        self.active = False
        self.deliver = _ignore
        self.held = []
        self._watchers.remove(self)
        if self.replay is not None:
            self.replay.cancel()
            self.replay = None  # which knows this watch

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
        """The object came to be, or into the selection."""
        if self._added is None:
            assert self._change.current is not None
            self._added = WatchEvent("ADDED", self._change.current, self._change.revision)
        return self._added

    def modified(self) -> WatchEvent:
        """The object changed."""
        if self._modified is None:
            change = self._change
            assert change.current is not None
            self._modified = WatchEvent("MODIFIED", change.current, change.revision, change.previous)
        return self._modified

    def deleted(self) -> WatchEvent:
        """The object was deleted, or left the selection: what it was before, at the revision of the change."""
        if self._deleted is None:
            change = self._change
            assert change.previous is not None
            body = self._body_at(change.previous.body, change.revision)
            left = Entry(change.key, body, change.revision)
            left.selectable = change.previous.selectable
            self._deleted = WatchEvent("DELETED", left, change.revision, change.previous)
        return self._deleted

    def selected(self, accept: Accept) -> WatchEvent | None:
        """The event for those who select: what the change is to them, None if nothing."""
        change = self._change
        was = change.previous is not None and accept(change.previous)
        if change.current is not None and accept(change.current):
            return self.modified() if was else self.added()
        return self.deleted() if was else None


class _Telling:
    """A change of which the watchers from `at` on are yet to be told, but for those who were told at once."""

    __slots__ = ("announcement", "at", "watchers")

    def __init__(self, announcement: Announcement, watchers: tuple[Watcher, ...], at: int) -> None:
        self.announcement = announcement
        self.watchers = watchers
        self.at = at


class Watchers:
    """The watchers by what they watch, so that a change costs only those whom it concerns.

    A target is a directory (it ends with a slash: all, or one namespace) or a single key; those who watch what holds a
    value (`value_of`) are apart. Telling everyone takes long
    where they are many or their selectors long; then it goes on in later turns of the loop, change by change.
    """

    def __init__(self, prefix: str, body_at: Present, value_of: ValueOf | None = None) -> None:
        self._prefix = prefix
        self._body_at = body_at
        self._value_of = value_of
        self._places: dict[Place, dict[Watcher, None]] = {}
        self._by_value = 0
        """How many watch what holds a value."""
        self._snapshots: dict[Place, tuple[Watcher, ...]] = {}
        """What a change's callbacks walk over, as they may add and remove watchers."""
        self._count = 0
        self._untold: deque[_Telling] = deque()
        self._until = 0.0

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Watcher]:
        return iter([watcher for watchers in self._places.values() for watcher in watchers])

    def add(self, watcher: Watcher) -> None:
        """Adds a watcher to those of its target."""
        place = watcher.place
        self._places.setdefault(place, {})[watcher] = None
        self._snapshots.pop(place, None)
        self._count += 1
        self._by_value += place[1] is not None

    def remove(self, watcher: Watcher) -> None:
        """Forgets a watcher."""
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
        """Whether everyone has been told of every change."""
        return not self._untold

    def take_all(self) -> list[Watcher]:
        """All watchers, which are told nothing more from here on but their end."""
        found = list(self)
        self._untold.clear()
        self._places, self._snapshots = {}, {}
        self._count = self._by_value = 0
        return found

    def begin_turn(self) -> None:
        """Changes of this turn of the loop follow."""
        self._until = perf_counter() + _TURN

    def announce(self, change: Change) -> None:
        """Tells everyone concerned of a change, now or as soon as they have been told of earlier ones."""
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
        """`concerned`, and those who watch one of the targets for a value."""
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
        while len(self._untold) > _UNTOLD:
            self._tell_oldest(float("inf"))

    def _go_on(self) -> bool:
        """Tell of what is yet to be told, for as long as a turn may take; return True if that was not all."""
        until = perf_counter() + _TURN
        while self._untold and self._tell_oldest(until):
            pass
        return bool(self._untold)

    def _tell_oldest(self, until: float) -> bool:
        """Whether there was time for all of its watchers."""
        oldest = self._untold[0]
        oldest.at = _tell(oldest.watchers, oldest.at, oldest.announcement, until, prompt_too=False)
        if oldest.at < len(oldest.watchers):
            return False
        self._untold.popleft()
        return True

    def announce_to(self, watcher: Watcher, change: Change) -> None:
        """Replays a change to one watcher."""
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
    """Tells the watchers from `start` on, as long as it is not later than `until`, one at least.

    Returns how many of all have been told. Looking at the clock is cheap beside a selector, not beside a delivery.
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
