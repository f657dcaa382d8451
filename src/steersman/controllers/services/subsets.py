"""Canonical form of the subsets in Endpoints: each set of addresses once, with all its ports (RepackSubsets).

Follows pkg/api/v1/endpoints.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import merge
from typing import Final, NamedTuple

from msgspec import Struct

from steersman.api.core.v1 import EndpointAddress, EndpointSubset
from steersman.controllers.services.ports import Port, in_order_of_endpoints, ports_of_subset
from steersman.work.yielding import TimeSlice

MOST: Final = 1000
"""Most addresses of Endpoints."""


class AddressKey(NamedTuple):
    """Identity and sort key of an address: the IP address, and the uid of its pod."""

    ip: str
    uid: str


class Group(Struct):
    """Sorted addresses with the same ports. No address is in both lists."""

    ports: Iterable[Port]
    ready: Sequence[AddressKey]
    not_ready: Sequence[AddressKey]


class Subset(Struct):
    """A subset of Endpoints with sorted addresses."""

    ports: list[Port]
    ready: Sequence[AddressKey]
    not_ready: Sequence[AddressKey]

    def of_endpoints(self, addresses: Mapping[AddressKey, EndpointAddress]) -> EndpointSubset:
        """Return the subset as an object of the API; `addresses` has the objects of the address keys."""
        return EndpointSubset(
            addresses=[addresses[each] for each in self.ready],
            not_ready_addresses=[addresses[each] for each in self.not_ready],
            ports=[each.of_endpoints for each in self.ports],
        )


def key_of_address(address: EndpointAddress) -> AddressKey:
    """Return the key of an address."""
    return AddressKey(address.ip, address.target_ref.uid if address.target_ref is not None else "")


async def group_of_subset(subset: EndpointSubset, addresses: dict[AddressKey, EndpointAddress]) -> Group:
    """Return the group of a subset of the API, and add its addresses to `addresses` unless they are present.

    A user's subset may have thousands of addresses, so the work is done in time slices.
    """
    time_slice = TimeSlice()
    ready: set[AddressKey] = set()
    not_ready: set[AddressKey] = set()
    for keys, addresses_of_subset in ((ready, subset.addresses), (not_ready, subset.not_ready_addresses)):
        for each in addresses_of_subset:
            keys.add(addresses_key(each, addresses))
            await time_slice.pause_if_over()
    return Group(list(ports_of_subset(subset.ports)), sorted(ready - not_ready), sorted(not_ready))


def addresses_key(address: EndpointAddress, addresses: dict[AddressKey, EndpointAddress]) -> AddressKey:
    """Return the key of an address, and add the address to `addresses` unless it is present."""
    key = key_of_address(address)
    addresses.setdefault(key, address)
    return key


def repack(groups: Sequence[Group]) -> Iterator[Subset]:
    """Yield the canonical subsets of groups: ports with the same addresses are joined.

    An address that is not ready in one group is not ready in the result. The cost of each step is the number of
    addresses.
    """
    if len(groups) == 1:
        (group,) = groups
        if group.ready or group.not_ready:
            yield Subset(in_order_of_endpoints(set(group.ports)), group.ready, group.not_ready)
        return
    offered: dict[Port | None, list[int]] = {}
    for index, group in enumerate(groups):
        ports: set[Port | None] = {*group.ports}
        for port in ports or {None}:
            offered.setdefault(port, []).append(index)
    together: dict[tuple[int, ...], list[Port]] = {}
    for port, where in offered.items():
        with_same = together.setdefault(tuple(where), [])
        if port is not None:
            with_same.append(port)
    alike: dict[tuple[tuple[AddressKey, ...], tuple[AddressKey, ...]], list[Port]] = {}
    for members, of_them in together.items():
        not_ready = _merged([groups[each].not_ready for each in members])
        down = set(not_ready)
        ready = [each for each in _merged([groups[each].ready for each in members]) if each not in down]
        alike.setdefault((tuple(ready), tuple(not_ready)), []).extend(of_them)
    for (up, not_up), of_all in alike.items():
        if up or not_up:
            yield Subset(in_order_of_endpoints(of_all), up, not_up)


def in_order(subsets: Iterable[Subset]) -> list[Subset]:
    """Return subsets in a stable order. (Upstream orders by a hash of the whole subset.)"""
    return sorted(subsets, key=lambda each: (str(each.ports), each.ready[:1], each.not_ready[:1]))


def truncated(subsets: Sequence[Subset]) -> tuple[list[Subset], bool]:
    """Return subsets with at most MOST addresses in all, and True if addresses were dropped.

    Addresses that are not ready are dropped first, then each subset keeps its share.
    """
    ready = sum(len(each.ready) for each in subsets)
    not_ready = sum(len(each.not_ready) for each in subsets)
    if ready + not_ready <= MOST:
        return list(subsets), False
    only_ready = ready > MOST
    most, total = (MOST, ready) if only_ready else (MOST - ready, not_ready)
    left = most
    out: list[Subset] = []
    for each in subsets:
        count = len(each.ready if only_ready else each.not_ready)
        room = min(math.ceil(count / total * most), left)
        left -= min(room, count)
        if only_ready:
            out.append(Subset(each.ports, each.ready[:room], ()))
        else:
            out.append(Subset(each.ports, each.ready, each.not_ready[:room]))
    return out, True


def _merged(lists: Sequence[Sequence[AddressKey]]) -> Sequence[AddressKey]:
    """Return sorted lists merged into one without duplicates."""
    if len(lists) == 1:
        return lists[0]
    out: list[AddressKey] = []
    for each in merge(*lists):
        if not out or out[-1] != each:
            out.append(each)
    return out
