"""FlowSchemas: the assignment of requests to priority levels."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from steersman.api.flowcontrol.v1 import FlowSchema
from steersman.kinds.built_in import built_in
from steersman.machinery.errors.field import FieldError
from steersman.machinery.validation.object_meta import name_is_dns_subdomain
from steersman.registry.flowcontrol.validation import validate_conditions, validate_flow_schema
from steersman.rest.context import Context
from steersman.rest.resource import AGE, Column, Resource, Subresource
from steersman.rest.strategy import StatusStrategy, Strategy


def set_defaults(schema: FlowSchema) -> None:
    """Set the defaults: a medium precedence."""
    schema.spec.matching_precedence = schema.spec.matching_precedence or 1000


class FlowSchemaStrategy(Strategy[FlowSchema]):
    resets = ("status",)
    bumps_generation_on = ("spec",)

    def validate(self, ctx: Context, schema: FlowSchema) -> Iterator[FieldError]:
        return validate_flow_schema(schema)

    def validate_update(self, ctx: Context, new: FlowSchema, old: FlowSchema) -> Iterator[FieldError]:
        return validate_flow_schema(new)


class FlowSchemaStatusStrategy(StatusStrategy[FlowSchema]):
    resets = ("spec", "metadata")

    def prepare_for_update(self, ctx: Context, new: FlowSchema, old: FlowSchema) -> None:
        new.metadata = replace(old.metadata, managed_fields=new.metadata.managed_fields)
        new.spec = old.spec

    def validate_update(self, ctx: Context, new: FlowSchema, old: FlowSchema) -> Iterator[FieldError]:
        return validate_conditions(new.status.conditions)


def missing_priority_level(schema: FlowSchema) -> str:
    """Return the status of the Dangling condition (True if the priority level is missing), "?" if it is not set yet."""
    return next((each.status for each in schema.status.conditions if each.type == "Dangling"), "?")


FLOW_SCHEMAS = Resource(
    kind=built_in(FlowSchema, default=set_defaults),
    plural="flowschemas",
    namespaced=False,
    strategy=FlowSchemaStrategy(),
    name_validator=name_is_dns_subdomain,
    columns=(
        Column("PriorityLevel", lambda s: s.spec.priority_level_configuration.name),
        Column("MatchingPrecedence", lambda s: s.spec.matching_precedence),
        Column(
            "DistinguisherMethod",
            lambda s: "<none>" if s.spec.distinguisher_method is None else s.spec.distinguisher_method.type,
        ),
        AGE,
        Column(
            "MissingPL",
            missing_priority_level,
            description="references a broken or non-existent PriorityLevelConfiguration",
        ),
    ),
    row_order=lambda s: (s.spec.matching_precedence, s.metadata.name),
    subresources=(Subresource(name="status", strategy=FlowSchemaStatusStrategy()),),
    storage_version_hash="GJVAJZSZBIw=",
)
