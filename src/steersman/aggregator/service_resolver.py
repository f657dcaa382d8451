"""The addresses of the Services of aggregated servers, derived from stored objects and cached until these change.

Follows k8s.io/apiserver `pkg/util/proxy` (ResolveEndpoint, ResolveCluster). kube-apiserver uses endpoints only with
`--enable-aggregator-routing`. Without the flag this server prefers a ready endpoint over the cluster IP, as endpoints
are reachable where nothing forwards traffic for cluster IPs.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from steersman.aggregator.remote_service import ServiceKey
from steersman.api.core.v1 import Service
from steersman.api.discovery.v1 import EndpointSlice
from steersman.machinery.errors.field import quote
from steersman.rest.objects import Objects, Reading
from steersman.storage.cache.entry import Entry
from steersman.store.follower import Follower
from steersman.store.store import Store

_LABEL: Final = "kubernetes.io/service-name"
_WITH_ADDRESS: Final = frozenset({"ClusterIP", "LoadBalancer", "NodePort"})

HostPort = tuple[str, int]
"""Host and port."""
ServiceName = tuple[str, str]
"""Namespace and name."""


class NoRoute(Exception):
    """Raised when a Service has no address; the text is upstream's."""


@dataclass(frozen=True, slots=True)
class ServiceFacts:
    """The facts of a Service about its addresses; `ports` are (number, name)."""

    type: str
    cluster_ip: str
    external_name: str
    family: str
    ports: tuple[tuple[int, str], ...]

    def port_name(self, number: int) -> str | None:
        """Return the name of a port, None if there is no port of this number."""
        return next((name for port, name in self.ports if port == number), None)


@dataclass(frozen=True, slots=True)
class SliceFacts:
    """The facts of an EndpointSlice; `ports` has complete ports only, `ready` the addresses of ready endpoints."""

    service: str
    family: str
    ports: tuple[tuple[str, int], ...]
    ready: tuple[str, ...]


class ServiceResolver:
    """Resolves Services; it follows Services and EndpointSlices from the first `watch` on."""

    def __init__(
        self,
        store: Callable[[str, str], Store[Any]],
        objects: Callable[[str, str], Objects],
        *,
        endpoints_only: bool,
        itself: Callable[[], HostPort],
    ) -> None:
        """Create the resolver; `itself` returns the address of this server, which default/kubernetes resolves to."""
        self._store = store
        self._objects = objects
        self._endpoints_only = endpoints_only
        self._itself = itself
        self._watched: dict[ServiceName, int] = {}
        self._services_by_slice: dict[tuple[str, str], str] = {}
        """The watched service of each EndpointSlice, by namespace and name of the slice."""
        self._slices: dict[ServiceName, tuple[SliceFacts, ...]] = {}
        self._addresses: dict[ServiceKey, tuple[HostPort, ...]] = {}
        self._is_following = False
        self._changes = 0
        """The number of changes of watched services, for detecting results that became outdated during a lookup."""
        self.changed: Callable[[ServiceName], None] = lambda _: None
        """Called with a watched service when it or its endpoints change."""

    def watch(self, service: ServiceName) -> None:
        """Watch a service until `unwatch` has been called as often."""
        self._watched[service] = self._watched.get(service, 0) + 1
        if not self._is_following:
            self._is_following = True
            Follower(self._store("", "services"), self._service_changed).begin()
            Follower(self._store("discovery.k8s.io", "endpointslices"), self._slice_changed).begin()

    def unwatch(self, service: ServiceName) -> None:
        """End one watch of a service."""
        self._watched[service] -= 1
        if not self._watched[service]:
            del self._watched[service]
            self._clear(service)
            self._services_by_slice = {
                key: name for key, name in self._services_by_slice.items() if (key[0], name) != service
            }

    def service(self, service: ServiceName) -> ServiceFacts | None:
        """Return the facts of a service, None if it does not exist."""
        return self._objects("", "services").read_cached(*service, _SERVICE)

    async def slices(self, service: ServiceName) -> tuple[SliceFacts, ...]:
        """Return the endpoint slices of a service."""
        known = self._slices.get(service)
        if known is None:
            changes = self._changes
            objects = await self._objects("discovery.k8s.io", "endpointslices").read_all(service[0], _SLICE)
            known = tuple(each for each in objects if each.service == service[1])
            if service in self._watched and changes == self._changes:
                self._slices[service] = known
        return known

    async def resolve(self, key: ServiceKey) -> HostPort:
        """Return an address for a request, one of several at random. Raises NoRoute."""
        addresses = self._addresses.get(key)
        if addresses is None:
            changes = self._changes
            addresses = await self._resolve(key)
            if (key.namespace, key.name) in self._watched and changes == self._changes:
                self._addresses[key] = addresses
        return addresses[0] if len(addresses) == 1 else random.choice(addresses)

    async def _resolve(self, key: ServiceKey) -> tuple[HostPort, ...]:
        if (key.namespace, key.name, key.port) == ("default", "kubernetes", 443):
            return (self._itself(),)
        name = (key.namespace, key.name)
        service = self.service(name)
        if service is None:
            raise NoRoute(f"service {quote(key.name)} not found")
        if service.type == "ExternalName" and not self._endpoints_only:
            return ((service.external_name, key.port),)
        if service.type not in _WITH_ADDRESS:
            raise NoRoute(f"unsupported service type {quote(service.type)}")
        port_name = service.port_name(key.port)
        if port_name is None:
            raise NoRoute(f"no service port {key.port} found for service {quote(key.name)}")
        addresses = _endpoints(await self.slices(name), service.family, port_name)
        if addresses:
            return addresses
        if self._endpoints_only:
            raise NoRoute(f"no endpoints available for service {quote(key.name)}")
        if service.cluster_ip == "None":
            raise NoRoute('cannot route to service with ClusterIP "None"')
        return ((service.cluster_ip, key.port),)

    # Changes

    def _service_changed(self, namespace: str, name: str, _: Entry | None) -> None:
        self._notify((namespace, name))

    def _slice_changed(self, namespace: str, name: str, entry: Entry | None) -> None:
        key = (namespace, name)
        before = self._services_by_slice.pop(key, "")
        now = "" if entry is None else self._label(entry)
        if now and (namespace, now) in self._watched:
            self._services_by_slice[key] = now
        for service in {before, now} - {""}:
            self._notify((namespace, service))

    def _label(self, entry: Entry) -> str:
        read = self._store("discovery.k8s.io", "endpointslices").kind.partial_decoder(_LABELS.paths)
        return _LABELS.make(read(entry.body))

    def _notify(self, service: ServiceName) -> None:
        if service in self._watched:
            self._changes += 1
            self._clear(service)
            self.changed(service)

    def _clear(self, service: ServiceName) -> None:
        self._slices.pop(service, None)
        for key in [each for each in self._addresses if (each.namespace, each.name) == service]:
            del self._addresses[key]


def _endpoints(slices: Sequence[SliceFacts], family: str, port_name: str) -> tuple[HostPort, ...]:
    """Return the ready endpoints with the port, of the service's first address family if it has any."""
    endpoints: dict[bool, list[HostPort]] = {True: [], False: []}
    for each in slices:
        number = next((port for name, port in each.ports if name == port_name), None)
        if number is not None:
            endpoints[each.family == family] += [(address, number) for address in each.ready]
    return tuple(endpoints[True] or endpoints[False])


def _service_facts(service: Service) -> ServiceFacts:
    spec = service.spec
    return ServiceFacts(
        spec.type,
        spec.cluster_ip,
        spec.external_name,
        spec.ip_families[0] if spec.ip_families else "",
        tuple((each.port, each.name) for each in spec.ports),
    )


def _slice_facts(found: EndpointSlice) -> SliceFacts:
    ports = tuple(
        (each.name, each.port) for each in found.ports or () if each.name is not None and each.port is not None
    )
    ready = tuple(
        each.addresses[0] for each in found.endpoints or () if each.conditions.ready is not False and each.addresses
    )
    return SliceFacts(_service_of(found), found.address_type, ports, ready)


def _service_of(found: EndpointSlice) -> str:
    return found.metadata.labels.get(_LABEL, "")


_SERVICE: Final = Reading(
    _service_facts, "spec.type", "spec.clusterIP", "spec.externalName", "spec.ipFamilies", "spec.ports"
)
_SLICE: Final = Reading(_slice_facts, "metadata.labels", "addressType", "ports", "endpoints")
_LABELS: Final = Reading(_service_of, "metadata.labels")
