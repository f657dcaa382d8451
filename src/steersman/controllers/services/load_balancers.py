"""Simulated load balancers: addresses for Services of type LoadBalancer, as a cloud would assign them.

Follows k8s.io/cloud-provider controllers/service. It runs only in simulated clusters; elsewhere a cloud provider does
this.
"""

from __future__ import annotations

from ipaddress import IPv4Network, IPv6Network
from typing import Any, Final

from steersman.api.core.v1 import LoadBalancerIngress, Node, Service
from steersman.client.client import STRATEGIC_MERGE_PATCH
from steersman.client.errors import is_not_found
from steersman.client.events import reference
from steersman.client.informer import Key, key_of, new_or_old
from steersman.client.resources import NODES, SERVICES
from steersman.controllers.controller import Controller, ControllerDependencies
from steersman.controllers.services.addresses import IPV4, IPV6, canonical, families_of
from steersman.machinery.codec.serializer import to_plain
from steersman.machinery.errors.status import StatusError
from steersman.machinery.number_allocator import NumberAllocator
from steersman.work.work_queue import TryLater

FINALIZER: Final = "service.kubernetes.io/load-balancer-cleanup"
EXCLUDED: Final = "node.kubernetes.io/exclude-from-external-load-balancers"
_TO_BE_DELETED: Final = "ToBeDeletedByClusterAutoscaler"
RANGES: Final[dict[str, IPv4Network | IPv6Network]] = {
    IPV4: IPv4Network("198.18.0.0/15"),
    IPV6: IPv6Network("2001:2::/48"),
}
"""Address range by family: the ranges for benchmarks of network devices (RFC 2544, RFC 5180)."""
_NODES: Final[Key] = "", ""
"""Key for a change of the nodes."""
_NODES_WAIT: Final = 1.0
_FALSE: Final = ("0", "f", "F", "false", "FALSE", "False")


class NoAddresses(Exception):
    """All addresses are in use."""


class Addresses:
    """Address allocator of one family. The lowest free address is allocated first.

    Addresses that Services request by name are not allocated here.
    """

    def __init__(self, network: IPv4Network | IPv6Network) -> None:
        self._network = network
        self._free = NumberAllocator(first=1)
        self._numbers: dict[str, int] = {}

    def allocate(self, owner: str) -> str:
        """Return the address of an owner; allocate one if it has none. Raises NoAddresses."""
        number = self._numbers.get(owner)
        if number is None:
            number = self._free.lowest()
            if number >= self._network.num_addresses - 1:
                raise NoAddresses
            self._numbers[owner] = self._free.allocate(number)
        return str(self._network[number])

    def occupy(self, owner: str, address: str) -> None:
        """Allocate an address that an owner has had before. Do nothing if it is outside of the range or not free."""
        number = self._number(address)
        if number is not None and number in self._free and owner not in self._numbers:
            self._numbers[owner] = self._free.allocate(number)

    def release(self, owner: str) -> None:
        """Free the address of an owner."""
        number = self._numbers.pop(owner, None)
        if number is not None:
            self._free.release(number)

    def _number(self, address: str) -> int | None:
        canonical_address = canonical(address)
        if canonical_address is None or (canonical_address[0] == IPV6) != isinstance(self._network, IPv6Network):
            return None
        number = int(type(self._network.network_address)(canonical_address[1])) - int(self._network.network_address)
        return number if 0 < number < self._network.num_addresses - 1 else None


class LoadBalancerController(Controller[Key]):
    """Keeps load balancer addresses in the status. A key is the namespace and name of a Service."""

    name = "service-lb-controller"
    account = "service-controller"
    retry_delay = 5.0

    def __init__(self, dependencies: ControllerDependencies) -> None:
        super().__init__(dependencies)
        self._addresses = {family: Addresses(network) for family, network in RANGES.items()}
        self._balanced: dict[Key, str] = {}
        """Uids of the Services that have addresses."""
        self._hosts: frozenset[str] | None = None
        """Nodes behind the load balancers at the last event."""
        self._services = self.informers.for_resource(SERVICES)
        self._nodes = self.informers.for_resource(NODES)
        self._services.on_change(self._service_changed)
        self._nodes.on_change(self._node_changed)

    def _service_changed(self, old: Service | None, new: Service | None) -> None:
        if old is None and new is not None:
            for each in new.status.load_balancer.ingress:
                for family in self._addresses.values():
                    family.occupy(new.metadata.uid, each.ip)
        if new is None or old is None:
            one = new_or_old(old, new)
            if new is None or wants_load_balancer(new) or needs_cleanup(new):
                self.queue.add(key_of(one))
        elif needs_cleanup(new) or _needs_update(old, new):
            self.queue.add(key_of(new))

    def _node_changed(self, old: Node | None, new: Node | None) -> None:
        if old is None or new is None or is_host(old) != is_host(new):
            self.queue.add_after(_NODES, _NODES_WAIT)

    async def sync(self, key: Key) -> None:
        if key == _NODES:
            self._sync_nodes()
            return
        service = self._services.get(*key)
        former = self._balanced.get(key)
        if former is not None and (service is None or service.metadata.uid != former):
            del self._balanced[key]
            self._release(former)
        if service is None:
            return
        about = reference(SERVICES, service)
        try:
            if wants_load_balancer(service) and not needs_cleanup(service):
                await self._ensure(key, service)
            else:
                await self._clean_up(key, service)
        except (StatusError, TryLater) as error:
            self.recorder.event(about, "Warning", "SyncLoadBalancerFailed", f"Error syncing load balancer: {error}")
            raise

    async def _ensure(self, key: Key, service: Service) -> None:
        about = reference(SERVICES, service)
        self.recorder.event(about, "Normal", "EnsuringLoadBalancer", "Ensuring load balancer")
        if FINALIZER not in service.metadata.finalizers:
            await self._patch(service, {"metadata": {"finalizers": [FINALIZER]}}, "add load balancer cleanup finalizer")
        if not any(map(is_host, self._nodes)):
            text = "There are no available nodes for LoadBalancer"
            self.recorder.event(about, "Warning", "UnAvailableLoadBalancer", text)
        try:
            ingress = self._ingress(service)
        except NoAddresses:
            raise TryLater("failed to ensure load balancer: no address is free") from None
        self._balanced[key] = service.metadata.uid
        self.recorder.event(about, "Normal", "EnsuredLoadBalancer", "Ensured load balancer")
        await self._write_status(service, ingress)

    async def _clean_up(self, key: Key, service: Service) -> None:
        about = reference(SERVICES, service)
        if self._balanced.pop(key, None) is not None or service.status.load_balancer.ingress:
            self.recorder.event(about, "Normal", "DeletingLoadBalancer", "Deleting load balancer")
        self._release(service.metadata.uid)
        if FINALIZER in service.metadata.finalizers:
            change = {"metadata": {"$deleteFromPrimitiveList/finalizers": [FINALIZER]}}
            await self._patch(service, change, "remove load balancer cleanup finalizer")
        self.recorder.event(about, "Normal", "DeletedLoadBalancer", "Deleted load balancer")
        await self._write_status(service, [])

    def _ingress(self, service: Service) -> list[LoadBalancerIngress]:
        """Return the ingress points of a Service: the requested address, or an address of each of its families.

        Raises NoAddresses.
        """
        uid, requested_ip = service.metadata.uid, service.spec.load_balancer_ip
        if requested_ip:
            self._release(uid)
            return [LoadBalancerIngress(ip=requested_ip, ip_mode="VIP")]
        families = families_of(service)
        return [LoadBalancerIngress(ip=self._addresses[each].allocate(uid), ip_mode="VIP") for each in families]

    def _release(self, uid: str) -> None:
        for each in self._addresses.values():
            each.release(uid)

    def _sync_nodes(self) -> None:
        """Record events about all balanced Services if the nodes behind the load balancers have changed."""
        hosts = frozenset(each.metadata.name for each in self._nodes if is_host(each))
        former, self._hosts = self._hosts, hosts
        if former is None or former == hosts:
            return
        for key in self._balanced:
            service = self._services.get(*key)
            if service is None:
                continue
            about = reference(SERVICES, service)
            if hosts:
                text = "Updated load balancer with new hosts"
                self.recorder.event(about, "Normal", "UpdatedLoadBalancer", text)
            else:
                text = "There are no available nodes for LoadBalancer"
                self.recorder.event(about, "Warning", "UnAvailableLoadBalancer", text)

    async def _write_status(self, service: Service, ingress: list[LoadBalancerIngress]) -> None:
        if service.status.load_balancer.ingress == ingress:
            return
        change = {"status": {"loadBalancer": {"ingress": to_plain(ingress)} if ingress else None}}
        try:
            await self._patch(service, change, "update load balancer status")
        except TryLater as error:
            if not (isinstance(error.__cause__, StatusError) and is_not_found(error.__cause__)):
                raise

    async def _patch(self, service: Service, change: dict[str, Any], what: str) -> None:
        metadata = service.metadata
        try:
            await self.client.patch(
                SERVICES, metadata.name, metadata.namespace, change, media=STRATEGIC_MERGE_PATCH, subresource="status"
            )
        except StatusError as error:
            raise TryLater(f"failed to {what}: {error}") from error


def wants_load_balancer(service: Service) -> bool:
    """Return True if this controller assigns addresses; a Service with a class is left to others."""
    return service.spec.type == "LoadBalancer" and service.spec.load_balancer_class is None


def needs_cleanup(service: Service) -> bool:
    """Return True if a Service has had addresses and no longer needs them."""
    if FINALIZER not in service.metadata.finalizers:
        return False
    return service.metadata.deletion_timestamp is not None or service.spec.type != "LoadBalancer"


def is_host(node: Node) -> bool:
    """Return True if load balancers forward to the node."""
    excluded = node.metadata.labels.get(EXCLUDED)
    return (
        node.metadata.deletion_timestamp is None
        and (excluded is None or excluded in _FALSE)
        and all(each.key != _TO_BE_DELETED for each in node.spec.taints)
    )


def _needs_update(old: Service, new: Service) -> bool:
    """Return True if a change of a Service concerns its load balancer."""
    if not wants_load_balancer(old) and not wants_load_balancer(new):
        return False
    one, other = old.spec, new.spec
    return (
        wants_load_balancer(old) != wants_load_balancer(new)
        or old.metadata.annotations != new.metadata.annotations
        or one.load_balancer_source_ranges != other.load_balancer_source_ranges
        or one.ports != other.ports
        or one.session_affinity != other.session_affinity
        or one.session_affinity_config != other.session_affinity_config
        or one.load_balancer_ip != other.load_balancer_ip
        or one.external_ips != other.external_ips
        or one.external_traffic_policy != other.external_traffic_policy
        or one.health_check_node_port != other.health_check_node_port
        or len(one.ip_families) != len(other.ip_families)
    )
