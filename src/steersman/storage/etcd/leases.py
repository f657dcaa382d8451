"""Leases for keys that expire, shared by keys with similar expiry times (upstream's `etcd3/lease_manager.go`)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from steersman.machinery.values import times
from steersman.storage.etcd import messages
from steersman.storage.etcd.members import Members

REUSE_SECONDS: Final = 60
"""The seconds for which a lease is used for further keys."""
_REUSE_SHARE: Final = 0.05
"""The limit of that as a share of the TTL, for short TTLs."""
_MOST_KEYS: Final = 1000
"""The most keys of one lease."""


class Leases:
    """Leases for keys, each of which lives at least its TTL, and at most longer by the time for which leases are
    shared.
    """

    def __init__(
        self, members: Members, reuse_seconds: int = REUSE_SECONDS, on_full: Callable[[int], None] | None = None
    ) -> None:
        """`on_full` is called for each new lease with the number of keys of the previous one."""
        self._members = members
        self._reuse_seconds = reuse_seconds
        self._on_full = on_full
        self._granting = asyncio.Lock()
        self._id = 0
        self._ends = 0.0
        self._keys = 0

    async def lease_for(self, ttl: int) -> int:
        """Return a lease for a key that must live at least `ttl` seconds. Raises CallError."""
        async with self._granting:
            shared = int(min(self._reuse_seconds, _REUSE_SHARE * ttl))
            now = times.monotonic()
            if self._id and now + ttl <= self._ends <= now + ttl + shared and self._keys < _MOST_KEYS:
                self._keys += 1
                return self._id
            answer = await self._members.call(messages.LEASE_GRANT, messages.lease_grant(ttl + shared), repeatable=True)
            self._id = messages.read_lease(answer)
            if self._on_full is not None:
                self._on_full(self._keys + 1)  # as upstream, the key that did not fit counts as well
            self._ends, self._keys = now + ttl + shared, 1
            return self._id

    def forget(self, lease: int) -> None:
        """Stop using a lease that no longer exists."""
        if self._id == lease:
            self._id = 0
