"""The fields of a Service that belong together, and the completion of updates.

Services are a union with `type` as the discriminator. Clients read a service, change its type and write it back with
the fields of the old type. So such fields are cleared if the client did not change them (pkg/registry/core/service,
`dropTypeDependentFields`, `patchAllocatedValues`, `normalizeClusterIPs`).
"""

from __future__ import annotations

from typing import Final

from steersman.api.core.v1 import LoadBalancerStatus, Service

NONE: Final = "None"
"""The clusterIP of a headless service."""
CLUSTER_IP: Final = "ClusterIP"
NODE_PORT: Final = "NodePort"
LOAD_BALANCER: Final = "LoadBalancer"
EXTERNAL_NAME: Final = "ExternalName"
IPV4: Final = "IPv4"
IPV6: Final = "IPv6"
SINGLE_STACK: Final = "SingleStack"
PREFER_DUAL_STACK: Final = "PreferDualStack"
REQUIRE_DUAL_STACK: Final = "RequireDualStack"


def is_headless(service: Service) -> bool:
    """Return True if the service has no address on purpose."""
    return service.spec.cluster_ips == [NONE]


def needs_cluster_ip(service: Service) -> bool:
    """Return True if the type has addresses ("None" counts as an address)."""
    return service.spec.type != EXTERNAL_NAME


def has_node_ports(service: Service) -> bool:
    """Return True if the type may have node ports."""
    return service.spec.type in (NODE_PORT, LOAD_BALANCER)


def needs_node_port(service: Service) -> bool:
    """Return True if node ports must be allocated for the service."""
    return service.spec.type == NODE_PORT or (
        service.spec.type == LOAD_BALANCER and service.spec.allocate_load_balancer_node_ports is not False
    )


def needs_health_check(service: Service) -> bool:
    """Return True if the service needs a port on which nodes report local endpoints to a load balancer."""
    return service.spec.type == LOAD_BALANCER and service.spec.external_traffic_policy == "Local"


def is_externally_accessible(service: Service) -> bool:
    """Return True if traffic from outside the cluster reaches the service."""
    return has_node_ports(service) or (service.spec.type == CLUSTER_IP and bool(service.spec.external_ips))


def family_of(address: str) -> str:
    """Return IPv4 or IPv6."""
    return IPV6 if ":" in address else IPV4


def other_family(family: str) -> str:
    """Return the opposite of `family`, which is IPv4 or IPv6."""
    return IPV4 if family == IPV6 else IPV6


def node_ports_of(service: Service) -> list[int]:
    """Return the node ports that are set, in order and with repetitions."""
    return [port.node_port for port in service.spec.ports if port.node_port]


def distinct_ports_of(service: Service) -> list[int]:
    """Return the node ports that are set, with that of the health check.

    A port that several protocols share is listed once; a port that one protocol has twice is listed twice.
    """
    distinct_ports: list[int] = []
    protocols: dict[int, set[str]] = {}
    for port in service.spec.ports:
        known = protocols.setdefault(port.node_port, set())
        if port.node_port and (not known or port.protocol in known):
            distinct_ports.append(port.node_port)
        known.add(port.protocol)
    health_check = service.spec.health_check_node_port
    if health_check and "TCP" in protocols.get(health_check, {"TCP"}):
        distinct_ports.append(health_check)
    return distinct_ports


def same_cluster_ips(old: Service, new: Service) -> bool:
    """Return True if the list of addresses is unchanged."""
    return old.spec.cluster_ips == new.spec.cluster_ips


def drop_type_dependent_fields(new: Service, old: Service) -> None:
    """Clear fields that the new type does not have, if the client left them unchanged."""
    before, after = old.spec, new.spec
    if needs_cluster_ip(old) and not needs_cluster_ip(new):
        if before.cluster_ip == after.cluster_ip and same_cluster_ips(old, new):
            after.cluster_ip, after.cluster_ips = "", []
        if before.ip_families == after.ip_families:
            after.ip_families = []
        if (before.ip_family_policy or "") == (after.ip_family_policy or ""):
            after.ip_family_policy = None
    if has_node_ports(old) and not has_node_ports(new) and set(node_ports_of(new)) <= set(node_ports_of(old)):
        for port in after.ports:
            port.node_port = 0
    if (
        needs_health_check(old)
        and not needs_health_check(new)
        and before.health_check_node_port == after.health_check_node_port
    ):
        after.health_check_node_port = 0
    if before.type == LOAD_BALANCER and after.type != LOAD_BALANCER:
        if before.allocate_load_balancer_node_ports == after.allocate_load_balancer_node_ports:
            after.allocate_load_balancer_node_ports = None
        if before.load_balancer_class == after.load_balancer_class:
            after.load_balancer_class = None
    if (
        is_externally_accessible(old)
        and not is_externally_accessible(new)
        and before.external_traffic_policy == after.external_traffic_policy
    ):
        after.external_traffic_policy = ""
    if after.type != LOAD_BALANCER:
        new.status.load_balancer = LoadBalancerStatus()


def patch_allocated_values(new: Service, old: Service) -> None:
    """Restore allocated values that an update omits, as an update by a client that has not read the service does."""
    before, after = old.spec, new.spec
    if needs_cluster_ip(old) and needs_cluster_ip(new):
        after.cluster_ip = after.cluster_ip or before.cluster_ip
        after.cluster_ips = after.cluster_ips or list(before.cluster_ips)
    if needs_node_port(old) and needs_node_port(new):
        kept = set(node_ports_of(old)) & set(node_ports_of(new))
        by_name = {port.name: port.node_port for port in before.ports}
        for port in after.ports:
            former = by_name.get(port.name, 0)
            if not port.node_port and former not in kept:
                port.node_port = former
    if needs_health_check(old) and needs_health_check(new) and not after.health_check_node_port:
        after.health_check_node_port = before.health_check_node_port


def normalize_cluster_ips(new: Service, old: Service | None) -> None:
    """Make `clusterIP` and `clusterIPs` agree if the client set only one of them."""
    after = new.spec
    if old is None:
        if after.cluster_ip and not after.cluster_ips:
            after.cluster_ips = [after.cluster_ip]
        return
    before = old.spec
    if before.cluster_ips and not after.cluster_ips and before.cluster_ip == after.cluster_ip:
        after.cluster_ips = list(before.cluster_ips)
    if before.cluster_ip != after.cluster_ip and same_cluster_ips(old, new):
        after.cluster_ips = [after.cluster_ip] if after.cluster_ip or not before.cluster_ip else []


def default_on_read(service: Service, primary_family: str) -> None:
    """Fill in fields that services stored by older servers lack."""
    normalize_cluster_ips(service, None)
    spec = service.spec
    if needs_cluster_ip(service) and not spec.ip_families:
        _default_families(service, primary_family)
    if spec.type == EXTERNAL_NAME:
        spec.internal_traffic_policy = None


def _default_families(service: Service, primary_family: str) -> None:
    spec = service.spec
    if spec.cluster_ip == NONE:
        both = not spec.selector
        spec.ip_families = [primary_family, other_family(primary_family)] if both else [primary_family]
    else:
        spec.ip_families = [family_of(address) for address in spec.cluster_ips]
    if spec.ip_families:
        spec.ip_family_policy = SINGLE_STACK if len(spec.ip_families) == 1 else REQUIRE_DUAL_STACK
