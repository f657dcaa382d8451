"""Discovery of other servers on one store: each has a key, which expires with the server.

Keys and values are those of kube-apiserver (pkg/controlplane/reconcilers `peer_endpoint_lease.go`), which proxies
requests for versions that it does not serve to another server.
"""

from __future__ import annotations

from typing import Final

from steersman.api.core.v1 import EndpointAddress, EndpointPort, Endpoints, EndpointSubset
from steersman.controlplane.kubernetes_service import leases
from steersman.rest.resource import KEYS
from steersman.storage.interface import Storage

PREFIX: Final = KEYS + "/peerserverleases/"
_IDENTITY: Final = "apiserverIdentity"


class PeerLease:
    """The key of one server, named like its identity lease. Methods raise the storage's errors and ValueError."""

    def __init__(self, storage: Storage, server: str) -> None:
        self._storage = storage
        self._server = server

    async def renew(self, host: str, port: int) -> None:
        """Announce the server's address for the next seconds."""

        def fill(lease: Endpoints) -> None:
            lease.metadata.labels = {_IDENTITY: self._server}
            ports = [EndpointPort(name="https", port=port, protocol="TCP")]
            lease.subsets = [EndpointSubset(addresses=[EndpointAddress(ip=host)], ports=ports)]

        await leases.renew(self._storage, PREFIX + self._server, fill)

    async def end(self) -> None:
        """Withdraw the announcement."""
        await leases.remove(self._storage, PREFIX + self._server)
