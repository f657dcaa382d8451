"""The storage contract: etcd's model of one revision for all keys, compare and swap, watch from a revision, leases.

Every implementation is held to it by one suite of tests (tests/storage).
Keys are text such as `/registry/pods/default/nginx`; ordering is by code point. Values are bytes and never empty.
Revisions are positive and grow by one with every committed write; a fresh store is at revision 1.
A write returns only once it is durable and every subscriber has been told of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from msgspec import Struct

from steersman.storage.refusals import Account

SEALED: Final = b"k8s:enc:"
"""With what the values begin that are stored encrypted. One that is handed out so could not be decrypted."""


@dataclass(slots=True)
class KeyValue:
    """A key's value at a revision. `create_revision` is when the key came to be, `mod_revision` its last write."""

    key: str
    value: bytes
    create_revision: int
    mod_revision: int


class Event(Struct):
    """One committed write. `current` is None for a delete; `previous` is None for a create.

    `revision` is that of the write; a deleted key's `previous` keeps the revision of its last write.
    """

    revision: int
    key: str
    current: KeyValue | None
    previous: KeyValue | None


@dataclass(slots=True)
class Range:
    """The answer to a range: `items` in key order, the `revision` they are of, whether `more` follow,
    and how many keys the whole range holds (`count`, -1 where it was not asked for)."""

    items: Sequence[KeyValue]
    revision: int
    more: bool
    count: int


class KeyExists(Exception):
    """A create found its key taken."""

    def __init__(self, current: KeyValue) -> None:
        super().__init__(current.key)
        self.current = current


class Conflict(Exception):
    """A compare and swap lost: `current` is what the key holds now, None if nothing."""

    def __init__(self, key: str, current: KeyValue | None) -> None:
        super().__init__(key)
        self.current = current


class Compacted(Exception):
    """The revision asked for is no longer kept; `revision` is the oldest that is."""

    def __init__(self, revision: int) -> None:
        super().__init__(f"compacted at {revision}")
        self.revision = revision


class FutureRevision(Exception):
    """The revision asked for has not happened yet; `current` is the newest."""

    def __init__(self, requested: int, current: int) -> None:
        super().__init__(f"revision {requested} is in the future of {current}")
        self.requested = requested
        self.current = current


class StorageUnavailable(Exception):
    """The store cannot take a request now (closed, disk full, no connection); nothing was written."""


class OutcomeUnknown(StorageUnavailable):
    """The connection was lost, time ran out, or the disk failed, while a write was under way: it may have been
    committed, or not."""


class ValueRefused(StorageUnavailable):
    """The store does not take this value, and would take others; nothing was written."""


class StorageDamaged(StorageUnavailable):
    """What is stored is not what was written."""


class StorageLocked(Exception):
    """Another process has the store open."""


class StorageFormatError(Exception):
    """What is stored is not ours, is damaged, or was written by a newer version; it was left as it is."""


class Unreadable(Exception):
    """The value of `key` is there and cannot be decrypted; `why` in upstream's words."""

    def __init__(self, key: str, why: str) -> None:
        super().__init__(f'unable to transform key "{key}": {why}')
        self.key = key
        self.why = why


class Undecodable(Exception):
    """The value of `key` is there, and is no object of what should be there."""

    def __init__(self, key: str, why: str) -> None:
        super().__init__(f"{key} cannot be read: {why}")
        self.key = key


class Unwritable(Exception):
    """A value cannot be encrypted; nothing was written."""


class Subscription(Protocol):
    """A running watch on a prefix."""

    def cancel(self) -> None:
        """Ends it; `deliver` is not called again."""
        ...


Answered = Callable[[int | StorageUnavailable], None]
"""Takes the newest revision, or why it is not known, on the loop; must not block, nor raise."""

Deliver = Callable[[Sequence[Event]], None]
"""Takes events of a prefix in revision order, on the loop, before the write that made them is acknowledged."""

Lost = Callable[[Exception], None]
"""Told once, on the loop, that events are missing which nobody has kept: who follows the store is to begin anew."""


class Storage(Protocol):
    """A versioned key-value store."""

    @property
    def revision(self) -> int:
        """The newest revision this process knows of; every subscriber has been told of all events up to it."""
        ...

    knows_newest: bool
    """Whether `revision` is the newest there is, as nobody else writes: then nobody has to ask `current_revision`."""

    has_other_servers: bool
    """Whether servers of which this one does not know write there too, in an order that nobody keeps."""

    async def current_revision(self) -> int:
        """The newest revision there is, whoever committed it. Raises StorageUnavailable."""
        ...

    @property
    def compact_revision(self) -> int:
        """The oldest revision that can be read, as far as this process knows; 0 where nothing was compacted yet."""
        ...

    @property
    def refusal(self) -> str:
        """Why no write is taken any more until the store is opened anew, "" while nothing is wrong."""
        ...

    refusals: Account
    """What it refuses, for the log, a metric and `/readyz`."""

    @property
    def seals(self) -> bool:
        """True if values lie there otherwise than they are given, encrypted or in another form: then any verb may raise
        Unreadable or Undecodable, and writes Unwritable."""
        ...

    async def is_stale(self, key: str) -> bool:
        """Whether the value is to be written anew though it does not change, as it would be encrypted otherwise now,
        or stored in another form. Raises Unreadable, Undecodable."""
        ...

    async def get(self, key: str, *, revision: int = 0) -> KeyValue | None:
        """The key's value now, or at `revision`. Raises Compacted, FutureRevision."""
        ...

    async def range(
        self, prefix: str, *, start: str = "", limit: int = 0, revision: int = 0, count: bool = False
    ) -> Range:
        """The keys under `prefix`, from `start` on (inclusive) if given, at most `limit` (0: all), at `revision`
        (0: now). Raises Compacted, FutureRevision."""
        ...

    async def create(self, key: str, value: bytes, *, ttl: int = 0) -> KeyValue:
        """Stores a new key, to vanish after `ttl` seconds unless that is 0. Raises KeyExists."""
        ...

    async def update(self, key: str, value: bytes, *, expected_revision: int, ttl: int = 0) -> KeyValue:
        """Replaces the key's value if its mod_revision is the expected one. Raises Conflict. A `ttl` starts anew;
        0 takes it away."""
        ...

    async def delete(self, key: str, *, expected_revision: int) -> Event:
        """Deletes the key if its mod_revision is the expected one. Raises Conflict."""
        ...

    async def subscribe(
        self, prefix: str, *, after_revision: int, deliver: Deliver, lost: Lost | None = None
    ) -> Subscription:
        """Calls `deliver` with every event under `prefix` later than `after_revision`, without gap or repetition:
        first those already kept, then each as it is committed. Where others write, a store may be cut off for longer
        than events are kept: it says so to `lost`, and the subscription is over. Raises Compacted, FutureRevision."""
        ...

    async def wait_until(self, revision: int) -> None:
        """Returns once every subscriber has been told of all events up to `revision`; at once if that is the past.
        Waits without bound for a revision that does not come: the caller sets the time. Raises StorageUnavailable."""
        ...

    async def compact(self, revision: int) -> None:
        """Forgets what only revisions before `revision` show. Raises Compacted, FutureRevision."""
        ...

    async def close(self) -> None:
        """Completes what was begun and releases everything."""
        ...


class Waiter(Protocol):
    """Whoever is told what became of a write: an asyncio.Future of the event, or what has as much of one."""

    def done(self) -> bool:
        """Whether nobody waits any more."""
        ...

    def set_result(self, event: Event, /) -> None:
        """It was committed, and every subscriber has been told of it."""
        ...

    def set_exception(self, error: Exception, /) -> None:
        """It was not; what the verb would raise."""
        ...


class OwnStorage(Storage, Protocol):
    """A store that only this process writes, and that tells of a write without a coroutine for each."""

    def submit(self, key: str, value: bytes | None, expected_revision: int, ttl: int, waiter: Waiter) -> None:
        """A create (`expected_revision` 0), update, or delete (no `value`), of which `waiter` is told on the loop, now
        or later. Key and value are such as `keys.check_write` takes. Raises StorageUnavailable."""
        ...
