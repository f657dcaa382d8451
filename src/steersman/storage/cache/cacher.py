"""The watch cache of one resource: its objects as served, its recent changes, and everybody who watches it.

Follows k8s.io/apiserver `storage/cacher`. It is fed by a subscription to the storage on the same loop, so everything
here happens between two turns of it and needs no locks: what `list` gives is complete up to `revision`, and a watch
from that revision started in the same turn misses nothing.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from math import inf
from typing import Final, TypeVar

from steersman.machinery.large_work.sizes import SURELY_SMALL, is_large
from steersman.machinery.values import times
from steersman.storage.cache.counts import Counts
from steersman.storage.cache.endings import end_all, forget_all
from steersman.storage.cache.entry import CHANGE_BYTES, Change, Entry
from steersman.storage.cache.index import FieldIndex, ValueOf
from steersman.storage.cache.loading import Loaded
from steersman.storage.cache.past import Past
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
    fail,
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
"""Seconds a read waits for the cache to be as fresh as it asks, as upstream's."""
_FIRST_PAGE: Final = 500
_LOAD_PAGE: Final = 20_000
_LOAD_BYTES: Final = 16 << 20
"""Objects that are asked of storage first when a cache is filled, then at most, and about how many bytes of them. Pages
are large, as for each of them etcd counts all keys that follow."""
_LOAD_FAILURES: Final = 5
"""How often in turn a page may fail, once others have come: what was read is kept, and less asked for."""
_UNDONE: Final = 200
"""Changes that are undone between two looks at the clock, some 1 ms."""
_REPLAY_SLICE: Final = 200
_REPLAY_BYTES: Final = 256 << 10
"""Events, and bytes of objects, that a replay delivers in one turn of the loop."""
_HISTORY_LIMIT: Final = 10_000
"""Events older than the window that a watch may be given; one that lacks more has to start over."""
_RELOAD_DELAY: Final = 1.0
_MAX_RELOAD_DELAY: Final = 60.0
_WOKEN: Final = 8
"""Requests that go on in one turn of the loop, of many that have waited for the same."""
REPRESENTATIONS_LIMIT: Final = 16 << 20
"""Bytes up to which other encodings of objects are remembered."""
_ADMITTED: Final = 16
"""One in so many encodings is remembered in place of the oldest where there is no room: were it each, a list of more
than there is room for would never find any that the one before it has left."""


class Cacher:
    """A cache of everything under `prefix` (which ends with a slash).

    `present` makes the served body out of a stored value and its revision; what it raises makes the cache start over.
    `body_at` makes of a served body the same as of another revision.
    `unavailable` makes the error with which reading fails while the cache is not ready.
    `value_of` reads what objects may be looked for by, and watched by.
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
        """Whether nothing can have been committed that `revision` does not show."""
        self.has_other_servers = storage.has_other_servers
        self._new_window = new_window
        self._clock = clock
        self._entries: dict[str, Entry] = {}
        self._sorted = SortedEntries()
        self._past = Past()
        self._window = new_window(0)
        self._applied = 0
        self._watchers = Watchers(prefix, body_at, value_of)
        self._followers: list[Callable[[], None]] = []
        self._leaving: list[Watcher] = []
        """Those that are yet to be told that the cache starts over."""
        self._index = None if value_of is None else FieldIndex(value_of)
        self._waiting = 0
        """How many wait for this cache to be as it should."""
        self._woken = IterationGate(_WOKEN)
        self._subscription: Subscription | None = None
        self._reload: asyncio.Task[None] | None = None
        self._failures = 0
        self._ready = asyncio.Event()
        self.unreadable = ""
        """Why it is not ready, if that is because of a stored value: `KEY cannot be read: ...`."""
        self.undecryptable: Unreadable | None = None
        """The same if the value cannot be decrypted: others may be read from storage then."""
        self._was_ready = False
        self.unready_since = -inf
        """When that began, in seconds of the monotonic clock; long ago for one that has not been ready since the start:
        a kube-apiserver takes a minute to start then."""
        self._encoded: OrderedDict[Entry, int] = OrderedDict()
        """The entries with other encodings and what these take: former ones first, which only events still tell of,
        then the oldest."""
        self._encoded_size = 0
        self._without_room = 0
        self._representations_limit = representations_limit
        self.large = 0
        """How many of the objects are large (machinery.large_work.sizes): where none is, nobody has to weigh
        them."""
        self.size = 0
        """Bytes of the objects, as they are served."""
        self.counts = Counts()

    # Life

    async def start(self) -> None:
        """Loads everything and follows the storage from there. Raises what the storage raises.

        With a value that `present` cannot read, the cache stays empty and not ready, says so in `unreadable`, and tries
        again.
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
                # The storage was compacted between loading and following.
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
        """Ends every watch and forgets everything."""
        if self._reload is not None:
            self._reload.cancel()
            await asyncio.gather(self._reload, return_exceptions=True)
            self._reload = None
        self._reset(StorageUnavailable("the cache is stopped"))

    @property
    def ready(self) -> bool:
        """Whether it can be read and watched."""
        return self._ready.is_set()

    @property
    def is_empty(self) -> bool:
        """Return True if it is filled, and there is nothing."""
        return self._ready.is_set() and not self._entries

    async def wait_until_ready(self) -> None:
        """Returns once it can be read and watched; the caller bounds the wait."""
        await self._ready.wait()

    async def _load(self) -> None:
        failures = self._failures
        loaded = Loaded()
        start, revision, more, wanted = "", 0, True, _FIRST_PAGE
        failed = 0
        while more:
            try:
                page = await self._storage.range(self.prefix, start=start, limit=wanted, revision=revision)
            except StorageUnavailable:
                failed += 1
                if not loaded.entries or failed > _LOAD_FAILURES:
                    raise
                await asyncio.sleep(_RELOAD_DELAY)
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
            wanted = max(1, min(_LOAD_PAGE, _LOAD_BYTES * len(page.items) // max(loaded.size - size, 1)))
        self._entries, self._sorted = loaded.entries, loaded.ordered
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

    def _reset(self, error: Exception) -> None:
        """Ends all watches with `error` and forgets everything; where that is much, in later turns of the loop."""
        self._ready.clear()
        if self._subscription is not None:
            self._subscription.cancel()
            self._subscription = None
        if watchers := self._watchers.take_all():
            self._leaving = watchers
            end_all(watchers, error)
        forget_all(self._sorted, self._entries)
        self._entries, self._sorted = {}, SortedEntries()
        self._past.forget()
        self._forget_index()
        self.large = self.size = 0
        self._window = self._new_window(0)
        self._encoded.clear()
        self._encoded_size = 0
        self._tell_followers()

    def _forget_index(self) -> None:
        if self._index is not None:
            self._index.clear()

    async def _load_again(self) -> None:
        """Starts over after a failure, until it works."""
        retries = Retries(Backoff(_RELOAD_DELAY, _MAX_RELOAD_DELAY))
        while not self.ready:
            await retries.pause()
            # Those who are yet to be told would be told of a revision that they have not seen.
            while self._leaving:  # noqa: ASYNC110  # turns of the loop are what is waited for
                await asyncio.sleep(0)
            try:
                await self._start()
            except (Undecodable, Unreadable) as error:
                if str(error) != self.unreadable:  # which was told
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
        """Takes events from the storage, in revision order."""
        try:
            now = self._clock()
            self.counts.events += len(events)
            self._watchers.begin_turn()
            for event in events:
                self._apply_one(event, now)
        except Exception as error:
            logger.exception("the cache of %s cannot follow the storage and starts over", self.prefix)
            self._lose(error)

    def _lose(self, error: Exception) -> None:
        """Starts over, as events are missing."""
        loading = not self.ready
        self._reset(error)
        self._failures += 1
        if not loading:
            self._reload = asyncio.get_running_loop().create_task(self._load_again())

    def start_over(self, error: Exception) -> None:
        """Ends all watches with `error` and loads everything anew: what it shows is not what is stored."""
        if self.ready:
            self._lose(error)

    def _apply_one(self, event: Event, now: float) -> None:
        key = event.key
        previous = self._entries.get(key)
        current = None
        if event.current is not None:
            current = self._entry(event.current)
            self._entries[key] = current
            self.size += len(current.body)
            if len(current.body) > SURELY_SMALL and is_large(current.body):
                self.large += 1
            self._sorted.put(current)
        elif previous is not None:
            del self._entries[key]
            self._sorted.discard(key)
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
        """The revision this cache shows: nothing that happened up to it is missing."""
        return max(self._applied, self._storage.revision)

    @property
    def changed(self) -> int:
        """The revision of the last change of any of its objects, or that at which it was loaded."""
        return self._applied

    def follow(self, changed: Callable[[], None]) -> None:
        """Have `changed` called in the turn of the event loop in which an object changes, and where everything may
        have: when the cache is filled, and when it starts over. It must neither block nor raise.
        """
        self._followers.append(changed)

    def _tell_followers(self) -> None:
        for changed in self._followers:
            changed()

    @property
    def told(self) -> int | None:
        """The revision up to which watchers have been told of everything, None while they are being told, or missing
        something."""
        return self.revision if self._watchers.all_told and self.ready else None

    @property
    def oldest_revision(self) -> int:
        """The oldest revision that `list_at` can show."""
        return self._window.start

    async def wait_current(self) -> None:
        """Waits until the cache has everything that was committed before, also by others. Raises FutureRevision if that
        takes too long, StorageUnavailable."""
        try:
            await self._come_up()
        except (FutureRevision, StorageUnavailable):
            self.counts.inconsistent += 1
            raise

    async def catches_up(self) -> bool:
        """As `wait_current`, but gives False for what takes too long: the caller asks the storage then."""
        try:
            await self._come_up()
        except FutureRevision:
            self.counts.bypassed += 1
            return False
        except StorageUnavailable:
            self.counts.inconsistent += 1
            raise
        return True

    async def _come_up(self) -> None:
        await self.wait_fresh(await self._in_turn(self._storage.current_revision()))
        self.counts.consistent += 1

    async def _in_turn(self, waited_for: Awaitable[T]) -> T:
        """What is waited for, and by many perhaps, which go on one after another then."""
        self._waiting += 1
        try:
            found = await waited_for
        finally:
            self._waiting -= 1
        if self._waiting >= _WOKEN:
            await self._woken.pass_through()
        return found

    async def wait_fresh(self, revision: int, *, timeout: float = FRESH_TIMEOUT) -> None:
        """Waits until the cache is at `revision`. Raises FutureRevision if that takes longer than `timeout` seconds."""
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
        """The object, None if there is none."""
        if not self._ready.is_set():
            self._not_ready()
        return self._entries.get(key)

    def peek(self, key: str) -> Entry | None:
        """Return the object as `get` does, None also while the cache is not ready."""
        return self._entries.get(key) if self._ready.is_set() else None

    def count(self, prefix: str) -> int:
        """How many objects there are under `prefix`."""
        return self.count_from(prefix, "")

    def count_from(self, prefix: str, start: str) -> int:
        """How many objects there are under `prefix` from the key `start` on."""
        if not self._ready.is_set():
            self._not_ready()
        return self._sorted.count(prefix, start)

    def list(self, prefix: str, *, start: str = "", limit: int = 0) -> tuple[Sequence[Entry], bool]:
        """At most `limit` (0: all) objects under `prefix`, in key order, from the key `start` on (inclusive), as of
        `revision`; and whether more follow. What is shown now is remembered for a while then, for `list_at`."""
        if not self._ready.is_set():
            self._not_ready()
        found, more = self._sorted.range(prefix, start, limit)
        if more:
            self._past.keep(self.revision, self._sorted)
        return found, more

    async def indexed(self, value: str | None) -> None:
        """Returns once objects that hold a value can be found without looking at the others, if they ever can."""
        if value is not None and self._index is not None and self.ready:
            await self._in_turn(self._index.filled(self._entries))

    def candidates(self, prefix: str, value: str | None) -> Sequence[Entry]:
        """All objects under `prefix` among which are those that hold a value, in key order, as of `revision`. These
        alone once the index is made; None stands for no value, and for all objects."""
        if not self._ready.is_set():
            self._not_ready()
        known = None if value is None or self._index is None else self._index.keys(value, self._entries)
        if known is None:
            return self._sorted.range(prefix)[0]
        return present_range(known, self._entries, prefix, "", 0)[0]

    def list_at(self, revision: int, prefix: str, *, start: str = "", limit: int = 0) -> tuple[Sequence[Entry], bool]:
        """As `list`, at an older revision. Raises Compacted if the event window does not reach back to it (the
        storage may), or storage has forgotten it, FutureRevision if it has not happened yet."""
        return self._at(revision).range(prefix, start, limit)

    def count_at(self, revision: int, prefix: str, start: str) -> int:
        """How many objects there were under `prefix` from the key `start` on. Raises as `list_at`."""
        return self._at(revision).count(prefix, start)

    async def recall(self, revision: int) -> None:
        """Has what there was at a revision at hand for `list_at` and `count_at`, in this turn and for a while. Raises
        as they do. Without it they hold the loop for some 20 ms where much was written since."""
        present = self._sorted
        if self._known_at(revision) is None:
            undone = list(self._window.undo(revision).items())
            past = present.fork()
            async for at in time_sliced(range(0, len(undone), _UNDONE)):
                past.undo(undone[at : at + _UNDONE])
            if self._sorted is present:
                self._past.keep(revision, past, is_own=True)

    def _at(self, revision: int) -> SortedEntries:
        """What there was at a revision."""
        past = self._known_at(revision)
        if past is None:
            past = self._sorted.fork()
            past.undo(self._window.undo(revision).items())
        return past

    def _known_at(self, revision: int) -> SortedEntries | None:
        """What there was at a revision, None if that is to be found out by the event window."""
        if not self._ready.is_set():
            self._not_ready()
        now = self.revision
        if revision > now:
            raise FutureRevision(revision, now)
        compacted = self._storage.compact_revision
        if revision < compacted:
            raise Compacted(max(self._window.start, compacted))
        if revision >= self._applied:
            return self._sorted
        known = self._past.at(revision)
        if known is None and revision < self._window.start:
            raise Compacted(self._window.start)
        return known

    def _not_ready(self) -> None:
        why = f": {self.unreadable}" if self.unreadable else ""
        raise self._unavailable(f"the cache of {self.prefix} is not ready{why}")

    def remember(self, entry: Entry, kind: object, encoded: bytes) -> None:
        """Keeps another encoding of an entry in its `representations`, if there is room, or once in a while in place of
        the oldest."""
        kept = dict(entry.representations or ())
        kept[kind] = encoded
        before, size = self._encoded.get(entry, 0), sum(map(len, kept.values()))
        room = self._representations_limit - size + before
        while self._encoded_size > room and self._entries.get((first := next(iter(self._encoded))).key) is not first:
            self._drop_first()
        if self._encoded_size > room:
            self._without_room += 1
            if self._without_room % _ADMITTED or size > self._representations_limit:
                return
        entry.representations = kept
        self._encoded[entry] = size
        self._encoded_size += size - before
        if self._entries.get(entry.key) is not entry:
            self._encoded.move_to_end(entry, last=False)
        while self._encoded_size > self._representations_limit:
            self._drop_first()

    def _drop_first(self) -> None:
        first, size = self._encoded.popitem(last=False)
        first.representations = None
        self._encoded_size -= size

    # Watching

    @property
    def watchers(self) -> int:
        """How many watches are running."""
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
        """Delivers what happens to `target` (the cache's prefix, a directory under it, or one key) later than
        `after_revision` (None: later than now), without gap or repetition, until cancelled.

        `deliver` is called on the loop and must not block; if it raises, the watch ends. It is not called before
        this returns. With `accept`, objects that come to be accepted are ADDED, those that cease to be are DELETED.
        One that accepts only what holds a `value` is not asked about anything else.
        `closed` is called if the watch ends by itself: Compacted (what follows `after_revision` is no longer kept),
        WatchTooSlow, StorageUnavailable (the cache stops), or what `deliver` raised. While older changes are replayed,
        `drain` is awaited every so often, so that a watcher is not given more of them than it takes. A `prompt` watch,
        the server's own, is told of a change in the turn in which it is seen; the others, if they are many, later.
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
            replay = self._replay_from_storage(watcher, after_revision, now, drain)
        else:
            changes = [change for change in self._window.since(after_revision) if _concerns(target, change.key)]
            if not changes:
                self._watchers.add(watcher)
                return watcher
            replay = self._replay(watcher, changes, drain)
        watcher.hold()
        self._watchers.add(watcher)
        watcher.replay = asyncio.get_running_loop().create_task(replay)
        return watcher

    async def _replay(self, watcher: Watcher, changes: Iterable[Change], drain: Drain | None) -> None:
        """Delivers changes, and what was held back meanwhile, in slices; then lets the watcher go live."""
        try:
            await self._deliver_changes(watcher, changes, drain)
            while watcher.held:
                await self._deliver_held(watcher, drain)
        except Exception as error:
            watcher.replay = None
            fail(watcher, error)
            return
        watcher.release()
        watcher.replay = None

    async def _deliver_changes(self, watcher: Watcher, changes: Iterable[Change], drain: Drain | None) -> None:
        count = size = 0
        for change in changes:
            self._watchers.announce_to(watcher, change)
            count += 1
            size += change.size + (0 if change.current is None else len(change.current.body))
            if count == _REPLAY_SLICE or size > _REPLAY_BYTES:
                count = size = 0
                await _pause(drain)
        await _pause(drain)

    async def _deliver_held(self, watcher: Watcher, drain: Drain | None) -> None:
        count = size = 0
        for event in watcher.take_held():
            watcher.deliver_replayed(event)
            count += 1
            size += len(event.entry.body)
            if count == _REPLAY_SLICE or size > _REPLAY_BYTES:
                count = size = 0
                await _pause(drain)
        await _pause(drain)

    async def _replay_from_storage(self, watcher: Watcher, after_revision: int, last: int, drain: Drain | None) -> None:
        """As `_replay`, for a watch from before the event window: from the storage's history, up to `last`."""
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
        await self._replay(watcher, map(self._change, found), drain)

    def _change(self, event: Event) -> Change:
        """An old event of the storage as the window would have kept it."""
        previous = self._entry(event.previous) if event.previous is not None else None
        current = self._entry(event.current) if event.current is not None else None
        return Change(event.revision, event.key, previous, current, 0.0)


async def _pause(drain: Drain | None) -> None:
    """Lets others have the loop, and a watcher take what it was given."""
    await asyncio.sleep(0)
    if drain is not None:
        await drain()


def _concerns(target: str, key: str) -> bool:
    """Whether a change of `key` is one of what is watched."""
    return key.startswith(target) if target.endswith("/") else key == target
