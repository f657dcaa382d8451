"""An etcd cluster as what is moved sees it: one range of keys below a root, read and written in bulk."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Final

from steersman.net.client.grpc import CallError
from steersman.storage.etcd import messages
from steersman.storage.etcd.checks import COPYING, check_members
from steersman.storage.etcd.leases import Leases
from steersman.storage.etcd.members import Members, endpoints, unavailable
from steersman.storage.etcd.messages import MessageError, Stored
from steersman.storage.interface import StorageFormatError, StorageUnavailable
from steersman.storage.keys import prefix_end

_PAGE: Final = 200
_KEYS: Final = "/registry"


class Cluster:
    """See the module. To be closed. All of it raises StorageUnavailable."""

    def __init__(self, servers: Sequence[str], tls: ssl.SSLContext | None, root: str) -> None:
        """Raises ValueError for what is no URL of a member."""
        self._endpoints = endpoints(servers)
        self._tls = tls
        self._members = Members(self._endpoints, tls)
        self._leases = Leases(self._members)
        self.root = root
        """What all keys begin with, and a slash."""
        self._low = f"{root}/".encode()
        high = prefix_end(f"{root}/")
        assert high is not None
        self._high = high.encode()
        self._mark = root.encode() + COPYING
        self._marked = 0
        """The revision of the mark that was set here last."""

    def close(self) -> None:
        """Ends the connection."""
        self._members.close()

    async def check(self) -> None:
        """Whether it is one cluster, of a version that is known."""
        await check_members(self._endpoints, self._tls)

    async def call(self, method: str, request: bytes, *, repeatable: bool = True) -> bytes:
        """The answer to a call."""
        try:
            return await self._members.call(method, request, repeatable=repeatable)
        except CallError as error:
            raise unavailable(error) from error

    async def state(self) -> tuple[int, bool, int]:
        """The newest revision, whether there are keys, and the revision of the mark of a copy that was begun and not
        completed, 0 if there is none."""
        answer = await self._range(self._low, limit=1, revision=0)
        marked = bool(answer.items) and answer.items[0].key == self._mark
        return answer.revision, bool(answer.items), answer.items[0].mod_revision if marked else 0

    async def _range(self, start: bytes, *, limit: int, revision: int) -> messages.RangeAnswer:
        request = messages.range_of(start, self._high, limit=limit, revision=revision)
        try:
            return messages.read_range(await self.call(messages.RANGE, request))
        except MessageError as error:
            raise StorageUnavailable(str(error)) from error

    async def pages(self, revision: int) -> AsyncIterator[list[Stored]]:
        """All below the root as it was at a revision, in the order of the keys; not the mark."""
        start, more = self._low, True
        while more:
            answer = await self._range(start, limit=_PAGE, revision=revision)
            if answer.items:
                start = answer.items[-1].key + b"\0"
                yield [each for each in answer.items if each.key != self._mark]
            more = answer.more

    def inner(self, key: bytes) -> str:
        """A key as a server knows it. Raises StorageFormatError."""
        try:
            return _KEYS + key.decode()[len(self.root) :]
        except UnicodeDecodeError:
            raise StorageFormatError(f"in etcd the key {key!r} is no text") from None

    def outer(self, key: str) -> bytes:
        """A key as it lies there. Raises StorageFormatError for one that no server stores."""
        if not key.startswith(f"{_KEYS}/"):
            raise StorageFormatError(f"the key {key} is none that a server stores")
        return self.root.encode() + key[len(_KEYS) :].encode()

    # Writing

    async def clear(self) -> None:
        """Deletes all below the root."""
        await self.call(messages.DELETE_RANGE, messages.delete_range(self._low, self._high))

    async def claim(self, marked: int) -> None:
        """Marks it, if the mark there is still what `state` has told."""
        request = messages.put_if(self._mark, b"1", mod_revision=marked)
        answer = messages.read_txn(await self.call(messages.TXN, request, repeatable=False))
        if not answer.succeeded:
            raise StorageUnavailable(f"another copy below {self.root} was begun or completed meanwhile")
        self._marked = answer.revision

    async def mark(self) -> int:
        """Notes there that what lies below the root is not complete; the revision of that."""
        revision = messages.read_revision(await self.call(messages.PUT, messages.put(self._mark, b"1")))
        self._marked = max(self._marked, revision)
        return revision

    async def unmark(self) -> int:
        """Takes that back, unless somebody else has marked it since; the revision of it."""
        request = messages.delete_if(self._mark, mod_revision=self._marked)
        answer = messages.read_txn(await self.call(messages.TXN, request, repeatable=False))
        if not answer.succeeded:
            raise StorageUnavailable(f"another copy below {self.root} was begun meanwhile; servers do not start on it")
        return answer.revision

    async def compact(self, revision: int) -> None:
        """Forgets what was before a revision, in all of the cluster."""
        await self.call(messages.COMPACT, messages.compaction(revision))

    async def store(self, key: str, value: bytes, ttl: int) -> int:
        """Stores a new key, for so many seconds unless that is 0; the revision of it."""
        outer = self.outer(key)
        try:
            lease = await self._leases.of(ttl) if ttl else 0
        except CallError as error:
            raise unavailable(error) from error
        try:
            answer = messages.read_txn(
                await self.call(messages.TXN, messages.put_if(outer, value, mod_revision=0, lease=lease))
            )
        except StorageUnavailable as error:
            hint = f" (its {len(value)} bytes are more than --max-request-bytes of etcd)" if _is_large(error) else ""
            raise StorageUnavailable(f"{key} cannot be stored: {error}{hint}") from error
        # A call that was sent again after its answer was lost finds what it has stored itself.
        if not answer.succeeded and (answer.found is None or answer.found.value != value):
            raise StorageUnavailable(f"somebody else writes below {self.root}: {key} is there already")
        return answer.revision

    async def seconds_left(self, lease: int) -> int:
        """Of a lease; 0 for one that is there no more."""
        request = messages.of_lease(lease)
        return max(messages.read_seconds_left(await self.call(messages.LEASE_TIME_TO_LIVE, request)), 0)


def _is_large(error: StorageUnavailable) -> bool:
    return "larger than max" in str(error) or "request is too large" in str(error)


async def side_by_side(work: Sequence[Callable[[], Awaitable[int]]]) -> int:
    """Does all of it at once; the largest of what it gives. The first error ends the rest, and is raised."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(_awaited(each)) for each in work]
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from None
    return max((task.result() for task in tasks), default=0)


async def _awaited(work: Callable[[], Awaitable[int]]) -> int:
    return await work()
