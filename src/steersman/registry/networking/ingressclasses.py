"""IngressClasses: the controllers of Ingresses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from steersman.api.networking.v1 import IngressClass, IngressClassParametersReference
from steersman.kinds.built_in import built_in
from steersman.machinery.built_in.classes import DEFAULT_INGRESS_CLASS, is_default
from steersman.machinery.errors.field import FieldError, Path, forbidden, not_supported, required, too_long
from steersman.machinery.validation.leaves import validate_name
from steersman.machinery.validation.object_meta import name_is_dns_label, name_is_dns_subdomain
from steersman.registry.networking.ingress_validation import validate_typed_reference
from steersman.registry.validation.domain_prefixed_path import validate_domain_prefixed_path
from steersman.rest.context import Context
from steersman.rest.resource import AGE, Column, Resource
from steersman.rest.strategy import Strategy


def set_defaults(ingress_class: IngressClass) -> None:
    """Set the defaults: parameters are cluster-scoped."""
    parameters = ingress_class.spec.parameters
    if parameters is not None and parameters.scope is None:
        parameters.scope = "Cluster"


MAX_CONTROLLER: Final = 250
"""Bytes of the name of a controller."""


def _validate(ingress_class: IngressClass) -> Iterator[FieldError]:
    spec, path = ingress_class.spec, Path("spec")
    if len(spec.controller.encode()) > MAX_CONTROLLER:
        yield too_long(path / "controller", MAX_CONTROLLER)
    yield from validate_domain_prefixed_path(spec.controller, path / "controller")
    if spec.parameters is not None:
        yield from _validate_parameters(spec.parameters, path / "parameters")


def _validate_parameters(reference: IngressClassParametersReference, path: Path) -> Iterator[FieldError]:
    yield from validate_typed_reference(reference.api_group, reference.kind, reference.name, path)
    scope, namespace = reference.scope, reference.namespace
    if scope is None:
        yield required(path / "scope")
    elif scope not in ("Cluster", "Namespace"):
        yield not_supported(path / "scope", scope, ("Cluster", "Namespace"))
    elif scope == "Namespace":
        if namespace is None:
            yield required(path / "namespace", "`parameters.scope` is set to 'Namespace'")
        else:
            yield from validate_name(name_is_dns_label, namespace, path / "namespace")
    elif namespace is not None:
        yield forbidden(path / "namespace", "`parameters.scope` is set to 'Cluster'")


class IngressClassStrategy(Strategy[IngressClass]):
    immutable = ("spec/controller",)
    bumps_generation_on = ("spec",)

    def validate(self, ctx: Context, ingress_class: IngressClass) -> Iterator[FieldError]:
        return _validate(ingress_class)

    def validate_update(self, ctx: Context, new: IngressClass, old: IngressClass) -> Iterator[FieldError]:
        yield from super().validate_update(ctx, new, old)
        yield from _validate(new)


def parameters(ingress_class: IngressClass) -> str:
    """Return the reference to the parameters as `kind.group/name`."""
    reference = ingress_class.spec.parameters
    if reference is None:
        return "<none>"
    group = "" if reference.api_group is None else f".{reference.api_group}"
    return f"{reference.kind}{group}/{reference.name}"


def _name(ingress_class: IngressClass) -> str:
    """Return the name, marked if this is the default class."""
    name = ingress_class.metadata.name
    return f"{name} (default)" if is_default(ingress_class, DEFAULT_INGRESS_CLASS) else name


INGRESS_CLASSES = Resource(
    kind=built_in(IngressClass, default=set_defaults),
    plural="ingressclasses",
    namespaced=False,
    strategy=IngressClassStrategy(),
    name_cell=_name,
    name_validator=name_is_dns_subdomain,
    revalidates_metadata=True,
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
