"""Parts of a definition in messages, printed like upstream's internal type: JSON with Go's names."""

from __future__ import annotations

from typing import Any

import msgspec

from steersman.api.apiextensions.v1 import (
    CustomResourceColumnDefinition,
    CustomResourceDefinitionVersion,
    CustomResourceSubresources,
)
from steersman.machinery.codec.serializer import encode_in_order
from steersman.machinery.errors.field import Verbatim, go_json
from steersman.registry.apiextensions.internal import InternalSpec, PlainSchema
from steersman.registry.printing.go_struct import go_struct
from steersman.schema.internal_form import internal


def versions_text(internal: InternalSpec) -> Verbatim:
    """Return the versions of a spec without shared members."""
    if internal.spec.versions is None:
        return Verbatim("null")
    rows = zip(
        internal.versions,
        internal.schemas.own,
        internal.subresources.own,
        internal.columns.own,
        internal.selectable_fields.own,
        strict=True,
    )
    return Verbatim(go_json([_version(*row) for row in rows]))


def _version(
    version: CustomResourceDefinitionVersion,
    schema: PlainSchema | None,
    subresources: CustomResourceSubresources | None,
    columns: list[CustomResourceColumnDefinition] | None,
    fields: list[Any] | None,
) -> msgspec.Raw:
    return go_struct(
        Name=version.name,
        Served=version.served,
        Storage=version.storage,
        Deprecated=version.deprecated,
        DeprecationWarning=version.deprecation_warning,
        Schema=None if schema is None else go_struct(OpenAPIV3Schema=msgspec.Raw(encode_in_order(internal(schema)))),
        Subresources=None if subresources is None else _subresources(subresources),
        AdditionalPrinterColumns=None if columns is None else [_column(each) for each in columns],
        SelectableFields=None if fields is None else [go_struct(JSONPath=each.json_path) for each in fields],
    )


def _subresources(subresources: CustomResourceSubresources) -> msgspec.Raw:
    status, scale = subresources.status, subresources.scale
    return go_struct(
        Status=None if status is None else {},
        Scale=None
        if scale is None
        else go_struct(
            SpecReplicasPath=scale.spec_replicas_path,
            StatusReplicasPath=scale.status_replicas_path,
            LabelSelectorPath=scale.label_selector_path,
        ),
    )


def _column(column: CustomResourceColumnDefinition) -> msgspec.Raw:
    return go_struct(
        Name=column.name,
        Type=column.type,
        Format=column.format,
        Description=column.description,
        Priority=column.priority,
        JSONPath=column.json_path,
    )
