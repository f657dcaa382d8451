"""StatefulSets that do not progress."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

from steersman.api.apps.v1 import StatefulSet
from steersman.api.core.v1 import Pod
from steersman.client.api_resource import APIResource
from steersman.client.resources import PERSISTENT_VOLUME_CLAIMS, PODS, SERVICES, STATEFUL_SETS
from steersman.explain.commands import kubectl, why
from steersman.explain.deployments import check_generation
from steersman.explain.explainer import Explainer
from steersman.explain.finding import Finding, Suggestion, at_field, error, note, reference, warning
from steersman.explain.owned import creation_failures, owned_pods
from steersman.explain.pod_problems import problem_of, problems_of
from steersman.explain.world import World
from steersman.machinery.built_in.pod_state import is_ready
from steersman.net.ascii import is_digits

_REVISION: Final = "controller-revision-hash"


def _replicas(each: StatefulSet) -> int:
    return 1 if each.spec.replicas is None else each.spec.replicas


def _summarize(each: StatefulSet) -> str:
    text = f"{each.status.ready_replicas} of {_replicas(each)} replicas ready"
    if each.status.update_revision != each.status.current_revision:
        text += f", {each.status.updated_replicas} of the new revision"
    return text


def stateful_set_fault(each: StatefulSet) -> str:
    """Return the reason why a StatefulSet is unhealthy, "" if it is not."""
    return _summarize(each) if each.status.ready_replicas < _replicas(each) else ""


async def _check_pods(world: World, resource: APIResource[Any], owner: StatefulSet) -> AsyncIterator[Finding]:
    pods = sorted(await owned_pods(world, owner), key=_ordinal)
    for each in problems_of(pods):
        yield each
    start = owner.spec.ordinals.start if owner.spec.ordinals is not None else 0
    missing = set(range(start, start + _replicas(owner))) - set(map(_ordinal, pods))
    if missing:
        failures = await creation_failures(world, resource, owner)
        for each in failures:
            yield each
        blocking = _blocking(owner, pods)
        subject = reference(resource, owner)
        if blocking is not None and not failures:
            yield error(
                "OrderedStart",
                f"pod {owner.metadata.name}-{min(missing)} waits for {blocking.metadata.name}, which is not ready: "
                "pods start one after the other (podManagementPolicy OrderedReady)",
                at_field(subject, ".spec.podManagementPolicy", owner.spec.pod_management_policy or "OrderedReady"),
                at_field(reference(PODS, blocking), ".status.phase", blocking.status.phase),
                suggestions=(Suggestion("look at the pod", why(reference(PODS, blocking))),),
            )
        elif not failures:
            text = f"{len(missing)} pods do not exist yet, {owner.metadata.name}-{min(missing)} is next"
            yield warning("PodsMissing", text, at_field(subject, ".status.replicas", owner.status.replicas))


def _ordinal(pod: Pod) -> int:
    text = pod.metadata.name.rpartition("-")[2]
    return int(text) if is_digits(text) and len(text) < 10 else -1


def _blocking(owner: StatefulSet, pods: Sequence[Pod]) -> Pod | None:
    """Return the pod for which the creation of the next one waits."""
    if owner.spec.pod_management_policy == "Parallel":
        return None
    return next((each for each in pods if not is_ready(each)), None)


async def _check_rollout(world: World, resource: APIResource[Any], owner: StatefulSet) -> AsyncIterator[Finding]:
    status, subject = owner.status, reference(resource, owner)
    if not status.update_revision or status.update_revision == status.current_revision:
        return
    strategy = owner.spec.update_strategy
    if strategy.type == "OnDelete":
        text = "pods of the old revision are replaced only when they are deleted (updateStrategy OnDelete)"
        yield note("OnDelete", text, at_field(subject, ".spec.updateStrategy.type", strategy.type))
        return
    partition = strategy.rolling_update.partition if strategy.rolling_update is not None else None
    if partition:
        text = f"only pods from ordinal {partition} on get the new revision"
        yield note("Partition", text, at_field(subject, ".spec.updateStrategy.rollingUpdate.partition", partition))
    for pod in await owned_pods(world, owner):
        problem = problem_of(pod)
        if problem is None or pod.metadata.labels.get(_REVISION) == status.update_revision:
            continue
        line = kubectl("delete", "pod", pod.metadata.name, namespace=pod.metadata.namespace)
        yield error(
            "OldRevisionBroken",
            f"pod {pod.metadata.name} is of the old revision and not ready, so the rollout waits for it",
            problem.evidence,
            at_field(subject, ".status.updateRevision", status.update_revision),
            suggestions=(Suggestion("delete the pod: its successor gets the new revision", line),),
        )
        return


async def _check_claims(world: World, resource: APIResource[Any], owner: StatefulSet) -> AsyncIterator[Finding]:
    templates = {each.metadata.name for each in owner.spec.volume_claim_templates}
    if not templates:
        return
    for claim in await world.list(PERSISTENT_VOLUME_CLAIMS, owner.metadata.namespace):
        template, _, rest = claim.metadata.name.partition(f"-{owner.metadata.name}-")
        if template in templates and is_digits(rest) and claim.status.phase != "Bound":
            subject = reference(PERSISTENT_VOLUME_CLAIMS, claim)
            yield error(
                "ClaimNotBound",
                f"claim {claim.metadata.name} is {claim.status.phase or 'without phase'}",
                at_field(subject, ".status.phase", claim.status.phase),
                suggestions=(Suggestion("look at the claim", why(subject)),),
            )


async def _check_service(world: World, resource: APIResource[Any], owner: StatefulSet) -> AsyncIterator[Finding]:
    name = owner.spec.service_name
    if name and await world.get(SERVICES, name, owner.metadata.namespace) is None:
        yield warning(
            "ServiceMissing",
            f"Service {name} does not exist: the pods have no names in DNS",
            at_field(reference(resource, owner), ".spec.serviceName", name),
        )


STATEFUL_SET: Final = Explainer(
    STATEFUL_SETS,
    _summarize,
    (check_generation, _check_pods, _check_claims, _check_rollout, _check_service),
    stateful_set_fault,
)
