"""Unhealthy objects of a cluster or namespace, the worst first, with one line each."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import Any, Final

from msgspec import Struct

from steersman.api.core.v1 import Pod
from steersman.client.api_resource import APIResource
from steersman.client.resources import (
    ENDPOINT_SLICES,
    INGRESSES,
    MUTATING_WEBHOOK_CONFIGURATIONS,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    POD_DISRUPTION_BUDGETS,
    PODS,
    REPLICA_SETS,
    RESOURCE_QUOTAS,
    SERVICES,
    VALIDATING_WEBHOOK_CONFIGURATIONS,
)
from steersman.controllers.workloads.controller_ref import controller_of
from steersman.explain.commands import why
from steersman.explain.explainer import Explainer
from steersman.explain.explainers import EXPLAINERS
from steersman.explain.finding import RANKS, Reference, Severity, at_field, reference
from steersman.explain.pod_problems import Problem, problem_of
from steersman.explain.services import backend_finding, ready_addresses
from steersman.explain.world import Unreadable, World
from steersman.machinery.go.strings import to_lower

_LESS_SEVERE: Final = frozenset(
    each.group_kind
    for each in (INGRESSES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, POD_DISRUPTION_BUDGETS, RESOURCE_QUOTAS)
)
"""Kinds whose faults are warnings, since other objects report the damage."""
_SERVICE_NAME: Final = "kubernetes.io/service-name"

Owner = tuple[str, str, str]
"""Namespace, kind and name of the controller of pods; the pod itself if it has none."""


class Unhealthy(Struct, frozen=True, rename="camel", omit_defaults=True):
    """An unhealthy object, the reason in one line, and the command that explains it."""

    severity: Severity
    subject: Reference
    message: str
    command: str


class Overview(Struct, frozen=True, rename="camel", omit_defaults=True, tag_field="kind", tag="Overview"):
    """Unhealthy objects, the worst first, and the resources that could not be read."""

    namespace: str
    items: tuple[Unhealthy, ...] = ()
    unread: tuple[str, ...] = ()


async def overview(world: World, namespace: str = "") -> Overview:
    """Return the unhealthy objects of a namespace, or of the whole cluster. Raises Unreachable."""
    items: list[Unhealthy] = []
    unread: list[str] = []
    deployments = dict(await _read(_deployments(world, namespace), unread))
    of_pods = await _read(_pod_problems(world, namespace, deployments), unread)
    causes = {owner: problem for owner, _, problem, _ in of_pods}
    reported: set[Owner] = set()
    for explainer in EXPLAINERS:
        if explainer.fault is not None and (explainer.resource.namespaced or not namespace):
            items += await _read(_faults(world, explainer, explainer.fault, namespace, causes, reported), unread)
    if not namespace:
        for resource in (VALIDATING_WEBHOOK_CONFIGURATIONS, MUTATING_WEBHOOK_CONFIGURATIONS):
            items += await _read(_webhooks(world, resource), unread)
    items += await _read(_services(world, namespace), unread)
    items += _pods_without_line(of_pods, reported)
    items.sort(key=lambda each: RANKS[each.severity])
    return Overview(namespace, tuple(items), tuple(dict.fromkeys(unread)))


async def _read(found: AsyncIterator[Any], unread: list[str]) -> list[Any]:
    """Return all items; an unreadable resource is added to `unread`."""
    items = []
    try:
        async for each in found:
            items.append(each)
    except Unreadable as problem:
        unread.append(str(problem))
    return items


def _line(severity: Severity, subject: Reference, message: str) -> Unhealthy:
    return Unhealthy(severity, subject, message, why(subject))


async def _faults(
    world: World,
    explainer: Explainer[Any],
    fault: Callable[[Any], str],
    namespace: str,
    causes: dict[Owner, Problem],
    told: set[Owner],
) -> AsyncIterator[Unhealthy]:
    resource = explainer.resource
    if resource.group_kind == PODS.group_kind:
        return
    severity = Severity.WARNING if resource.group_kind in _LESS_SEVERE else Severity.ERROR
    for obj in await world.list(resource, namespace):
        text = fault(obj)
        if not text or (resource.group_kind == REPLICA_SETS.group_kind and controller_of(obj) is not None):
            continue
        owner = obj.metadata.namespace, resource.kind, obj.metadata.name
        told.add(owner)
        cause = causes.get(owner)
        yield _line(severity, reference(resource, obj), f"{text}: {cause.text}" if cause is not None else text)


async def _deployments(world: World, namespace: str) -> AsyncIterator[tuple[tuple[str, str], str]]:
    """Yield namespace and name of each ReplicaSet of a Deployment, and the name of the Deployment."""
    for each in await world.list(REPLICA_SETS, namespace):
        if (ref := controller_of(each)) is not None and ref.kind == "Deployment":
            yield (each.metadata.namespace, each.metadata.name), ref.name


async def _pod_problems(
    world: World, namespace: str, deployments: dict[tuple[str, str], str]
) -> AsyncIterator[tuple[Owner, Pod, Problem, int]]:
    """Yield the most frequent problem of the pods of each owner, with a pod that has it and the number of these."""
    groups: dict[Owner, dict[str, list[tuple[Pod, Problem]]]] = {}
    for pod in await world.list(PODS, namespace):
        problem = problem_of(pod)
        if problem is not None and problem.severity is Severity.ERROR:
            owner = _owner_of(pod, deployments)
            groups.setdefault(owner, {}).setdefault(problem.text, []).append((pod, problem))
    for owner, by_text in groups.items():
        largest = max(by_text.values(), key=len)
        yield owner, largest[0][0], largest[0][1], len(largest)


def _owner_of(pod: Pod, deployments: dict[tuple[str, str], str]) -> Owner:
    ref, namespace = controller_of(pod), pod.metadata.namespace
    if ref is None:
        return namespace, "Pod", pod.metadata.name
    deployment = deployments.get((namespace, ref.name)) if ref.kind == "ReplicaSet" else None
    return (namespace, ref.kind, ref.name) if deployment is None else (namespace, "Deployment", deployment)


def _pods_without_line(found: Iterable[tuple[Owner, Pod, Problem, int]], told: set[Owner]) -> list[Unhealthy]:
    """Return a line for each group of pods whose owner has none."""
    lines = []
    for owner, pod, problem, count in found:
        if owner not in told:
            others = f" (and {count - 1} more pods of {to_lower(owner[1])}/{owner[2]})" if count > 1 else ""
            lines.append(_line(problem.severity, reference(PODS, pod), f"{problem.text}{others}"))
    return lines


async def _webhooks(world: World, resource: APIResource[Any]) -> AsyncIterator[Unhealthy]:
    """Yield the configurations with a webhook whose Service has no ready endpoint."""
    for each in await world.list(resource):
        subject = reference(resource, each)
        for number, webhook in enumerate(each.webhooks or ()):
            behind = webhook.client_config.service
            if behind is None:
                continue
            evidence = at_field(subject, f".webhooks[{number}].clientConfig.service", behind)
            problem = await backend_finding(world, behind.namespace, behind.name, behind.port or 443, evidence)
            if problem is not None:
                severity = Severity.WARNING if webhook.failure_policy == "Ignore" else Severity.ERROR
                yield _line(severity, subject, f"webhook {webhook.name}: {problem.message}")


async def _services(world: World, namespace: str) -> AsyncIterator[Unhealthy]:
    """Yield the Services with a selector that have no ready endpoint."""
    slices: dict[tuple[str, str], list[Any]] = {}
    for each in await world.list(ENDPOINT_SLICES, namespace):
        key = each.metadata.namespace, each.metadata.labels.get(_SERVICE_NAME, "")
        slices.setdefault(key, []).append(each)
    for service in await world.list(SERVICES, namespace):
        found: Sequence[Any] = slices.get((service.metadata.namespace, service.metadata.name), ())
        if service.spec.selector and service.spec.type != "ExternalName" and not ready_addresses(found):
            yield _line(Severity.ERROR, reference(SERVICES, service), "no ready endpoint")
