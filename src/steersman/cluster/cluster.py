"""A control plane and what makes things move on it, started and stopped as one."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import Final

from steersman.authentication.user import UserInfo, service_account_groups, service_account_username
from steersman.client.client import Client
from steersman.client.in_process import InProcessTransport
from steersman.client.resources import PODS
from steersman.cluster.configuration import Configuration
from steersman.cluster.initial_objects import apply_manifests, read_manifests
from steersman.cluster.metrics import serve_metrics
from steersman.controllers.all import CONTROLLERS
from steersman.controllers.controller import Settings
from steersman.controllers.manager import ControllerManager
from steersman.controlplane.control_plane import Address, ControlPlane
from steersman.controlplane.options import Options
from steersman.nodes.kubelets import Kubelets
from steersman.scheduler.scheduler import Scheduler

MANAGER: Final = "kube-controller-manager"
SCHEDULER: Final = "kube-scheduler"
_ADMIN: Final = UserInfo("steersman:admin", groups=("system:masters",))
_METRICS: Final = UserInfo("steersman:metrics", groups=("system:masters",))
_NODES: Final = UserInfo("steersman:nodes", groups=("system:masters",))


class Cluster:
    """`await start()`, then `await stop()`."""

    def __init__(self, options: Options, configuration: Configuration | None = None) -> None:
        """Raises ConfigurationError for more nodes than there are addresses, and for manifests that cannot be read."""
        self.plane = ControlPlane(options)
        self._configuration = configuration or Configuration()
        self._nodes = self._configuration.simulated_nodes()
        self._manifests = read_manifests(self._configuration.objects)
        self._running = AsyncExitStack()

    async def start(self) -> Address:
        """Starts the control plane, and all that works on it. Raises what ControlPlane.start raises, and
        ConfigurationError for an object that is refused."""
        address = await self.plane.start()
        self._running.push_async_callback(self.plane.stop)
        try:
            settings = Settings(root_ca=address.ca.read_text(), namespace_deletion_grace=0)
            manager = ControllerManager(
                self.client(UserInfo(f"system:{MANAGER}"), MANAGER), self._of_account, settings, CONTROLLERS
            )
            await manager.start()
            self._running.push_async_callback(manager.stop)
            scheduler = Scheduler(self.client(UserInfo(f"system:{SCHEDULER}"), SCHEDULER), manager.informers)
            await scheduler.start()
            self._running.push_async_callback(scheduler.stop)
            kubelets = Kubelets(self.client(_NODES, "kubelet"), manager.informers.of(PODS), manager.events, self._nodes)
            await kubelets.start()
            self._running.push_async_callback(kubelets.stop)
            await serve_metrics(self.plane, self.client(_METRICS, "steersman"), manager.informers)
            await apply_manifests(self.client(_ADMIN, "steersman"), self._manifests)
        except BaseException:
            await self.stop()
            raise
        return address

    async def stop(self) -> None:
        """The orderly end, the control plane last."""
        await self._running.aclose()

    def client(self, user: UserInfo, manager: str) -> Client:
        """Requests of a user, without a socket; `manager` owns the fields that they write."""
        server = self.plane.server
        assert server is not None
        return Client(InProcessTransport(server.handler, self.plane.token_of(user)), manager)

    def _of_account(self, name: str) -> Client:
        user = UserInfo(service_account_username("kube-system", name), groups=service_account_groups("kube-system"))
        return self.client(user, MANAGER)
