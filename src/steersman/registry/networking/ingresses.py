"""Ingresses: routes from external hosts and paths to services."""

from __future__ import annotations

from collections.abc import Iterator

from steersman.api.networking.v1 import Ingress
from steersman.kinds.built_in import built_in
from steersman.machinery.built_in.classes import INGRESS_CLASS
from steersman.machinery.errors.field import FieldError, Path, invalid
from steersman.machinery.validation.ip import warnings_for_ip
from steersman.machinery.validation.object_meta import name_is_dns_subdomain
from steersman.registry.networking.ingress_validation import validate_ingress, validate_ingress_status
from steersman.rest.context import Context
from steersman.rest.resource import AGE, Column, Resource, Subresource
from steersman.rest.strategy import StatusStrategy, Strategy


class IngressStrategy(Strategy[Ingress]):
    resets = ("status",)
    bumps_generation_on = ("spec",)

    def validate(self, ctx: Context, ingress: Ingress) -> Iterator[FieldError]:
        yield from validate_ingress(ingress.spec, None)
        annotation, name = ingress.metadata.annotations.get(INGRESS_CLASS), ingress.spec.ingress_class_name
        if annotation is not None and name is not None and annotation != name:
            detail = "must match `ingressClassName` when both are specified"
            yield invalid(Path("annotations", INGRESS_CLASS), annotation, detail)

    def warnings_on_create(self, ctx: Context, ingress: Ingress) -> Iterator[str]:
        if INGRESS_CLASS in ingress.metadata.annotations and ingress.spec.ingress_class_name is None:
            yield f"annotation \"{INGRESS_CLASS}\" is deprecated, please use 'spec.ingressClassName' instead"

    def validate_update(self, ctx: Context, new: Ingress, old: Ingress) -> Iterator[FieldError]:
        return validate_ingress(new.spec, old)


class IngressStatusStrategy(StatusStrategy[Ingress]):
    def validate_update(self, ctx: Context, new: Ingress, old: Ingress) -> Iterator[FieldError]:
        return validate_ingress_status(new.status, old.status)

    def warnings_on_update(self, ctx: Context, new: Ingress, old: Ingress) -> Iterator[str]:
        for index, point in enumerate(new.status.load_balancer.ingress):
            if point.ip:
                yield from warnings_for_ip(point.ip, Path("status", "loadBalancer", "ingress")[index])


def hosts(ingress: Ingress) -> str:
    """Return the first three hosts of the rules."""
    shown: list[str] = []
    for rule in ingress.spec.rules:
        if len(shown) == 3:
            return f"{','.join(shown)} + {len(ingress.spec.rules) - 3} more..."
        if rule.host:
            shown.append(rule.host)
    return ",".join(shown) or "*"


def address(ingress: Ingress) -> str:
    """Return the addresses of the load balancer."""
    points = ingress.status.load_balancer.ingress
    return ",".join(sorted({point.ip or point.hostname for point in points if point.ip or point.hostname}))


INGRESSES = Resource(
    kind=built_in(Ingress),
    plural="ingresses",
    short_names=("ing",),
    strategy=IngressStrategy(),
    name_validator=name_is_dns_subdomain,
    revalidates_metadata=True,
    columns=(
        Column(
            "Class",
            lambda i: "<none>" if i.spec.ingress_class_name is None else i.spec.ingress_class_name,
            description="The name of the IngressClass resource that should be used for additional configuration",
        ),
        Column("Hosts", hosts, description="Hosts that incoming requests are matched against before the ingress rule"),
        Column("Address", address, description="Address is a list containing ingress points for the load-balancer"),
        Column(
            "Ports",
            lambda i: "80, 443" if i.spec.tls else "80",
            description="Ports of TLS configurations that open",
        ),
        AGE,
    ),
    subresources=(Subresource(name="status", strategy=IngressStatusStrategy()),),
    storage_prefix="ingress",
    storage_version_hash="39NQlfNR+bo=",
)
