"""Explainers of all kinds, and the explanation of one object."""

from __future__ import annotations

from typing import Any, Final

from steersman.client.api_resource import APIResource
from steersman.explain.accounts import SECRET, SERVICE_ACCOUNT
from steersman.explain.api_services import API_SERVICE, DEFINITION
from steersman.explain.autoscalers import AUTOSCALER
from steersman.explain.certificates import SIGNING_REQUEST
from steersman.explain.conditions import CONDITIONS, summary_of_conditions
from steersman.explain.daemon_sets import DAEMON_SET
from steersman.explain.deletion import check_deletion
from steersman.explain.deployments import DEPLOYMENT, REPLICA_SET
from steersman.explain.disruption_budgets import DISRUPTION_BUDGET
from steersman.explain.explainer import Explainer, run_check
from steersman.explain.finding import Explanation, Finding, explanation, reference
from steersman.explain.ingresses import INGRESS
from steersman.explain.jobs import CRON_JOB, JOB
from steersman.explain.namespaces import NAMESPACE
from steersman.explain.nodes import NODE
from steersman.explain.plain import plain_data
from steersman.explain.pods.explainer import POD
from steersman.explain.quotas import RESOURCE_QUOTA
from steersman.explain.services import SERVICE
from steersman.explain.stateful_sets import STATEFUL_SET
from steersman.explain.volume_claims import VOLUME, VOLUME_CLAIM
from steersman.explain.warnings import check_warnings
from steersman.explain.webhooks import MUTATING, VALIDATING
from steersman.explain.world import World
from steersman.machinery.identity.schema import GroupKind

EXPLAINERS: Final[tuple[Explainer[Any], ...]] = (
    NODE,
    NAMESPACE,
    API_SERVICE,
    VALIDATING,
    MUTATING,
    DEFINITION,
    POD,
    DEPLOYMENT,
    REPLICA_SET,
    STATEFUL_SET,
    DAEMON_SET,
    JOB,
    CRON_JOB,
    SERVICE,
    INGRESS,
    VOLUME_CLAIM,
    VOLUME,
    AUTOSCALER,
    DISRUPTION_BUDGET,
    RESOURCE_QUOTA,
    SIGNING_REQUEST,
    SERVICE_ACCOUNT,
    SECRET,
)
"""Explainers by kind; other kinds are explained by their conditions, finalizers and events."""
_BY_KIND: Final = {each.resource.group_kind: each for each in EXPLAINERS}


class NotFound(LookupError):
    """The error for an object that does not exist; the message is upstream's."""


def explainer_of(kind: GroupKind) -> Explainer[Any] | None:
    """Return the explainer of a kind, None if the kind has no checks of its own."""
    return _BY_KIND.get(kind)


async def explain(world: World, resource: APIResource[Any], name: str, namespace: str = "") -> Explanation:
    """Return the explanation of one object. Raises NotFound, Unreadable for the object itself, and Unreachable."""
    explainer = explainer_of(resource.group_kind)
    known = explainer.resource if explainer is not None else plain_data(resource)
    obj = await world.get(known, name, namespace if resource.namespaced else "")
    if obj is None:
        raise NotFound(f'{resource.group_resource} "{name}" not found')
    return await explain_object(world, known, obj)


async def explain_object(world: World, resource: APIResource[Any], obj: Any) -> Explanation:
    """Return the explanation of an object that has been read as `resource` has it. Raises Unreachable."""
    explainer = explainer_of(resource.group_kind)
    checks = CONDITIONS if explainer is None else explainer.checks
    findings: list[Finding] = []
    for check in (*checks, check_deletion):
        findings += await run_check(world, resource, obj, check)
    findings += await run_check(world, resource, obj, check_warnings(findings))
    summary = summary_of_conditions(obj) if explainer is None else explainer.summarize(obj)
    return explanation(reference(resource, obj), summary, findings)
