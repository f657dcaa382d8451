"""CustomResourceDefinitions: kinds that a cluster's users add."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from steersman.api.apiextensions.v1 import (
    CustomResourceConversion,
    CustomResourceDefinition,
    CustomResourceDefinitionStatus,
)
from steersman.kinds.built_in import built_in
from steersman.machinery.go.strings import to_lower
from steersman.machinery.validation.object_meta import name_is_dns_subdomain
from steersman.registry.columns import CREATED_AT
from steersman.rest.context import Context
from steersman.rest.resource import Resource, Subresource
from steersman.rest.strategy import StatusStrategy, Strategy

HTTPS_PORT: Final = 443


def set_defaults(definition: CustomResourceDefinition) -> None:
    """Names that follow from the kind, versions that differ in name only."""
    spec = definition.spec
    names = spec.names
    names.singular = names.singular or to_lower(names.kind)
    if not names.list_kind and names.kind:
        names.list_kind = f"{names.kind}List"
    if spec.conversion is None:
        spec.conversion = CustomResourceConversion(strategy="None")
    webhook = spec.conversion.webhook
    service = webhook.client_config.service if webhook is not None and webhook.client_config is not None else None
    if service is not None and service.port is None:
        service.port = HTTPS_PORT
    if not definition.status.stored_versions:
        definition.status.stored_versions = _storage_version(definition)


def _storage_version(definition: CustomResourceDefinition) -> list[str] | None:
    return next(([version.name] for version in definition.spec.versions or () if version.storage), None)


class CustomResourceDefinitionStrategy(Strategy[CustomResourceDefinition]):
    allow_unconditional_update = False

    def prepare_for_create(self, ctx: Context, definition: CustomResourceDefinition) -> None:
        definition.status = CustomResourceDefinitionStatus(stored_versions=_storage_version(definition))
        definition.metadata.generation = 1

    def prepare_for_update(self, ctx: Context, new: CustomResourceDefinition, old: CustomResourceDefinition) -> None:
        new.status = old.status
        if new.spec != old.spec:
            new.metadata.generation = old.metadata.generation + 1
        stored = new.status.stored_versions or []
        added = [name for name in _storage_version(new) or () if name not in stored]
        if added:
            new.status = replace(new.status, stored_versions=[*stored, *added])


class CustomResourceDefinitionStatusStrategy(StatusStrategy[CustomResourceDefinition]):
    allow_unconditional_update = False


CUSTOM_RESOURCE_DEFINITIONS = Resource(
    kind=built_in(CustomResourceDefinition, default=set_defaults),
    plural="customresourcedefinitions",
    namespaced=False,
    short_names=("crd", "crds"),
    categories=("api-extensions",),
    strategy=CustomResourceDefinitionStrategy(),
    name_validator=name_is_dns_subdomain,
    columns=(CREATED_AT,),
    subresources=(Subresource(name="status", strategy=CustomResourceDefinitionStatusStrategy()),),
    storage_prefix="apiextensions.k8s.io/customresourcedefinitions",
    storage_version_hash="jfWCUB31mvA=",
    not_yet="custom resources are not served yet: the definition would have no effect",
)
