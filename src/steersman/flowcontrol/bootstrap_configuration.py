"""The flow schemas and priority levels of every cluster.

Two of each, exempt and catch-all, are mandatory: every server has them, and nobody can change them. The others are
suggested (`suggested.json`, as kube-apiserver 1.36 writes them at its first start): administrators may change or delete
them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec

from steersman.api.flowcontrol.v1 import (
    ExemptPriorityLevelConfiguration,
    FlowDistinguisherMethod,
    FlowSchema,
    FlowSchemaSpec,
    GroupSubject,
    LimitedPriorityLevelConfiguration,
    LimitResponse,
    NonResourcePolicyRule,
    PolicyRulesWithSubjects,
    PriorityLevelConfiguration,
    PriorityLevelConfigurationReference,
    PriorityLevelConfigurationSpec,
    ResourcePolicyRule,
    Subject,
)
from steersman.api.meta.v1 import ObjectMeta

AUTO_UPDATE: Final = "apf.kubernetes.io/autoupdate-spec"
"""Annotation that says whether the server keeps an object as shipped."""


def _everything_by(*groups: str) -> list[PolicyRulesWithSubjects]:
    return [
        PolicyRulesWithSubjects(
            subjects=[Subject(kind="Group", group=GroupSubject(name=group)) for group in groups],
            resource_rules=[
                ResourcePolicyRule(verbs=["*"], api_groups=["*"], resources=["*"], cluster_scope=True, namespaces=["*"])
            ],
            non_resource_rules=[NonResourcePolicyRule(verbs=["*"], non_resource_urls=["*"])],
        )
    ]


FLOW_SCHEMAS: Final = {
    "exempt": FlowSchemaSpec(
        priority_level_configuration=PriorityLevelConfigurationReference(name="exempt"),
        matching_precedence=1,
        rules=_everything_by("system:masters"),
    ),
    "catch-all": FlowSchemaSpec(
        priority_level_configuration=PriorityLevelConfigurationReference(name="catch-all"),
        matching_precedence=10_000,
        distinguisher_method=FlowDistinguisherMethod(type="ByUser"),
        rules=_everything_by("system:unauthenticated", "system:authenticated"),
    ),
}
PRIORITY_LEVELS: Final = {
    "exempt": PriorityLevelConfigurationSpec(
        type="Exempt",
        exempt=ExemptPriorityLevelConfiguration(nominal_concurrency_shares=0, lendable_percent=0),
    ),
    "catch-all": PriorityLevelConfigurationSpec(
        type="Limited",
        limited=LimitedPriorityLevelConfiguration(
            nominal_concurrency_shares=5, lendable_percent=0, limit_response=LimitResponse(type="Reject")
        ),
    ),
}
"""Specs of the mandatory levels; users may change the field `exempt` of the exempt level."""


class _Suggested(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    priority_levels: dict[str, PriorityLevelConfigurationSpec]
    flow_schemas: dict[str, FlowSchemaSpec]


def suggested() -> tuple[list[PriorityLevelConfiguration], list[FlowSchema]]:
    """Return newly parsed suggested levels and schemas; the caller may change them."""
    data = Path(__file__).with_name("suggested.json").read_bytes()
    objects = msgspec.json.decode(data, type=_Suggested)
    return list(_levels(objects.priority_levels)), list(_schemas(objects.flow_schemas))


def mandatory() -> tuple[list[PriorityLevelConfiguration], list[FlowSchema]]:
    """Return the mandatory levels and schemas; the caller must not change their specs."""
    return list(_levels(PRIORITY_LEVELS)), list(_schemas(FLOW_SCHEMAS))


def _levels(specs: Mapping[str, PriorityLevelConfigurationSpec]) -> Iterator[PriorityLevelConfiguration]:
    for name, spec in specs.items():
        yield PriorityLevelConfiguration(metadata=_metadata(name), spec=spec)


def _schemas(specs: Mapping[str, FlowSchemaSpec]) -> Iterator[FlowSchema]:
    for name, spec in specs.items():
        yield FlowSchema(metadata=_metadata(name), spec=spec)


def _metadata(name: str) -> ObjectMeta:
    return ObjectMeta(name=name, annotations={AUTO_UPDATE: "true"})
