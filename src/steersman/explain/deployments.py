"""Deployments and ReplicaSets that do not progress."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

from steersman.api.apps.v1 import Deployment, ReplicaSet
from steersman.client.api_resource import APIResource
from steersman.client.resources import DEPLOYMENTS, REPLICA_SETS
from steersman.controllers.deployment.fence_posts import max_surge, max_unavailable, replicas_of
from steersman.explain.commands import kubectl
from steersman.explain.explainer import Explainer
from steersman.explain.finding import (
    Finding,
    Suggestion,
    at_condition,
    at_field,
    error,
    note,
    reference,
    warning,
)
from steersman.explain.owned import creation_failures, owned_by, owned_pods, refusal_finding
from steersman.explain.pod_problems import problems_of
from steersman.explain.world import World
from steersman.machinery.selectors.labels import SelectorError, from_label_selector
from steersman.machinery.values.conditions import find_condition
from steersman.net.ascii import is_digits

_REVISION: Final = "deployment.kubernetes.io/revision"


def _summarize(deployment: Deployment) -> str:
    status = deployment.status
    desired = replicas_of(deployment)
    parts = [f"{status.available_replicas} of {desired} replicas available"]
    if status.updated_replicas != desired:
        parts.append(f"{status.updated_replicas} updated")
    if status.replicas > status.updated_replicas:
        parts.append(f"{status.replicas - status.updated_replicas} of older revisions")
    if deployment.spec.paused:
        parts.append("paused")
    return ", ".join(parts)


def deployment_fault(deployment: Deployment) -> str:
    """Return the reason why a Deployment is unhealthy, "" if it is not."""
    desired, status = replicas_of(deployment), deployment.status
    if status.observed_generation < deployment.metadata.generation:
        return "not processed by its controller"
    failure = find_condition(status.conditions, "ReplicaFailure")
    if failure is not None and failure.status == "True":
        return f"pods cannot be created: {failure.message}"
    if status.available_replicas < desired:
        return f"{status.available_replicas} of {desired} replicas available"
    progress = find_condition(status.conditions, "Progressing")
    return f"does not progress: {progress.message}" if progress is not None and progress.status == "False" else ""


async def check_generation(_: World, resource: APIResource[Any], obj: Any) -> AsyncIterator[Finding]:
    """Yield a finding if the controller of a workload has not processed its specification."""
    if obj.status.observed_generation < obj.metadata.generation:
        subject = reference(resource, obj)
        yield error(
            "NotObserved",
            f"the controller has not processed generation {obj.metadata.generation}: it is down or far behind",
            at_field(subject, ".metadata.generation", obj.metadata.generation),
            at_field(subject, ".status.observedGeneration", obj.status.observed_generation),
            suggestions=(
                Suggestion("look at kube-controller-manager", kubectl("get", "pods,leases", namespace="kube-system")),
            ),
        )


async def _check_intent(_: World, resource: APIResource[Any], deployment: Deployment) -> AsyncIterator[Finding]:
    subject = reference(resource, deployment)
    if deployment.spec.paused:
        line = kubectl("rollout", "resume", f"deployment/{deployment.metadata.name}", namespace=subject.namespace)
        yield warning(
            "Paused",
            "rollouts are paused: changes of the pod template have no effect",
            at_field(subject, ".spec.paused", value=True),
            suggestions=(Suggestion("resume it", line),),
        )
    if replicas_of(deployment) == 0:
        yield note("ScaledToZero", "it is scaled to 0", at_field(subject, ".spec.replicas", 0))


async def _check_failure(world: World, resource: APIResource[Any], owner: Any) -> AsyncIterator[Finding]:
    """Yield a finding for the condition ReplicaFailure of a Deployment or ReplicaSet."""
    failure = find_condition(owner.status.conditions, "ReplicaFailure")
    if failure is not None and failure.status == "True":
        evidence = at_condition(reference(resource, owner), failure)
        yield await refusal_finding(world, owner.metadata.namespace, failure.message, evidence)


async def _check_progress(_: World, resource: APIResource[Any], deployment: Deployment) -> AsyncIterator[Finding]:
    subject = reference(resource, deployment)
    progress = find_condition(deployment.status.conditions, "Progressing")
    if progress is not None and progress.status == "False":
        deadline = deployment.spec.progress_deadline_seconds
        line = kubectl("rollout", "undo", f"deployment/{deployment.metadata.name}", namespace=subject.namespace)
        yield error(
            progress.reason or "NotProgressing",
            f"the rollout made no progress for {deadline} s: {progress.message}",
            at_condition(subject, progress),
            at_field(subject, ".spec.progressDeadlineSeconds", deadline),
            suggestions=(Suggestion("go back to the previous revision", line),),
        )


async def _check_pods(world: World, _: APIResource[Any], deployment: Deployment) -> AsyncIterator[Finding]:
    """Yield the problems of the pods of all revisions, and the limits that hold a rollout back."""
    sets = owned_by(deployment, await world.list(REPLICA_SETS, deployment.metadata.namespace))
    current = newest_set(sets)
    pods = [pod for each in sets for pod in await owned_pods(world, each)]
    problems = problems_of(pods)
    for each in problems:
        yield each
    if current is not None:
        for finding in _held_back(deployment, current, sets, problems):
            yield finding
    elif deployment.spec.replicas != 0 and deployment.status.observed_generation >= deployment.metadata.generation:
        subject = reference(DEPLOYMENTS, deployment)
        yield error(
            "NoReplicaSet", "it has no ReplicaSet", at_field(subject, ".status.replicas", deployment.status.replicas)
        )


def newest_set(sets: Sequence[ReplicaSet]) -> ReplicaSet | None:
    """Return the ReplicaSet of the highest revision, None if there is none."""
    return max(sets, key=_revision, default=None)


def _revision(each: ReplicaSet) -> tuple[int, str]:
    text = each.metadata.annotations.get(_REVISION, "")
    number = int(text) if is_digits(text) and len(text) < 19 else 0
    return number, each.metadata.creation_timestamp or ""


def _held_back(
    deployment: Deployment, current: ReplicaSet, sets: Sequence[ReplicaSet], problems: Sequence[Finding]
) -> list[Finding]:
    """Return the finding that the new revision waits, with the limits in numbers."""
    desired, old = replicas_of(deployment), sum(each.status.replicas for each in sets if each is not current)
    ready = current.status.available_replicas
    if not old or ready >= desired or deployment.spec.paused:
        return []
    subject, of_set = reference(DEPLOYMENTS, deployment), reference(REPLICA_SETS, current)
    least, most = desired - max_unavailable(deployment), desired + max_surge(deployment)
    text = (
        f"the new revision has {ready} of {desired} replicas available, and {old} of older revisions stay: "
        f"at least {least} must be available and at most {most} may exist"
    )
    evidence = (
        at_field(of_set, ".status.availableReplicas", ready),
        at_field(subject, ".spec.strategy", deployment.spec.strategy),
    )
    return [warning("RolloutWaits", text, *evidence)] if problems else [note("RolloutInProgress", text, *evidence)]


async def _check_overlap(world: World, resource: APIResource[Any], deployment: Deployment) -> AsyncIterator[Finding]:
    """Yield a finding for each other Deployment whose selector matches the pods of this one."""
    labels = deployment.spec.template.metadata.labels
    subject = reference(resource, deployment)
    for other in await world.list(DEPLOYMENTS, deployment.metadata.namespace):
        if other.metadata.name == deployment.metadata.name:
            continue
        try:
            overlaps = from_label_selector(other.spec.selector).matches(labels)
        except SelectorError:
            continue
        if overlaps:
            yield warning(
                "SelectorsOverlap",
                f"the selector of deployment {other.metadata.name} matches its pods too",
                at_field(reference(DEPLOYMENTS, other), ".spec.selector", other.spec.selector),
                at_field(subject, ".spec.template.metadata.labels", labels),
            )


def _summarize_set(replica_set: ReplicaSet) -> str:
    return f"{replica_set.status.available_replicas} of {replicas_of(replica_set)} replicas available"


def replica_set_fault(replica_set: ReplicaSet) -> str:
    """Return the reason why a ReplicaSet is unhealthy, "" if it is not."""
    return _summarize_set(replica_set) if replica_set.status.available_replicas < replicas_of(replica_set) else ""


async def _check_set_pods(world: World, resource: APIResource[Any], replica_set: ReplicaSet) -> AsyncIterator[Finding]:
    pods = await owned_pods(world, replica_set)
    for each in problems_of(pods):
        yield each
    subject = reference(resource, replica_set)
    if replicas_of(replica_set) == 0:
        yield note("ScaledToZero", "it is scaled to 0", at_field(subject, ".spec.replicas", 0))
    elif len(pods) < replicas_of(replica_set) and not find_condition(replica_set.status.conditions, "ReplicaFailure"):
        failures = await creation_failures(world, resource, replica_set)
        for each in failures:
            yield each
        if not failures:
            text = f"{len(pods)} of {replicas_of(replica_set)} pods exist; none has been refused"
            yield warning("PodsMissing", text, at_field(subject, ".status.replicas", replica_set.status.replicas))


DEPLOYMENT: Final = Explainer(
    DEPLOYMENTS,
    _summarize,
    (check_generation, _check_failure, _check_progress, _check_pods, _check_intent, _check_overlap),
    deployment_fault,
)
REPLICA_SET: Final = Explainer(
    REPLICA_SETS, _summarize_set, (check_generation, _check_failure, _check_set_pods), replica_set_fault
)
