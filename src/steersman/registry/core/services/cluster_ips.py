"""Cluster IPs of Services. Each is an IPAddress object, so that servers on one store cannot allocate it twice.

The lower part of a range is reserved for requested addresses (KEP-3070). Other addresses are chosen at random from the
rest, and from the lower part only once the rest is full. Follows pkg/registry/core/service/ipallocator.
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
"""Labels of the IPAddress objects that this allocator creates."""
GROUP: Final = "networking.k8s.io"

ALLOCATED: Final = "provided IP is already allocated"
MISMATCH: Final = "the provided network does not match the current range"
FULL: Final = "range is full"


Network = IPv4Network | IPv6Network
Address = IPv4Address | IPv6Address


class AddressError(Exception):
    """A failed allocation of an address; the text gives the reason."""


class RangeFull(AddressError):
    """An exhausted address range."""

    def __init__(self) -> None:
        super().__init__(FULL)


def static_band(network: Network) -> int:
    """Return the number of addresses of a range that are reserved for requests by address."""
    size = min(network.num_addresses, 1 << 16) if network.version == 6 else network.num_addresses
    return 0 if size <= 16 else min(max(16, size // 16), 256)


def usable(network: Network) -> tuple[int, int]:
    """Return the first and the last address for services as numbers; last < first if there is none."""
    first = int(network.network_address) + 1
    last = int(network.broadcast_address)
    return first, last - 1 if network.version == 4 else last


def _contains(network: Network, address: Address) -> bool:
    first, last = usable(network)
    return network.version == address.version and first <= int(address) <= last


def _candidates(network: Network) -> Iterator[int]:
    """Yield every address once: the upper part beginning at a random address, then the lower part."""
    first, last = usable(network)
    middle = first + static_band(network)
    for low, high in ((middle, last), (first, min(middle - 1, last))):
        size = high - low + 1
        if size > 0:
            start = random.randrange(size)
            for offset in range(min(size, 1 << 32)):
                yield low + (start + offset) % size


class ClusterIPs:
    """The allocator of service addresses."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self.families: tuple[str, ...] = tuple(
            dict.fromkeys(f"IPv{network.version}" for network in services.service_cluster_ip_ranges)
        )
        """The families of the cluster, the primary family first."""

    async def ranges(self, *, ready: bool = True) -> list[Network]:
        """Return the server's own ranges and those of ServiceCIDR objects; with `ready` only the ready ServiceCIDRs."""
        networks: list[Network] = list(self._services.service_cluster_ip_ranges)
        for is_ready, cidrs in await self._services.objects(GROUP, "servicecidrs").read_all("", _CIDRS):
            if is_ready or not ready:
                networks += cidrs
        return list(dict.fromkeys(networks))

    async def allocate(self, namespace: str, name: str, text: str, *, dry_run: bool) -> None:
        """Allocate the address that a service requests. Raises AddressError."""
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
        if not await self.create_address(namespace, name, address):
            raise AddressError(ALLOCATED)

    async def allocate_next(self, namespace: str, name: str, family: str, *, dry_run: bool) -> str:
        """Allocate any free address of a family; a dry run returns the network address. Raises AddressError."""
        networks = [network for network in await self.ranges() if f"IPv{network.version}" == family]
        if dry_run and networks:
            return str(networks[0].network_address)
        addresses = self._services.objects(GROUP, "ipaddresses")
        time_slice = TimeSlice()
        for network in networks:
            make = IPv4Address if network.version == 4 else IPv6Address
            for number in _candidates(network):
                address = make(number)
                if not addresses.is_cached("", str(address)) and await self.create_address(namespace, name, address):
                    return str(address)
                await time_slice.pause_if_over()
        raise RangeFull

    async def release(self, text: str) -> None:
        """Release an address; does nothing if it is not allocated."""
        address = parse_ip_sloppy(text)
        if address is None:
            return
        try:
            await self._services.objects(GROUP, "ipaddresses").delete(loopback(name=str(address)), str(address))
        except StatusError as error:
            if error.code != 404:
                raise

    async def create_address(self, namespace: str, name: str, address: Address) -> bool:
        """Create the IPAddress object of a service's address; return False if the address is allocated. Raises
        AddressError.
        """
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
    """Return True if addresses may be allocated from `cidr`; without a Ready condition it counts as ready."""
    if cidr.metadata.deletion_timestamp is not None:
        return False
    return all(condition.status == "True" for condition in cidr.status.conditions if condition.type == "Ready")


def _cidrs_of(cidr: ServiceCIDR) -> tuple[bool, tuple[Network, ...]]:
    return _is_ready(cidr), tuple(map(ip_network, cidr.spec.cidrs))


_CIDRS: Final = Reading(_cidrs_of, "metadata.deletionTimestamp", "spec.cidrs", "status.conditions")
