"""Endpoints: the addresses behind a Service in one object. Deprecated in favour of EndpointSlices."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final

from steersman.api.core.v1 import EndpointAddress, EndpointPort, Endpoints
from steersman.kinds.built_in import built_in
from steersman.machinery.errors.field import FieldError, Path, invalid, required
from steersman.machinery.validation.formats import is_valid_port_num
from steersman.machinery.validation.ip import is_valid_ip_for_legacy_field, warnings_for_ip
from steersman.machinery.validation.leaves import (
    validate_choice,
    validate_dns1123_label,
    validate_qualified_name,
    validate_with,
)
from steersman.machinery.validation.object_meta import name_is_dns_subdomain
from steersman.net.client.dial import host_port
from steersman.registry.validation.endpoint_addresses import PROTOCOLS, validate_endpoint_ip
from steersman.rest.context import Context
from steersman.rest.resource import AGE, Column, Resource
from steersman.rest.strategy import Strategy

MANAGED_BY: Final = "endpoints.kubernetes.io/managed-by"
_CONTROLLER: Final = "endpoint-controller"
_SUBSETS: Final = Path("subsets")
_SHOWN: Final = 3


def _validate_subsets(endpoints: Endpoints) -> Iterator[FieldError]:
    for index, subset in enumerate(endpoints.subsets):
        path = _SUBSETS[index]
        if not subset.addresses and not subset.not_ready_addresses:
            yield required(path, "must specify `addresses` or `notReadyAddresses`")
        for place, address in enumerate(subset.addresses):
            yield from _validate_address(address, path.child("addresses")[place])
        for place, address in enumerate(subset.not_ready_addresses):
            yield from _validate_address(address, path.child("notReadyAddresses")[place])
        for place, port in enumerate(subset.ports):
            yield from _validate_port(port, path.child("ports")[place], name_required=len(subset.ports) > 1)


def _validate_address(address: EndpointAddress, path: Path) -> Iterator[FieldError]:
    yield from is_valid_ip_for_legacy_field(address.ip, path / "ip")
    if address.hostname:
        yield from validate_dns1123_label(address.hostname, path / "hostname")
    if address.node_name is not None:
        for message in name_is_dns_subdomain(address.node_name, False):
            yield invalid(path / "nodeName", address.node_name, message)
    yield from validate_endpoint_ip(address.ip, path / "ip")


def _validate_port(port: EndpointPort, path: Path, *, name_required: bool) -> Iterator[FieldError]:
    if port.name:
        yield from validate_dns1123_label(port.name, path / "name")
    elif name_required:
        yield required(path / "name")
    yield from validate_with(is_valid_port_num, port.port, path / "port")
    yield from validate_choice(port.protocol, PROTOCOLS, path / "protocol")
    if port.app_protocol is not None:
        yield from validate_qualified_name(port.app_protocol, path / "appProtocol")


class EndpointsStrategy(Strategy[Endpoints]):
    allow_create_on_update = True

    def validate(self, ctx: Context, obj: Endpoints) -> Iterator[FieldError]:
        return _validate_subsets(obj)

    def warnings(self, ctx: Context, obj: Endpoints) -> Iterator[str]:
        if obj.metadata.labels.get(MANAGED_BY) == _CONTROLLER:
            return
        for index, subset in enumerate(obj.subsets):
            for member, addresses in (
                ("addresses", subset.addresses),
                ("notReadyAddresses", subset.not_ready_addresses),
            ):
                for place, address in enumerate(addresses):
                    yield from warnings_for_ip(address.ip, _SUBSETS[index].child(member)[place] / "ip")

    def validate_update(self, ctx: Context, new: Endpoints, old: Endpoints) -> Iterator[FieldError]:
        if new.subsets != old.subsets:
            yield from _validate_subsets(new)


def default_endpoints(endpoints: Endpoints) -> None:
    """Set the defaults of SetDefaults_Endpoints: ports are TCP."""
    for subset in endpoints.subsets:
        for port in subset.ports:
            port.protocol = port.protocol or "TCP"


def _ready_addresses(endpoints: Endpoints) -> Iterator[str]:
    """Yield the ready addresses, each combined with every port of its subset."""
    for subset in endpoints.subsets:
        if not subset.ports:
            yield from (address.ip for address in subset.addresses)
        for port in subset.ports:
            yield from (host_port(address.ip, port.port) for address in subset.addresses)


def format_endpoints(endpoints: Endpoints) -> str:
    """Return the first three addresses and the number of further ones."""
    if not endpoints.subsets:
        return "<none>"
    text = ",".join(islice(_ready_addresses(endpoints), _SHOWN))
    more = sum(len(subset.addresses) * (len(subset.ports) or 1) for subset in endpoints.subsets) - _SHOWN
    return f"{text} + {more} more..." if more > 0 else text


ENDPOINTS: Final = Resource(
    kind=built_in(Endpoints, default=default_endpoints),
    plural="endpoints",
    short_names=("ep",),
    strategy=EndpointsStrategy(),
    name_validator=name_is_dns_subdomain,
    revalidates_metadata=True,
    columns=(Column("Endpoints", format_endpoints), AGE),
    storage_prefix="services/endpoints",
    storage_version_hash="fWeeMqaN/OA=",
    deprecation_warning="v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
)
