"""Addresses of Services: each is an IPAddress object, so that servers on one store cannot give it away twice.

The lower part of a range is kept for addresses that are asked for (KEP-3070); others come from the rest at random,
and from the lower part only once that is full. Follows pkg/registry/core/service/ipallocator.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network
from typing import Final

from steersman.api.meta.v1 import ObjectMeta
from steersman.api.networking.v1 import IPAddress, IPAddressSpec, ParentReference, ServiceCIDR
from steersman.machinery.errors.status import StatusError
from steersman.machinery.validation.ip import parse_ip_sloppy
from steersman.registry.services import Services
from steersman.rest.context import loopback
from steersman.rest.objects import Reading
from steersman.work.yielding import TimeSlice

FAMILY_LABEL: Final = "ipaddress.kubernetes.io/ip-family"
MANAGED_BY_LABEL: Final = "ipaddress.kubernetes.io/managed-by"
ALLOCATOR: Final = "ipallocator.k8s.io"
"""Labels of the addresses made here."""
GROUP: Final = "networking.k8s.io"

ALLOCATED: Final = "provided IP is already allocated"
MISMATCH: Final = "the provided network does not match the current range"
FULL: Final = "range is full"


Network = IPv4Network | IPv6Network
Address = IPv4Address | IPv6Address


class AddressError(Exception):
    """An address cannot be had; the text says why."""


class RangeFull(AddressError):
    """No address is left."""

    def __init__(self) -> None:
        super().__init__(FULL)


def static_band(network: Network) -> int:
    """How many addresses of a range are left for those that are asked for."""
    size = min(network.num_addresses, 1 << 16) if network.version == 6 else network.num_addresses
    return 0 if size <= 16 else min(max(16, size // 16), 256)


def usable(network: Network) -> tuple[int, int]:
    """The first and the last address that services can have, as numbers; the last is less where there is none."""
    first = int(network.network_address) + 1
    last = int(network.broadcast_address)
    return first, last - 1 if network.version == 4 else last


def _contains(network: Network, address: Address) -> bool:
    first, last = usable(network)
    return network.version == address.version and first <= int(address) <= last


def _candidates(network: Network) -> Iterator[int]:
    """Every address once: the upper part from a random place on, then the lower one."""
    first, last = usable(network)
    middle = first + static_band(network)
    for low, high in ((middle, last), (first, min(middle - 1, last))):
        size = high - low + 1
        if size > 0:
            start = random.randrange(size)
            for offset in range(min(size, 1 << 32)):
                yield low + (start + offset) % size


class ClusterIPs:
    """Gives addresses to services and takes them back."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self.families: tuple[str, ...] = tuple(
            dict.fromkeys(f"IPv{network.version}" for network in services.service_cluster_ip_ranges)
        )
        """The families of the cluster, the primary one first."""

    async def ranges(self, *, ready: bool = True) -> list[Network]:
        """The server's own ranges and those of ServiceCIDR objects, all or only those to be used now."""
        networks: list[Network] = list(self._services.service_cluster_ip_ranges)
        for is_ready, cidrs in await self._services.objects(GROUP, "servicecidrs").read_all("", _CIDRS):
            if is_ready or not ready:
                networks += cidrs
        return list(dict.fromkeys(networks))

    async def allocate(self, namespace: str, name: str, text: str, *, dry_run: bool) -> None:
        """Takes the address that a service asks for. Raises AddressError."""
        address = parse_ip_sloppy(text)
        if address is None:
            raise AddressError(f"failed to parse service IP {text}")
        if dry_run:
            network = (await self.ranges(ready=False))[0]
            if not _contains(network, address):
                raise AddressError(
                    f"the provided IP ({address}) is not in the valid range. The range of valid IPs is {network}"
                )
            return
        if not any(_contains(network, address) for network in await self.ranges()):
            raise AddressError(MISMATCH)
        if not await self.hold(namespace, name, address):
            raise AddressError(ALLOCATED)

    async def allocate_next(self, namespace: str, name: str, family: str, *, dry_run: bool) -> str:
        """Takes any free address of a family; a dry run answers with that of the network. Raises AddressError."""
        networks = [network for network in await self.ranges() if f"IPv{network.version}" == family]
        if dry_run and networks:
            return str(networks[0].network_address)
        addresses = self._services.objects(GROUP, "ipaddresses")
        time_slice = TimeSlice()
        for network in networks:
            make = IPv4Address if network.version == 4 else IPv6Address
            for number in _candidates(network):
                address = make(number)
                if not addresses.has("", str(address)) and await self.hold(namespace, name, address):
                    return str(address)
                await time_slice.pause_if_over()
        raise RangeFull

    async def release(self, text: str) -> None:
        """Gives an address back; one that nobody has is fine."""
        address = parse_ip_sloppy(text)
        if address is None:
            return
        try:
            await self._services.objects(GROUP, "ipaddresses").delete(loopback(name=str(address)), str(address))
        except StatusError as error:
            if error.code != 404:
                raise

    async def hold(self, namespace: str, name: str, address: Address) -> bool:
        """Makes the object of an address of a service; False if there is one already. Raises AddressError."""
        obj = IPAddress(
            metadata=ObjectMeta(
                name=str(address), labels={FAMILY_LABEL: f"IPv{address.version}", MANAGED_BY_LABEL: ALLOCATOR}
            ),
            spec=IPAddressSpec(parent_ref=ParentReference(resource="services", namespace=namespace, name=name)),
        )
        try:
            await self._services.objects(GROUP, "ipaddresses").create(loopback(), obj)
        except StatusError as error:
            if error.reason == "AlreadyExists":
                return False
            raise AddressError(error.message) from error
        return True


def _is_ready(cidr: ServiceCIDR) -> bool:
    """Whether addresses may be taken from it; one that nobody has judged yet counts as ready."""
    if cidr.metadata.deletion_timestamp is not None:
        return False
    return all(condition.status == "True" for condition in cidr.status.conditions if condition.type == "Ready")


def _cidrs_of(cidr: ServiceCIDR) -> tuple[bool, tuple[Network, ...]]:
    return _is_ready(cidr), tuple(map(ip_network, cidr.spec.cidrs))


_CIDRS: Final = Reading(_cidrs_of, "metadata.deletionTimestamp", "spec.cidrs", "status.conditions")
