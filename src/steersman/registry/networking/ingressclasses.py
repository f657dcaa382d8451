"""IngressClasses: which controller does the work of an Ingress."""

from __future__ import annotations

from steersman.api.networking.v1 import IngressClass
from steersman.machinery.validation.object_meta import name_is_dns_subdomain
from steersman.rest.context import Context
from steersman.rest.resource import AGE, Column, Resource
from steersman.rest.strategy import Strategy


def set_defaults(ingress_class: IngressClass) -> None:
    """Parameters are in the cluster's scope."""
    parameters = ingress_class.spec.parameters
    if parameters is not None and parameters.scope is None:
        parameters.scope = "Cluster"


class IngressClassStrategy(Strategy[IngressClass]):
    def prepare_for_create(self, ctx: Context, ingress_class: IngressClass) -> None:
        ingress_class.metadata.generation = 1

    def prepare_for_update(self, ctx: Context, new: IngressClass, old: IngressClass) -> None:
        if new.spec != old.spec:
            new.metadata.generation = old.metadata.generation + 1


def parameters(ingress_class: IngressClass) -> str:
    """What configures it, as `kind.group/name`."""
    reference = ingress_class.spec.parameters
    if reference is None:
        return "<none>"
    group = "" if reference.api_group is None else f".{reference.api_group}"
    return f"{reference.kind}{group}/{reference.name}"


INGRESS_CLASSES = Resource(
    kind=IngressClass,
    group="networking.k8s.io",
    plural="ingressclasses",
    namespaced=False,
    strategy=IngressClassStrategy(),
    name_validator=name_is_dns_subdomain,
    default=set_defaults,
    columns=(
        Column(
            "Controller",
            lambda c: c.spec.controller,
            description="Controller that is responsible for handling this class",
        ),
        Column("Parameters", parameters, description="A reference to a resource with additional parameters"),
        AGE,
    ),
    storage_version_hash="l/iqIbDgFyQ=",
)
