"""Contents of the Endpoints and the EndpointSlice `kubernetes` for given addresses of servers.

Follows pkg/controlplane/reconcilers. All servers should listen on one port: an existing port stays unless `sets_port`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec.structs import replace

from steersman.api.core.v1 import EndpointAddress, EndpointPort, EndpointSubset
from steersman.api.discovery import v1 as discovery

SKIP_MIRROR: Final = "endpointslice.kubernetes.io/skip-mirror"

Subsets = list[EndpointSubset]


def leading_to(
    old: Sequence[EndpointSubset], addresses: Sequence[str], port: EndpointPort, *, sets_port: bool
) -> Subsets:
    """Return the subsets that lead to exactly these addresses."""
    if len(old) != 1:
        return _with_addresses(EndpointSubset(ports=[port]), addresses)
    [subset] = old
    if sets_port and subset.ports != [port]:
        subset = replace(subset, ports=[port])
    there = [each.ip for each in subset.addresses]
    if len(there) == len(addresses) and set(there) == set(addresses):
        return [subset]
    return _with_addresses(subset, addresses)


def counting(old: Sequence[EndpointSubset], own: str, count: int, port: EndpointPort, *, sets_port: bool) -> Subsets:
    """Return the subsets that lead to `own` and to at most `count` addresses; the ones following `own` are dropped
    first.
    """
    if len(old) != 1:
        return _with_addresses(EndpointSubset(ports=[port]), [own])
    [subset] = old
    if sets_port and subset.ports != [port]:
        subset = replace(subset, ports=[port])
    there = [each.ip for each in subset.addresses]
    if own in there and len(there) <= count:
        return [subset]
    ordered = sorted({own, *there})
    at = ordered.index(own)
    around = ordered[at + 1 :] + ordered[:at]
    return _with_addresses(subset, [own, *around[max(len(ordered) - count, 0) :]])


def without(old: Sequence[EndpointSubset], own: str) -> Subsets:
    """Return the subsets without `own`."""
    if not old:
        return []
    return _with_addresses(old[0], [each.ip for each in old[0].addresses if each.ip != own])


def _with_addresses(subset: EndpointSubset, addresses: Iterable[str]) -> Subsets:
    """Return the subset with these addresses, sorted; [] if it has no address at all."""
    made = replace(subset, addresses=[EndpointAddress(ip=each) for each in sorted(set(addresses))])
    return [made] if made.addresses or made.not_ready_addresses else []


def slice_of(subsets: Sequence[EndpointSubset]) -> discovery.EndpointSlice:
    """Return the EndpointSlice equivalent to these subsets: address type, endpoints and ports.

    A slice has one address family: IPv6 if all addresses are IPv6, else IPv4.
    """
    subset = subsets[0] if subsets else EndpointSubset()
    all_addresses = [*subset.addresses, *subset.not_ready_addresses]
    is_ipv6 = bool(all_addresses) and all(":" in each.ip for each in all_addresses)
    return discovery.EndpointSlice(
        address_type="IPv6" if is_ipv6 else "IPv4",
        endpoints=[
            discovery.Endpoint(
                addresses=[each.ip],
                conditions=discovery.EndpointConditions(ready=ready),
                target_ref=each.target_ref,
                node_name=each.node_name,
            )
            for ready, some in ((True, subset.addresses), (False, subset.not_ready_addresses))
            for each in some
            if (":" in each.ip) == is_ipv6
        ],
        ports=[discovery.EndpointPort(name=each.name, port=each.port, protocol=each.protocol) for each in subset.ports],
    )
