"""The Lease that identifies a running server (KEP-1965, kube-apiserver identity)."""

from __future__ import annotations

import base64
import hashlib
import socket
import uuid
from datetime import UTC, datetime, timedelta
from typing import Final

from steersman.api.coordination.v1 import Lease, LeaseSpec
from steersman.api.meta.v1 import ObjectMeta
from steersman.controlplane.initial_objects import ensure, remove
from steersman.controlplane.objects import StoreObjects
from steersman.machinery.errors.status import StatusError
from steersman.machinery.go.strings import to_lower
from steersman.machinery.values import times
from steersman.rest.context import loopback
from steersman.server.server import Server

RENEWAL: Final = 10.0
"""Seconds between renewals of the lease."""
COLLECTION: Final = 3600.0
"""Seconds between deletions of expired leases."""

_COMPONENT: Final = "kube-apiserver"
_IDENTITY_LABEL: Final = "apiserver.kubernetes.io/identity"
_HOSTNAME_LABEL: Final = "kubernetes.io/hostname"
_ADDRESS_ANNOTATION: Final = "kubernetes.io/peer-advertise-address"
_NAMESPACE: Final = "kube-system"
_DURATION: Final = 3600
"""Seconds for which a lease is valid."""


class IdentityLease:
    """This server's lease in kube-system; also deletes expired leases of other servers."""

    def __init__(self, server: Server, leases: StoreObjects) -> None:
        self._server = server
        self._leases = leases
        self._hostname = socket.gethostname()
        self.name = server_id(self._hostname)
        self._holder = f"{self.name}_{uuid.uuid4()}"

    async def begin(self) -> None:
        """Delete the lease of an earlier run and create a new one."""
        await self.end()
        await self.renew()

    async def renew(self) -> None:
        """Renew the lease."""
        lease = Lease(metadata=ObjectMeta(name=self.name, namespace=_NAMESPACE), spec=LeaseSpec())
        if await ensure(self._leases, self._marked(lease)):
            return
        ctx = loopback(_NAMESPACE, self.name)
        await self._leases.update(ctx, self.name, self._marked)

    async def end(self) -> None:
        """Delete the lease."""
        await remove(self._leases, self.name, _NAMESPACE)

    async def collect(self) -> None:
        """Delete the leases of servers that ended without deleting theirs."""
        now = datetime.fromtimestamp(times.unix_now(), UTC)
        async for lease, _ in self._leases.iterate_cached(_NAMESPACE):
            if lease.metadata.labels.get(_IDENTITY_LABEL) == _COMPONENT and _is_over(lease, now):
                await self._remove_over(lease.metadata.name, now)

    async def _remove_over(self, name: str, now: datetime) -> None:
        """Delete a lease if it is expired in storage too."""
        try:
            lease: Lease = await self._leases.get(loopback(_NAMESPACE, name), name)
        except StatusError as error:
            if error.code != 404:
                raise
            return
        if _is_over(lease, now):
            await remove(self._leases, name, _NAMESPACE, uid=lease.metadata.uid)

    def _marked(self, lease: Lease) -> Lease:
        lease.spec.holder_identity = self._holder
        lease.spec.lease_duration_seconds = _DURATION
        lease.spec.renew_time = times.now_micro()
        lease.metadata.labels |= {_IDENTITY_LABEL: _COMPONENT, _HOSTNAME_LABEL: self._hostname}
        lease.metadata.annotations[_ADDRESS_ANNOTATION] = str(self._server.external_address)
        return lease


def server_id(hostname: str) -> str:
    """Return the name of the lease of the server on a host, equal to kube-apiserver's."""
    parts = (part.encode() for part in (hostname, _COMPONENT))
    data = b"".join(len(part).to_bytes(2, "big") + part for part in parts)
    digest = hashlib.sha256(data).digest()[:16]
    return "apiserver-" + to_lower(base64.b32encode(digest).decode().rstrip("="))


def _is_over(lease: Lease, now: datetime) -> bool:
    renewed, seconds = lease.spec.renew_time, lease.spec.lease_duration_seconds
    return renewed is None or seconds is None or times.parse(renewed) + timedelta(seconds=seconds) < now
