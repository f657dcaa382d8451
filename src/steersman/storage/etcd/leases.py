"""Leases under which keys vanish, shared by keys of about the same time (upstream's `etcd3/lease_manager.go`)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from steersman.machinery.values import times
from steersman.storage.etcd import messages
from steersman.storage.etcd.members import Members

REUSE_SECONDS: Final = 60
"""A lease is given to other keys for so long..."""
_REUSE_SHARE: Final = 0.05
"""...or for this share of a short time to live..."""
_MOST_KEYS: Final = 1000
"""...or to so many."""


class Leases:
    """Grants leases: a key lives as long as was asked for, and at most by the time longer that a lease is shared."""

    def __init__(
        self, members: Members, reuse_seconds: int = REUSE_SECONDS, on_full: Callable[[int], None] | None = None
    ) -> None:
        """`on_full` is told, with each lease that is granted, how many keys the one before it was asked for."""
        self._members = members
        self._reuse_seconds = reuse_seconds
        self._on_full = on_full
        self._granting = asyncio.Lock()
        self._id = 0
        self._ends = 0.0
        self._keys = 0

    async def of(self, ttl: int) -> int:
        """A lease for a key that is to live at least `ttl` seconds. Raises CallError."""
        async with self._granting:
            shared = int(min(self._reuse_seconds, _REUSE_SHARE * ttl))
            now = times.monotonic()
            if self._id and now + ttl <= self._ends <= now + ttl + shared and self._keys < _MOST_KEYS:
                self._keys += 1
                return self._id
            answer = await self._members.call(messages.LEASE_GRANT, messages.lease_grant(ttl + shared), repeatable=True)
            self._id = messages.read_lease(answer)
            if self._on_full is not None:
                self._on_full(self._keys + 1)  # upstream counts the key that found it full as well
            self._ends, self._keys = now + ttl + shared, 1
            return self._id

    def forget(self, lease: int) -> None:
        """A lease that is there no more."""
        if self._id == lease:
            self._id = 0
