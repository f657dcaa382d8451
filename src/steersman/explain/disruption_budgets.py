"""PodDisruptionBudgets that block evictions."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Final

from steersman.api.core.v1 import Pod
from steersman.api.policy.v1 import PodDisruptionBudget
from steersman.client.api_resource import APIResource
from steersman.client.resources import POD_DISRUPTION_BUDGETS, PODS
from steersman.explain.explainer import Explainer
from steersman.explain.finding import Finding, Suggestion, at_condition, at_field, error, note, reference, warning
from steersman.explain.pod_problems import problems_of
from steersman.explain.world import World
from steersman.machinery.built_in.pod_state import is_active
from steersman.machinery.selectors.labels import SelectorError, from_label_selector
from steersman.machinery.values.conditions import find_condition


def _rule(budget: PodDisruptionBudget) -> str:
    spec = budget.spec
    if spec.max_unavailable is not None:
        return f"maxUnavailable {spec.max_unavailable}"
    return f"minAvailable {1 if spec.min_available is None else spec.min_available}"


def _summarize(budget: PodDisruptionBudget) -> str:
    status = budget.status
    return (
        f"{status.disruptions_allowed} disruptions allowed: {status.current_healthy} of {status.expected_pods} pods are "
        f"healthy, {status.desired_healthy} must be ({_rule(budget)})"
    )


def budget_fault(budget: PodDisruptionBudget) -> str:
    """Return the reason why a budget is unhealthy, "" if it is not."""
    status = budget.status
    if status.expected_pods and status.current_healthy < status.desired_healthy:
        return f"{status.current_healthy} of {status.desired_healthy} pods that must be healthy are"
    return ""


def selected(budget: PodDisruptionBudget, pods: list[Pod] | Any) -> list[Pod]:
    """Return the pods of the budget's namespace that it selects. Raises SelectorError."""
    namespace, selector = budget.metadata.namespace, from_label_selector(budget.spec.selector)
    return [
        each
        for each in pods
        if each.metadata.namespace == namespace and is_active(each) and selector.matches(each.metadata.labels)
    ]


async def _check_budget(
    world: World, resource: APIResource[Any], budget: PodDisruptionBudget
) -> AsyncIterator[Finding]:
    subject, status = reference(resource, budget), budget.status
    failed = find_condition(status.conditions, "DisruptionAllowed")
    if failed is not None and failed.reason == "SyncFailed":
        yield error("SyncFailed", f"the disruption controller failed: {failed.message}", at_condition(subject, failed))
    if status.observed_generation < budget.metadata.generation:
        text = "the disruption controller has not processed it, so no eviction is allowed"
        yield error("NotObserved", text, at_field(subject, ".status.observedGeneration", status.observed_generation))
        return
    try:
        pods = selected(budget, await world.list(PODS, budget.metadata.namespace))
    except SelectorError as invalid:
        field = at_field(subject, ".spec.selector", budget.spec.selector)
        yield error("InvalidSelector", f"its selector is invalid: {invalid}", field)
        return
    if not pods:
        yield warning("SelectsNothing", "it selects no pod", at_field(subject, ".spec.selector", budget.spec.selector))
        return
    if status.disruptions_allowed == 0:
        for each in _blocked(budget, pods):
            yield each
    for each in await _overlaps(world, budget, pods):
        yield each


def _blocked(budget: PodDisruptionBudget, pods: list[Pod]) -> list[Finding]:
    """Return the finding that no eviction is allowed, and its cause: unhealthy pods, or a rule that never allows one."""
    subject, status = reference(POD_DISRUPTION_BUDGETS, budget), budget.status
    problems = tuple(problems_of(pods))
    numbers = (
        at_field(subject, ".status.currentHealthy", status.current_healthy),
        at_field(subject, ".status.desiredHealthy", status.desired_healthy),
        at_field(subject, ".status.expectedPods", status.expected_pods),
    )
    if status.desired_healthy >= status.expected_pods:
        text = (
            f"it never allows an eviction: {_rule(budget)} means that {status.desired_healthy} of "
            f"{status.expected_pods} pods must be healthy"
        )
        help_text = "run more replicas, or allow one to be unavailable"
        return [error("NeverAllows", text, *numbers, because=problems, suggestions=(Suggestion(help_text),))]
    text = (
        f"evictions are refused: {status.current_healthy} of {status.expected_pods} pods are healthy, and "
        f"{status.desired_healthy} must stay so ({_rule(budget)})"
    )
    findings = [error("NoneAllowed", text, *numbers, because=problems)]
    if problems and budget.spec.unhealthy_pod_eviction_policy != "AlwaysAllow":
        more = "pods that are not ready cannot be evicted either (unhealthyPodEvictionPolicy is not AlwaysAllow)"
        field = at_field(subject, ".spec.unhealthyPodEvictionPolicy", budget.spec.unhealthy_pod_eviction_policy)
        findings.append(note("UnhealthyKept", more, field))
    return findings


async def _overlaps(world: World, budget: PodDisruptionBudget, pods: list[Pod]) -> list[Finding]:
    overlaps = []
    for other in await world.list(POD_DISRUPTION_BUDGETS, budget.metadata.namespace):
        if other.metadata.name == budget.metadata.name:
            continue
        try:
            shared = selected(other, pods)
        except SelectorError:
            continue
        if shared:
            text = (
                f"{len(shared)} pods are also in budget {other.metadata.name}: a pod of two budgets cannot be evicted"
            )
            field = at_field(reference(POD_DISRUPTION_BUDGETS, other), ".spec.selector", other.spec.selector)
            overlaps.append(error("BudgetsOverlap", text, field))
    return overlaps


DISRUPTION_BUDGET: Final = Explainer(POD_DISRUPTION_BUDGETS, _summarize, (_check_budget,), budget_fault)
