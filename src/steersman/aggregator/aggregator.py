"""Follows the APIServices: what each names is listed, and where it names a Service, passed on to that.

Follows kube-aggregator's `apiserver` (APIAggregator, APIServiceRegistrationController). Most servers have nothing
behind them: what they would need then (`servers`) is loaded with the first APIService that asks for it.
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
    """`follow` begins, `stop` ends; what other servers are asked begins with the hooks of this one."""

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
        """`nearby` says how servers are reached whose addresses are not on the network."""
        self._server = server
        self._store = store
        self._services = store(*_API_SERVICES)
        self._objects = objects
        self._metrics = AvailabilityMetrics(registry)
        self._documents = documents
        self._config = config
        self._nearby = nearby
        self._known: dict[str, Registration] = {}
        self._servers: Servers | None = None
        self._begun: set[str] = set()
        """The hooks that have been run."""

    def install(self) -> None:
        """Adds the hooks, under upstream's names; of two that one thing stands behind the first begins it."""
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
        Follower(self._services, self._changed).begin()

    async def stop(self) -> None:
        """Returns once nobody is asked anything any more."""
        if self._servers is not None:
            await self._servers.stop()

    async def _start_availability(self) -> None:
        self._begun.add("availability")
        if self._servers is not None:
            self._servers.start_availability()

    async def _start_discovery(self) -> None:
        self._begun.add("discovery")
        if self._servers is not None:
            self._servers.start_discovery()

    async def _start_openapi(self) -> None:
        self._begun.add("openapi")
        if self._servers is not None:
            self._servers.start_openapi()

    def _changed(self, _: str, name: str, entry: Entry | None) -> None:
        before = self._known.pop(name, None)
        registration = None if entry is None else self._read(entry)
        self._list(before, registration)
        if registration is None:
            self._metrics.available.pop(name, None)
        else:
            self._known[name] = registration
            self._metrics.available[name] = registration.is_available
        if self._servers is not None:
            self._servers.changed(name, registration)
        elif registration is not None and (registration.service is not None or registration.condition != LOCAL):
            self._load()

    def _load(self) -> None:
        """From now on other servers are asked."""
        from steersman.aggregator.servers import Servers

        self._servers = servers = Servers(
            self._server, self._store, self._objects, self._metrics, self._documents(), self._config, self._nearby
        )
        for name, registration in self._known.items():
            servers.changed(name, registration)
        for hook, start in (
            ("availability", servers.start_availability),
            ("discovery", servers.start_discovery),
            ("openapi", servers.start_openapi),
        ):
            if hook in self._begun:
                start()

    def _read(self, entry: Entry) -> Registration:
        return REGISTRATION.make(self._services.kind.partial_decoder(REGISTRATION.paths)(entry.body))

    def _list(self, before: Registration | None, now: Registration | None) -> None:
        """Lists the group version; one that is another server's no more is forgotten first, with what that told."""
        catalogue = self._server.catalogue
        if before is not None and (now is None or (before.service is not None and now.service is None)):
            catalogue.undeclare(before.group, before.version)
        if now is not None and (before is None or (before.service is not None and now.service is None)):
            catalogue.declare(now.group, now.version)


async def _done() -> None:
    """What there was to do is done already."""
