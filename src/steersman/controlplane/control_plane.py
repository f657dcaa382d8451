"""The whole API server: a list of parts, started in order and stopped in reverse order."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar

from steersman.api.apiextensions.v1 import CustomResourceDefinitionNames
from steersman.apiextensions.definitions import Serves
from steersman.authentication.issued_tokens import IssuedTokens
from steersman.authentication.user import UserInfo
from steersman.controlplane.addresses import Address, listen, reachable_address
from steersman.controlplane.authenticators import LOOPBACK
from steersman.controlplane.data_folder import is_storage_unavailable, unreadable
from steersman.controlplane.objects import StoreObjects
from steersman.controlplane.options import Options
from steersman.controlplane.parts.admitting import Admission, Audit, PriorityAndFairness
from steersman.controlplane.parts.basis import Common, Embedding, LoopWatch, OutgoingRoutes, ValidatedFlags
from steersman.controlplane.parts.identity import (
    Authentication,
    Authorization,
    Certificates,
    FirstKeys,
    SigningKeys,
    StoredRights,
    TokenFiles,
    Tokens,
)
from steersman.controlplane.parts.keeping import Followers, Hooks, InitialObjects, MaintainedObjects, Registration
from steersman.controlplane.parts.live import (
    Aggregation,
    CustomResources,
    DefinedResources,
    Implement,
    LiveResources,
)
from steersman.controlplane.parts.resources import BuiltInResources, ResourceServices
from steersman.controlplane.parts.serving import (
    ExportedTraces,
    GenericServer,
    HealthChecks,
    Listening,
    OpenAPI,
    OtherWriters,
    Paths,
    RequestsEnd,
)
from steersman.controlplane.parts.storing import (
    CacheConsistency,
    EncryptionAtRest,
    FilledCaches,
    ObjectStores,
    OpenStorage,
    StoredVersions,
)
from steersman.controlplane.stores import Stores
from steersman.controlplane.token_keys import OwnTokenKeys
from steersman.endpoints.filters.observation import Observe
from steersman.machinery.large_work import nesting
from steersman.machinery.private_files import write_whole
from steersman.net.client.own_server import OwnServer, ThisServer
from steersman.registry.services import Services
from steersman.rest.resource import Resource
from steersman.server.certificates import LOOPBACK_NAME, admin_kubeconfig
from steersman.server.server import PARTING, Server
from steersman.storage.interface import Storage, StorageUnavailable
from steersman.store.store import Store
from steersman.work.offloading import SERVER, Account, bound
from steersman.work.parts import Part, Parts
from steersman.work.threads import WorkerThreads

if TYPE_CHECKING:
    from steersman.controlplane.workers.worker import Worker
    from steersman.faults.fault_set import FaultSet
    from steersman.net.client.transport import Nearby
    from steersman.storage.memory import MemoryStorage, Snapshot

logger = logging.getLogger(__name__)

PARTS: Final[tuple[type[Part], ...]] = (
    # flags and files: they are checked before anything is written
    Common,
    LoopWatch,
    ValidatedFlags,
    OutgoingRoutes,
    EncryptionAtRest,
    TokenFiles,
    Authorization,
    # objects
    FirstKeys,  # before there are threads
    OpenStorage,
    ObjectStores,
    SigningKeys,  # stopped before the lock of the data folder is released
    Tokens,
    ResourceServices,
    BuiltInResources,
    StoredVersions,
    FilledCaches,
    StoredRights,
    # the server
    Certificates,
    Admission,
    Audit,
    Authentication,
    PriorityAndFairness,
    GenericServer,
    ExportedTraces,
    LiveResources,
    CustomResources,
    InitialObjects,
    OpenAPI,
    MaintainedObjects,
    RequestsEnd,
    HealthChecks,
    CacheConsistency,
    Aggregation,
    Registration,
    OtherWriters,
    Paths,
    # serving
    DefinedResources,
    Listening,
    Hooks,
    Followers,
)
"""All parts in order of their start. A part may use parts before it, and stops after all parts behind it."""

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


class ControlPlane:
    """A control plane: `await start()`, then `await stop()`. The constructor opens and starts nothing.

    The keyword arguments other than `parts` are the fields of `Embedding`. `parts` are the parts of the control plane:
    a caller may leave some out or replace them by subclasses.
    """

    def __init__(
        self,
        options: Options,
        *,
        nearby: Nearby | None = None,
        kubelets: Nearby | None = None,
        observe: Observe | None = None,
        faults: FaultSet | None = None,
        worker: Worker | None = None,
        owns_process: bool = False,
        parts: Sequence[type[Part]] = PARTS,
    ) -> None:
        nesting.raise_recursion_limit()
        self.options = options
        self.embedding = Embedding(nearby, kubelets, observe, faults, worker, owns_process)
        self._threads = WorkerThreads()
        self._issued = IssuedTokens(options.audiences)
        itself = ThisServer(self._own_server, cache(partial(self.token_of, LOOPBACK)))
        self._part_arguments = (options, self.embedding, self._threads, self._issued, itself)
        self._kinds = tuple(parts)
        self._parts = Parts(*self._part_arguments)
        self._running = AsyncExitStack()

    def part(self, kind: type[T]) -> T:
        """Return a part of the control plane. Raises LookupError if it has no such part or is not running."""
        return self._parts[kind]

    @property
    def server(self) -> Server | None:
        """The generic API server; None while it is not running."""
        part = self._parts.find(GenericServer)
        return None if part is None else part.server

    @property
    def storage(self) -> Storage | None:
        """The storage; None while it is not open."""
        part = self._parts.find(OpenStorage)
        return None if part is None else part.storage

    def token_of(self, user: UserInfo) -> str:
        """Return a bearer token for a component of this process that sends requests as `user`; valid until the process
        ends.
        """
        return self._issued.issue(user)

    @property
    def sign_token(self) -> Callable[[dict[str, Any]], str] | None:
        """A function that signs claims as a service account token; None if another process has the keys."""
        keys = self.part(SigningKeys).keys
        return keys.sign_at_once if isinstance(keys, OwnTokenKeys) else None

    def store(self, group: str, plural: str) -> Store[Any]:
        """Return the store of a resource. Raises KeyError if it is not served or not stored."""
        return self.part(ObjectStores).stores.store(group, plural)

    def objects(self, group: str, plural: str) -> StoreObjects:
        """Return typed access to a resource's objects. Raises KeyError."""
        return self.part(ObjectStores).stores.objects(group, plural)

    async def offload(self, work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Return the result of `work`, run in the worker threads of this server."""
        return await self.account().offload_if(True, work, *args, **kwargs)

    def account(self, user: str = SERVER) -> Account:
        """Return the account for the work of a component of this process, such as a controller."""
        return Account(self._threads, user)

    def serve(self, resource: Resource[Any, Services]) -> None:
        """Serve a resource. See `LiveResources.serve`."""
        self.part(LiveResources).serve(resource)

    async def serve_custom(
        self, resource: Resource[Any, Services], serves: Serves, *, on: Implement | None = None
    ) -> None:
        """Serve a custom resource. See `LiveResources.serve_custom`."""
        await self.part(LiveResources).serve_custom(resource, serves, on=on)

    async def withdraw(self, group: str, plural: str) -> None:
        """Stop serving a resource. See `LiveResources.withdraw`."""
        await self.part(LiveResources).withdraw(group, plural)

    def reserve_names(self, group: str, names: CustomResourceDefinitionNames) -> None:
        """Reserve the names of a custom resource that is served without a definition: no definition can take them."""
        self.part(CustomResources).definitions.reserve(group, names)

    async def definitions_settled(self) -> None:
        """Wait until every stored definition of a custom resource has been processed."""
        await self.part(CustomResources).definitions.wait_until_synced()

    def snapshot(self) -> Snapshot:
        """Return a snapshot of everything stored. Raises TypeError for storage that is not in memory."""
        return self._memory().snapshot()

    async def restore(self, snapshot: Snapshot) -> None:
        """Restore a snapshot of this control plane; clients see the changes as writes. Raises TypeError."""
        with bound(self.account()):
            self._memory().restore(snapshot)
            await self.part(MaintainedObjects).upkeep.repair_ports()
            await self.definitions_settled()

    async def stop_listening(self) -> None:
        """Close all connections at once and accept no more; requests in this process go on."""
        await self.part(GenericServer).server.abort()

    async def listen_anew(self) -> Address:
        """Listen again after `stop_listening`, on a new port if the option is 0, and return the address. Raises
        OptionsError.
        """
        await listen(self.part(GenericServer).server, self.options)
        await self.part(MaintainedObjects).upkeep.follow_address()
        return self._announced()

    def _memory(self) -> MemoryStorage:
        from steersman.storage.memory import MemoryStorage

        if not isinstance(self.storage, MemoryStorage):
            raise TypeError("only storage in memory has snapshots")
        return self.storage

    async def start(self) -> Address:
        """Open the storage, serve, and create the objects of every cluster; return the address.

        Raises OptionsError, OSError and the storage's errors; everything is stopped in that case.
        """
        parts = self._parts = Parts(*self._part_arguments)
        try:
            with bound(self.account()):
                async with AsyncExitStack() as ending:
                    await parts.start(self._kinds, ending)
                    address = self._announced()
                    self._running = ending.pop_all()
        except BaseException as error:
            self._parts = Parts(*self._part_arguments)
            found = unreadable(self.options, _stores(parts))
            if found and is_storage_unavailable(error):
                raise StorageUnavailable("; ".join(found)) from None
            raise
        for each in unreadable(self.options, _stores(parts)):
            logger.error("%s", each)
        return address

    async def stop(self) -> None:
        """Shut down gracefully; every acknowledged write is on disk."""
        worker, server = self.embedding.worker, self.server
        if worker is not None and worker.is_replaced and server is not None:
            server.hooks.forget_pre_shutdown()
        if server is not None and await self._has_successors(server):
            server.parting = PARTING
        with bound(self.account()):
            await self._running.aclose()
        self._parts = Parts(*self._part_arguments)

    async def _has_successors(self, server: Server) -> bool:
        """Return True if other servers continue and no flag sets the duration of the shutdown."""
        versions = self._parts.find(StoredVersions)
        if versions is None or versions.agreement is None or self.options.shutdown_delay_duration:
            return False
        return server.http is not None and await versions.agreement.has_others()

    def _announced(self) -> Address:
        """Return the server's address, and write it to the administrator's kubeconfig."""
        files, port = self.part(Certificates).files, self.part(GenericServer).server.external_address.port
        url = f"https://{reachable_address(self.options.bind_address)}:{port}"
        kubeconfig = self.options.data_dir / "admin.kubeconfig"
        name = LOOPBACK_NAME if self.options.tls_cert_file else ""
        write_whole(kubeconfig, admin_kubeconfig(url, files, name))
        return Address(url, kubeconfig, files.ca, files.ca_key)

    def _own_server(self) -> OwnServer:
        """Return the sender of this server's requests to itself; the server must be running."""
        return OwnServer(self.part(GenericServer).server.handler)


def _stores(parts: Parts) -> Stores | tuple[()]:
    part = parts.find(ObjectStores)
    return () if part is None else part.stores
