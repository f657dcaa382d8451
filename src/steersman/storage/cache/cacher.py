"""The watch cache of one resource: its objects in their served form, its recent changes, and its watchers.

Follows k8s.io/apiserver `storage/cacher`. A subscription to storage feeds it on the same event loop, so each change is
processed between two turns of the loop and there are no locks. The result of `list` is complete up to `revision`, and a
watch from that revision that starts in the same turn misses nothing.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from math import inf
from typing import Final, TypeVar

from steersman.machinery.large_work.sizes import SURELY_SMALL, is_large
from steersman.machinery.values import times
from steersman.storage.cache.counts import Counts
from steersman.storage.cache.entry import CHANGE_BYTES, Change, Entry
from steersman.storage.cache.index import FieldIndex, ValueOf
from steersman.storage.cache.loading import Loaded
from steersman.storage.cache.past_states import PastStates
from steersman.storage.cache.release import end_watchers, free_entries
from steersman.storage.cache.replay import replay
from steersman.storage.cache.sorted_entries import SortedEntries
from steersman.storage.cache.watcher import (
    Accept,
    Closed,
    DeliverEvent,
    Drain,
    Present,
    Watcher,
    Watchers,
    WatchTooSlow,
)
from steersman.storage.cache.window import EventWindow
from steersman.storage.interface import (
    SEALED,
    Compacted,
    Event,
    FutureRevision,
    KeyValue,
    Storage,
    StorageUnavailable,
    Subscription,
    Undecodable,
    Unreadable,
)
from steersman.storage.keys import after
from steersman.storage.rewind import present_range
from steersman.work.backoff import Backoff, Retries
from steersman.work.yielding import IterationGate, time_sliced

logger = logging.getLogger(__name__)

T = TypeVar("T")

FRESH_TIMEOUT: Final = 3.0
"""Seconds that a read waits for the cache to reach a revision, as upstream."""
FIRST_PAGE: Final = 500
LOAD_PAGE: Final = 20_000
_LOAD_BYTES: Final = 16 << 20
"""The numbers of objects in the first and in the largest page when a cache is filled, and the bytes of a page that
determine later page sizes. Pages are large, because etcd counts all following keys for each page.
"""
_LOAD_FAILURES: Final = 5
"""The most failures in a row of a page after others have been read: the read pages are kept, and less is requested."""
_UNDONE: Final = 200
"""Changes that are undone between two checks of the clock, in some 1 ms."""
_HISTORY_LIMIT: Final = 10_000
"""The most events before the window that a watch may get; a watch that lacks more must relist."""
RELOAD_DELAY: Final = 1.0
_MAX_RELOAD_DELAY: Final = 60.0
WOKEN: Final = 8
"""Waiting requests that continue in one turn of the event loop."""
REPRESENTATIONS_LIMIT: Final = 16 << 20
"""The most bytes of other encodings of objects in the cache."""
_ADMITTED: Final = 16
"""One in this many encodings replaces the oldest one if the cache is full. If each did, a list larger than the cache
would never find the encodings of the previous list.
"""


class Cacher:
    """A cache of all objects under `prefix` (which ends with a slash).

    `present` returns the served body of a stored value and its revision; an exception from it makes the cache relist.
    `body_at` returns a served body with another revision. `unavailable` returns the error of reads while the cache is
    not ready. `value_of` returns the value of the indexed field, by which objects can be found and watched.
    """

    def __init__(
        self,
        storage: Storage,
        prefix: str,
        *,
        present: Present,
        body_at: Present,
        unavailable: Callable[[str], Exception] = StorageUnavailable,
        value_of: ValueOf | None = None,
        new_window: Callable[[int], EventWindow] = EventWindow,
        representations_limit: int = REPRESENTATIONS_LIMIT,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if not prefix.endswith("/"):
            raise ValueError(f"a cache's prefix ends with a slash: {prefix!r}")
        self.prefix = prefix
        self._storage = storage
        self._present = present
        self._unavailable = unavailable
        self.is_current = storage.knows_newest
        """True if every committed write is visible at `revision`."""
        self.has_other_servers = storage.has_other_servers
        self._new_window = new_window
        self._clock = clock
        self.entries: dict[str, Entry] = {}
        """The present objects by key."""
        self.ordered = SortedEntries()
        """The entries in the order of their keys."""
        self._past = PastStates()
        self._window = new_window(0)
        self._applied = 0
        self._watchers = Watchers(prefix, body_at, value_of)
        self._followers: list[Callable[[], None]] = []
        self._leaving: list[Watcher] = []
        """Watchers that have yet to learn that the cache relists."""
        self._index = None if value_of is None else FieldIndex(value_of)
        self._waiting = 0
        """The number of requests that wait for the cache to become current."""
        self._woken = IterationGate(WOKEN)
        self._subscription: Subscription | None = None
        self._reload: asyncio.Task[None] | None = None
        self._failures = 0
        self._ready = asyncio.Event()
        self.unreadable = ""
        """The reason if the cache is not ready because of a stored value: `KEY cannot be read: ...`."""
        self.undecryptable: Unreadable | None = None
        """The error if the value cannot be decrypted: other objects may be read from storage then."""
        self._was_ready = False
        self.unready_since = -inf
        """The time since which the cache is not ready, in seconds of the monotonic clock. It is long ago if the cache
        has not been ready since the start, because a kube-apiserver takes a minute to start then.
        """
        self._encoded: OrderedDict[Entry, int] = OrderedDict()
        """Entries with other encodings and the bytes of these, in order of eviction: first replaced entries, which only
        events refer to, then the oldest.
        """
        self.encoded_size = 0
        """Bytes of the kept representations."""
        self._without_room = 0
        self.representations_limit = representations_limit
        """Most bytes of kept representations."""
        self.large = 0
        """The number of large objects (machinery.large_work.sizes). If it is 0, nobody needs to check sizes."""
        self.size = 0
        """The bytes of all objects in their served form."""
        self.counts = Counts()

    # Lifecycle

    async def start(self) -> None:
        """Load all objects and subscribe to storage. Raises what storage raises.

        If `present` cannot read a value, the cache stays empty and not ready, sets `unreadable`, and retries.
        """
        try:
            await self._start()
        except (Undecodable, Unreadable) as error:
            self._start_over(error)

    async def _start(self) -> None:
        while True:
            try:
                await self._load()
            except Compacted:
                # storage was compacted between loading and subscribing
                continue
            self.unreadable, self.undecryptable = "", None
            return

    def _start_over(self, error: Undecodable | Unreadable) -> None:
        self._note(error)
        logger.debug("the cache of %s cannot be loaded", self.prefix, exc_info=error)
        self._reload = asyncio.get_running_loop().create_task(self._load_again())

    def _note(self, error: Undecodable | Unreadable) -> None:
        if self._was_ready and not self.unreadable:
            self.unready_since = times.monotonic()
        if not isinstance(error, Unreadable):
            self.counts.undecodable += 1
        self.unreadable = str(error)
        self.undecryptable = error if isinstance(error, Unreadable) else None

    async def stop(self) -> None:
        """End every watch and drop all objects."""
        if self._reload is not None:
            self._reload.cancel()
            await asyncio.gather(self._reload, return_exceptions=True)
            self._reload = None
        self.reset(StorageUnavailable("the cache is stopped"))

    @property
    def ready(self) -> bool:
        """Return True if the cache can be read and watched."""
        return self._ready.is_set()

    @property
    def is_empty(self) -> bool:
        """Return True if the cache is filled and has no objects."""
        return self._ready.is_set() and not self.entries

    async def wait_until_ready(self) -> None:
        """Return once the cache can be read and watched; the caller sets a timeout."""
        await self._ready.wait()

    async def _load(self) -> None:
        failures = self._failures
        loaded = Loaded()
        start, revision, more, wanted = "", 0, True, FIRST_PAGE
        failed = 0
        while more:
            try:
                page = await self._storage.range(self.prefix, start=start, limit=wanted, revision=revision)
            except StorageUnavailable:
                failed += 1
                if not loaded.entries or failed > _LOAD_FAILURES:
                    raise
                await asyncio.sleep(RELOAD_DELAY)
                wanted = max(wanted // 2, 1)
                continue
            revision, more, failed = page.revision, page.more, 0
            self.counts.stored_lists += 1
            self.counts.stored_fetched += len(page.items)
            if not page.items:
                break
            size = loaded.size
            await loaded.read(page.items, self._entry)
            start = after(page.items[-1].key)
            wanted = max(1, min(LOAD_PAGE, _LOAD_BYTES * len(page.items) // max(loaded.size - size, 1)))
        self.entries, self.ordered = loaded.entries, loaded.ordered
        self._forget_index()
        self.large, self.size = loaded.large, loaded.size
        self._window = self._new_window(revision)
        self._applied = revision
        subscription = await self._storage.subscribe(
            self.prefix, after_revision=revision, deliver=self._apply, lost=self._lose
        )
        if self._failures != failures:
            subscription.cancel()
            raise StorageUnavailable(f"the cache of {self.prefix} could not be loaded")
        self._subscription = subscription
        self._was_ready = True
        self.counts.initializations += 1
        self._ready.set()
        self._tell_followers()

    def reset(self, error: Exception) -> None:
        """End all watches with `error` and drop all objects; a large number is dropped in later turns of the event
        loop.
        """
        self._ready.clear()
        if self._subscription is not None:
            self._subscription.cancel()
            self._subscription = None
        if watchers := self._watchers.take_all():
            self._leaving = watchers
            end_watchers(watchers, error)
        free_entries(self.ordered, self.entries)
        self.entries, self.ordered = {}, SortedEntries()
        self._past.clear()
        self._forget_index()
        self.large = self.size = 0
        self._window = self._new_window(0)
        self._encoded.clear()
        self.encoded_size = 0
        self._tell_followers()

    def _forget_index(self) -> None:
        if self._index is not None:
            self._index.clear()

    async def _load_again(self) -> None:
        """Reload after a failure, until it succeeds."""
        retries = Retries(Backoff(RELOAD_DELAY, _MAX_RELOAD_DELAY))
        while not self.ready:
            await retries.pause()
            # Watchers in this list would otherwise get a revision that they have not seen.
            while self._leaving:  # noqa: ASYNC110  # turns of the loop are what is waited for
                await asyncio.sleep(0)
            try:
                await self._start()
            except (Undecodable, Unreadable) as error:
                if str(error) != self.unreadable:  # an equal error has been logged already
                    self._note(error)
                    logger.error("the cache of %s cannot be loaded: %s", self.prefix, error)
            except Exception:
                self.unreadable, self.undecryptable = "", None
                logger.exception("the cache of %s cannot be loaded", self.prefix)

    # Following the storage

    def _entry(self, item: KeyValue) -> Entry:
        if item.value.startswith(SEALED):
            raise Unreadable(item.key, "identity transformer tried to read encrypted data")
        return Entry(item.key, self._present(item.value, item.mod_revision), item.mod_revision)

    def _apply(self, events: Sequence[Event]) -> None:
        """Process events from storage, in order of their revisions."""
        try:
            now = self._clock()
            self.counts.events += len(events)
            self._watchers.begin_turn()
            for event in events:
                self._apply_one(event, now)
        except Exception as error:
            logger.exception("the cache of %s failed to process events and is reloaded", self.prefix)
            self._lose(error)

    def _lose(self, error: Exception) -> None:
        """Reload, because events are missing."""
        loading = not self.ready
        self.reset(error)
        self._failures += 1
        if not loading:
            self._reload = asyncio.get_running_loop().create_task(self._load_again())

    def start_over(self, error: Exception) -> None:
        """End all watches with `error` and reload, because the cache differs from storage."""
        if self.ready:
            self._lose(error)

    def _apply_one(self, event: Event, now: float) -> None:
        key = event.key
        previous = self.entries.get(key)
        current = None
        if event.current is not None:
            current = self._entry(event.current)
            self.entries[key] = current
            self.size += len(current.body)
            if len(current.body) > SURELY_SMALL and is_large(current.body):
                self.large += 1
            self.ordered.put(current)
        elif previous is not None:
            del self.entries[key]
            self.ordered.discard(key)
        if previous is not None:
            self._past.replaced(len(previous.body))
            if previous in self._encoded:
                self._encoded.move_to_end(previous, last=False)
            self.size -= len(previous.body)
            if len(previous.body) > SURELY_SMALL and is_large(previous.body):
                self.large -= 1
        if self._index is not None and self._index.is_used:
            self._index.changed(key, current)
        size = CHANGE_BYTES if previous is None else CHANGE_BYTES + len(previous.body)
        change = Change(event.revision, key, previous, current, now, size)
        self._applied = event.revision
        if self._followers:
            self._tell_followers()
        self._window.add(change)
        self._watchers.announce(change)

    # Reading

    @property
    def revision(self) -> int:
        """Return the revision of the cache; all changes up to it are visible."""
        return max(self._applied, self._storage.revision)

    @property
    def changed(self) -> int:
        """Return the revision of the last change of any object, or that of the load."""
        return self._applied

    def follow(self, changed: Callable[[], None]) -> None:
        """Call `changed` in the turn of the event loop in which an object changes, and when the cache is filled or
        dropped.

        `changed` must neither block nor raise.
        """
        self._followers.append(changed)

    def _tell_followers(self) -> None:
        for changed in self._followers:
            changed()

    @property
    def delivered(self) -> int | None:
        """Return the revision up to which all watchers have all events; None while some are missing."""
        return self.revision if self._watchers.all_told and self.ready else None

    @property
    def oldest_revision(self) -> int:
        """Return the oldest revision for which `list_at` works."""
        return self._window.start

    async def wait_until_current(self) -> None:
        """Wait until the cache has everything that was committed before the call, also by other servers.

        Raises FutureRevision if that takes too long, and StorageUnavailable.
        """
        try:
            await self._become_current()
        except (FutureRevision, StorageUnavailable):
            self.counts.inconsistent += 1
            raise

    async def becomes_current(self) -> bool:
        """Wait as `wait_until_current` does; return False if that takes too long, so that the caller reads from storage.

        Raises StorageUnavailable.
        """
        try:
            await self._become_current()
        except FutureRevision:
            self.counts.bypassed += 1
            return False
        except StorageUnavailable:
            self.counts.inconsistent += 1
            raise
        return True

    async def _become_current(self) -> None:
        await self.wait_fresh(await self._in_turn(self._storage.current_revision()))
        self.counts.consistent += 1

    async def _in_turn(self, waited_for: Awaitable[T]) -> T:
        """Await something for which many requests may wait, and let these continue a few at a time."""
        self._waiting += 1
        try:
            found = await waited_for
        finally:
            self._waiting -= 1
        if self._waiting >= WOKEN:
            await self._woken.pass_through()
        return found

    async def wait_fresh(self, revision: int, *, timeout: float = FRESH_TIMEOUT) -> None:
        """Wait until the cache has reached `revision`. Raises FutureRevision after `timeout` seconds."""
        if revision <= self.revision:
            self.counts.waited(0.0)
            return
        await self._in_turn(self._wait_until(revision, timeout))

    async def _wait_until(self, revision: int, timeout: float) -> None:
        began = time.monotonic()
        try:
            async with asyncio.timeout(timeout):
                await self._storage.wait_until(revision)
        except TimeoutError:
            raise FutureRevision(revision, self.revision) from None
        finally:
            self.counts.waited(time.monotonic() - began)

    def get(self, key: str) -> Entry | None:
        """Return the object, None if it does not exist."""
        if not self._ready.is_set():
            self._not_ready()
        return self.entries.get(key)

    def peek(self, key: str) -> Entry | None:
        """Return the object as `get` does, and None while the cache is not ready."""
        return self.entries.get(key) if self._ready.is_set() else None

    def count(self, prefix: str) -> int:
        """Return the number of objects under `prefix`."""
        return self.count_from(prefix, "")

    def count_from(self, prefix: str, start: str) -> int:
        """Return the number of objects under `prefix` from the key `start` on."""
        if not self._ready.is_set():
            self._not_ready()
        return self.ordered.count(prefix, start)

    def list(self, prefix: str, *, start: str = "", limit: int = 0) -> tuple[Sequence[Entry], bool]:
        """Return at most `limit` (0: all) objects under `prefix`, from the key `start` on, and True if more follow.

        The objects are in key order, as of `revision`. If more follow, the present state is kept for a while, for
        `list_at`.
        """
        if not self._ready.is_set():
            self._not_ready()
        found, more = self.ordered.range(prefix, start, limit)
        if more:
            self._past.keep(self.revision, self.ordered)
        return found, more

    async def indexed(self, value: str | None) -> None:
        """Return once the index is built, if there is one, so that objects with a value can be found without a scan."""
        if value is not None and self._index is not None and self.ready:
            await self._in_turn(self._index.filled(self.entries))

    def candidates(self, prefix: str, value: str | None) -> Sequence[Entry]:
        """Return, in key order as of `revision`, objects under `prefix` that include all with a value.

        Once the index is built these are only the objects with that value. None stands for no value, and gives all
        objects.
        """
        if not self._ready.is_set():
            self._not_ready()
        known = None if value is None or self._index is None else self._index.keys(value, self.entries)
        if known is None:
            return self.ordered.range(prefix)[0]
        return present_range(known, self.entries, prefix, "", 0)[0]

    def list_at(self, revision: int, prefix: str, *, start: str = "", limit: int = 0) -> tuple[Sequence[Entry], bool]:
        """Return a list as `list` does, at an older revision.

        Raises Compacted if the event window does not reach back to it (storage may), or storage has compacted it, and
        FutureRevision for a revision that is not reached yet.
        """
        return self._at(revision).range(prefix, start, limit)

    def count_at(self, revision: int, prefix: str, start: str) -> int:
        """Return the number of objects under `prefix` from the key `start` on at a revision. Raises as `list_at`."""
        return self._at(revision).count(prefix, start)

    async def recall(self, revision: int) -> None:
        """Prepare `list_at` and `count_at` for a revision, for this turn of the event loop and a while longer. Raises
        as they do.

        Without this call they block the event loop for some 20 ms if there were many writes since.
        """
        present = self.ordered
        if self._known_at(revision) is None:
            undone = list(self._window.undo(revision).items())
            past = present.fork()
            async for at in time_sliced(range(0, len(undone), _UNDONE)):
                past.undo(undone[at : at + _UNDONE])
            if self.ordered is present:
                self._past.keep(revision, past, is_own=True)

    def _at(self, revision: int) -> SortedEntries:
        """Return the entries at a revision."""
        past = self._known_at(revision)
        if past is None:
            past = self.ordered.fork()
            past.undo(self._window.undo(revision).items())
        return past

    def _known_at(self, revision: int) -> SortedEntries | None:
        """Return the entries at a revision, None if the event window must be undone for that."""
        if not self._ready.is_set():
            self._not_ready()
        now = self.revision
        if revision > now:
            raise FutureRevision(revision, now)
        compacted = self._storage.compact_revision
        if revision < compacted:
            raise Compacted(max(self._window.start, compacted))
        if revision >= self._applied:
            return self.ordered
        known = self._past.at(revision)
        if known is None and revision < self._window.start:
            raise Compacted(self._window.start)
        return known

    def _not_ready(self) -> None:
        why = f": {self.unreadable}" if self.unreadable else ""
        raise self._unavailable(f"the cache of {self.prefix} is not ready{why}")

    def remember(self, entry: Entry, kind: object, encoded: bytes) -> None:
        """Cache another encoding of an entry in its `representations`, if there is space or one must be replaced."""
        kept = dict(entry.representations or ())
        kept[kind] = encoded
        before, size = self._encoded.get(entry, 0), sum(map(len, kept.values()))
        room = self.representations_limit - size + before
        while self.encoded_size > room and self.entries.get((first := next(iter(self._encoded))).key) is not first:
            self._drop_first()
        if self.encoded_size > room:
            self._without_room += 1
            if self._without_room % _ADMITTED or size > self.representations_limit:
                return
        entry.representations = kept
        self._encoded[entry] = size
        self.encoded_size += size - before
        if self.entries.get(entry.key) is not entry:
            self._encoded.move_to_end(entry, last=False)
        while self.encoded_size > self.representations_limit:
            self._drop_first()

    def _drop_first(self) -> None:
        first, size = self._encoded.popitem(last=False)
        first.representations = None
        self.encoded_size -= size

    # Watching

    @property
    def watchers(self) -> int:
        """Return the number of running watches."""
        return len(self._watchers)

    def watch(
        self,
        target: str,
        *,
        after_revision: int | None,
        accept: Accept | None = None,
        value: str | None = None,
        deliver: DeliverEvent,
        closed: Closed | None = None,
        drain: Drain | None = None,
        prompt: bool = False,
    ) -> Watcher:
        """Deliver changes of `target` after `after_revision` (None: now), without gap or repetition, until cancelled.

        `target` is the cache's prefix, a directory under it, or a key. `deliver` is called on the event loop, never
        before this method returns, and must not block; if it raises, the watch ends. With `accept`, objects that become
        accepted are ADDED, those no longer accepted are DELETED. A predicate that only accepts objects with a `value`
        is not called for others.

        `closed` is called if the watch ends by itself: with Compacted (events after `after_revision` are no longer
        kept), WatchTooSlow, StorageUnavailable (the cache stops), or the error that `deliver` raised. While older
        changes are replayed, `drain` is awaited now and then, so that a watcher gets no more of them than it can take.
        A `prompt` watch, which belongs to the server itself, gets a change in the turn in which it is seen; others may
        get it later if they are many.
        """
        if not self._ready.is_set():
            self._not_ready()
        if not target.startswith(self.prefix):
            raise ValueError(f"{target!r} is not under {self.prefix!r}")
        watcher = Watcher(self._watchers, target, accept, deliver, closed, value=value, prompt=prompt)
        now = self.revision
        if after_revision is None or after_revision == now:
            self._watchers.add(watcher)
            return watcher
        if after_revision > now:
            watcher.skip_until(after_revision)
            self._watchers.add(watcher)
            return watcher
        if after_revision < self._window.start:
            replaying = self._replay_from_storage(watcher, after_revision, now, drain)
        else:
            changes = [change for change in self._window.since(after_revision) if _concerns(target, change.key)]
            if not changes:
                self._watchers.add(watcher)
                return watcher
            replaying = replay(self._watchers, watcher, changes, drain)
        watcher.hold()
        self._watchers.add(watcher)
        watcher.replay = asyncio.get_running_loop().create_task(replaying)
        return watcher

    async def _replay_from_storage(self, watcher: Watcher, after_revision: int, last: int, drain: Drain | None) -> None:
        """Replay as `replay` does, from the history in storage up to `last`, for a watch from before the event window."""
        found: list[Event] = []

        def take(events: Sequence[Event]) -> None:
            for event in events:
                if event.revision <= last and _concerns(watcher.target, event.key) and len(found) <= _HISTORY_LIMIT:
                    found.append(event)

        try:
            subscription = await self._storage.subscribe(watcher.target, after_revision=after_revision, deliver=take)
        except (Compacted, StorageUnavailable, Undecodable, Unreadable) as error:
            watcher.replay = None
            watcher.end(error)
            return
        subscription.cancel()
        if len(found) > _HISTORY_LIMIT:
            watcher.replay = None
            watcher.end(WatchTooSlow(f"more than {_HISTORY_LIMIT} events since revision {after_revision}"))
            return
        await replay(self._watchers, watcher, map(self._change, found), drain)

    def _change(self, event: Event) -> Change:
        """Return an old event of storage in the form of the event window."""
        previous = self._entry(event.previous) if event.previous is not None else None
        current = self._entry(event.current) if event.current is not None else None
        return Change(event.revision, event.key, previous, current, 0.0)


def _concerns(target: str, key: str) -> bool:
    """Return True if a change of `key` belongs to the watched target."""
    return key.startswith(target) if target.endswith("/") else key == target
