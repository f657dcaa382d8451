"""The servers behind APIServices, with their availability, discovery and OpenAPI.

This module is loaded with the first APIService that needs it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from steersman.aggregator.availability import Availability
from steersman.aggregator.backend import Backend, SharedSettings
from steersman.aggregator.client_identity import ClientIdentity
from steersman.aggregator.config import AggregatorConfig
from steersman.aggregator.metrics import AvailabilityMetrics
from steersman.aggregator.remote_discovery import RemoteDiscovery
from steersman.aggregator.remote_openapi import RemoteOpenAPI
from steersman.aggregator.remote_service import Registration
from steersman.aggregator.service_resolver import ServiceResolver
from steersman.net.client.transport import Nearby
from steersman.openapi.remote import RemoteDocuments
from steersman.rest.objects import Objects
from steersman.server.server import Server
from steersman.store.store import Store


class Servers:
    """All remote servers; the `start_...` methods are called by the hooks."""

    def __init__(
        self,
        server: Server,
        store: Callable[[str, str], Store[Any]],
        objects: Callable[[str, str], Objects],
        metrics: AvailabilityMetrics,
        documents: RemoteDocuments,
        config: AggregatorConfig,
        nearby: Nearby | None,
    ) -> None:
        self._server = server
        self._backends: dict[str, Backend] = {}
        resolver = ServiceResolver(store, objects, endpoints_only=config.enable_aggregator_routing, itself=self._itself)
        identity = ClientIdentity(config.proxy_client_cert_file, config.proxy_client_key_file)
        self._shared = SharedSettings(
            resolver,
            identity,
            server.config.metrics,
            server.watches,
            config.aggregator_reject_forwarding_redirect,
            nearby,
            config.leave,
            config.faults,
        )
        services = objects("apiregistration.k8s.io", "apiservices")
        self._availability = Availability(services, self._backends.get, resolver, metrics)
        self._discovery = RemoteDiscovery(server.catalogue, self._backends.get)
        self._openapi = RemoteOpenAPI(documents, self._backends.get)
        resolver.changed = self._availability.service_changed

    def start_availability(self) -> None:
        """Start checking the availability of the servers."""
        self._availability.start()

    def start_discovery(self) -> None:
        """Start fetching the discovery of the servers."""
        self._discovery.start()

    def start_openapi(self) -> None:
        """Start fetching the OpenAPI documents of the servers."""
        self._openapi.start()

    async def stop(self) -> None:
        """Stop, and return once no request runs any more."""
        await self._availability.stop()
        await self._discovery.stop()
        await self._openapi.stop()
        for each in self._backends.values():
            each.close()
        self._backends.clear()

    def changed(self, name: str, registration: Registration | None) -> None:
        """Handle a changed or deleted (None) APIService."""
        remote = registration if registration is not None and registration.service is not None else None
        backend = self._backends.get(name)
        if remote is None:
            if backend is not None:
                del self._backends[name]
                del self._server.delegated[backend.registration.root]
                backend.close()
        elif backend is not None:
            backend.update(remote)
        else:
            self._backends[name] = backend = Backend(remote, self._shared)
            self._server.delegated[remote.root] = backend.answer
        self._availability.changed(name, registration)
        self._discovery.changed(name, remote)
        self._openapi.changed(name, remote)

    def _itself(self) -> tuple[str, int]:
        address = self._server.external_address
        return address.host, address.port
