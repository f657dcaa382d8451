"""EndpointSlices: the addresses behind a Service, in slices of at most a thousand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from steersman.api.discovery.v1 import Endpoint, EndpointHints, EndpointPort, EndpointSlice
from steersman.kinds.built_in import built_in
from steersman.machinery.errors.field import (
    FieldError,
    Path,
    internal,
    invalid,
    not_supported,
    required,
    too_many,
)
from steersman.machinery.validation.formats import is_dns1123_label, is_dns1123_subdomain, is_valid_label_value
from steersman.machinery.validation.ip import (
    is_valid_ip,
    is_valid_ip_for_legacy_field,
    parse_ip_sloppy,
    warnings_for_ip,
)
from steersman.machinery.validation.leaves import (
    validate_choice,
    validate_dns1123_label,
    validate_name,
    validate_qualified_name,
    validate_unique,
    validate_with,
)
from steersman.machinery.validation.object_meta import name_is_dns_subdomain
from steersman.machinery.validation.selectors import validate_labels
from steersman.registry.validation.endpoint_addresses import PROTOCOLS, validate_endpoint_ip
from steersman.rest.context import Context
from steersman.rest.resource import AGE, Column, Resource
from steersman.rest.strategy import Strategy

MANAGED_BY: Final = "endpointslice.kubernetes.io/managed-by"
ADDRESS_TYPES: Final = ("FQDN", "IPv4", "IPv6")
MAX_ENDPOINTS: Final = 1000
MAX_ADDRESSES: Final = 100
MAX_PORTS: Final = 20_000
MAX_TOPOLOGY_LABELS: Final = 16
MAX_HINTS: Final = 8
"""The most hints of each kind, zones and nodes."""

_CONTROLLERS: Final = ("endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io")
_HOSTNAME: Final = "kubernetes.io/hostname"
_ZONE: Final = "topology.kubernetes.io/zone"
_ENDPOINTS: Final = Path("endpoints")
_PORTS: Final = Path("ports")
_SHOWN: Final = 3


def _validate_ports(ports: Sequence[EndpointPort]) -> Iterator[FieldError]:
    if len(ports) > MAX_PORTS:
        yield too_many(_PORTS, len(ports), MAX_PORTS)
        return
    names: set[str] = set()
    for index, port in enumerate(ports):
        path = _PORTS[index]
        name = port.name or ""
        if name:
            yield from validate_dns1123_label(name, path / "name")
        yield from validate_unique(name, names, path / "name")
        if port.protocol is None:
            yield required(path / "protocol")
        elif port.protocol not in PROTOCOLS:
            yield not_supported(path / "protocol", port.protocol, PROTOCOLS)
        if port.app_protocol is not None:
            yield from validate_qualified_name(port.app_protocol, path / "appProtocol")


def _validate_endpoints(endpoints: Sequence[Endpoint], address_type: str) -> Iterator[FieldError]:
    if len(endpoints) > MAX_ENDPOINTS:
        yield too_many(_ENDPOINTS, len(endpoints), MAX_ENDPOINTS)
        return
    for index, endpoint in enumerate(endpoints):
        path = _ENDPOINTS[index]
        yield from _validate_addresses(endpoint.addresses or (), address_type, path / "addresses")
        if endpoint.node_name is not None:
            for message in name_is_dns_subdomain(endpoint.node_name, False):
                yield invalid(path / "nodeName", endpoint.node_name, message)
        yield from _validate_topology(endpoint.deprecated_topology, path / "deprecatedTopology")
        if endpoint.hostname is not None:
            yield from validate_dns1123_label(endpoint.hostname, path / "hostname")
        if endpoint.hints is not None:
            yield from _validate_hints(endpoint.hints, path / "hints")


def _validate_topology(topology: dict[str, str], path: Path) -> Iterator[FieldError]:
    if len(topology) > MAX_TOPOLOGY_LABELS:
        yield too_many(path, len(topology), MAX_TOPOLOGY_LABELS)
    yield from validate_labels(topology, path)
    if _ZONE in topology:
        yield internal(path[_ZONE], "reserved key was not removed in conversion")


def _validate_addresses(addresses: Sequence[str], address_type: str, path: Path) -> Iterator[FieldError]:
    if not addresses:
        yield required(path, "must contain at least 1 address")
    elif len(addresses) > MAX_ADDRESSES:
        yield too_many(path, len(addresses), MAX_ADDRESSES)
    for index, address in enumerate(addresses):
        if address_type == "FQDN":
            yield from _validate_domain_name(address, path[index])
        elif address_type in ("IPv4", "IPv6"):
            yield from _validate_ip(address, address_type, path, path[index])


def _validate_ip(address: str, address_type: str, path: Path, item: Path) -> Iterator[FieldError]:
    check = is_valid_ip_for_legacy_field if address_type == "IPv4" else is_valid_ip
    faults = list(check(address, item))
    yield from faults
    if faults:
        return
    parsed = parse_ip_sloppy(address)
    if parsed is not None and f"IPv{parsed.version}" != address_type:
        yield invalid(path, address, f"must be an {address_type} address")
    yield from validate_endpoint_ip(address, item)


def _validate_domain_name(name: str, path: Path) -> Iterator[FieldError]:
    """Validate a fully qualified domain name: at least two labels, with or without a final dot."""
    if not name:
        yield required(path)
        return
    name = name.removesuffix(".")
    if messages := is_dns1123_subdomain(name):
        yield invalid(path, name, ",".join(messages))
        return
    labels = name.split(".")
    if len(labels) < 2:
        yield invalid(path, name, "should be a domain with at least two segments separated by dots")
        return
    for label in labels:
        if messages := is_dns1123_label(label):
            yield invalid(path, label, ",".join(messages))
            return


def _validate_hints(hints: EndpointHints, path: Path) -> Iterator[FieldError]:
    zones, nodes, seen = path / "forZones", path / "forNodes", set[str]()
    if len(hints.for_zones) > MAX_HINTS:
        yield too_many(zones, len(hints.for_zones), MAX_HINTS)
        return
    for index, zone in enumerate(hints.for_zones):
        yield from validate_unique(zone.name, seen, zones[index] / "name")
        yield from validate_with(is_valid_label_value, zone.name, zones[index] / "name")
    if len(hints.for_nodes) > MAX_HINTS:
        yield too_many(nodes, len(hints.for_nodes), MAX_HINTS)
        return
    seen.clear()
    for index, node in enumerate(hints.for_nodes):
        yield from validate_unique(node.name, seen, nodes[index] / "name")
        yield from validate_name(name_is_dns_subdomain, node.name, nodes[index] / "name")


def _validate(new: EndpointSlice, old: EndpointSlice | None) -> Iterator[FieldError]:
    yield from validate_choice(new.address_type, ADDRESS_TYPES, Path("addressType"))
    yield from _validate_ports(new.ports or ())
    # Stored endpoints were valid when they were stored, so unchanged endpoints are not validated again.
    if old is None or (new.endpoints or []) != (old.endpoints or []):
        yield from _validate_endpoints(new.endpoints or (), new.address_type)


def _drop_topology(new: EndpointSlice, old: EndpointSlice | None) -> None:
    """Clear `deprecatedTopology`, which v1 does not write; a node name in the old object's moves to `nodeName`."""
    if old is not None and (new.endpoints or []) == (old.endpoints or []):
        return
    known = {endpoint.deprecated_topology.get(_HOSTNAME) for endpoint in (old.endpoints or ())} if old else set()
    for endpoint in new.endpoints or ():
        name = endpoint.deprecated_topology.get(_HOSTNAME)
        if endpoint.node_name is None and name and name in known and not name_is_dns_subdomain(name, False):
            endpoint.node_name = name
        endpoint.deprecated_topology = {}


class EndpointSliceStrategy(Strategy[EndpointSlice]):
    immutable = ("addressType",)

    def prepare_for_create(self, ctx: Context, obj: EndpointSlice) -> None:
        obj.metadata.generation = 1
        _drop_topology(obj, None)

    def validate(self, ctx: Context, obj: EndpointSlice) -> Iterator[FieldError]:
        return _validate(obj, None)

    def warnings_on_create(self, ctx: Context, obj: EndpointSlice) -> Iterator[str]:
        if obj.address_type == "FQDN":
            yield "spec.addressType: FQDN endpoints are deprecated"
        yield from _address_warnings(obj)

    def prepare_for_update(self, ctx: Context, new: EndpointSlice, old: EndpointSlice) -> None:
        if _content(new) != _content(old) or new.metadata.labels != old.metadata.labels:
            new.metadata.generation = old.metadata.generation + 1
        _drop_topology(new, old)

    def validate_update(self, ctx: Context, new: EndpointSlice, old: EndpointSlice) -> Iterator[FieldError]:
        yield from _validate(new, old)
        yield from super().validate_update(ctx, new, old)

    def warnings_on_update(self, ctx: Context, new: EndpointSlice, old: EndpointSlice) -> Iterator[str]:
        return _address_warnings(new)


def _content(slice_: EndpointSlice) -> tuple[object, ...]:
    """Return the content that determines the generation; an empty list equals a missing one."""
    return (slice_.address_type, slice_.endpoints or [], slice_.ports or [])


def _address_warnings(slice_: EndpointSlice) -> Iterator[str]:
    if slice_.metadata.labels.get(MANAGED_BY) in _CONTROLLERS:
        return
    for index, endpoint in enumerate(slice_.endpoints or ()):
        for place, address in enumerate(endpoint.addresses or ()):
            yield from warnings_for_ip(address, _ENDPOINTS[index].child("addresses")[place])


def default_endpoint_slice(slice_: EndpointSlice) -> None:
    """Set the defaults of SetDefaults_EndpointPort: a name, which may be empty, and TCP."""
    for port in slice_.ports or ():
        if port.name is None:
            port.name = ""
        if port.protocol is None:
            port.protocol = "TCP"


def _first(texts: list[str]) -> str:
    """Return the first three texts and the number of further ones."""
    shown = ",".join(texts[:_SHOWN])
    if len(texts) > _SHOWN:
        return f"{shown} + {len(texts) - _SHOWN} more..."
    return shown or "<unset>"


def _port_text(port: EndpointPort) -> str:
    if port.port is not None:
        return str(port.port)
    return port.name if port.name is not None else "*"


ENDPOINT_SLICES: Final = Resource(
    kind=built_in(EndpointSlice, default=default_endpoint_slice),
    plural="endpointslices",
    strategy=EndpointSliceStrategy(),
    name_validator=name_is_dns_subdomain,
    columns=(
        Column("AddressType", lambda s: s.address_type),
        Column("Ports", lambda s: _first([_port_text(port) for port in s.ports or ()])),
        Column("Endpoints", lambda s: _first([ip for each in s.endpoints or () for ip in each.addresses or ()])),
        AGE,
    ),
    storage_version_hash="qgS0xkrxYAI=",
)
