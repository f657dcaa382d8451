"""Follows the APIServices: what each names is listed, and where it names a Service, passed on to that.

Follows kube-aggregator's `apiserver` (APIAggregator, APIServiceRegistrationController).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from steersman.aggregator.availability import Availability
from steersman.aggregator.backend import Backend, Passing
from steersman.aggregator.client_identity import ClientIdentity
from steersman.aggregator.remote_discovery import RemoteDiscovery
from steersman.aggregator.remote_openapi import RemoteOpenAPI
from steersman.aggregator.remote_service import REGISTRATION, Registration
from steersman.aggregator.service_resolver import ServiceName, ServiceResolver
from steersman.machinery.metrics import Registry
from steersman.openapi.remote import RemoteDocuments
from steersman.rest.objects import Objects
from steersman.server.server import Server
from steersman.storage.cache.entry import Entry
from steersman.store.follower import Follower
from steersman.store.store import Store

API_REGISTRATION = ("apiregistration.k8s.io", "apiservices")


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregatorConfig:
    """The flags about aggregation, by their names."""

    proxy_client_cert_file: str = ""
    proxy_client_key_file: str = ""
    enable_aggregator_routing: bool = False
    aggregator_reject_forwarding_redirect: bool = True


class Aggregator:
    """`follow` begins, `stop` ends; what others are asked begins with the hooks of the server."""

    def __init__(
        self, server: Server, store: Callable[[str, str], Store[Any]], objects: Callable[[str, str], Objects],
        registry: Registry, documents: RemoteDocuments, config: AggregatorConfig,
    ) -> None:  # fmt: skip
        self._server = server
        self._store = store(*API_REGISTRATION)
        self._config = config
        self._backends: dict[str, Backend] = {}
        self._names: dict[str, tuple[str, str]] = {}
        """Group and version of every APIService."""
        resolver = ServiceResolver(
            store, objects, endpoints_only=config.enable_aggregator_routing, itself=self._itself
        )  # fmt: skip
        lane = server.config.slow_lane
        identity = ClientIdentity(config.proxy_client_cert_file, config.proxy_client_key_file)
        self._passing = Passing(
            resolver, identity, lane, server.config.metrics, server.watches,
            config.aggregator_reject_forwarding_redirect,
        )  # fmt: skip
        self._availability = Availability(objects(*API_REGISTRATION), self._backends.get, resolver, registry)
        self._discovery = RemoteDiscovery(server.catalogue, self._backends.get, lane)
        self._openapi = RemoteOpenAPI(documents, self._backends.get, lane)
        resolver.changed = self._service_changed

    def install(self) -> None:
        """Adds the hooks, under upstream's names; those that only begin something are done at once."""
        add = self._server.add_post_start_hook
        if self._config.proxy_client_cert_file:
            add("aggregator-reload-proxy-client-cert", _done)
        add("start-kube-aggregator-informers", _done)
        add("apiservice-status-local-available-controller", self._start_availability)
        add("apiservice-status-remote-available-controller", _done)
        add("apiservice-registration-controller", _done)
        add("apiservice-discovery-controller", self._start_discovery)

    def install_openapi(self) -> None:
        """Adds the hooks that come after those of others."""
        add = self._server.add_post_start_hook
        add("apiservice-openapi-controller", self._start_openapi)
        add("apiservice-openapiv3-controller", _done)

    def follow(self) -> None:
        """Takes what APIServices say from now on."""
        Follower(self._store, self._changed).begin()

    async def stop(self) -> None:
        """Returns once nobody is asked anything any more."""
        await self._availability.stop()
        await self._discovery.stop()
        await self._openapi.stop()
        for each in self._backends.values():
            each.close()
        self._backends.clear()

    async def _start_availability(self) -> None:
        self._availability.start()

    async def _start_discovery(self) -> None:
        self._discovery.start()

    async def _start_openapi(self) -> None:
        self._openapi.start()

    def _itself(self) -> tuple[str, int]:
        address = self._server.external_address
        return address.host, address.port

    def _service_changed(self, service: ServiceName) -> None:
        self._availability.service_changed(service)

    def _changed(self, _: str, name: str, entry: Entry | None) -> None:
        registration = None if entry is None else self._read(entry)
        if registration is None:
            self._remove(name)
        else:
            self._put(registration)
        remote = registration if registration is not None and registration.service is not None else None
        self._availability.changed(name, registration)
        self._discovery.changed(name, remote)
        self._openapi.changed(name, remote)

    def _read(self, entry: Entry) -> Registration:
        return REGISTRATION.make(self._store.kind.part(REGISTRATION.paths)(entry.body))

    def _put(self, registration: Registration) -> None:
        name = registration.name
        backend = self._backends.get(name)
        catalogue = self._server.catalogue
        if registration.service is None:
            if backend is not None:
                self._end(name, backend)
                catalogue.undeclare(registration.group, registration.version)
            catalogue.declare(registration.group, registration.version)
        elif backend is not None:
            backend.update(registration)
        else:
            self._backends[name] = backend = Backend(registration, self._passing)
            self._server.delegated[registration.root] = backend.answer
            catalogue.declare(registration.group, registration.version)
        self._names[name] = (registration.group, registration.version)

    def _remove(self, name: str) -> None:
        backend = self._backends.get(name)
        if backend is not None:
            self._end(name, backend)
        key = self._names.pop(name, None)
        if key is not None:
            self._server.catalogue.undeclare(*key)

    def _end(self, name: str, backend: Backend) -> None:
        del self._backends[name]
        del self._server.delegated[backend.registration.root]
        backend.close()


async def _done() -> None:
    """What there was to do is done already."""
