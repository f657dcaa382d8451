"""Where servers on one store find each other: a key of each, which vanishes when it does not run.

Keys and values are those of kube-apiserver (pkg/controlplane/reconcilers `peer_endpoint_lease.go`), which passes on to
another one requests for versions that it does not know itself.
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
    """The key of one server, by the name of its identity lease. Methods raise what storage raises, and ValueError."""

    def __init__(self, storage: Storage, server: str) -> None:
        self._storage = storage
        self._server = server

    async def renew(self, host: str, port: int) -> None:
        """Tells for some seconds from now where it is."""

        def fill(lease: Endpoints) -> None:
            lease.metadata.labels = {_IDENTITY: self._server}
            ports = [EndpointPort(name="https", port=port, protocol="TCP")]
            lease.subsets = [EndpointSubset(addresses=[EndpointAddress(ip=host)], ports=ports)]

        await leases.renew(self._storage, PREFIX + self._server, fill)

    async def end(self) -> None:
        """Tells it no more."""
        await leases.remove(self._storage, PREFIX + self._server)
