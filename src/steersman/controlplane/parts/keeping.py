"""Parts that maintain the objects of every cluster, and parts that follow changes once the server listens."""

from __future__ import annotations

import socket
from contextlib import AsyncExitStack

from steersman.controlplane.authentication_info import authentication_info
from steersman.controlplane.bootstrap import Bootstrap
from steersman.controlplane.identity_lease import server_id
from steersman.controlplane.kubernetes_service.leases import RESOURCE as SERVER_LEASES
from steersman.controlplane.kubernetes_service.service import KubernetesService, reconciler_of
from steersman.controlplane.options import Options
from steersman.controlplane.parts.admitting import PriorityAndFairness
from steersman.controlplane.parts.basis import Embedding, ValidatedFlags
from steersman.controlplane.parts.identity import Authorization, Certificates
from steersman.controlplane.parts.live import Aggregation
from steersman.controlplane.parts.resources import ResourceServices
from steersman.controlplane.parts.serving import GenericServer, Listening, OpenAPI
from steersman.controlplane.parts.storing import ObjectStores, OpenStorage, StoredVersions
from steersman.controlplane.upkeep import Upkeep
from steersman.work.parts import Part, offered


class InitialObjects(Part):
    """The objects of every cluster, created by hooks: namespaces, roles, the Service `kubernetes`."""

    options: Options
    flags: ValidatedFlags
    certificates: Certificates
    objects: ObjectStores
    generic: GenericServer
    bootstrap: Bootstrap = offered()
    kubernetes: KubernetesService = offered()

    async def start(self, ending: AsyncExitStack) -> None:
        options, server, stores = self.options, self.generic.server, self.objects.stores
        service_range, files = self.flags.service_ranges[0], self.certificates.files
        self.bootstrap = Bootstrap(
            server,
            stores.objects,
            service_range=service_range,
            authentication_info=lambda: authentication_info(options, files),
        )
        endpoints = reconciler_of(options, stores.storage_of(SERVER_LEASES), stores.objects)
        self.kubernetes = KubernetesService(server, stores.objects, endpoints, service_range)
        self.bootstrap.install()
        self.kubernetes.install()


class MaintainedObjects(Part):
    """The controllers of kube-apiserver, which restore these objects when they are deleted."""

    options: Options
    embedding: Embedding
    opened: OpenStorage
    objects: ObjectStores
    resources: ResourceServices
    generic: GenericServer
    openapi: OpenAPI
    initial: InitialObjects
    upkeep: Upkeep = offered()

    async def start(self, ending: AsyncExitStack) -> None:
        worker, storage = self.embedding.worker, self.opened.storage
        self.upkeep = Upkeep(
            self.generic.server,
            self.objects.stores,
            self.resources.services,
            self.initial.bootstrap,
            self.initial.kubernetes,
            lambda: self.openapi.paths.remote,
            self.options.controllers,
            keeps_lease=worker is None or worker.is_first,
            shared=storage if storage.has_other_servers else None,
        )
        ending.push_async_callback(self.upkeep.stop)
        self.upkeep.install()


class Registration(Part):
    """The APIServices of built-in groups. Their hook and health check come after the aggregator's; the aggregator's
    OpenAPI comes after them.
    """

    initial: InitialObjects
    aggregation: Aggregation | None

    async def start(self, ending: AsyncExitStack) -> None:
        self.initial.bootstrap.install_registration()
        if self.aggregation is not None:
            self.aggregation.aggregator.install_openapi()


class Hooks(Part):
    """The post-start hooks, run concurrently so that their writes share commits."""

    generic: GenericServer
    listening: Listening | None

    async def start(self, ending: AsyncExitStack) -> None:
        await self.generic.server.run_post_start_hooks()


class Followers(Part):
    """Followers of changes while the server runs: priority levels, required objects, stored versions, the authorizers'
    file.
    """

    hooks: Hooks
    authorization: Authorization
    priority: PriorityAndFairness | None
    kept: MaintainedObjects | None
    versions: StoredVersions | None

    async def start(self, ending: AsyncExitStack) -> None:
        if self.priority is not None and self.priority.control is not None:
            await self.priority.control.begin()
        if self.kept is not None:
            self.kept.upkeep.follow()
        if self.versions is not None and self.versions.agreement is not None:
            self.versions.agreement.begin()
        self.authorization.chain.follow(server_id(socket.gethostname()))
