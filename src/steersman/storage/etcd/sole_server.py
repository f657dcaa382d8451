"""The claim of a server to be the only one on an etcd cluster. While it holds, its state is known to be the newest.

Each server keeps its own key there, its presence, which is written before its first write is acknowledged. A server
that finds no other presence, and for some time no write by others, claims a second key under a lease of a few seconds.
The claim holds for as long as that lease is certain to last and the check every second finds nobody else. A new server
writes its presence first, and does not acknowledge a write before the claim has ended: released by its holder, or
expired with its lease. Both keys are read and written by a majority of the members, so at least one of two servers sees
the other.

A write that bypasses these servers, by kube-apiserver or by hand, ends the claim as soon as this server receives its
event.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
import uuid
from collections.abc import Awaitable, Callable
from typing import Final

from steersman.net.client.grpc import CallError
from steersman.storage.etcd import messages
from steersman.storage.etcd.members import Members, unavailable
from steersman.storage.etcd.messages import MessageError, Stored
from steersman.storage.interface import StorageUnavailable
from steersman.work.periodic import Periodic
from steersman.work.single_flight import SingleFlight

QUIET: Final = 20.0
"""The seconds without a write by others before the claim: kube-apiserver renews its leases every 10."""
ROUND: Final = 1.0
"""The seconds between two checks for other servers."""
PRESENT_SECONDS: Final = 20
"""The TTL of a presence."""
SOLE_SECONDS: Final = 3
"""The TTL of the claim. After a crash, a restarted server does not acknowledge a write for this time."""
_API_VERSION: Final = "soleservers.steersman/v1"
_MARGIN: Final = 0.5
"""The seconds by which a lease is assumed to end early, as clocks differ."""
_LOOK_EVERY: Final = 0.05
_LAST_SECONDS: Final = 1.0
"""The timeout of deleting both keys at the end."""


def boot_seconds() -> float:
    """Return the seconds of a clock that also runs while the machine is suspended, as leases do."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class SoleServer:
    """The presence of one server and its claim. It must be started and stopped. All methods may raise
    StorageUnavailable.
    """

    def __init__(
        self,
        members: Members,
        folder: bytes,
        wait_until: Callable[[int], Awaitable[None]],
        *,
        clock: Callable[[], float] = boot_seconds,
        quiet: float = QUIET,
        interval: float = ROUND,
    ) -> None:
        """`folder` is the prefix of the keys. `wait_until` waits until all events up to a revision have been received."""
        self._members = members
        self._claimed = folder + b"sole"
        self._present = folder + b"servers/"
        self._wait_until = wait_until
        self._clock = clock
        self._quiet = quiet
        name = uuid.uuid4().hex
        self.value: Final = f'{{"kind":"Server","apiVersion":"{_API_VERSION}","name":"{name}"}}'.encode()
        """The value of both keys, which no other server writes."""
        self.key: Final = self._present + name.encode()
        """The key of the presence."""
        self._quiet_since = clock()
        self._presence = 0
        """The lease of the presence; 0 for none."""
        self._present_until = 0.0
        """The time until which the presence is certain to exist, and no other server is the sole one."""
        self._claim = 0
        """The lease of the claim; 0 for none."""
        self._sole_until = 0.0
        self._is_contested = False
        self._joining: SingleFlight[str, None] = SingleFlight()
        self._rounds = Periodic(
            "the look for other servers",
            self._round,
            interval,
            expected=(StorageUnavailable,),
            repeats_line_after=60.0,
            is_upkeep=False,
        )

    @property
    def is_alone(self) -> bool:
        """True while no other server can have acknowledged a write of which this server has no event."""
        return self._clock() < self._sole_until

    def may_write(self) -> Awaitable[None] | None:
        """Return an awaitable that completes once writes may be acknowledged, None if they may be now."""
        now = self._clock()
        if now < self._sole_until or now < self._present_until:
            return None
        return self._joining.do("", self._join)

    def record_foreign_write(self) -> None:
        """Record a write by another server."""
        self._quiet_since = self._clock()
        self._sole_until = 0.0
        self._is_contested = True
        if self._claim:
            self._rounds.wake()

    async def start(self) -> None:
        """Write the presence, and start checking for others."""
        await self._announce()
        self._rounds.start()

    async def stop(self) -> None:
        """Delete both keys, if etcd answers."""
        await self._rounds.stop()
        self._sole_until = self._present_until = 0.0
        with contextlib.suppress(StorageUnavailable, TimeoutError):
            async with asyncio.timeout(_LAST_SECONDS):
                for lease in filter(None, (self._claim, self._presence)):
                    await self._revoke(lease)

    # Presence

    async def _announce(self) -> float:
        """Write the presence under a new lease, and return the time of the request."""
        since = self._clock()
        lease = messages.read_lease(await self._call(messages.LEASE_GRANT, messages.lease_grant(PRESENT_SECONDS)))
        await self._call(messages.PUT, messages.put(self.key, self.value, lease))
        self._presence = lease
        return since

    async def _join(self) -> None:
        """Return once other servers can see this one, and none of them claims to be the only one."""
        since = self._clock()
        if not self._presence or await self._kept_alive(self._presence) <= 0:
            since = await self._announce()
        while (holder := await self._holder()) is not None and holder.value != self.value:  # noqa: ASYNC110 - etcd has it
            await asyncio.sleep(_LOOK_EVERY)
        self._present_until = since + PRESENT_SECONDS - _MARGIN

    # The claim

    async def _round(self) -> None:
        if self._clock() > self._present_until - PRESENT_SECONDS / 2:
            await self._joining.do("", self._join)
        if self._claim:
            await self._keep_claim()
        elif self._clock() - self._quiet_since >= self._quiet:
            await self._make_claim()

    async def _make_claim(self) -> None:
        self._is_contested = False
        if (await self._others())[0]:
            self._quiet_since = self._clock()
            return
        since = self._clock()
        lease = messages.read_lease(await self._call(messages.LEASE_GRANT, messages.lease_grant(SOLE_SECONDS)))
        request = messages.put_if(self._claimed, self.value, mod_revision=0, lease=lease)
        try:
            if messages.read_txn(await self._call(messages.TXN, request)).succeeded:
                others, revision = await self._others()
                async with asyncio.timeout(SOLE_SECONDS):
                    await self._wait_until(revision)
                if not (others or self._is_contested):
                    self._claim, self._sole_until = lease, since + SOLE_SECONDS - _MARGIN
                    return
        except TimeoutError:
            pass  # the received state is too old
        await self._revoke(lease)

    async def _keep_claim(self) -> None:
        since = self._clock()
        lasts = not self._is_contested and await self._kept_alive(self._claim) > 0 and not (await self._others())[0]
        if lasts and not self._is_contested:
            self._sole_until = since + SOLE_SECONDS - _MARGIN
            return
        self._sole_until = 0.0
        await self._revoke(self._claim)
        self._claim = 0
        self._quiet_since = self._clock()

    # Requests to etcd

    async def _others(self) -> tuple[bool, int]:
        """Return whether others are present, and the revision of that."""
        low, high = self._present, self._present[:-1] + bytes((self._present[-1] + 1,))
        found = messages.read_range(await self._call(messages.RANGE, messages.range_of(low, high, limit=2)))
        return any(each.value != self.value for each in found.items), found.revision

    async def _holder(self) -> Stored | None:
        """Return the claim, None if there is none."""
        items = messages.read_range(await self._call(messages.RANGE, messages.range_of(self._claimed))).items
        return items[0] if items else None

    async def _revoke(self, lease: int) -> None:
        with contextlib.suppress(StorageUnavailable):  # it expires on its own
            await self._call(messages.LEASE_REVOKE, messages.lease_request(lease))

    async def _kept_alive(self, lease: int) -> int:
        """Renew a lease and return its TTL in seconds, 0 if it has expired."""
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

        def end(error: CallError | None) -> None:
            if not answer.done():
                answer.set_exception(StorageUnavailable("the lease is not renewed" if error is None else error.details))

        def take(data: bytes) -> None:
            if not answer.done():
                answer.set_result(data)

        try:
            stream = await self._members.stream(messages.LEASE_KEEP_ALIVE, take, end)
        except CallError as error:
            raise unavailable(error) from error
        try:
            stream.send(messages.lease_request(lease))
            return messages.read_seconds(await answer)
        except MessageError as error:
            raise StorageUnavailable(str(error)) from error
        finally:
            stream.cancel()

    async def _call(self, method: str, request: bytes) -> bytes:
        try:
            return await self._members.call(method, request, repeatable=method == messages.RANGE)
        except CallError as error:
            raise unavailable(error) from error
