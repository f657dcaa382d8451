"""A control plane with controllers, scheduler and nodes, started and stopped as one."""

from __future__ import annotations

import asyncio
import logging
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from steersman.authentication.user import UserInfo, service_account_groups, service_account_username
from steersman.client.client import Client
from steersman.client.in_process import InProcessTransport
from steersman.client.indexes import RUNNING_BY_CONTROLLER, running_by_controller
from steersman.client.informer import Informers
from steersman.client.resources import PODS
from steersman.cluster.clock import ClusterClock, OutOfRange
from steersman.cluster.clock_file import ClockFile
from steersman.cluster.clock_paths import install_clock_paths
from steersman.cluster.components import MANAGER, Components
from steersman.cluster.configuration import Configuration, ConfigurationError
from steersman.cluster.definitions import NotServed, Plain
from steersman.cluster.definitions import install as install_definitions
from steersman.cluster.first_definitions import parts_with
from steersman.cluster.initial_objects import apply_manifests, read_manifests
from steersman.cluster.metrics import serve_metrics
from steersman.cluster.opening.errors import CannotOpen
from steersman.cluster.opening.opening import prepare
from steersman.cluster.scheduling_paths import install_scheduling_paths
from steersman.controllers.all import VOLUME_DRIVER
from steersman.controllers.authority import Authority
from steersman.controllers.certificates.requests import SIGNERS
from steersman.controllers.controller import Settings
from steersman.controllers.selection import selected
from steersman.controllers.services.load_balancers import LoadBalancerController
from steersman.controllers.volumes.driver.component import ACCOUNT as SIMULATION
from steersman.controllers.volumes.driver.objects import install
from steersman.controlplane.addresses import Address
from steersman.controlplane.control_plane import ControlPlane
from steersman.controlplane.controllers import other_entries, server_entries
from steersman.controlplane.options import Options
from steersman.endpoints.filters.observation import Observe
from steersman.faults.fault_set import FaultSet
from steersman.machinery.errors.status import StatusError
from steersman.machinery.limited_log import LimitedLog
from steersman.nodes.containers import Containers
from steersman.nodes.server.servers import NodeServers, refuse_connection
from steersman.scheduler.decisions import Decisions
from steersman.storage.memory import Snapshot
from steersman.work.offloading import bound

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from steersman.net.client.transport import Address as NetworkAddress
    from steersman.net.client.transport import Way
    from steersman.nodes.stages.stage_set import Stages
    from steersman.work.parts import Part

logger = logging.getLogger(__name__)
_leaps: Final = LimitedLog(logger)

_ADMIN: Final = UserInfo("steersman:admin", groups=("system:masters",))
_METRICS: Final = UserInfo("steersman:metrics", groups=("system:masters",))
_COMPONENTS_USER: Final = "steersman:movers"
"""User on whose account controllers, scheduler and nodes use the worker threads."""
_SIMULATION: Final = UserInfo("steersman:simulation", groups=("system:masters",))
_REFUSED: Final = frozenset({400, 403, 422})
"""Status codes for invalid or forbidden objects."""
_QUIET: Final = 5
"""Iterations of the event loop in a row without a write or work, after which the cluster counts as settled."""


_REACTION: Final = 0.25
"""Seconds that the cluster may take to react to a step of its clock."""


class Cluster:
    """A cluster: `await start()`, then `await stop()`."""

    def __init__(
        self,
        options: Options,
        configuration: Configuration | None = None,
        *,
        observe: Observe | None = None,
        faults: FaultSet | None = None,
        owns_process: bool = False,
        adapt: Callable[[Sequence[type[Part]]], Sequence[type[Part]]] | None = None,
    ) -> None:
        """Create a cluster.

        `adapt` returns the parts of the control plane in place of the usual ones.
        `observe` is called for every request, and `faults` happen to requests. `owns_process` says that the process
        belongs to the cluster alone.

        Raises ValueError for unknown controllers; ConfigurationError for more nodes than addresses, and for manifests
        and stages that cannot be read.
        """
        options, self._configuration, parts, self.notes = prepare(options, configuration or Configuration())
        self._nodes = self._configuration.simulated_nodes()
        self._stages = _stages(self._configuration)
        self.servers = NodeServers(
            self._nodes,
            Containers(),
            serves_local=self._configuration.serve_local,
            answers_webhooks=self._configuration.answer_webhooks,
        )
        self.servers.containers.usages.add(self._configuration.simulated_load)
        if not options.kubelet_preferred_address_types:  # the names of simulated nodes do not resolve
            options = replace(options, kubelet_preferred_address_types=("InternalIP",))
        given = options.controllers or ("*",)
        self._controllers = selected(other_entries(given))
        if faults is None and options.faults:
            faults = FaultSet()
        self._faults = faults
        self._pool_definitions = _of_pools() if self._configuration.pools else []
        self._kwok_definitions = _of_kwok() if self._configuration.kwok else []
        fault_definitions = _of_faults() if faults is not None and options.faults else []
        parts = parts_with([*self._pool_definitions, *self._kwok_definitions, *fault_definitions], parts)
        self.plane = ControlPlane(
            replace(options, controllers=server_entries(given)),
            nearby=self._way,
            kubelets=self.servers.way_of_kubelet_client,
            observe=observe,
            faults=faults,
            owns_process=owns_process,
            parts=parts if adapt is None else adapt(parts),
        )
        self._manifests = read_manifests(self._configuration.objects)
        self._settings = Settings()
        self._components: Components | None = None
        self._has_pools = False
        self._clock_file = None if options.storage == "memory" else ClockFile(options.data_dir)
        record = _not_recorded if self._clock_file is None else self._clock_file.write
        self._clock = ClusterClock(partial(self.settle, _REACTION), record) if owns_process else None
        self._has_kwok = False
        self._fault_objects: FaultSet | None = None
        """Faults that follow Fault objects; None if these are not served."""
        self._running = AsyncExitStack()

    def _way(self, address: NetworkAddress) -> Way | None:
        """Return the way to a node, a pod or a cluster IP; None for every other address.

        The cluster IP of a Service is dialled only while no endpoint is ready. It refuses connections then, as
        kube-proxy has it: on the network of this machine the address belongs to somebody else.
        """
        way = self.servers.way(address)
        if way is None and self.plane.objects("networking.k8s.io", "ipaddresses").is_cached("", address.host):
            return partial(refuse_connection, address.host, address.port)
        return way

    async def start(self) -> Address:
        """Start the control plane and everything that works on it, and return the server's address.

        Raises what ControlPlane.start raises, and ConfigurationError for an object that the server refuses.
        """
        if self._clock is not None:
            self._clock.start(0.0 if self._clock_file is None else self._clock_file.read())
            self._running.push_async_callback(self._clock.stop)
            if self._faults is not None:
                self._faults.advance_clock = partial(_leap, self._clock)
        try:
            address = await self.plane.start()
        except CannotOpen as error:
            await self.stop()
            raise ConfigurationError(str(error)) from None
        except BaseException:
            await self.stop()
            raise
        for note in self.notes:
            logger.warning("%s: %s", self._configuration.dump or "the recording", note)
        self._running.push_async_callback(self.plane.stop)
        self._running.push_async_callback(self._stop_components)
        try:
            with bound(self.plane.account(_COMPONENTS_USER)):
                await self._start_all(address)
        except BaseException:
            await self.stop()
            raise
        return address

    async def _start_all(self, address: Address) -> None:
        """Start everything that works on the control plane."""
        self._settings = Settings(
            root_ca=address.ca.read_text(),
            namespace_deletion_grace=0,
            sign_token=self.plane.sign_token,
            signers=dict.fromkeys(SIGNERS, Authority(address.ca, address.ca_key)),
        )
        if self._configuration.schedules:
            await install(self.client(_ADMIN, "steersman"))
        if self._pool_definitions:
            await self._create_pools()
        if self._kwok_definitions:
            await self._install_kwok()
        if self._faults is not None and self.plane.options.faults:
            await self._install_faults(self._faults)
        await self._start_components()
        if self._configuration.schedules:
            load, usages = self._configuration.simulated_load, self.servers.containers.usages
            load.count_replicas = self._count_replicas
            await serve_metrics(self.plane, self.client(_METRICS, "steersman"), self._informers, usages, load)
            assert self.plane.server is not None
            install_scheduling_paths(self.plane.server, self._decisions)
        if self._clock is not None:
            assert self.plane.server is not None
            install_clock_paths(self.plane.server, self._clock)
        await apply_manifests(self.client(_ADMIN, "steersman"), self._manifests)
        self._start_faults()

    async def _create_pools(self) -> None:
        """Make the groups of nodes pools, and drop the nodes that these no longer have.

        What users have stored, such as a webhook or another definition, may prevent pools, but not the start.
        """
        from steersman.cluster.node_pools.configured import create_pools

        client = self.client(_ADMIN, "steersman")
        try:
            await install_definitions(client, self._pool_definitions)
            staying = await create_pools(client, self._configuration.nodes, self._nodes)
        except (StatusError, NotServed) as error:
            logger.error("there are no NodePools, and groups of nodes are not kept at their size: %s", error)
            return
        self._has_pools = True
        kept = {each.name for each in staying}
        for each in self._nodes:
            if each.name not in kept:
                self.servers.remove(each)
        self._nodes = staying

    async def _install_kwok(self) -> None:
        """Install the definitions of kwok's kinds. What users have stored may prevent them, but not the start."""
        try:
            await install_definitions(self.client(_ADMIN, "steersman"), self._kwok_definitions)
        except (StatusError, NotServed) as error:
            logger.error("kwok's kinds are not served, and stages are those of the configuration alone: %s", error)
            return
        self._has_kwok = True

    async def _install_faults(self, faults: FaultSet) -> None:
        """Install the definition of Faults, unless stored objects prevent it."""
        from steersman.cluster.fault_objects.definition import install_faults

        if await install_faults(self.client(_ADMIN, "steersman")):
            self._fault_objects = faults

    async def _start_components(self) -> None:
        controllers = self._controllers
        if self._configuration.schedules:
            controllers = (*controllers, LoadBalancerController, *VOLUME_DRIVER)
        self._components = Components(
            self,
            self._settings,
            controllers,
            self._configuration.node_set(self._nodes),
            self.servers,
            self._stages,
            schedules=self._configuration.schedules,
            pools=self._has_pools,
            kwok=self._configuration if self._has_kwok else None,
            devices=self._configuration.devices,
            faults=self._fault_objects,
            disturbances=self._faults,
        )
        try:
            with bound(self.plane.account(_COMPONENTS_USER)):
                await self._components.start()
        except StatusError as error:
            if error.code not in _REFUSED:
                raise
            raise self._configuration.error(error) from None  # such as a node with an invalid name, label or taint

    @property
    def components(self) -> Components:
        """The running components. The cluster must be running."""
        assert self._components is not None
        return self._components

    def _start_faults(self) -> None:
        """Begin with stored faults and new ones."""
        self.components.start_faults()

    def _informers(self) -> Informers:
        return self.components.informers

    def _count_replicas(self, controller: str) -> int:
        """Return the number of running pods of a controller."""
        pods = self._informers().for_resource(PODS)
        pods.add_index(RUNNING_BY_CONTROLLER, running_by_controller)
        return pods.count_indexed(RUNNING_BY_CONTROLLER, controller)

    def _decisions(self) -> Decisions | None:
        return None if self._components is None else self._components.decisions

    async def _stop_components(self) -> None:
        components, self._components = self._components, None
        if components is not None:
            await components.stop()

    async def settle(self, patience: float = 1.0) -> bool:
        """Wait until nothing happens in the cluster, at most `patience` seconds. Return True if that was reached.

        Something may still be due later.
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + patience
        quiet, seen = 0, -1
        storage = self.plane.storage
        assert storage is not None
        while quiet < _QUIET:
            if loop.time() > until:
                return False
            await asyncio.sleep(0)
            revision = storage.revision
            still = revision == seen and (self._components is None or self._components.idle)
            quiet, seen = (quiet + 1 if still else 0), revision
        return True

    def snapshot(self) -> Snapshot:
        """Return a snapshot of everything that is stored; best taken when nothing happens.

        Raises TypeError unless in memory.
        """
        return self.plane.snapshot()

    async def restore(self, snapshot: Snapshot) -> None:
        """Restore a snapshot of this cluster, and return once all clients have seen it. Raises TypeError.

        Controllers, scheduler and nodes see the restore as writes. If the cluster does not settle before, they are
        restarted.
        """
        if await self.settle():
            await self._restore_state(snapshot)
            await self.settle()
            await self._restore_state(snapshot)  # again, without reactions such as a node that reports to be back
        else:
            await self._stop_components()
            await self.plane.restore(snapshot)
            await self._start_components()
            self._start_faults()
        await self.settle()

    async def _restore_state(self, snapshot: Snapshot) -> None:
        self.components.forget_events()
        await self.plane.restore(snapshot)

    async def stop(self) -> None:
        """Stop everything, the control plane last."""
        await self._running.aclose()

    def client(self, user: UserInfo, manager: str) -> Client:
        """Return a client of a user, without a socket. `manager` owns the fields that it writes."""
        server = self.plane.server
        assert server is not None
        return Client(InProcessTransport(server.handler, self.plane.token_of(user)), manager)

    def administrator(self) -> Client:
        """Return a client of the administrator, without a socket."""
        return self.client(_ADMIN, "steersman")

    def set_speed(self, speed: float) -> None:
        """Let the clock run at so many simulated seconds in a real one. Raises OutOfRange.

        The cluster must own its process.
        """
        assert self._clock is not None
        self._clock.set_speed(speed)

    def client_of_account(self, name: str) -> Client:
        """Return a client of a service account of kube-system, or of the simulated volume driver."""
        if name == SIMULATION:
            return self.client(_SIMULATION, SIMULATION)
        user = UserInfo(service_account_username("kube-system", name), groups=service_account_groups("kube-system"))
        return self.client(user, MANAGER)


def _of_pools() -> list[Plain]:
    """Return the definition of NodePools. Clusters without them do not import it, nor the others."""
    from steersman.cluster.node_pools.definition import definition

    return [definition()]


def _of_kwok() -> list[Plain]:
    """Return the definitions of kwok's kinds."""
    from steersman.cluster.kwok.definitions import definitions

    return definitions()


def _of_faults() -> list[Plain]:
    """Return the definition of Faults."""
    from steersman.cluster.fault_objects.definition import definition

    return [definition()]


def _not_recorded(ahead: float) -> None:
    """Do nothing with the time of a cluster that keeps nothing."""


def _leap(clock: ClusterClock, seconds: float) -> None:
    """Begin a leap of the clock, as a fault has it."""
    try:
        clock.advance(seconds)
    except OutOfRange as error:
        _leaps.warning("leap", "a fault does not move the clock: %s", error)


def _stages(configuration: Configuration) -> Stages | None:
    """Return the configured stages, or None. Raises ConfigurationError."""
    if not configuration.stages and not configuration.documents:
        return None
    from steersman.cluster.stage_files import stages_of

    return stages_of(configuration)
