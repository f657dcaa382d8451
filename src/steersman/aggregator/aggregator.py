"""The aggregator: follows the APIServices, lists their group versions, and forwards requests to the Services they name.

Follows kube-aggregator's `apiserver` (APIAggregator, APIServiceRegistrationController). Most servers aggregate nothing,
so the parts for remote servers (`servers`) are loaded with the first APIService that needs them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from steersman.aggregator.config import AggregatorConfig
from steersman.aggregator.metrics import AvailabilityMetrics
from steersman.aggregator.remote_service import LOCAL, REGISTRATION, Registration
from steersman.machinery.metrics import Registry
from steersman.rest.objects import Objects
from steersman.server.server import Server
from steersman.storage.cache.entry import Entry
from steersman.store.follower import Follower
from steersman.store.store import Store

if TYPE_CHECKING:
    from steersman.aggregator.servers import Servers
    from steersman.net.client.transport import Nearby
    from steersman.openapi.remote import RemoteDocuments

_API_SERVICES: Final = ("apiregistration.k8s.io", "apiservices")


class Aggregator:
    """The aggregator; requests of its own to remote servers begin with the post-start hooks."""

    def __init__(
        self,
        server: Server,
        store: Callable[[str, str], Store[Any]],
        objects: Callable[[str, str], Objects],
        registry: Registry,
        documents: Callable[[], RemoteDocuments],
        config: AggregatorConfig,
        *,
        nearby: Nearby | None = None,
    ) -> None:
        """Create the aggregator; `nearby` resolves servers that are in this process and not on the network."""
        self._server = server
        self._store = store
        self._services = store(*_API_SERVICES)
        self._objects = objects
        self._metrics = AvailabilityMetrics(registry)
        self._documents = documents
        self._config = config
        self._nearby = nearby
        self._registrations: dict[str, Registration] = {}
        self._servers: Servers | None = None
        self._started: set[str] = set()
        """The hooks that have run."""

    def install(self) -> None:
        """Add the post-start hooks with upstream's names. Of two hooks for one part, the first starts the part."""
        add = self._server.add_post_start_hook
        if self._config.proxy_client_cert_file:
            add("aggregator-reload-proxy-client-cert", _already_started)
        add("start-kube-aggregator-informers", _already_started)
        add("apiservice-status-local-available-controller", self._start_availability)
        add("apiservice-status-remote-available-controller", _already_started)
        add("apiservice-registration-controller", _already_started)
        add("apiservice-discovery-controller", self._start_discovery)

    def install_openapi(self) -> None:
        """Add the OpenAPI hooks, which come after hooks of other parts."""
        add = self._server.add_post_start_hook
        add("apiservice-openapi-controller", self._start_openapi)
        add("apiservice-openapiv3-controller", _already_started)

    def follow(self) -> None:
        """Start following APIServices."""
        Follower(self._services, self._changed).begin()

    async def stop(self) -> None:
        """Stop, and return once no more requests are sent."""
        if self._servers is not None:
            await self._servers.stop()

    async def _start_availability(self) -> None:
        self._started.add("availability")
        if self._servers is not None:
            self._servers.start_availability()

    async def _start_discovery(self) -> None:
        self._started.add("discovery")
        if self._servers is not None:
            self._servers.start_discovery()

    async def _start_openapi(self) -> None:
        self._started.add("openapi")
        if self._servers is not None:
            self._servers.start_openapi()

    def _changed(self, _: str, name: str, entry: Entry | None) -> None:
        before = self._registrations.pop(name, None)
        registration = None if entry is None else self._read(entry)
        self._list(before, registration)
        if registration is None:
            self._metrics.available.pop(name, None)
        else:
            self._registrations[name] = registration
            self._metrics.available[name] = registration.is_available
        if self._servers is not None:
            self._servers.changed(name, registration)
        elif registration is not None and (registration.service is not None or registration.condition != LOCAL):
            self._load()

    def _load(self) -> None:
        """Load the parts for remote servers."""
        from steersman.aggregator.servers import Servers

        self._servers = servers = Servers(
            self._server, self._store, self._objects, self._metrics, self._documents(), self._config, self._nearby
        )
        for name, registration in self._registrations.items():
            servers.changed(name, registration)
        for hook, start in (
            ("availability", servers.start_availability),
            ("discovery", servers.start_discovery),
            ("openapi", servers.start_openapi),
        ):
            if hook in self._started:
                start()

    def _read(self, entry: Entry) -> Registration:
        return REGISTRATION.make(self._services.kind.partial_decoder(REGISTRATION.paths)(entry.body))

    def _list(self, before: Registration | None, now: Registration | None) -> None:
        """Declare or undeclare the group version of an APIService.

        A group version that changes from remote to local is undeclared first, which drops its remote discovery.
        """
        catalogue = self._server.catalogue
        if before is not None and (now is None or (before.service is not None and now.service is None)):
            catalogue.undeclare(before.group, before.version)
        if now is not None and (before is None or (before.service is not None and now.service is None)):
            catalogue.declare(now.group, now.version)


async def _already_started() -> None:
    """Do nothing: a hook whose part has been started already."""
