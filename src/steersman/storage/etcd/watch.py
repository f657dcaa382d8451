"""A watch of all keys in etcd, which also reports the writes of other servers and feeds all subscribers of this server."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from steersman.net.client.grpc import CallError, Code, Stream
from steersman.storage.etcd import messages
from steersman.storage.etcd.members import Members
from steersman.storage.etcd.messages import Change, MessageError, WatchAnswer
from steersman.storage.interface import Compacted
from steersman.work.backoff import Backoff, Retries

logger = logging.getLogger(__name__)

_BACKOFF: Final = Backoff(0.1, 5.0)
_PROGRESS_INTERVAL: Final = 0.1
"""The seconds between progress requests while a caller waits for a revision."""

MAX_FRAGMENTS_BYTES: Final = 512 << 20
"""The most bytes of one revision's changes that are kept in fragments until they are complete."""

OnChanges = Callable[[Sequence[Change]], None]


class Ended(Exception):
    """The watch has ended and can be resumed on another member."""


class Inconsistent(Exception):
    """A member has sent impossible events, so earlier events may be missing."""


class Watch:
    """A watch of the keys from `key` to `end` after the revision `after`, until it fails.

    `on_changes` gets the changes of whole revisions, in order. `on_progress` gets a revision up to which all changes
    have been passed on.
    """

    def __init__(self, on_changes: OnChanges, on_progress: Callable[[int], None]) -> None:
        self._on_changes = on_changes
        self._on_progress = on_progress
        self._stream: Stream | None = None
        self._parts: list[Change] = []
        self._parts_size = 0
        """The size in bytes of the messages that contained the parts."""
        self.revision = 0
        """Revision up to which all changes have been passed on."""
        self.over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Set with the cause when the watch ends."""

    async def run(self, members: Members, key: bytes, end: bytes, after: int) -> None:
        """Watch until it ends, and raise the cause: Ended, Inconsistent or Compacted."""
        self.revision = after
        try:
            self._stream = await members.stream(messages.WATCH, self.receive, self._end)
        except CallError as error:
            raise Ended(str(error)) from error
        self._stream.send(messages.watch(key, end, after + 1))
        try:
            await self.over
        finally:
            self._stream.cancel()

    def request_progress(self) -> None:
        """Request the revision up to which all events have been sent."""
        if self._stream is not None:
            self._stream.send(messages.PROGRESS)

    def report_fault(self, why: str) -> None:
        """End the watch with Inconsistent, for a fault that its user has detected."""
        if not self.over.done():
            self.over.set_exception(Inconsistent(why))

    def receive(self, data: bytes) -> None:
        """Handle a message of the member. A fault in it ends the watch."""
        if self.over.done():
            return
        try:
            answer = messages.read_watch(data)
            self._handle(answer, len(data))
        except (MessageError, Ended, Inconsistent, Compacted) as error:
            self.over.set_exception(error if not isinstance(error, MessageError) else Ended(str(error)))

    def _handle(self, answer: WatchAnswer, size: int) -> None:
        if answer.canceled:
            if answer.compact_revision:
                raise Compacted(answer.compact_revision)
            raise Ended(answer.reason or "the watch was cancelled")
        if answer.changes:
            changes = answer.changes
            if self._parts or answer.fragment:
                self._parts += changes
                self._parts_size += size
                if self._parts_size > MAX_FRAGMENTS_BYTES:
                    raise Ended("the fragments of one watch response are too large")
                if answer.fragment:
                    return
                changes, self._parts, self._parts_size = self._parts, [], 0
            self._check_order(changes)
            self._on_changes(changes)
        elif not answer.created:
            self.revision = max(self.revision, answer.revision)
            self._on_progress(answer.revision)

    def _check_order(self, changes: Sequence[Change]) -> None:
        """Check that the changes are in order. Raises Inconsistent."""
        revision = changes[0].current.mod_revision
        if revision <= self.revision:
            raise Inconsistent(f"a change at {revision} was received after all changes up to {self.revision}")
        for change in changes:
            if change.current.mod_revision < revision:
                raise Inconsistent(f"a change at {change.current.mod_revision} was received after one at {revision}")
            revision = change.current.mod_revision
        self.revision = revision

    def _end(self, error: CallError | None) -> None:
        if not self.over.done():
            self.over.set_exception(Ended("the watch has ended" if error is None else str(error)))


class WatchLoop:
    """A watch of everything from `key` to `end`, which is restarted after the last known revision whenever it ends.

    If that is impossible because events have been compacted, `on_gap` is called, which returns the revision to resume
    from.
    """

    def __init__(
        self,
        members: Members,
        key: bytes,
        end: bytes,
        *,
        on_changes: OnChanges,
        on_progress: Callable[[int], None],
        on_gap: Callable[[Compacted], Awaitable[int]],
    ) -> None:
        self._members = members
        self._key, self._range_end = key, end
        self._on_changes = on_changes
        self._on_progress = on_progress
        self._on_gap = on_gap
        self._after = 0
        self._watch: Watch | None = None
        self._task: asyncio.Task[None] | None = None
        self._wanted = 0
        self._timer: asyncio.TimerHandle | None = None
        self.trouble = ""
        """The reason why no events are received now, "" if they are."""

    def start(self, after: int) -> None:
        """Begin to report the changes after a revision."""
        self._after = after
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        """Stop reporting changes."""
        if self._timer is not None:
            self._timer.cancel()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def request_progress(self, revision: int) -> None:
        """Request progress until everything up to the revision has been reported, even if nothing changes."""
        self._wanted = max(self._wanted, revision)
        if self._timer is None and self._wanted > self._after:
            self._timer = asyncio.get_running_loop().call_later(0.01, self._request_wanted)

    def start_over(self, why: str) -> None:
        """Discard the reported state, because it differs from etcd's. If a watch is running, `on_gap` is called."""
        if self._watch is not None:
            self._watch.report_fault(why)

    def _request_wanted(self) -> None:
        self._timer = None
        if self._wanted > self._after:
            if self._watch is not None:
                self._watch.request_progress()
            self._timer = asyncio.get_running_loop().call_later(_PROGRESS_INTERVAL, self._request_wanted)

    async def _run(self) -> None:
        retries = Retries(_BACKOFF)
        while True:
            before = self._after
            self._watch = Watch(self._changed, self._progressed)
            try:
                await self._watch.run(self._members, self._key, self._range_end, self._after)
            except Compacted as error:
                logger.warning("changes since revision %d are no longer kept by etcd; starting over", self._after)
                self._after = await self._on_gap(error)
                continue
            except Inconsistent as error:
                logger.error("a member of etcd sent inconsistent events; starting over: %s", error)
                self._members.report_failure()
                self._after = await self._on_gap(Compacted(self._after))
            except Ended as error:
                self.trouble = str(error)
                logger.warning("the watch of etcd has ended and is restarted: %s", error)
                self._members.report_failure()
            finally:
                self._watch = None
            if self._after > before:
                retries.reset()
            await retries.pause()

    def _changed(self, changes: Sequence[Change]) -> None:
        self.trouble = ""
        self._on_changes(changes)
        self._after = changes[-1].current.mod_revision

    def _progressed(self, revision: int) -> None:
        self.trouble = ""
        if revision > self._after:
            self._after = revision
            self._on_progress(revision)


async def replay(members: Members, key: bytes, end: bytes, *, after: int, last: int, on_changes: OnChanges) -> None:
    """Report the changes after `after` up to `last`, and possibly later ones. Raises Compacted and CallError."""
    done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def reached(revision: int) -> None:
        if revision >= last and not done.done():
            done.set_result(None)

    def changed(changes: Sequence[Change]) -> None:
        on_changes(changes)
        reached(changes[-1].current.mod_revision - 1)  # the same revision may have more changes

    watch = Watch(changed, reached)
    running = asyncio.ensure_future(watch.run(members, key, end, after))
    try:
        while not done.done() and not running.done():
            await asyncio.wait((done, running), timeout=_PROGRESS_INTERVAL / 2, return_when=asyncio.FIRST_COMPLETED)
            watch.request_progress()
    finally:
        running.cancel()
        ended = await asyncio.gather(running, return_exceptions=True)
    if not done.done():
        error = ended[0]
        if isinstance(error, Compacted):
            raise error
        raise CallError(Code.UNAVAILABLE, str(error))
