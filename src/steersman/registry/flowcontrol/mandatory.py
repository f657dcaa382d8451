"""The flow schemas and priority levels that every server has and nobody can change: exempt and catch-all."""

from __future__ import annotations

from typing import Final

from steersman.api.flowcontrol.v1 import (
    ExemptPriorityLevelConfiguration,
    FlowDistinguisherMethod,
    FlowSchemaSpec,
    GroupSubject,
    LimitedPriorityLevelConfiguration,
    LimitResponse,
    NonResourcePolicyRule,
    PolicyRulesWithSubjects,
    PriorityLevelConfigurationReference,
    PriorityLevelConfigurationSpec,
    ResourcePolicyRule,
    Subject,
)


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
"""The `exempt` field of the former may differ."""
