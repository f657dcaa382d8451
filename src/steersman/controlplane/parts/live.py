"""Parts for resources that come and go while a server runs: of definitions, of classes, of other servers."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Any

from steersman.aggregator.aggregator import Aggregator
from steersman.aggregator.config import AggregatorConfig
from steersman.apiextensions.api_services import CustomAPIServices
from steersman.apiextensions.conversion_metrics import ConversionMetrics
from steersman.apiextensions.definitions import Definitions, Serves
from steersman.controlplane.objects import StoreObjects
from steersman.controlplane.options import Options
from steersman.controlplane.parts.basis import Common, Embedding, OutgoingRoutes
from steersman.controlplane.parts.resources import ResourceServices
from steersman.controlplane.parts.serving import GenericServer, OpenAPI
from steersman.controlplane.parts.storing import ObjectStores
from steersman.registry.services import Services
from steersman.rest.bound import BoundResource, bind
from steersman.rest.capabilities import ResourceStorage
from steersman.rest.resource import Resource
from steersman.work.parts import Part, offered

Implement = Callable[[BoundResource[Any], Services], ResourceStorage]
"""Function that creates the implementation of a resource in place of a store."""


class LiveResources(Part):
    """Adding and removing of served resources at run time."""

    objects: ObjectStores
    resources: ResourceServices
    generic: GenericServer

    async def start(self, ending: AsyncExitStack) -> None:
        """Do nothing: resources are added later."""

    def serve(self, resource: Resource[Any, Services]) -> None:
        """Serve one more resource, stored like the others; its cache is filled on first use.

        Raises ValueError if its name in a group version or its prefix of keys is taken.
        """
        catalogue, stores = self.generic.server.catalogue, self.objects.stores
        if catalogue.entry(resource.group, resource.plural) is not None:
            raise ValueError(f"{resource.group_resource} is served already")
        bound = bind(resource, self.resources.services)
        storage = stores.add(bound)
        try:
            catalogue.put(bound, storage)
        except ValueError:
            stores.remove(resource.group, resource.plural)
            raise

    async def serve_custom(
        self, resource: Resource[Any, Services], serves: Serves, *, announced: bool = True, on: Implement | None = None
    ) -> None:
        """Serve a custom resource in the versions for which `serves` is True, replacing the resource of the same name.

        The next request uses the new resource, and watches of the old one end. Discovery shows a resource that is not
        `announced` only after `announce`. If `on` is given, it creates the implementation in place of a store. Raises
        ValueError if the name or the prefix of keys belongs to a built-in resource.
        """
        catalogue, stores, services = self.generic.server.catalogue, self.objects.stores, self.resources.services
        bound = bind(resource, services)
        if on is not None:
            catalogue.put(bound, on(bound, services), serves=serves, announced=announced)
            return
        store, before = stores.replace(bound)
        try:
            catalogue.put(bound, store, serves=serves, announced=announced)
        except ValueError:
            if before is None:
                stores.remove(resource.group, resource.plural)
            raise
        if before is not None:
            await before.stop()

    def announce(self, group: str, plural: str) -> None:
        """Show a served resource in discovery. Raises KeyError if it is not served."""
        self.generic.server.catalogue.announce(group, plural)

    def notify_changed(self, group: str) -> None:
        """Refresh the discovery documents of a group."""
        self.generic.server.catalogue.notify_changed(group)

    async def withdraw(self, group: str, plural: str) -> None:
        """Stop serving a resource, and end its watches; its stored objects stay. Raises KeyError if it is not
        served.
        """
        self.generic.server.catalogue.remove(group, plural)
        store = self.objects.stores.remove(group, plural)
        if store is not None:
            await store.stop()

    async def filled_objects(self, group: str, plural: str) -> StoreObjects:
        """Return typed access to a resource's objects, with a filled cache. Raises KeyError and StatusError."""
        stores = self.objects.stores
        await stores.store(group, plural).warm()
        return stores.objects(group, plural)


class CustomResources(Part):
    """The custom resources of stored definitions; `DefinedResources` starts serving them."""

    common: Common
    objects: ObjectStores
    resources: ResourceServices
    live: LiveResources
    generic: GenericServer
    definitions: Definitions = offered()

    async def start(self, ending: AsyncExitStack) -> None:
        stores, server = self.objects.stores, self.generic.server
        announcing = CustomAPIServices(stores.objects("apiregistration.k8s.io", "apiservices"))
        key = ("apiextensions.k8s.io", "customresourcedefinitions")
        metrics = ConversionMetrics(self.common.registry)
        definitions = self.definitions = Definitions(
            stores.store(*key), stores.objects(*key), self.live, announcing, self.resources.services, metrics
        )
        server.behind = definitions.wait_for
        ending.push_async_callback(announcing.stop)
        ending.push_async_callback(definitions.stop)
        announcing.start()
        definitions.install(server.add_post_start_hook)


class Aggregation(Part):
    """Group versions that other servers answer; `DefinedResources` starts their proxying."""

    options: Options
    embedding: Embedding
    common: Common
    ways: OutgoingRoutes
    objects: ObjectStores
    generic: GenericServer
    openapi: OpenAPI
    aggregator: Aggregator = offered()

    async def start(self, ending: AsyncExitStack) -> None:
        options, stores = self.options, self.objects.stores
        self.aggregator = Aggregator(
            self.generic.server,
            stores.store,
            stores.objects,
            self.common.registry,
            lambda: self.openapi.paths.remote,
            AggregatorConfig(
                proxy_client_cert_file=options.proxy_client_cert_file,
                proxy_client_key_file=options.proxy_client_key_file,
                enable_aggregator_routing=options.enable_aggregator_routing,
                aggregator_reject_forwarding_redirect=options.aggregator_reject_forwarding_redirect,
                leave=self.ways.egress.cluster,
                faults=self.embedding.faults,
            ),
            nearby=self.embedding.nearby,
        )
        ending.push_async_callback(self.aggregator.stop)
        self.aggregator.install()


class DefinedResources(Part):
    """The stored definitions and APIServices, served before the server listens: clients must not find one missing."""

    custom: CustomResources
    aggregation: Aggregation | None

    async def start(self, ending: AsyncExitStack) -> None:
        await self.custom.definitions.start()
        if self.aggregation is not None:
            self.aggregation.aggregator.follow()
