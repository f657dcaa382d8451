"""Address ranges of an opened cluster: that of its Services as it was, and one for new pods that no address is in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final

import msgspec

from steersman.cluster.configuration import PODS
from steersman.cluster.opening.items import Item, made
from steersman.dumps.reading import DumpObject
from steersman.registry.core.services.cluster_ips import ALLOCATOR, FAMILY_LABEL, GROUP, MANAGED_BY_LABEL

_RANGES: Final = (PODS, IPv4Network("10.0.0.0/9"), IPv4Network("100.64.0.0/10"), IPv4Network("198.19.0.0/16"))
"""Ranges for new pods, in order of preference."""
_PREFIXES: Final = {4: range(16, 11, -1), 6: range(112, 107, -1)}
"""Prefix lengths that a range of Services is likely to have, the likeliest first."""

Network = IPv4Network | IPv6Network
Address = IPv4Address | IPv6Address


class _Spec(msgspec.Struct):
    cidrs: list[str] | None = None
    cluster_ip: str | None = msgspec.field(name="clusterIP", default=None)
    cluster_ips: list[str] | None = msgspec.field(name="clusterIPs", default=None)
    pod_cidr: str | None = msgspec.field(name="podCIDR", default=None)
    node_name: str | None = msgspec.field(name="nodeName", default=None)


class _NodeAddress(msgspec.Struct):
    address: str = ""


class _Status(msgspec.Struct):
    pod_ip: str | None = msgspec.field(name="podIP", default=None)
    addresses: list[_NodeAddress] | None = None


class _Object(msgspec.Struct):
    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: _Status = msgspec.field(default_factory=_Status)


_DECODER: Final = msgspec.json.Decoder(_Object)


def service_range_of(objects: Iterable[DumpObject]) -> str:
    """Return the range of a cluster's Services, "" if its objects do not tell it.

    The ServiceCIDR `kubernetes` has it. Without one it is guessed: the Service `kubernetes` has its first address.
    """
    first: list[str] = []
    others: set[Address] = set()
    for each in objects:
        if each.kind == "ServiceCIDR" and each.name == "kubernetes" and (cidrs := _read(each).spec.cidrs):
            return ",".join(cidrs)
        if each.kind == "Service" and each.api_version == "v1":
            spec = _read(each).spec
            ips = spec.cluster_ips or ([spec.cluster_ip] if spec.cluster_ip else [])
            if (each.namespace, each.name) == ("default", "kubernetes"):
                first = ips
            others.update(_addresses(ips))
    return ",".join(str(found) for ip in _addresses(first) if (found := _range_from(ip, others)) is not None)


def _range_from(first: Address, others: set[Address]) -> Network | None:
    """Return the smallest likely range that begins before `first` and has all the other addresses."""
    base, found = first - 1, None
    for length in _PREFIXES[first.version]:
        try:
            found = ip_network(f"{base}/{length}")
        except ValueError:  # the base is not the beginning of so large a range
            break
        if all(each in found for each in others if each.version == first.version):
            break
    return found


def pod_range_for(objects: Iterable[DumpObject]) -> IPv4Network:
    """Return a range for new pods in which no address of a node or pod is, the usual one if there is none.

    Nodes that have ranges of the usual one keep them, if their pods have addresses of these: some networks give pods
    other ones.
    """
    used: set[int] = set()
    of_nodes: dict[str, int] = {}
    """Ranges of nodes within the usual one."""
    of_pods: list[tuple[str, int]] = []
    """Names of nodes, and addresses of their pods."""
    for each in objects:
        if each.api_version != "v1" or each.kind not in ("Node", "Pod"):
            continue
        found = _read(each)
        if each.kind == "Pod":
            ips = _addresses([found.status.pod_ip or ""])
            of_pods += [(found.spec.node_name or "", int(ip)) for ip in ips if ip.version == 4]
            continue
        cidr, _, length = (found.spec.pod_cidr or "").partition("/")
        used.update(
            int(ip) for ip in _addresses(one.address for one in found.status.addresses or ()) if ip.version == 4
        )
        for ip in _addresses([cidr]):
            if length == "24" and ip in PODS:
                of_nodes[each.name] = int(ip) >> 8
            elif ip.version == 4:
                used.add(int(ip))
    used.update(ip for node, ip in of_pods if of_nodes.get(node) != ip >> 8)
    for network in _RANGES:
        low, high = int(network.network_address), int(network.broadcast_address)
        has_ranges = network != PODS and any(low <= each << 8 <= high for each in of_nodes.values())
        if not has_ranges and not any(low <= each <= high for each in used):
            return network
    return PODS


def missing_addresses(items: Sequence[Item]) -> list[Item]:
    """Return the IPAddress objects that a server keeps for its Services and that the dump lacks.

    Without them the server would repair each Service, with an event and a line in its log.
    """
    known = {each.name for each in items if (each.group, each.kind) == (GROUP, "IPAddress")}
    found = {}
    for each in items:
        if (each.group, each.kind) != ("", "Service"):
            continue
        spec = _read(each).spec
        for address in _addresses(spec.cluster_ips or ([spec.cluster_ip] if spec.cluster_ip else ())):
            name = str(address)
            if name not in known and name not in found:
                labels = {FAMILY_LABEL: f"IPv{address.version}", MANAGED_BY_LABEL: ALLOCATOR}
                service = {"resource": "services", "namespace": each.namespace, "name": each.name}
                found[name] = made(f"{GROUP}/v1", "IPAddress", name, labels, spec={"parentRef": service})
    return list(found.values())


def _addresses(texts: Iterable[str]) -> Iterator[Address]:
    for text in texts:
        with suppress(ValueError):  # such as None, of a headless Service
            yield ip_address(text)


def _read(found: DumpObject | Item) -> _Object:
    try:
        return _DECODER.decode(found.data)
    except msgspec.MsgspecError:
        return _Object()  # storing it says what is wrong
