"""Validation of Services and of their updates (pkg/apis/core/validation)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Final

from steersman.api.core.v1 import LoadBalancerStatus, Service, ServicePort, SessionAffinityConfig
from steersman.machinery.errors.field import FieldError, Path, duplicate, forbidden, invalid, not_supported, required
from steersman.machinery.go.strings import trim_space
from steersman.machinery.validation.formats import is_dns1123_subdomain, is_valid_port_num
from steersman.machinery.validation.ip import (
    is_valid_cidr_for_legacy_field,
    is_valid_ip_for_legacy_field,
    parse_ip_sloppy,
)
from steersman.machinery.validation.leaves import (
    validate_choice,
    validate_dns1123_label,
    validate_qualified_name,
    validate_supported,
    validate_unique,
    validate_with,
)
from steersman.machinery.validation.selectors import validate_labels
from steersman.registry.core.services.fields import (
    CLUSTER_IP,
    EXTERNAL_NAME,
    IPV4,
    IPV6,
    LOAD_BALANCER,
    NODE_PORT,
    NONE,
    PREFER_DUAL_STACK,
    REQUIRE_DUAL_STACK,
    SINGLE_STACK,
    is_externally_accessible,
    is_headless,
    needs_health_check,
)
from steersman.registry.pod_template.validation.paths import validate_port_number_or_name
from steersman.registry.printing.go_struct import go_struct
from steersman.registry.validation.endpoint_addresses import PROTOCOLS, validate_endpoint_ip

TOPOLOGY_HINTS: Final = "service.kubernetes.io/topology-aware-hints"
TOPOLOGY_MODE: Final = "service.kubernetes.io/topology-mode"
SOURCE_RANGES: Final = "service.beta.kubernetes.io/load-balancer-source-ranges"
"""The annotation that preceded `spec.loadBalancerSourceRanges`."""
TYPES: Final = (CLUSTER_IP, EXTERNAL_NAME, LOAD_BALANCER, NODE_PORT)
TRAFFIC_POLICIES: Final = ("Cluster", "Local")
TRAFFIC_DISTRIBUTIONS: Final = ("PreferClose", "PreferSameZone", "PreferSameNode")
AFFINITIES: Final = ("ClientIP", NONE)
FAMILIES: Final = (IPV4, IPV6)
FAMILY_POLICIES: Final = (PREFER_DUAL_STACK, REQUIRE_DUAL_STACK, SINGLE_STACK)
MAX_AFFINITY_SECONDS: Final = 86_400

_SPEC: Final = Path("spec")
_ADDRESSES: Final = _SPEC / "clusterIPs"
_PORTS: Final = _SPEC / "ports"
_ONLY_LOAD_BALANCER: Final = "may only be used when `type` is 'LoadBalancer'"
_SET_ONCE: Final = "may not change once set"


def validate_service(service: Service, old: Service | None) -> Iterator[FieldError]:
    """Validate everything but metadata; addresses in legacy forms that `old` has may stay in an update."""
    spec = service.spec
    yield from _validate_topology_annotations(service)
    if not spec.ports and not is_headless(service) and spec.type != EXTERNAL_NAME:
        yield required(_PORTS)
    yield from _validate_type_fields(service)
    yield from _validate_port_list(service)
    yield from validate_labels(spec.selector, _SPEC / "selector")
    yield from _validate_affinity(service)
    yield from validate_cluster_ips(service, old)
    known = set(old.spec.external_ips) if old is not None else set()
    for index, address in enumerate(spec.external_ips):
        path = _SPEC.child("externalIPs")[index]
        faults = list(is_valid_ip_for_legacy_field(address, path, valid_old=known))
        yield from faults or validate_endpoint_ip(address, path)
    yield from validate_choice(spec.type, TYPES, _SPEC / "type")
    yield from _validate_port_numbers(service)
    yield from _validate_source_ranges(service, old)
    if spec.allocate_load_balancer_node_ports is not None and spec.type != LOAD_BALANCER:
        yield forbidden(_SPEC / "allocateLoadBalancerNodePorts", _ONLY_LOAD_BALANCER)
    if spec.type == LOAD_BALANCER and spec.allocate_load_balancer_node_ports is None:
        yield required(Path("allocateLoadBalancerNodePorts"))
    yield from _validate_load_balancer_class(service, None)
    yield from _validate_external_traffic(service)
    yield from _validate_internal_traffic(service)
    distribution = spec.traffic_distribution
    if distribution is not None and distribution not in TRAFFIC_DISTRIBUTIONS:
        yield not_supported(_SPEC / "trafficDistribution", distribution, TRAFFIC_DISTRIBUTIONS)


def _validate_topology_annotations(service: Service) -> Iterator[FieldError]:
    annotations = service.metadata.annotations
    hints, mode = annotations.get(TOPOLOGY_HINTS), annotations.get(TOPOLOGY_MODE)
    if hints is not None and mode is not None and hints != mode:
        detail = f"must match annotations[{TOPOLOGY_HINTS}] when both are specified"
        yield invalid(Path("metadata", "annotations")[TOPOLOGY_MODE], mode, detail)


def _validate_type_fields(service: Service) -> Iterator[FieldError]:
    spec = service.spec
    if spec.type in (LOAD_BALANCER, NODE_PORT) and is_headless(service):
        detail = f"may not be set to 'None' for {spec.type} services"
        yield invalid(_ADDRESSES[0], spec.cluster_ips[0], detail)
    if spec.type != EXTERNAL_NAME:
        return
    detail = "may not be set for ExternalName services"
    if spec.cluster_ips:
        yield forbidden(_ADDRESSES, detail)
    if spec.ip_families:
        yield forbidden(_SPEC / "ipFamilies", detail)
    if spec.ip_family_policy is not None:
        yield forbidden(_SPEC / "ipFamilyPolicy", detail)
    name = spec.external_name.removesuffix(".")
    if not name:
        yield required(_SPEC / "externalName")
    for message in is_dns1123_subdomain(name) if name else ():
        yield invalid(_SPEC / "externalName", name, message)


def _validate_port_list(service: Service) -> Iterator[FieldError]:
    ports = service.spec.ports
    names: set[str] = set()
    for index, port in enumerate(ports):
        yield from _validate_port(port, _PORTS[index], names, name_required=len(ports) > 1)


def _validate_port(port: ServicePort, path: Path, names: set[str], *, name_required: bool) -> Iterator[FieldError]:
    """Validate one port; `names` has the names of the ports before it, and its own name is added."""
    if port.name:
        yield from validate_dns1123_label(port.name, path / "name")
        yield from validate_unique(port.name, names, path / "name")
    elif name_required:
        yield required(path / "name")
    yield from validate_with(is_valid_port_num, port.port, path / "port")
    yield from validate_choice(port.protocol, PROTOCOLS, path / "protocol")
    yield from validate_port_number_or_name(port.target_port, path / "targetPort")
    if port.app_protocol is not None:
        yield from validate_qualified_name(port.app_protocol, path / "appProtocol")


def _validate_affinity(service: Service) -> Iterator[FieldError]:
    affinity, path = service.spec.session_affinity, _SPEC / "sessionAffinity"
    yield from validate_choice(affinity, AFFINITIES, path)
    config, path = service.spec.session_affinity_config, _SPEC / "sessionAffinityConfig"
    if affinity == "ClientIP":
        yield from _validate_affinity_config(config, path)
    elif affinity == NONE and config is not None:
        yield forbidden(path, "must not be set when session affinity is None")


def _validate_affinity_config(config: SessionAffinityConfig | None, path: Path) -> Iterator[FieldError]:
    detail = "when session affinity type is ClientIP"
    if config is None:
        yield required(path, detail)
    elif config.client_ip is None:
        yield required(path / "clientIP", detail)
    elif config.client_ip.timeout_seconds is None:
        yield required(path.child("clientIP", "timeoutSeconds"), detail)
    elif not 0 < config.client_ip.timeout_seconds <= MAX_AFFINITY_SECONDS:
        detail = f"must be greater than 0 and less than {MAX_AFFINITY_SECONDS}"
        yield invalid(path.child("clientIP", "timeoutSeconds"), config.client_ip.timeout_seconds, detail)


def validate_cluster_ips(service: Service, old: Service | None) -> Iterator[FieldError]:
    """Validate addresses and families as far as possible without the families of the cluster."""
    spec = service.spec
    if spec.type == EXTERNAL_NAME:
        return
    addresses = spec.cluster_ips
    if spec.cluster_ip:
        if not addresses:
            yield required(_ADDRESSES)
        elif addresses[0] != spec.cluster_ip:
            yield invalid(_ADDRESSES, addresses, "first value must match `clusterIP`")
    elif addresses:
        yield invalid(_ADDRESSES, addresses, "must be empty when `clusterIP` is not specified")
    yield from _validate_families(service)
    faults = list(_validate_address_forms(addresses, old.spec.cluster_ips if old is not None else ()))
    yield from faults
    if len(addresses) > 2:
        yield invalid(_ADDRESSES, addresses, "may only hold up to 2 values")
    if faults:
        return
    if len(addresses) > 1 and len({_version(address) for address in addresses}) != 2:
        yield invalid(_ADDRESSES, addresses, "may specify no more than one IP for each IP family")
    if is_headless(service):
        return
    for index, (address, family) in enumerate(zip(addresses, spec.ip_families, strict=False)):
        if family in FAMILIES and f"IPv{_version(address)}" != family:
            detail = f"expected an {family} value as indicated by `ipFamilies[{index}]`"
            yield invalid(_ADDRESSES[index], address, detail)


def _version(address: str) -> int:
    parsed = parse_ip_sloppy(address)
    return 0 if parsed is None else parsed.version


def _validate_families(service: Service) -> Iterator[FieldError]:
    path, seen = _SPEC / "ipFamilies", set[str]()
    for index, family in enumerate(service.spec.ip_families):
        yield from validate_supported(family, FAMILIES, path[index])
        yield from validate_unique(family, seen, path[index])
    policy = service.spec.ip_family_policy
    if policy is not None and policy not in FAMILY_POLICIES:
        yield not_supported(_SPEC / "ipFamilyPolicy", policy, FAMILY_POLICIES)


def _validate_address_forms(addresses: Sequence[str], known: Collection[str]) -> Iterator[FieldError]:
    for index, address in enumerate(addresses):
        if index == 0 and address == NONE:
            if len(addresses) > 1:
                yield invalid(_ADDRESSES, list(addresses), "'None' must be the first and only value")
            continue
        yield from is_valid_ip_for_legacy_field(address, _ADDRESSES[index], valid_old=known)


def _validate_port_numbers(service: Service) -> Iterator[FieldError]:
    """Validate that no port and no node port is used twice with one protocol."""
    spec = service.spec
    if spec.type == CLUSTER_IP:
        for index, port in enumerate(spec.ports):
            if port.node_port:
                yield forbidden(_PORTS[index] / "nodePort", "may not be used when `type` is 'ClusterIP'")
    seen: set[tuple[str, int]] = set()
    for index, port in enumerate(spec.ports):
        if port.node_port:
            if (port.protocol, port.node_port) in seen:
                yield duplicate(_PORTS[index] / "nodePort", port.node_port)
            seen.add((port.protocol, port.node_port))
    seen = set()
    for index, port in enumerate(spec.ports):
        if (port.protocol, port.port) in seen:
            yield duplicate(_PORTS[index], _port_value(port))
        seen.add((port.protocol, port.port))


def _port_value(port: ServicePort) -> object:
    """Return a port with only protocol and number, in the form of upstream's internal type."""
    return go_struct(Name="", Protocol=port.protocol, AppProtocol=None, Port=port.port, TargetPort=0, NodePort=0)


def _validate_source_ranges(service: Service, old: Service | None) -> Iterator[FieldError]:
    spec, annotations = service.spec, service.metadata.annotations
    if spec.load_balancer_source_ranges:
        path = _SPEC / "LoadBalancerSourceRanges"
        if spec.type != LOAD_BALANCER:
            yield forbidden(path, _ONLY_LOAD_BALANCER)
        known = {trim_space(text) for text in old.spec.load_balancer_source_ranges} if old is not None else set()
        for index, text in enumerate(spec.load_balancer_source_ranges):
            yield from is_valid_cidr_for_legacy_field(trim_space(text), path[index], valid_old=known)
    elif (annotation := annotations.get(SOURCE_RANGES)) is not None:
        path = Path("metadata", "annotations")[SOURCE_RANGES]
        if spec.type != LOAD_BALANCER:
            yield forbidden(path, _ONLY_LOAD_BALANCER)
        unchanged = old is not None and old.metadata.annotations.get(SOURCE_RANGES, "") == annotation
        for text in trim_space(annotation).split(",") if trim_space(annotation) and not unchanged else ():
            yield from is_valid_cidr_for_legacy_field(trim_space(text), path)


def _validate_load_balancer_class(service: Service, old: Service | None) -> Iterator[FieldError]:
    spec, path = service.spec, _SPEC / "loadBalancerClass"
    if (
        old is not None
        and old.spec.type == spec.type == LOAD_BALANCER
        and old.spec.load_balancer_class != spec.load_balancer_class
    ):
        yield invalid(path, spec.load_balancer_class, _SET_ONCE)
    if spec.load_balancer_class is None:
        return
    if spec.type == LOAD_BALANCER:
        yield from validate_qualified_name(spec.load_balancer_class, path)
    else:
        yield forbidden(path, _ONLY_LOAD_BALANCER)


def _validate_external_traffic(service: Service) -> Iterator[FieldError]:
    spec = service.spec
    policy, path = spec.external_traffic_policy, _SPEC / "externalTrafficPolicy"
    if not is_externally_accessible(service):
        if policy:
            yield invalid(path, policy, "may only be set for externally-accessible services")
    elif not policy:
        yield required(path)
    elif policy not in TRAFFIC_POLICIES:
        yield not_supported(path, policy, TRAFFIC_POLICIES)
    port, path = spec.health_check_node_port, _SPEC / "healthCheckNodePort"
    if not needs_health_check(service):
        if port:
            detail = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
            yield invalid(path, port, detail)
    elif not port:
        yield required(path)
    else:
        yield from validate_with(is_valid_port_num, port, path)


def _validate_internal_traffic(service: Service) -> Iterator[FieldError]:
    policy, path = service.spec.internal_traffic_policy, _SPEC / "internalTrafficPolicy"
    if policy is None:
        if service.spec.type in (CLUSTER_IP, NODE_PORT, LOAD_BALANCER):
            yield required(path)
    elif policy not in TRAFFIC_POLICIES:
        yield not_supported(path, policy, TRAFFIC_POLICIES)


def validate_service_update(new: Service, old: Service) -> Iterator[FieldError]:
    """Validate an update: immutable fields first, then the new service."""
    yield from _validate_address_change(new, old)
    yield from _validate_family_change(new, old)
    yield from _validate_load_balancer_class(new, old)
    if (
        needs_health_check(old)
        and needs_health_check(new)
        and old.spec.health_check_node_port != new.spec.health_check_node_port
    ):
        yield forbidden(_SPEC / "healthCheckNodePort", "field is immutable")
    yield from validate_service(new, old)


def _validate_address_change(new: Service, old: Service) -> Iterator[FieldError]:
    if EXTERNAL_NAME in (new.spec.type, old.spec.type) or (is_headless(new) and is_headless(old)):
        return
    before, after = old.spec.cluster_ips, new.spec.cluster_ips
    if len(before) == len(after):
        for index, (was, is_) in enumerate(zip(before, after, strict=True)):
            if was != is_:
                yield invalid(_ADDRESSES[index], after, _SET_ONCE)
        return
    if not after:
        yield invalid(_ADDRESSES[0], None, "primary clusterIP can not be unset")
    elif before and before[0] != after[0]:
        yield invalid(_ADDRESSES[0], after, _SET_ONCE)
    if len(after) == 1 < len(before) and new.spec.ip_family_policy != SINGLE_STACK:
        detail = "must be set to 'SingleStack' when releasing the secondary clusterIP"
        yield invalid(_SPEC / "ipFamilyPolicy", new.spec.ip_family_policy, detail)


def _validate_family_change(new: Service, old: Service) -> Iterator[FieldError]:
    if EXTERNAL_NAME in (new.spec.type, old.spec.type) or is_headless(new) or is_headless(old):
        return
    path = (_SPEC / "ipFamilies")[0]
    before, after = old.spec.ip_families, new.spec.ip_families
    if len(before) == len(after):
        for was, is_ in zip(before, after, strict=True):
            if was != is_:
                yield invalid(path, after, _SET_ONCE)
        return
    if len(before) > len(after) and not new.spec.cluster_ips:
        yield invalid(path, after or None, "primary ipFamily can not be unset")
    if before and after and before[0] != after[0]:
        yield invalid(path, new.spec.cluster_ips, _SET_ONCE)
    if len(after) == 1 < len(before) and new.spec.ip_family_policy != SINGLE_STACK:
        detail = "must be set to 'SingleStack' when releasing the secondary ipFamily"
        yield invalid(_SPEC / "ipFamilyPolicy", new.spec.ip_family_policy, detail)


def validate_load_balancer_status(
    status: LoadBalancerStatus, old: LoadBalancerStatus, service_type: str
) -> Iterator[FieldError]:
    """Validate the ingress points that a load balancer reports."""
    path = Path("status", "loadBalancer", "ingress")
    if service_type != LOAD_BALANCER and status.ingress:
        yield forbidden(path, "may only be used when `spec.type` is 'LoadBalancer'")
        return
    known = {ingress.ip for ingress in old.ingress if ingress.ip}
    for index, ingress in enumerate(status.ingress):
        item = path[index]
        if ingress.ip:
            yield from is_valid_ip_for_legacy_field(ingress.ip, item / "ip", valid_old=known)
        if ingress.ip_mode is None:
            if ingress.ip:
                yield required(item / "ipMode", "must be specified when `ip` is set")
        elif not ingress.ip:
            yield forbidden(item / "ipMode", "may not be specified when `ip` is not set")
        elif ingress.ip_mode not in ("Proxy", "VIP"):
            yield not_supported(item / "ipMode", ingress.ip_mode, ("Proxy", "VIP"))
        if ingress.hostname:
            yield from validate_with(is_dns1123_subdomain, ingress.hostname, item / "hostname")
            if parse_ip_sloppy(ingress.hostname) is not None:
                yield invalid(item / "hostname", ingress.hostname, "must be a DNS name, not an IP address")
