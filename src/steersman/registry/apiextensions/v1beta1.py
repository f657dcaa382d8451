"""apiextensions.k8s.io/v1beta1: the version in which definitions are stored, which is not served.

Members that all versions of a definition share stand above the versions in it (apiextensions.k8s.io
`apis/apiextensions/v1beta1/types.go` and `v1/conversion.go`).
"""

from __future__ import annotations

from typing import Final

import msgspec

from steersman.api.apiextensions import v1
from steersman.api.meta.v1 import ObjectMeta
from steersman.api.scalars import Int32, Wire
from steersman.kinds.structs import StructKind
from steersman.machinery.go.strings import to_lower
from steersman.machinery.identity.schema import GroupVersionKind
from steersman.registry.apiextensions.defaults import HTTPS_PORT
from steersman.registry.apiextensions.internal import InternalSpec
from steersman.rest.resource import OtherVersion


class CustomResourceColumnDefinition(Wire):
    name: str = msgspec.field(default_factory=str)
    type: str = msgspec.field(default_factory=str)
    format: str = ""
    description: str = ""
    priority: Int32 = 0
    json_path: str = msgspec.field(name="JSONPath", default_factory=str)


class CustomResourceDefinitionVersion(Wire):
    name: str = msgspec.field(default_factory=str)
    served: bool = msgspec.field(default_factory=bool)
    storage: bool = msgspec.field(default_factory=bool)
    deprecated: bool = False
    deprecation_warning: str | None = None
    schema: v1.CustomResourceValidation | None = None
    subresources: v1.CustomResourceSubresources | None = None
    additional_printer_columns: list[CustomResourceColumnDefinition] = []
    selectable_fields: list[v1.SelectableField] = []


class CustomResourceConversion(Wire):
    strategy: str = msgspec.field(default_factory=str)
    webhook_client_config: v1.WebhookClientConfig | None = None
    conversion_review_versions: list[str] = []


class CustomResourceDefinitionSpec(Wire):
    group: str = msgspec.field(default_factory=str)
    version: str = ""
    names: v1.CustomResourceDefinitionNames = msgspec.field(default_factory=v1.CustomResourceDefinitionNames)
    scope: str = msgspec.field(default_factory=str)
    validation: v1.CustomResourceValidation | None = None
    subresources: v1.CustomResourceSubresources | None = None
    versions: list[CustomResourceDefinitionVersion] = []
    additional_printer_columns: list[CustomResourceColumnDefinition] = []
    selectable_fields: list[v1.SelectableField] = []
    conversion: CustomResourceConversion | None = None
    preserve_unknown_fields: bool | None = None


class CustomResourceDefinition(Wire):
    kind: str = ""
    api_version: str = ""
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: CustomResourceDefinitionSpec = msgspec.field(default_factory=CustomResourceDefinitionSpec)
    status: v1.CustomResourceDefinitionStatus = msgspec.field(default_factory=v1.CustomResourceDefinitionStatus)


def set_defaults(definition: CustomResourceDefinition) -> None:
    """Set the defaults of v1, and those of v1beta1: `version` and `versions` follow from each other, and unknown fields
    are preserved.
    """
    spec = definition.spec
    names = spec.names
    spec.scope = spec.scope or "Namespaced"
    names.singular = names.singular or to_lower(names.kind)
    if not names.list_kind and names.kind:
        names.list_kind = f"{names.kind}List"
    if not spec.versions and spec.version:
        spec.versions = [CustomResourceDefinitionVersion(name=spec.version, served=True, storage=True)]
    if not spec.version and spec.versions:
        spec.version = spec.versions[0].name
    conversion = spec.conversion
    if conversion is None:
        conversion = spec.conversion = CustomResourceConversion(strategy="None")
    if conversion.strategy == "Webhook" and not conversion.conversion_review_versions:
        conversion.conversion_review_versions = ["v1beta1"]
    service = None if conversion.webhook_client_config is None else conversion.webhook_client_config.service
    if service is not None and service.port is None:
        service.port = HTTPS_PORT
    if spec.preserve_unknown_fields is None:
        spec.preserve_unknown_fields = True
    if not definition.status.stored_versions:
        stored = next((version.name for version in spec.versions if version.storage), None)
        definition.status.stored_versions = None if stored is None else [stored]


def to_v1(definition: CustomResourceDefinition) -> v1.CustomResourceDefinition:
    """Convert a definition to v1; shared members are copied into each version."""
    spec = definition.spec
    made = v1.CustomResourceDefinitionSpec(
        group=spec.group,
        names=spec.names,
        scope=spec.scope,
        versions=[_version_to_v1(spec, version) for version in spec.versions],
        conversion=None if spec.conversion is None else _conversion_to_v1(spec.conversion),
        preserve_unknown_fields=bool(spec.preserve_unknown_fields),
    )
    return v1.CustomResourceDefinition(metadata=definition.metadata, spec=made, status=definition.status)


def _version_to_v1(
    spec: CustomResourceDefinitionSpec, version: CustomResourceDefinitionVersion
) -> v1.CustomResourceDefinitionVersion:
    columns = spec.additional_printer_columns or version.additional_printer_columns
    return v1.CustomResourceDefinitionVersion(
        name=version.name,
        served=version.served,
        storage=version.storage,
        deprecated=version.deprecated,
        deprecation_warning=version.deprecation_warning,
        schema=version.schema if spec.validation is None else spec.validation,
        subresources=version.subresources if spec.subresources is None else spec.subresources,
        additional_printer_columns=[
            v1.CustomResourceColumnDefinition(
                name=column.name,
                type=column.type,
                format=column.format,
                description=column.description,
                priority=column.priority,
                json_path=column.json_path,
            )
            for column in columns
        ],
        selectable_fields=spec.selectable_fields or version.selectable_fields,
    )


def _conversion_to_v1(conversion: CustomResourceConversion) -> v1.CustomResourceConversion:
    client, reviews = conversion.webhook_client_config, conversion.conversion_review_versions
    webhook = None
    if client is not None or reviews:
        webhook = v1.WebhookConversion(client_config=client, conversion_review_versions=reviews or None)
    return v1.CustomResourceConversion(strategy=conversion.strategy, webhook=webhook)


def from_v1(definition: v1.CustomResourceDefinition) -> CustomResourceDefinition:
    """Convert a definition from v1; members that all versions share move above the versions."""
    own = definition.spec
    inner = InternalSpec(own)
    parts = zip(
        inner.versions,
        inner.validation.own,
        inner.subresources.own,
        inner.columns.own,
        inner.selectable_fields.own,
        strict=True,
    )
    spec = CustomResourceDefinitionSpec(
        group=own.group,
        version=inner.version,
        names=own.names,
        scope=own.scope,
        validation=inner.validation.common,
        subresources=inner.subresources.common,
        versions=[
            CustomResourceDefinitionVersion(
                name=version.name,
                served=version.served,
                storage=version.storage,
                deprecated=version.deprecated,
                deprecation_warning=version.deprecation_warning,
                schema=schema,
                subresources=subresources,
                additional_printer_columns=_columns_of(columns),
                selectable_fields=fields or [],
            )
            for version, schema, subresources, columns, fields in parts
        ],
        additional_printer_columns=_columns_of(inner.columns.common),
        selectable_fields=inner.selectable_fields.common or [],
        conversion=None if own.conversion is None else _conversion_of(own.conversion),
        preserve_unknown_fields=own.preserve_unknown_fields,
    )
    return CustomResourceDefinition(metadata=definition.metadata, spec=spec, status=definition.status)


def _columns_of(columns: list[v1.CustomResourceColumnDefinition] | None) -> list[CustomResourceColumnDefinition]:
    return [
        CustomResourceColumnDefinition(
            name=column.name,
            type=column.type,
            format=column.format,
            description=column.description,
            priority=column.priority,
            json_path=column.json_path,
        )
        for column in columns or ()
    ]


def _conversion_of(conversion: v1.CustomResourceConversion) -> CustomResourceConversion:
    webhook = conversion.webhook
    return CustomResourceConversion(
        strategy=conversion.strategy,
        webhook_client_config=None if webhook is None else webhook.client_config,
        conversion_review_versions=[] if webhook is None else webhook.conversion_review_versions or [],
    )


_GVK: Final = GroupVersionKind("apiextensions.k8s.io", "v1beta1", "CustomResourceDefinition")


def unserved_versions() -> tuple[OtherVersion, ...]:
    """Return v1beta1 as another version of the definition."""
    return (OtherVersion(StructKind(CustomResourceDefinition, _GVK, default=set_defaults), to_v1, from_v1),)
