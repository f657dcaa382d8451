"""Controllers, scheduler and nodes of a cluster, as clients of its control plane."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, Final, Protocol

from steersman.authentication.user import UserInfo
from steersman.client.client import Client
from steersman.client.resources import NODES
from steersman.cluster.configuration import Configuration
from steersman.controllers.controller import Controller, ControllerDependencies, Settings
from steersman.controllers.manager import ControllerManager
from steersman.nodes.devices.slices import DeviceSets
from steersman.nodes.disturbances import Disturbances
from steersman.nodes.kubelets import Kubelets
from steersman.nodes.kwok.pod_objects import PodObjects
from steersman.nodes.kwok.usage import KwokUsage
from steersman.nodes.node_set import NodeSet
from steersman.nodes.server.servers import NodeServers
from steersman.nodes.stages.stage_objects import StageObjects
from steersman.scheduler.decisions import Decisions
from steersman.scheduler.scheduler import Scheduler

if TYPE_CHECKING:  # most clusters have no stages, those of tests no pools
    from steersman.cluster.fault_objects.controller import FaultController
    from steersman.cluster.node_pools.controller import NodePoolController
    from steersman.faults.fault_set import FaultSet
    from steersman.nodes.stages.players import StagePlayers
    from steersman.nodes.stages.stage_set import Stages

MANAGER: Final = "kube-controller-manager"
SCHEDULER: Final = "kube-scheduler"
_NODE_POOLS: Final = UserInfo("steersman:nodepools", groups=("system:masters",))
_NODE_POOLS_MANAGER: Final = "nodepool-controller"
_NODES: Final = UserInfo("steersman:nodes", groups=("system:masters",))


class Clients(Protocol):
    """Factory of clients of the control plane."""

    def client(self, user: UserInfo, manager: str) -> Client:
        """Return a client of a user. `manager` owns the fields that it writes."""
        ...

    def client_of_account(self, name: str) -> Client:
        """Return a client of a service account of kube-system."""
        ...


class Components:
    """Controllers, nodes, with `schedules` the scheduler, with `pools` the controller of NodePools, with `kwok`, the
    configuration of the cluster, the followers of kwok's objects, with `faults` the controller of Fault objects.
    `disturbances` are those of kubelets.

    `await start()`, then `await stop()`.
    """

    def __init__(
        self,
        clients: Clients,
        settings: Settings,
        controllers: Sequence[type[Controller[Any]]],
        nodes: NodeSet,
        servers: NodeServers,
        stages: Stages | None,
        *,
        schedules: bool,
        pools: bool = False,
        kwok: Configuration | None = None,
        devices: DeviceSets | None = None,
        faults: FaultSet | None = None,
        disturbances: Disturbances | None = None,
    ) -> None:
        manager = ControllerManager(
            clients.client(UserInfo(f"system:{MANAGER}"), MANAGER), clients.client_of_account, settings, controllers
        )
        self._manager = manager
        self.informers = manager.informers
        self._scheduler: Scheduler | None = None
        if schedules:
            self._scheduler = Scheduler(clients.client(UserInfo(f"system:{SCHEDULER}"), SCHEDULER), manager.informers)
        client = clients.client(_NODES, "kubelet")
        self._client, self._nodes = client, nodes
        players = None if stages is None else self._players(stages)

        def account(namespace: str, name: str) -> Client:
            groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated")
            return clients.client(UserInfo(f"system:serviceaccount:{namespace}:{name}", groups=groups), name)

        self.kubelets = Kubelets(
            client, manager.informers, manager.events, nodes, servers, players, account, devices, disturbances
        )
        self._pools = clients.client(_NODE_POOLS, _NODE_POOLS_MANAGER) if pools else None
        self._stage_objects: StageObjects | None = None
        self._usages = servers.containers.usages
        self._kwok_usage: KwokUsage | None = None
        if kwok is not None:
            self._stage_objects = StageObjects(client, manager.events, self._begin_stages, stages, players)
            self._kwok_usage = KwokUsage(client, manager.informers.for_resource(NODES))
            servers.containers.objects = PodObjects(client, kwok.log_files)
        self._faults = faults
        self._clients = clients
        self._fault_controller: FaultController | None = None
        self._settings = settings
        self._pool_controller: NodePoolController | None = None
        self._running = AsyncExitStack()

    async def start(self) -> None:
        """Start everything. Raises StatusError, Unreachable; then `stop` stops the parts that run."""
        for each in (self._manager, self._scheduler, self.kubelets):
            if each is not None:
                self._running.push_async_callback(each.stop)
                await each.start()
        if self._stage_objects is not None:
            self._running.push_async_callback(self._stage_objects.stop)
            self._stage_objects.start()
        if self._kwok_usage is not None:
            self._kwok_usage.start()
            self._running.push_async_callback(self._kwok_usage.stop)
            self._usages.add(self._kwok_usage)
            self._running.callback(self._usages.remove, self._kwok_usage)
        if self._pools is not None:
            await self._start_pools(self._pools)

    def _players(self, stages: Stages) -> StagePlayers:
        from steersman.nodes.stages.players import StagePlayers

        return StagePlayers(self._client, self._manager.informers, self._manager.events, self._nodes, stages)

    def _begin_stages(self, stages: Stages) -> StagePlayers:
        """Play the first stages of a running cluster."""
        players = self._players(stages)
        self.kubelets.play_stages(players)
        return players

    async def _start_pools(self, client: Client) -> None:
        """Start the controller of NodePools, now that the configured nodes are registered."""
        from steersman.cluster.node_pools.controller import NodePoolController

        manager = self._manager
        recorder = manager.events.recorder(NodePoolController.component)
        controller = NodePoolController(
            ControllerDependencies(client, manager.informers, manager.monitors, recorder, self._settings)
        )
        self._pool_controller = controller
        self._running.push_async_callback(controller.stop)
        controller.start()

    def start_faults(self) -> None:
        """Start the controller of Faults: last, as stored ones would keep the cluster from starting."""
        faults = self._faults
        if faults is None:
            return
        from steersman.cluster.fault_objects.controller import USER, FaultController

        manager = self._manager
        client = self._clients.client(USER, FaultController.component)
        recorder = manager.events.recorder(FaultController.component)
        dependencies = ControllerDependencies(client, manager.informers, manager.monitors, recorder, self._settings)
        self._fault_controller = controller = FaultController(dependencies, faults)
        self._running.push_async_callback(controller.stop)
        controller.start()

    async def stop(self) -> None:
        """Stop everything, the controllers last."""
        await self._running.aclose()

    @property
    def idle(self) -> bool:
        """True if nothing is in progress."""
        others = (self._scheduler, self._pool_controller, self._stage_objects, self._fault_controller)
        return self._manager.idle and self.kubelets.idle and all(each is None or each.idle for each in others)

    @property
    def decisions(self) -> Decisions | None:
        """The scheduler's last decisions, None without a scheduler."""
        return None if self._scheduler is None else self._scheduler.decisions

    def forget_events(self) -> None:
        """Forget recorded event series, whose objects the server has lost."""
        self._manager.events.forget()
        if self._scheduler is not None:
            self._scheduler.forget_events()
