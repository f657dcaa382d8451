"""The implementation of the storage contract on etcd."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from steersman.net.client.grpc import CallError, Code
from steersman.storage.dispatch import Registration
from steersman.storage.dispatching import CLOSED, WritingStorage
from steersman.storage.etcd import checks, messages, sole_server, watch
from steersman.storage.etcd.compaction import Compactor
from steersman.storage.etcd.leases import REUSE_SECONDS, Leases
from steersman.storage.etcd.members import Endpoint, Identity, Members, endpoints, unavailable
from steersman.storage.etcd.messages import Change, MessageError, Stored
from steersman.storage.etcd.sole_server import QUIET, ROUND, SoleServer
from steersman.storage.etcd.watch import WatchLoop
from steersman.storage.interface import (
    Answered,
    Compacted,
    Conflict,
    Event,
    FutureRevision,
    KeyExists,
    KeyValue,
    OutcomeUnknown,
    Range,
    StorageUnavailable,
    ValueRefused,
)
from steersman.storage.keys import check_write
from steersman.storage.maintenance import COMPACTION_INTERVAL, compaction
from steersman.storage.rewind import bounds
from steersman.work.periodic import Periodic
from steersman.work.yielding import TimeSlice

logger = logging.getLogger(__name__)

ROOT: Final = "/registry"
"""The prefix of all keys that servers store (`--etcd-prefix`)."""
_START_SECONDS: Final = 20.0
MEMBER_SECONDS: Final = 3.0
"""The timeout of a member at the start, after which another one is tried."""
_LOOK: Final = 64
"""The items of a long answer that are read between two checks of the clock."""
LAST_SECONDS: Final = 10.0
"""The seconds that writes in progress have when the store is closed."""
_UNSEEN: Final = "the write was committed, but its event was not received"
_COMPACTED: Final = "required revision has been compacted"
_FUTURE: Final = "required revision is a future revision"
_NO_LEASE: Final = "requested lease not found"
_REFUSALS: Final = frozenset(
    {
        Code.INVALID_ARGUMENT,
        Code.NOT_FOUND,
        Code.PERMISSION_DENIED,
        Code.RESOURCE_EXHAUSTED,
        Code.FAILED_PRECONDITION,
        Code.OUT_OF_RANGE,
        Code.UNIMPLEMENTED,
        Code.UNAUTHENTICATED,
    }
)
"""After these codes nothing was written; after others the outcome is unknown."""
_NOT_ALLOWED: Final = frozenset({Code.UNAUTHENTICATED, Code.PERMISSION_DENIED})
_NO_USER: Final = "user name is empty"


@dataclass(slots=True, eq=False)
class _Write:
    """A write in progress, whose event may be received before or after its answer."""

    key: str
    events: dict[int, Event]
    """The events of the key since the start of the write, by revision."""
    revision: int = 0
    """The revision of the write, once known."""
    received: asyncio.Future[Event] | None = None


class EtcdStorage(WritingStorage):
    """A `Storage` in an etcd cluster, to which others may write too. To be opened with `open`.

    Subscribers get their events from one watch of everything below the root. A write returns when its event has been
    received. A write whose caller is cancelled may still be committed.
    """

    has_other_servers = True

    def __init__(
        self,
        members: Members,
        watched: Members,
        root: str,
        lease_reuse_seconds: int = REUSE_SECONDS,
        on_lease: Callable[[int], None] | None = None,
    ) -> None:
        super().__init__()
        self.members = members
        """The members for calls."""
        self.watched = watched
        """The members for watches, over a connection of their own."""
        self._root = root.rstrip("/")
        self._is_moved = self._root != ROOT and bool(self._root)
        self.leases = Leases(members, lease_reuse_seconds, on_lease)
        """The leases of values that expire."""
        self._compactor = Compactor(members)
        self._compacted = 0
        self._writes: dict[str, list[_Write]] = {}
        self._under_way = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._asking: list[Answered] = []
        self._asker: asyncio.Task[None] | None = None
        self._compaction: Periodic | None = None
        self._sole: SoleServer | None = None
        low, high = self._range_of("", "") if not self._root else self._range_of(f"{ROOT}/", "")
        self.watch_loop = WatchLoop(
            watched, low, high, on_changes=self._changed, on_progress=self._progressed, on_gap=self._start_over
        )
        """The watch on all keys, which feeds the events."""

    @classmethod
    async def open(
        cls,
        servers: Sequence[str],
        *,
        tls: ssl.SSLContext | None = None,
        root: str = ROOT,
        compaction_interval: float = COMPACTION_INTERVAL,
        start_seconds: float = _START_SECONDS,
        lease_reuse_seconds: int = REUSE_SECONDS,
        on_lease: Callable[[int], None] | None = None,
    ) -> EtcdStorage:
        """Connect to a cluster of which `servers` are members, and wait until one of them answers.

        `tls` is used for https URLs. Keys that begin with `/registry` begin with `root` in etcd; an empty `root` means
        all keys. `on_lease` is called for each new lease with the number of keys of the previous one. Raises
        StorageUnavailable, StorageFormatError, and ValueError for an invalid URL.
        """
        found = endpoints(servers)
        identity = Identity()
        storage = cls(Members(found, tls, identity), Members(found, tls, identity), root, lease_reuse_seconds, on_lease)
        try:
            storage._revision = await storage._started(found, tls, start_seconds)
            await checks.check_members(found, tls)
            if storage._root:
                await checks.check_keys(storage.members, storage._root)
        except BaseException:
            await storage.close()
            raise
        storage.watch_loop.start(storage._revision)
        if compaction_interval > 0:
            storage._compaction = compaction(compaction_interval, storage._compact_by_turns)
            storage._compaction.start()
        return storage

    async def _started(self, found: Sequence[Endpoint], tls: ssl.SSLContext | None, seconds: float) -> int:
        """Return the newest revision, once a majority of the members is available. Raises StorageUnavailable."""
        why = ""
        received: set[str] = set()
        try:
            async with asyncio.timeout(seconds):
                while True:
                    try:
                        async with asyncio.timeout(MEMBER_SECONDS):
                            return await self.check_newest()
                    except TimeoutError:
                        why = "no answer"
                        self.members.report_failure()
                    except StorageUnavailable as error:
                        why = str(error)
                        cause = error.__cause__
                        if (isinstance(cause, CallError) and cause.code in _NOT_ALLOWED) or _NO_USER in why:
                            raise StorageUnavailable(
                                f"etcd denies access to this server ({why}); its user is the name in --etcd-certfile"
                            ) from error
                        if why not in received:  # once for each reason, although there are two attempts per second
                            received.add(why)
                            logger.warning("etcd does not answer, trying for %g s: %s", seconds, why)
                        await asyncio.sleep(0.5)
        except TimeoutError:
            raise StorageUnavailable(
                checks.no_quorum_message(found, await checks.statuses(found, tls), why or "no answer")
            ) from None

    async def size(self) -> int:
        """Return the size in bytes of the file of the current member. Raises StorageUnavailable."""
        self._check_open()
        try:
            return messages.read_status(await self.members.call(messages.STATUS, b"", repeatable=True)).size
        except CallError as error:
            raise unavailable(error) from error
        except MessageError as error:
            raise StorageUnavailable(str(error)) from error

    # Keys

    def _outer(self, key: str) -> bytes:
        """Return the key in etcd of a key."""
        if self._is_moved and key.startswith(ROOT):
            key = self._root + key[len(ROOT) :]
        return key.encode(errors="surrogateescape")

    def _inner(self, key: bytes) -> str:
        """Return the key of a key in etcd. API servers only store UTF-8, but others may not."""
        text = key.decode(errors="surrogateescape")
        if self._is_moved and text.startswith(self._root):
            return ROOT + text[len(self._root) :]
        return text

    def _range_of(self, prefix: str, start: str) -> tuple[bytes, bytes]:
        low, high = bounds(prefix, start)
        return self._outer(low) or b"\0", messages.NO_END if high is None else self._outer(high)

    def _kv(self, item: Stored) -> KeyValue:
        return KeyValue(self._inner(item.key), item.value, item.create_revision, item.mod_revision)

    # State

    @property
    def compact_revision(self) -> int:
        """Return the newest compaction that this server has seen or made."""
        return max(self._compacted, self._compactor.compacted)

    @property
    def refusal(self) -> str:
        """Return a text once the storage is closed, as a connection that is lost comes back by itself."""
        return CLOSED if self._closed is not None else ""

    def sole_server(
        self, *, clock: Callable[[], float] = sole_server.boot_seconds, quiet: float = QUIET, interval: float = ROUND
    ) -> SoleServer:
        """Return the claim of this server to be the only one that writes here. It is notified of all other writes."""
        folder = self._outer(f"{ROOT}/steersman.sole-server/")
        self._sole = SoleServer(self.members, folder, self.wait_until, clock=clock, quiet=quiet, interval=interval)
        return self._sole

    async def current_revision(self) -> int:
        """Return the newest revision of the cluster, in a request that concurrent callers share. Raises
        StorageUnavailable.
        """
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self.ask(partial(_answer, future))
        return await future

    def ask(self, answered: Answered) -> None:
        """Ask for the newest revision. Callers during a request share the next one, so that its answer is newer than
        their call. If the current request fails, they get its error at once. Raises StorageUnavailable.
        """
        self._check_open()
        self._asking.append(answered)
        if self._asker is None:
            self._asker = asyncio.get_running_loop().create_task(self._answer_all())

    async def _answer_all(self) -> None:
        try:
            while self._asking:
                asking, self._asking = self._asking, []
                try:
                    revision = await self.check_newest()
                except StorageUnavailable as error:
                    since, self._asking = self._asking, []
                    for each in asking + since:
                        each(error)
                else:
                    for each in asking:
                        each(revision)
        finally:
            self._asker = None

    async def check_newest(self) -> int:
        """Return the newest revision that a majority of the members knows. Raises StorageUnavailable."""
        known = self._revision
        revision = await self._newest()
        if revision < known:
            logger.error("etcd is at revision %d and was at %d, as if restored: starting over", revision, known)
            self.watch_loop.start_over(f"etcd's revision has decreased from {known} to {revision}")
            raise StorageUnavailable("etcd's revision has decreased")
        return revision

    async def _newest(self) -> int:
        request = messages.range_of(self._outer(f"{ROOT}/health"), limit=1, count_only=True)
        try:
            return messages.read_range(await self.members.call(messages.RANGE, request, repeatable=True)).revision
        except CallError as error:
            raise unavailable(error) from error
        except MessageError as error:
            raise StorageUnavailable(str(error)) from error

    # Reading

    async def get(self, key: str, *, revision: int = 0) -> KeyValue | None:
        """Return the value of a key, read from etcd. Raises Compacted, FutureRevision, StorageUnavailable."""
        found = await self._read(messages.range_of(self._outer(key), revision=revision), revision)
        return self._kv(found.items[0]) if found.items else None

    async def range(
        self, prefix: str, *, start: str = "", limit: int = 0, revision: int = 0, count: bool = False
    ) -> Range:
        """Return a range, read from etcd and decoded in time slices. Raises Compacted, FutureRevision,
        StorageUnavailable.
        """
        low, high = self._range_of(prefix, start)
        answer = await self._call_range(messages.range_of(low, high, limit=limit, revision=revision), revision)
        range_answer = messages.RangeAnswer(0, [], False, 0)
        items: list[KeyValue] = []
        time_slice = TimeSlice()
        try:
            for each in messages.read_items(answer, range_answer):
                items.append(self._kv(each))
                if not len(items) % _LOOK:
                    await time_slice.pause_if_over()
        except MessageError as error:
            raise StorageUnavailable(str(error)) from error
        return Range(items, revision or range_answer.revision, range_answer.more, range_answer.count if count else -1)

    async def revisions(self, prefix: str, start: str, limit: int, revision: int) -> tuple[list[tuple[str, int]], bool]:
        """Return the keys under `prefix` from `start` on, at most `limit`, each with its mod_revision, and whether more
        follow, all as of a revision and without values. Raises Compacted, FutureRevision and StorageUnavailable.
        """
        low, high = self._range_of(prefix, start)
        request = messages.range_of(low, high, limit=limit, revision=revision, keys_only=True)
        found = await self._read(request, revision)
        return [(self._inner(each.key), each.mod_revision) for each in found.items], found.more

    async def _read(self, request: bytes, revision: int) -> messages.RangeAnswer:
        try:
            return messages.read_range(await self._call_range(request, revision))
        except MessageError as error:
            raise StorageUnavailable(str(error)) from error

    async def _call_range(self, request: bytes, revision: int) -> bytes:
        """Return the answer to a range request."""
        self._check_open()
        try:
            answer = await self.members.call(messages.RANGE, request, repeatable=True)
        except CallError as error:
            report_failure = self._storage_error(error, revision)
            if isinstance(report_failure, StorageUnavailable):
                self.refusals.reads.refused(report_failure)
            raise report_failure from error
        if self.refusals.reads.ongoing:
            self.refusals.reads.accepted()
        return answer

    def _storage_error(self, error: CallError, revision: int) -> Exception:
        if error.code is Code.OUT_OF_RANGE and _COMPACTED in error.details:
            return Compacted(max(self.compact_revision, revision + 1))
        if error.code is Code.OUT_OF_RANGE and _FUTURE in error.details:
            return FutureRevision(revision, self._revision)
        return unavailable(error)

    # Writing

    async def delete(self, key: str, *, expected_revision: int) -> Event:
        """Delete a key, which may be any bytes of etcd, decoded with surrogate escapes. Raises Conflict,
        StorageUnavailable.
        """
        check_write(key.encode(errors="surrogateescape").decode(errors="replace"), None)
        if expected_revision <= 0:
            raise Conflict(key, await self.get(key))
        return await self._write(key, None, expected_revision, 0)

    async def _write(self, key: str, value: bytes | None, expected_revision: int, ttl: int) -> Event:
        if value is None:
            request = messages.delete_if(self._outer(key), mod_revision=expected_revision)
            event, current = await self._transact(key, request)
        else:
            event, current = await self._put(key, value, expected_revision, ttl)
        if event is not None:
            return event
        if expected_revision:
            raise Conflict(key, current)
        if current is None:
            raise StorageUnavailable(f"etcd refuses to create {key}, which does not exist")
        raise KeyExists(current)

    async def _put(
        self, key: str, value: bytes, expected_revision: int, ttl: int
    ) -> tuple[Event | None, KeyValue | None]:
        outer = self._outer(key)
        if not ttl:
            return await self._transact(key, messages.put_if(outer, value, mod_revision=expected_revision))
        for is_last in (False, True):
            lease = await self._lease(ttl)
            request = messages.put_if(outer, value, mod_revision=expected_revision, lease=lease)
            try:
                return await self._transact(key, request)
            except StorageUnavailable as error:
                if is_last or _NO_LEASE not in str(error):
                    raise
                self.leases.forget(lease)
        raise AssertionError

    async def _lease(self, ttl: int) -> int:
        self._check_open()
        try:
            return await self.leases.lease_for(ttl)
        except CallError as error:
            refused = unavailable(error)
            self.refusals.writes.refused(refused)
            raise refused from error

    async def _transact(self, key: str, request: bytes) -> tuple[Event | None, KeyValue | None]:
        """Return the event of a write, or the current value of the key if its condition was not met."""
        self._check_open()
        write = _Write(key, {})
        self._writes.setdefault(key, []).append(write)
        self._under_way += 1
        self._idle.clear()
        try:
            answer = messages.read_txn(await self.members.call(messages.TXN, request, repeatable=False))
            if not answer.succeeded:
                return None, None if answer.found is None else self._kv(answer.found)
            if self.refusals.writes.ongoing:
                self.refusals.writes.accepted()
            event = write.events.get(answer.revision)
            if event is None and answer.revision <= self._revision:
                raise OutcomeUnknown(_UNSEEN)  # the watch has restarted in the meantime
            if event is None:
                write.revision = answer.revision
                write.received = asyncio.get_running_loop().create_future()
                event = await write.received
            return event, None
        except CallError as error:
            is_refused = error.is_unsent or error.code in _REFUSALS
            refused = unavailable(error) if is_refused else OutcomeUnknown(error.details)
            if not isinstance(refused, ValueRefused):
                self.refusals.writes.refused(refused)
            raise refused from error
        except MessageError as error:
            raise OutcomeUnknown(str(error)) from error
        finally:
            of_key = self._writes[key]
            of_key.remove(write)
            if not of_key:
                del self._writes[key]
            self._under_way -= 1
            if not self._under_way:
                self._idle.set()

    # Events

    def _changed(self, changes: Sequence[Change]) -> None:
        events = [self._event(change) for change in changes]
        if self._sole is not None and any(map(self._is_of_others, changes, events)):
            self._sole.record_foreign_write()
        self._dispatcher.dispatch(events)
        self._progressed(events[-1].revision)
        if self._writes:
            for event in events:
                for write in self._writes.get(event.key, ()):
                    if write.received is None:
                        write.events[event.revision] = event
                    elif write.revision == event.revision and not write.received.done():
                        write.received.set_result(event)

    def _is_of_others(self, change: Change, event: Event) -> bool:
        """Return True if another server or program wrote the key. An end by an expired lease is no write."""
        if event.key in self._writes:
            return False
        if change.deleted:
            return change.previous is None or not change.previous.lease
        return self._sole is None or change.current.value != self._sole.value

    def _event(self, change: Change) -> Event:
        revision = change.current.mod_revision
        previous = None if change.previous is None else self._kv(change.previous)
        current = None if change.deleted else self._kv(change.current)
        return Event(revision, self._inner(change.current.key), current, previous)

    def _progressed(self, revision: int) -> None:
        self._revision = revision
        self._progress.reached(revision)

    async def _start_over(self, error: Compacted) -> int:
        """Tell subscribers that events have been compacted, and continue from the newest revision."""
        while True:
            try:
                revision = await self._newest()
                break
            except StorageUnavailable as failure:
                logger.warning("etcd does not answer: %s", failure)
                await asyncio.sleep(1)
        if self._sole is not None:
            self._sole.record_foreign_write()
        self._compacted = min(max(self._compacted, error.revision), revision)
        self._compactor.compacted = min(self._compactor.compacted, revision)
        self._progressed(revision)
        self._dispatcher.fail(error)
        self._end_writes()
        return revision

    def _end_writes(self) -> None:
        """End the writes that wait for their events, which will not be received."""
        for writes in self._writes.values():
            for write in writes:
                if write.received is not None and not write.received.done():
                    write.received.set_exception(OutcomeUnknown(_UNSEEN))

    async def _catch_up(self, revision: int) -> None:
        """Wait for a revision that etcd has and the watch does not yet."""
        current = await self.current_revision()
        if revision > current:
            raise FutureRevision(revision, current)
        await self.wait_until(revision)

    async def _replay(self, registration: Registration, after_revision: int, last: int) -> None:
        def deliver(changes: Sequence[Change]) -> None:
            found = [self._event(change) for change in changes if change.current.mod_revision <= last]
            if found:
                registration.deliver_now(found)

        low, high = self._range_of(registration.prefix, "")
        try:
            await watch.replay(self.watched, low, high, after=after_revision, last=last, on_changes=deliver)
        except CallError as error:
            raise unavailable(error) from error

    async def wait_until(self, revision: int) -> None:
        """Request progress from the watch if it is behind, and wait for the revision. Raises StorageUnavailable."""
        if revision > self._revision and self._closed is None:
            self.watch_loop.request_progress(revision)
        await super().wait_until(revision)

    # Maintenance

    async def compact(self, revision: int) -> None:
        """Compact the history of the whole etcd cluster. Raises Compacted, FutureRevision, StorageUnavailable."""
        self._check_open()
        known = max(self.compact_revision, 1)
        if revision < known:
            raise Compacted(known)
        if revision == known:
            return
        try:
            await self.members.call(messages.COMPACT, messages.compaction(revision), repeatable=True)
        except CallError as error:
            raise self._storage_error(error, revision) from error
        self._compacted = max(self._compacted, revision)

    async def _compact_by_turns(self) -> None:
        try:
            await self._compactor.tick()
        except CallError as error:
            raise unavailable(error) from error

    async def _shut_down(self) -> None:
        if self._compaction is not None:
            await self._compaction.stop()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LAST_SECONDS):
                await self._idle.wait()
        await self.watch_loop.stop()
        self._end_writes()
        self.members.close()
        self.watched.close()
        if self._asker is not None:
            await asyncio.gather(self._asker, return_exceptions=True)
        await super()._shut_down()


def _answer(future: asyncio.Future[int], found: int | StorageUnavailable) -> None:
    if future.done():
        return
    if isinstance(found, int):
        future.set_result(found)
    else:
        future.set_exception(found)
