"""Faults of servers, of members of etcd, and of the network between them."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from tools.chaos.faults.fault import Fault, Makers, play, restart
from tools.chaos.faults.of_members import MemberFaults
from tools.chaos.faults.of_networks import NetworkFaults
from tools.chaos.faults.of_servers import ServerFaults
from tools.chaos.members import Cluster
from tools.chaos.servers import Server
from tools.chaos.wires import Machine, Wires

__all__ = ["Fault", "Makers", "Targets", "play", "restart"]


@dataclass
class Targets:
    """Processes and proxies that faults act on."""

    servers: list[Server]
    cluster: Cluster | None = None
    machines: list[Machine] = field(default_factory=list)
    """Machines of the servers, if there are `wires`."""
    wires: Wires | None = None
    traced: bool = False
    """True if strace may be used."""

    def makers(self, chance: random.Random) -> Makers:
        """All faults there are for these."""
        found = dict(ServerFaults(self.servers, chance, has_disk=self.cluster is None).makers())
        if self.cluster is not None:
            found |= MemberFaults(self.cluster, chance, traced=self.traced).makers()
            found |= NetworkFaults(self.cluster, self.machines, chance, self.wires).makers()
        return found

    def mend(self) -> None:
        """Ends what lasts longer than its fault: clocks that stay wrong."""
        for server in self.servers:
            if server.liar is not None:
                server.liar.clock(0)
                server.liar.mend_disk()
