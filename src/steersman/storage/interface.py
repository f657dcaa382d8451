"""The storage contract: etcd's model of one revision for all keys, compare-and-swap, watch from a revision, leases.

All implementations pass the same suite of tests (tests/storage). Keys are text such as `/registry/pods/default/nginx`,
ordered by code point. Values are bytes and never empty. Revisions are positive and grow by one with every committed
write; a new store is at revision 1. A write returns only once it is durable and has been delivered to every subscriber.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from msgspec import Struct

from steersman.storage.origins import Record
from steersman.storage.refusals import Account

SEALED: Final = b"k8s:enc:"
"""The prefix of encrypted values. A value that is returned with this prefix could not be decrypted."""


@dataclass(slots=True)
class KeyValue:
    """A key's value at a revision. `create_revision` is that of the key's creation, `mod_revision` that of its last
    write.
    """

    key: str
    value: bytes
    create_revision: int
    mod_revision: int


class Event(Struct):
    """A committed write. `current` is None for a delete; `previous` is None for a create.

    `revision` is that of the write; `previous` of a deleted key has the revision of its last write.
    """

    revision: int
    key: str
    current: KeyValue | None
    previous: KeyValue | None


class Change(Struct):
    """A committed write in history. `record` has its time and origin, None if the store does not know them.

    `event.previous` is None also if the replaced value was compacted; `is_oldest` is True for the oldest readable value
    of a key, which may be such a write.
    """

    event: Event
    record: Record | None
    is_oldest: bool = False


class Changes(Struct):
    """A page of history, the newest write first. With `more`, older writes follow before the last one's revision."""

    items: list[Change]
    more: bool


@dataclass(slots=True)
class Range:
    """The result of a range: `items` in key order, their `revision`, a flag for `more` that follow, and the number of
    keys in the whole range (`count`, -1 if it was not requested).
    """

    items: Sequence[KeyValue]
    revision: int
    more: bool
    count: int


class KeyExists(Exception):
    """The error of a create whose key exists."""

    def __init__(self, current: KeyValue) -> None:
        super().__init__(current.key)
        self.current = current


class Conflict(Exception):
    """The error of a lost compare-and-swap: `current` is the key's present value, None if it has none."""

    def __init__(self, key: str, current: KeyValue | None) -> None:
        super().__init__(key)
        self.current = current


class Compacted(Exception):
    """The error for a requested revision that has been compacted; `revision` is the oldest available."""

    def __init__(self, revision: int) -> None:
        super().__init__(f"compacted at {revision}")
        self.revision = revision


class FutureRevision(Exception):
    """The error for a requested revision that is not reached yet; `current` is the newest."""

    def __init__(self, requested: int, current: int) -> None:
        super().__init__(f"revision {requested} is in the future of {current}")
        self.requested = requested
        self.current = current


class StorageUnavailable(Exception):
    """The error of a store that cannot process requests now (closed, disk full, no connection); nothing was written."""


class OutcomeUnknown(StorageUnavailable):
    """The error of a write during which the connection was lost, time ran out, or the disk failed.

    The write may have been committed, or not.
    """


class ValueRefused(StorageUnavailable):
    """The error for a value that the store does not accept, while it accepts others; nothing was written."""


class StorageDamaged(StorageUnavailable):
    """The error for stored data that differ from those written."""


class StorageLocked(Exception):
    """The error of a store that another process has open."""


class StorageFormatError(Exception):
    """The error for stored data of another program or a newer version, or damaged data; they were left unchanged."""


class Unreadable(Exception):
    """The error for a value that cannot be decrypted; `why` is in upstream's words."""

    def __init__(self, key: str, why: str) -> None:
        super().__init__(f'unable to transform key "{key}": {why}')
        self.key = key
        self.why = why


class Undecodable(Exception):
    """The error for a value that is not an object of the expected kind."""

    def __init__(self, key: str, why: str) -> None:
        super().__init__(f"{key} cannot be read: {why}")
        self.key = key


class Unwritable(Exception):
    """The error for a value that cannot be encrypted; nothing was written."""


class Subscription(Protocol):
    """A running subscription to a prefix."""

    def cancel(self) -> None:
        """End the subscription; `deliver` is not called again."""
        ...


Answered = Callable[[int | StorageUnavailable], None]
"""A callback that takes the newest revision, or the error if it is unknown. Called on the event loop; it must neither
block nor raise.
"""

Deliver = Callable[[Sequence[Event]], None]
"""A callback that takes events of a prefix in revision order, called on the event loop before the write is
acknowledged.
"""

Lost = Callable[[Exception], None]
"""A callback that is called once, on the event loop, if events are missing and cannot be replayed: the subscriber must
relist.
"""


class Storage(Protocol):
    """A versioned key-value store."""

    @property
    def revision(self) -> int:
        """Return the newest revision that this process knows; all events up to it have been delivered to every
        subscriber.
        """
        ...

    knows_newest: bool
    """True if `revision` is the newest because nobody else writes. Then there is no need for `current_revision`."""

    has_other_servers: bool
    """True if servers unknown to this one write there, too, so that concurrent writes have no defined order."""

    async def current_revision(self) -> int:
        """Return the newest revision, whoever committed it. Raises StorageUnavailable."""
        ...

    @property
    def compact_revision(self) -> int:
        """Return the oldest readable revision that this process knows, 0 if nothing was compacted yet."""
        ...

    @property
    def refusal(self) -> str:
        """Return why no write is accepted until the store is opened again, "" while nothing is wrong."""
        ...

    refusals: Account
    """An account of refused requests, for the log, a metric and `/readyz`."""

    @property
    def seals(self) -> bool:
        """Return True if values are stored differently than given, encrypted or in another form.

        Then every method may raise Unreadable or Undecodable, and writes may raise Unwritable.
        """
        ...

    async def is_stale(self, key: str) -> bool:
        """Return True if an unchanged value must be written again, to be encrypted or stored differently.

        Raises Unreadable, Undecodable.
        """
        ...

    async def get(self, key: str, *, revision: int = 0) -> KeyValue | None:
        """Return the key's value now, or at `revision`. Raises Compacted, FutureRevision."""
        ...

    async def range(
        self, prefix: str, *, start: str = "", limit: int = 0, revision: int = 0, count: bool = False
    ) -> Range:
        """Return the keys under `prefix`, from `start` on (inclusive) if given, at most `limit` (0: all), at `revision`
        (0: now).

        Raises Compacted, FutureRevision.
        """
        ...

    async def create(self, key: str, value: bytes, *, ttl: int = 0) -> KeyValue:
        """Store a new key, which is deleted after `ttl` seconds unless `ttl` is 0. Raises KeyExists."""
        ...

    async def update(self, key: str, value: bytes, *, expected_revision: int, ttl: int = 0) -> KeyValue:
        """Replace the key's value if its mod_revision is the expected one. Raises Conflict.

        A `ttl` replaces the old one; 0 removes it.
        """
        ...

    async def delete(self, key: str, *, expected_revision: int) -> Event:
        """Delete the key if its mod_revision is the expected one. Raises Conflict."""
        ...

    async def subscribe(
        self, prefix: str, *, after_revision: int, deliver: Deliver, lost: Lost | None = None
    ) -> Subscription:
        """Call `deliver` with every event under `prefix` after `after_revision`, without gap or repetition.

        Stored events come first, then each event when it is committed. A store with other writers may be disconnected
        for longer than events are kept. It then calls `lost`, and the subscription has ended. Raises Compacted,
        FutureRevision.
        """
        ...

    async def wait_until(self, revision: int) -> None:
        """Return once all events up to `revision` have been delivered to every subscriber; immediately for a past
        revision.

        Waits without a limit for a revision that never comes, so the caller sets a timeout. Raises StorageUnavailable.
        """
        ...

    keeps_records: bool
    """True if time and origin of each write are stored with it."""

    async def history(self, prefix: str, *, is_key: bool = False, before: int = 0, limit: int) -> Changes:
        """Return the readable writes of keys under `prefix`, or of this one key, before a revision (0: all), newest
        first.

        A page has at most `limit` writes, and fewer if their values are large.
        """
        ...

    async def revision_at(self, seconds: float) -> int:
        """Return the newest revision that was written by a Unix time, 0 if that is not known."""
        ...

    async def compact(self, revision: int) -> None:
        """Remove history that only revisions before `revision` show. Raises Compacted, FutureRevision."""
        ...

    async def close(self) -> None:
        """Complete running work and release everything."""
        ...


class Waiter(Protocol):
    """A receiver of the result of a write: an asyncio.Future of the event, or an object with these methods."""

    def done(self) -> bool:
        """Return True if nobody waits for the result any more."""
        ...

    def set_result(self, event: Event, /) -> None:
        """Report that the write was committed and has been delivered to every subscriber."""
        ...

    def set_exception(self, error: Exception, /) -> None:
        """Report that the write was not committed, with the error that the method would raise."""
        ...


class OwnStorage(Storage, Protocol):
    """A store that only this process writes, and that reports results of writes without a coroutine for each."""

    def submit(self, key: str, value: bytes | None, expected_revision: int, ttl: int, waiter: Waiter) -> None:
        """Start a create (`expected_revision` 0), an update, or a delete (no `value`), and report the result to
        `waiter`.

        The report comes on the event loop, immediately or later. Key and value must pass `keys.check_write`. Raises
        StorageUnavailable.
        """
        ...
