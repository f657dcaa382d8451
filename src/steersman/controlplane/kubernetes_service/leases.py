"""Addresses of the running servers on one store: each keeps a key of its own, which expires with the server.

The keys and values are those of kube-apiserver (pkg/controlplane/reconcilers).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from steersman.api.core.v1 import EndpointAddress, Endpoints, EndpointSubset
from steersman.kinds.stored import from_value, to_value
from steersman.machinery.codec.strict import DecodeError
from steersman.machinery.identity.schema import GroupResource
from steersman.rest.resource import KEYS
from steersman.storage.interface import Conflict, KeyExists, KeyValue, Storage

PREFIX: Final = KEYS + "/masterleases/"
RESOURCE: Final = GroupResource("", "apiServerIPInfo")
"""The resource by which a file of encryption providers can name these keys."""
TTL: Final = 15
"""Seconds for which a server counts as running after a renewal."""

_ATTEMPTS: Final = 10


class ServerLeases:
    """Leases of the servers. All methods raise the storage's errors, and ValueError for malformed stored leases."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    async def renew(self, address: str) -> None:
        """Mark the server at this address as running for TTL seconds from now."""

        def fill(lease: Endpoints) -> None:
            lease.subsets = [EndpointSubset(addresses=[EndpointAddress(ip=address)])]

        await renew(self._storage, PREFIX + address, fill)  # two servers may claim one address

    async def remove(self, address: str) -> None:
        """Mark the server as not running."""
        await remove(self._storage, PREFIX + address)

    async def addresses(self) -> list[str]:
        """Return the addresses of all running servers, in the order of their keys."""
        leases = [_read(each) for each in (await self._storage.range(PREFIX)).items]
        return [
            each.subsets[0].addresses[0].ip
            for each in leases
            if each.subsets and each.subsets[0].addresses and each.subsets[0].addresses[0].ip
        ]


async def renew(storage: Storage, key: str, fill: Callable[[Endpoints], None]) -> None:
    """Write a key that expires after TTL seconds; `fill` sets its contents. Raises the storage's errors and
    ValueError.
    """
    current = await storage.get(key)
    for _ in range(_ATTEMPTS):
        lease = Endpoints() if current is None else _read(current)
        fill(lease)
        lease.metadata.generation += 1
        try:
            if current is None:
                await storage.create(key, to_value(lease), ttl=TTL)
            else:
                await storage.update(key, to_value(lease), expected_revision=current.mod_revision, ttl=TTL)
        except (KeyExists, Conflict) as lost:
            current = lost.current
            continue
        return
    raise ValueError(f"{key}: too many concurrent writes by others")


async def remove(storage: Storage, key: str) -> None:
    """Delete a key, if it exists. Raises the storage's errors."""
    current = await storage.get(key)
    while current is not None:
        try:
            await storage.delete(key, expected_revision=current.mod_revision)
        except Conflict as lost:
            current = lost.current
            continue
        return


def _read(stored: KeyValue) -> Endpoints:
    try:
        return from_value(Endpoints, stored.value)
    except (DecodeError, msgspec.DecodeError) as error:
        raise ValueError(f"{stored.key} cannot be read: {error}") from error
