"""An etcd cluster as the source or target of a move: one range of keys below a root, read and written in bulk."""

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
    """See the module. To be closed. All methods raise StorageUnavailable."""

    def __init__(self, servers: Sequence[str], tls: ssl.SSLContext | None, root: str) -> None:
        """Raises ValueError for an invalid URL of a member."""
        self._endpoints = endpoints(servers)
        self._tls = tls
        self._members = Members(self._endpoints, tls)
        self._leases = Leases(self._members)
        self.root = root
        """The prefix of all keys, without the slash that follows."""
        self._low = f"{root}/".encode()
        high = prefix_end(f"{root}/")
        assert high is not None
        self._high = high.encode()
        self._mark = root.encode() + COPYING
        self._marked = 0
        """The revision of the mark that was last set here."""

    def close(self) -> None:
        """Close the connection."""
        self._members.close()

    async def check(self) -> None:
        """Check that the members are one cluster, with supported versions."""
        await check_members(self._endpoints, self._tls)

    async def call(self, method: str, request: bytes, *, repeatable: bool = True) -> bytes:
        """Return the answer to a call."""
        try:
            return await self._members.call(method, request, repeatable=repeatable)
        except CallError as error:
            raise unavailable(error) from error

    async def state(self) -> tuple[int, bool, int]:
        """Return the newest revision, whether there are keys, and the revision of the mark of an incomplete copy, 0 if
        there is none.
        """
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
        """Yield all items below the root as of a revision, in the order of the keys, except for the mark."""
        start, more = self._low, True
        while more:
            answer = await self._range(start, limit=_PAGE, revision=revision)
            if answer.items:
                start = answer.items[-1].key + b"\0"
                yield [each for each in answer.items if each.key != self._mark]
            more = answer.more

    def inner(self, key: bytes) -> str:
        """Return the server's key of a key in etcd. Raises StorageFormatError."""
        try:
            return _KEYS + key.decode()[len(self.root) :]
        except UnicodeDecodeError:
            raise StorageFormatError(f"the key {key!r} in etcd is not UTF-8") from None

    def outer(self, key: str) -> bytes:
        """Return the key in etcd of a server's key. Raises StorageFormatError for a key that servers do not store."""
        if not key.startswith(f"{_KEYS}/"):
            raise StorageFormatError(f"servers do not store the key {key}")
        return self.root.encode() + key[len(_KEYS) :].encode()

    # Writing

    async def clear(self) -> None:
        """Delete everything below the root."""
        await self.call(messages.DELETE_RANGE, messages.delete_range(self._low, self._high))

    async def claim(self, marked: int) -> None:
        """Set the mark of an incomplete copy, if the current mark is still the one that `state` has returned."""
        request = messages.put_if(self._mark, b"1", mod_revision=marked)
        answer = messages.read_txn(await self.call(messages.TXN, request, repeatable=False))
        if not answer.succeeded:
            raise StorageUnavailable(f"another copy below {self.root} was started or completed in the meantime")
        self._marked = answer.revision

    async def mark(self) -> int:
        """Set the mark of an incomplete copy and return its revision."""
        revision = messages.read_revision(await self.call(messages.PUT, messages.put(self._mark, b"1")))
        self._marked = max(self._marked, revision)
        return revision

    async def unmark(self) -> int:
        """Remove the mark, unless another copy has set it since. Return the revision of that."""
        request = messages.delete_if(self._mark, mod_revision=self._marked)
        answer = messages.read_txn(await self.call(messages.TXN, request, repeatable=False))
        if not answer.succeeded:
            raise StorageUnavailable(
                f"another copy below {self.root} was started in the meantime; servers do not start on it"
            )
        return answer.revision

    async def compact(self, revision: int) -> None:
        """Remove the history before a revision, in the whole cluster."""
        await self.call(messages.COMPACT, messages.compaction(revision))

    async def store(self, key: str, value: bytes, ttl: int) -> int:
        """Store a new key, with a TTL in seconds (0: none), and return its revision."""
        outer = self.outer(key)
        try:
            lease = await self._leases.lease_for(ttl) if ttl else 0
        except CallError as error:
            raise unavailable(error) from error
        try:
            answer = messages.read_txn(
                await self.call(messages.TXN, messages.put_if(outer, value, mod_revision=0, lease=lease))
            )
        except StorageUnavailable as error:
            hint = f" (its {len(value)} bytes are more than --max-request-bytes of etcd)" if _is_large(error) else ""
            raise StorageUnavailable(f"{key} cannot be stored: {error}{hint}") from error
        # A call that was repeated because its answer was lost finds its own value.
        if not answer.succeeded and (answer.found is None or answer.found.value != value):
            raise StorageUnavailable(f"{key} already exists: somebody else writes below {self.root}")
        return answer.revision

    async def seconds_left(self, lease: int) -> int:
        """Return the remaining seconds of a lease; 0 if it no longer exists."""
        request = messages.lease_request(lease)
        return max(messages.read_seconds_left(await self.call(messages.LEASE_TIME_TO_LIVE, request)), 0)


def _is_large(error: StorageUnavailable) -> bool:
    return "larger than max" in str(error) or "request is too large" in str(error)


async def run_concurrently(work: Sequence[Callable[[], Awaitable[int]]]) -> int:
    """Run all of it concurrently and return the largest result. The first error cancels the rest and is raised."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(_awaited(each)) for each in work]
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from None
    return max((task.result() for task in tasks), default=0)


async def _awaited(work: Callable[[], Awaitable[int]]) -> int:
    return await work()
