"""Services: a name and a virtual address for a set of pods."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from steersman.api.core.v1 import ClientIPConfig, Service, ServiceProxyOptions, SessionAffinityConfig
from steersman.kinds.built_in import built_in
from steersman.machinery.errors.field import FieldError, Path, quote
from steersman.machinery.errors.status import StatusError
from steersman.machinery.validation.ip import warnings_for_cidr, warnings_for_ip
from steersman.machinery.validation.object_meta import name_is_dns_label
from steersman.registry.core.services.allocation import ServiceAllocation
from steersman.registry.core.services.fields import (
    CLUSTER_IP,
    EXTERNAL_NAME,
    LOAD_BALANCER,
    NODE_PORT,
    NONE,
    default_on_read,
    drop_type_dependent_fields,
    is_externally_accessible,
    normalize_cluster_ips,
    patch_allocated_values,
)
from steersman.registry.core.services.validation import (
    TOPOLOGY_HINTS,
    TOPOLOGY_MODE,
    validate_load_balancer_status,
    validate_service,
    validate_service_update,
)
from steersman.registry.scale import selector_text
from steersman.registry.services import Services
from steersman.rest.allocator import Allocator, FinishFunc
from steersman.rest.context import Context, loopback
from steersman.rest.resource import AGE, Column, Resource, Subresource
from steersman.rest.strategy import StatusStrategy, Strategy
from steersman.work.first_use import on_first_use

AFFINITY_SECONDS: Final = 10_800
"""Default session affinity timeout in seconds."""

_SPEC: Final = Path("spec")


class ServiceAllocator(Allocator[Service]):
    """The Allocator of services: their addresses and ports."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._allocation = ServiceAllocation(services)

    async def repair(self) -> None:
        """Bring the allocated ports in line with the stored services; upstream does so every three minutes."""
        await self._allocation.repair()

    async def allocate(self, ctx: Context, new: Service, old: Service | None) -> FinishFunc | None:
        if old is None:
            normalize_cluster_ips(new, None)
            return await self._allocation.for_create(new, ctx.action.namespace, dry_run=ctx.dry_run)
        default_on_read(old, self._allocation.cluster_ips.families[0])
        patch_allocated_values(new, old)
        normalize_cluster_ips(new, old)
        return await self._allocation.for_update(new, old, ctx.action.namespace, dry_run=ctx.dry_run)

    async def release(self, ctx: Context, obj: Service) -> None:
        """Delete the Endpoints of the same name, and release the addresses and ports of a deleted service."""
        default_on_read(obj, self._allocation.cluster_ips.families[0])
        namespace, name = obj.metadata.namespace, obj.metadata.name
        try:
            await self._services.objects("", "endpoints").delete(loopback(namespace, name), name)
        except StatusError as error:
            if error.code != 404:
                raise
        await self._allocation.release(obj)


class ServiceStrategy(Strategy[Service]):
    allow_create_on_update = True
    resets = ("status",)

    def validate(self, ctx: Context, obj: Service) -> Iterator[FieldError]:
        return validate_service(obj, None)

    def warnings(self, ctx: Context, obj: Service) -> Iterator[str]:
        return _warnings(obj)

    def canonicalize(self, obj: Service) -> None:
        if obj.spec.type == EXTERNAL_NAME:
            obj.spec.internal_traffic_policy = None

    def prepare_for_update(self, ctx: Context, new: Service, old: Service) -> None:
        super().prepare_for_update(ctx, new, old)
        drop_type_dependent_fields(new, old)

    def validate_update(self, ctx: Context, new: Service, old: Service) -> Iterator[FieldError]:
        return validate_service_update(new, old)


class ServiceStatusStrategy(StatusStrategy[Service]):
    allow_create_on_update = True

    def validate_update(self, ctx: Context, new: Service, old: Service) -> Iterator[FieldError]:
        return validate_load_balancer_status(new.status.load_balancer, old.status.load_balancer, new.spec.type)

    def warnings_on_update(self, ctx: Context, new: Service, old: Service) -> Iterator[str]:
        path = Path("status", "loadBalancer", "ingress")
        for index, ingress in enumerate(new.status.load_balancer.ingress):
            yield from warnings_for_ip(ingress.ip, path[index])


def _warnings(service: Service) -> Iterator[str]:
    spec = service.spec
    headless = spec.type == CLUSTER_IP and spec.cluster_ip == NONE
    if TOPOLOGY_HINTS in service.metadata.annotations:
        yield f"annotation {TOPOLOGY_HINTS} is deprecated, please use {TOPOLOGY_MODE} instead"
    if spec.cluster_ip not in ("", NONE):
        for index, address in enumerate(spec.cluster_ips):
            yield from warnings_for_ip(address, _SPEC.child("clusterIPs")[index])
    if headless:
        if spec.load_balancer_ip:
            yield "spec.loadBalancerIP is ignored for headless services"
        if spec.external_ips:
            yield "spec.externalIPs is ignored for headless services"
        if spec.session_affinity != NONE:
            yield "spec.SessionAffinity is ignored for headless services"
    for index, address in enumerate(spec.external_ips):
        yield from warnings_for_ip(address, _SPEC.child("externalIPs")[index])
    if spec.external_ips and not headless and spec.type != EXTERNAL_NAME:
        yield "spec.externalIPs is deprecated and may no longer be implemented in some clusters"
    if spec.load_balancer_ip:
        yield from warnings_for_ip(spec.load_balancer_ip, _SPEC / "loadBalancerIP")
    for index, cidr in enumerate(spec.load_balancer_source_ranges):
        yield from warnings_for_cidr(cidr, _SPEC.child("loadBalancerSourceRanges")[index])
    if spec.type == EXTERNAL_NAME and spec.external_ips:
        yield f"spec.externalIPs is ignored when spec.type is {quote(EXTERNAL_NAME)}"
    if spec.type != EXTERNAL_NAME and spec.external_name:
        yield f"spec.externalName is ignored when spec.type is not {quote(EXTERNAL_NAME)}"
    if spec.traffic_distribution == "PreferClose":
        yield 'spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"'


def _default_affinity(service: Service) -> None:
    spec = service.spec
    spec.session_affinity = spec.session_affinity or NONE
    if spec.session_affinity == NONE:
        spec.session_affinity_config = None
    elif spec.session_affinity == "ClientIP":
        config = spec.session_affinity_config
        if config is None or config.client_ip is None or config.client_ip.timeout_seconds is None:
            client_ip = ClientIPConfig(timeout_seconds=AFFINITY_SECONDS)
            spec.session_affinity_config = SessionAffinityConfig(client_ip=client_ip)


def default_service(service: Service) -> None:
    """Set the defaults of SetDefaults_Service."""
    spec = service.spec
    _default_affinity(service)
    spec.type = spec.type or CLUSTER_IP
    for port in spec.ports:
        port.protocol = port.protocol or "TCP"
        if port.target_port in (0, ""):
            port.target_port = port.port
    if is_externally_accessible(service) and not spec.external_traffic_policy:
        spec.external_traffic_policy = "Cluster"
    if spec.internal_traffic_policy is None and spec.type in (NODE_PORT, LOAD_BALANCER, CLUSTER_IP):
        spec.internal_traffic_policy = "Cluster"
    if spec.type == LOAD_BALANCER:
        if spec.allocate_load_balancer_node_ports is None:
            spec.allocate_load_balancer_node_ports = True
        for ingress in service.status.load_balancer.ingress:
            if ingress.ip and ingress.ip_mode is None:
                ingress.ip_mode = "VIP"


def _external_ip(service: Service) -> str:
    spec = service.spec
    if spec.type in (CLUSTER_IP, NODE_PORT):
        return ",".join(spec.external_ips) or "<none>"
    if spec.type == LOAD_BALANCER:
        ingress = {each.ip or each.hostname for each in service.status.load_balancer.ingress} - {""}
        return ",".join([*sorted(ingress), *spec.external_ips]) or "<pending>"
    return spec.external_name if spec.type == EXTERNAL_NAME else "<unknown>"


def _ports(service: Service) -> str:
    return (
        ",".join(
            f"{port.port}:{port.node_port}/{port.protocol}" if port.node_port else f"{port.port}/{port.protocol}"
            for port in service.spec.ports
        )
        or "<none>"
    )


def _cluster_ip(service: Service) -> str:
    return service.spec.cluster_ips[0] if service.spec.cluster_ips else "<none>"


PROXY_METHODS: Final = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS")

SERVICES: Final = Resource(
    kind=built_in(Service, default=default_service),
    plural="services",
    short_names=("svc",),
    categories=("all",),
    strategy=ServiceStrategy(),
    allocator=ServiceAllocator,
    name_validator=name_is_dns_label,
    columns=(
        Column("Type", lambda s: s.spec.type),
        Column("Cluster-IP", _cluster_ip),
        Column("External-IP", _external_ip),
        Column("Port(s)", _ports),
        AGE,
        Column("Selector", lambda s: selector_text(s.spec.selector) or "<none>", priority=1),
    ),
    selectable_fields={"spec.clusterIP": lambda s: s.spec.cluster_ip, "spec.type": lambda s: s.spec.type},
    subresources=(
        Subresource(
            name="proxy",
            kind=built_in(ServiceProxyOptions),
            verbs=("create", "delete", "get", "patch", "update"),
            connect=on_first_use("steersman.registry.core.services.proxy", "proxy_to_service"),
            connect_path=True,
            connect_methods=PROXY_METHODS,
            tables=False,
        ),
        Subresource(name="status", strategy=ServiceStatusStrategy()),
    ),
    storage_prefix="services/specs",
    storage_version_hash="0/CO1lhkEBI=",
    returns_deleted_object=True,
)
