"""A control plane and what makes things move on it, started and stopped as one."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Final

from steersman.authentication.user import UserInfo, service_account_groups, service_account_username
from steersman.client.client import Client
from steersman.client.in_process import InProcessTransport
from steersman.client.resources import PODS
from steersman.cluster.configuration import Configuration
from steersman.cluster.initial_objects import apply_manifests, read_manifests
from steersman.controllers.all import CONTROLLERS
from steersman.controllers.controller import Settings
from steersman.controllers.manager import ControllerManager
from steersman.controlplane.control_plane import Address, ControlPlane
from steersman.controlplane.options import Options
from steersman.endpoints.filters.observation import Observe
from steersman.nodes.kubelets import Kubelets
from steersman.nodes.simulated_node import SimulatedNode
from steersman.scheduler.scheduler import Scheduler
from steersman.storage.memory import Snapshot

MANAGER: Final = "kube-controller-manager"
SCHEDULER: Final = "kube-scheduler"
_ADMIN: Final = UserInfo("steersman:admin", groups=("system:masters",))
_QUIET: Final = 5
"""Turns of the loop in a row in which nothing was written and nobody had anything to do, after which nothing moves."""
_NODES: Final = UserInfo("steersman:nodes", groups=("system:masters",))


class Cluster:
    """`await start()`, then `await stop()`."""

    def __init__(
        self, options: Options, configuration: Configuration | None = None, *, observe: Observe | None = None
    ) -> None:  # fmt: skip
        """`observe` is told of every request.

        Raises ConfigurationError for more nodes than there are addresses, and for manifests that cannot be read.
        """
        self.plane = ControlPlane(options, observe=observe)
        self._configuration = configuration or Configuration()
        self._nodes = self._configuration.simulated_nodes()
        self._manifests = read_manifests(self._configuration.objects)
        self._root_ca = ""
        self._movers: _Movers | None = None
        self._running = AsyncExitStack()

    async def start(self) -> Address:
        """Starts the control plane, and all that works on it. Raises what ControlPlane.start raises, and
        ConfigurationError for an object that is refused."""
        address = await self.plane.start()
        self._running.push_async_callback(self.plane.stop)
        self._running.push_async_callback(self._stop_movers)
        try:
            self._root_ca = address.ca.read_text()
            await self._start_movers()
            await apply_manifests(self.client(_ADMIN, "steersman"), self._manifests)
        except BaseException:
            await self.stop()
            raise
        return address

    async def _start_movers(self) -> None:
        self._movers = movers = _Movers(self, self._root_ca, self._nodes, schedules=self._configuration.schedules)
        await movers.start()

    async def _stop_movers(self) -> None:
        movers, self._movers = self._movers, None
        if movers is not None:
            await movers.stop()

    async def settle(self, patience: float = 1.0) -> bool:
        """Waits until nothing moves any more, at most some seconds; whether that was reached. Something may fall due
        later all the same."""
        loop = asyncio.get_running_loop()
        until = loop.time() + patience
        quiet, seen = 0, -1
        while quiet < _QUIET:
            if loop.time() > until:
                return False
            await asyncio.sleep(0)
            assert self.plane.storage is not None
            revision = self.plane.storage.revision
            still = revision == seen and (self._movers is None or self._movers.idle)
            quiet, seen = (quiet + 1 if still else 0), revision
        return True

    def snapshot(self) -> Snapshot:
        """Everything that is stored now; best when nothing moves. Raises TypeError if that is not in memory."""
        return self.plane.snapshot()

    async def restore(self, snapshot: Snapshot) -> None:
        """Brings back what a snapshot of this cluster holds, and returns when all have seen it. Raises TypeError.

        What works on the cluster sees it as writes. Where it does not come to rest before, it is started anew.
        """
        if await self.settle():
            await self._bring_back(snapshot)
            await self.settle()
            await self._bring_back(snapshot)  # without what was told of it, such as that a node is here again
        else:
            await self._stop_movers()
            await self.plane.restore(snapshot)
            await self._start_movers()
        await self.settle()

    async def stop(self) -> None:
        """The orderly end, the control plane last."""
        await self._running.aclose()

    def client(self, user: UserInfo, manager: str) -> Client:
        """Requests of a user, without a socket; `manager` owns the fields that they write."""
        server = self.plane.server
        assert server is not None
        return Client(InProcessTransport(server.handler, self.plane.token_of(user)), manager)

    def client_of_account(self, name: str) -> Client:
        """Requests of a service account of kube-system."""
        user = UserInfo(service_account_username("kube-system", name), groups=service_account_groups("kube-system"))
        return self.client(user, MANAGER)

    async def _bring_back(self, snapshot: Snapshot) -> None:
        assert self._movers is not None
        self._movers.forget_events()
        await self.plane.restore(snapshot)


class _Movers:
    """What makes things move: the controllers and, if pods are to be scheduled and run, the scheduler and the nodes."""

    def __init__(self, cluster: Cluster, root_ca: str, nodes: Sequence[SimulatedNode], *, schedules: bool) -> None:
        settings = Settings(root_ca=root_ca, namespace_deletion_grace=0)
        self._manager = manager = ControllerManager(
            cluster.client(UserInfo(f"system:{MANAGER}"), MANAGER), cluster.client_of_account, settings, CONTROLLERS
        )
        self._scheduler: Scheduler | None = None
        if schedules:
            self._scheduler = Scheduler(cluster.client(UserInfo(f"system:{SCHEDULER}"), SCHEDULER), manager.informers)
        self._kubelets = Kubelets(
            cluster.client(_NODES, "kubelet"), manager.informers.of(PODS), manager.events, nodes
        )  # fmt: skip
        self._running = AsyncExitStack()

    async def start(self) -> None:
        """Begins. Raises StatusError, Unreachable; `stop` ends what runs then."""
        for each in (self._manager, self._scheduler, self._kubelets):
            if each is not None:
                self._running.push_async_callback(each.stop)
                await each.start()

    async def stop(self) -> None:
        """Ends, the controllers last."""
        await self._running.aclose()

    @property
    def idle(self) -> bool:
        """Whether nothing is under way."""
        return self._manager.idle and self._kubelets.idle and (self._scheduler is None or self._scheduler.idle)

    def forget_events(self) -> None:
        """Counts events anew: what was told is gone from the server."""
        self._manager.events.forget()
        if self._scheduler is not None:
            self._scheduler.forget_events()
