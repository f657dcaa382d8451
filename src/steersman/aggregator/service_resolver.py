"""Where the Services of aggregated servers are: known from the objects that are stored, until these change.

Follows k8s.io/apiserver `pkg/util/proxy` (ResolveEndpoint, ResolveCluster). kube-apiserver does either, by
`--enable-aggregator-routing`. Without the flag an endpoint is taken here if one is ready, else the cluster's address:
where nothing passes on what is sent to cluster addresses, endpoints can be reached all the same.
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

Place = tuple[str, int]
"""Host and port."""
ServiceName = tuple[str, str]
"""Namespace and name."""


class NoRoute(Exception):
    """A Service leads nowhere; the text is upstream's."""


@dataclass(frozen=True, slots=True)
class ServiceFacts:
    """A Service, as far as it says where requests go; `ports` are names by number."""

    type: str
    cluster_ip: str
    external_name: str
    family: str
    ports: tuple[tuple[int, str], ...]

    def port_name(self, number: int) -> str | None:
        """What a port is called, None if there is none of this number."""
        return next((name for port, name in self.ports if port == number), None)


@dataclass(frozen=True, slots=True)
class SliceFacts:
    """An EndpointSlice; `ports` without those that lack a name or a number, `ready` the ready endpoints' addresses."""

    service: str
    family: str
    ports: tuple[tuple[str, int], ...]
    ready: tuple[str, ...]


class ServiceResolver:
    """Follows Services and EndpointSlices, once somebody wants to know of one."""

    def __init__(
        self,
        store: Callable[[str, str], Store[Any]],
        objects: Callable[[str, str], Objects],
        *,
        endpoints_only: bool,
        itself: Callable[[], Place],
    ) -> None:
        """`itself` is where this server is: default/kubernetes is reached without any detour."""
        self._store = store
        self._objects = objects
        self._endpoints_only = endpoints_only
        self._itself = itself
        self._wanted: dict[ServiceName, int] = {}
        self._of_slices: dict[tuple[str, str], str] = {}
        """The services of the slices that were seen, by namespace and name of the slice: those that are wanted."""
        self._slices: dict[ServiceName, tuple[SliceFacts, ...]] = {}
        self._places: dict[ServiceKey, tuple[Place, ...]] = {}
        self._has_begun = False
        self._changes = 0
        """How often something of a wanted service has changed: what was read before is not kept."""
        self.changed: Callable[[ServiceName], None] = lambda _: None
        """Is told when something of a wanted service has changed."""

    def want(self, service: ServiceName) -> None:
        """Follows this service from now on, until as many have said `forget`."""
        self._wanted[service] = self._wanted.get(service, 0) + 1
        if not self._has_begun:
            self._has_begun = True
            Follower(self._store("", "services"), self._service_changed).begin()
            Follower(self._store("discovery.k8s.io", "endpointslices"), self._slice_changed).begin()

    def forget(self, service: ServiceName) -> None:
        """Somebody does not want to know of this service any more."""
        self._wanted[service] -= 1
        if not self._wanted[service]:
            del self._wanted[service]
            self._clear(service)
            self._of_slices = {key: name for key, name in self._of_slices.items() if (key[0], name) != service}

    def service(self, service: ServiceName) -> ServiceFacts | None:
        """The service, None if it is not there."""
        return self._objects("", "services").read_cached(*service, _SERVICE)

    async def slices(self, service: ServiceName) -> tuple[SliceFacts, ...]:
        """The endpoint slices of a service."""
        known = self._slices.get(service)
        if known is None:
            changes = self._changes
            found = await self._objects("discovery.k8s.io", "endpointslices").read_all(service[0], _SLICE)
            known = tuple(each for each in found if each.service == service[1])
            if service in self._wanted and changes == self._changes:
                self._slices[service] = known
        return known

    async def resolve(self, key: ServiceKey) -> Place:
        """Where a request goes: one of the places there are. Raises NoRoute."""
        places = self._places.get(key)
        if places is None:
            changes = self._changes
            places = await self._find(key)
            if (key.namespace, key.name) in self._wanted and changes == self._changes:
                self._places[key] = places
        return places[0] if len(places) == 1 else random.choice(places)

    async def _find(self, key: ServiceKey) -> tuple[Place, ...]:
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
        places = _endpoints(await self.slices(name), service.family, port_name)
        if places:
            return places
        if self._endpoints_only:
            raise NoRoute(f"no endpoints available for service {quote(key.name)}")
        if service.cluster_ip == "None":
            raise NoRoute('cannot route to service with ClusterIP "None"')
        return ((service.cluster_ip, key.port),)

    # Changes

    def _service_changed(self, namespace: str, name: str, _: Entry | None) -> None:
        self._tell((namespace, name))

    def _slice_changed(self, namespace: str, name: str, entry: Entry | None) -> None:
        key = (namespace, name)
        before = self._of_slices.pop(key, "")
        now = "" if entry is None else self._label(entry)
        if now and (namespace, now) in self._wanted:
            self._of_slices[key] = now
        for service in {before, now} - {""}:
            self._tell((namespace, service))

    def _label(self, entry: Entry) -> str:
        read = self._store("discovery.k8s.io", "endpointslices").kind.partial_decoder(_LABELS.paths)
        return _LABELS.make(read(entry.body))

    def _tell(self, service: ServiceName) -> None:
        if service in self._wanted:
            self._changes += 1
            self._clear(service)
            self.changed(service)

    def _clear(self, service: ServiceName) -> None:
        self._slices.pop(service, None)
        for key in [each for each in self._places if (each.namespace, each.name) == service]:
            del self._places[key]


def _endpoints(slices: Sequence[SliceFacts], family: str, port_name: str) -> tuple[Place, ...]:
    """The ready endpoints with the port: those of the service's first address family if there are any."""
    found: dict[bool, list[Place]] = {True: [], False: []}
    for each in slices:
        number = next((port for name, port in each.ports if name == port_name), None)
        if number is not None:
            found[each.family == family] += [(address, number) for address in each.ready]
    return tuple(found[True] or found[False])


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
