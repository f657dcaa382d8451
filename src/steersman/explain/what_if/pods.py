"""Pods of manifests: those that are given, and those that their workloads would create."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from steersman.api.apps import v1 as apps
from steersman.api.core import v1 as core
from steersman.api.meta.v1 import ObjectMeta, OwnerReference
from steersman.api.scheduling.v1 import PriorityClass
from steersman.client.api_resource import APIResource
from steersman.client.resources import (
    DAEMON_SETS,
    DEPLOYMENTS,
    JOBS,
    PODS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    STATEFUL_SETS,
)
from steersman.controllers.daemon_set.nodes import NodeMatcher, bound_to, template_for
from steersman.explain.finding import Reference, reference
from steersman.explain.world import World
from steersman.machinery.codec.serializer import deep_copy

WORKLOADS: Final[Sequence[APIResource[Any]]] = (
    DAEMON_SETS,
    STATEFUL_SETS,
    DEPLOYMENTS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    JOBS,
)
"""Workloads whose pods are placed, in this order, before single pods."""
MOST_PODS: Final = 5_000
"""Most pods of all manifests."""
_DEFAULT_TOLERATIONS: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


class TooManyPods(ValueError):
    """The error for manifests with more pods than a plan may have."""


class Wanted(Struct, frozen=True):
    """A pod to be placed, and the object of the manifests that it comes from."""

    pod: core.Pod
    source: Reference
    claims: tuple[core.PersistentVolumeClaim, ...] = ()
    """Claims that are created for the pod."""


async def wanted_pods(
    manifests: World, namespace: str, nodes: Sequence[core.Node], classes: Sequence[PriorityClass]
) -> Sequence[Wanted]:
    """Return the pods of manifests in the order in which they are placed. Raises TooManyPods.

    Objects without a namespace are in `namespace`; `nodes` are those of which DaemonSets get some.
    """
    pods_to_place: list[Wanted] = []
    priorities = {each.metadata.name: each for each in classes}
    default = next((each for each in classes if each.global_default), None)
    for resource in (*WORKLOADS, PODS):
        for obj in await manifests.list(resource):
            place = obj.metadata.namespace or namespace
            for pod, claims in _pods_of(resource, obj, nodes):
                metadata = replace(pod.metadata, namespace=place)
                whole = _with_defaults(replace(pod, metadata=metadata), priorities, default)
                made = tuple(replace(each, metadata=replace(each.metadata, namespace=place)) for each in claims)
                source = reference(resource, replace(obj, metadata=replace(obj.metadata, namespace=place)))
                pods_to_place.append(Wanted(whole, source, (*made, *_ephemeral(whole))))
                if len(pods_to_place) > MOST_PODS:
                    raise TooManyPods(f"the manifests have more than {MOST_PODS} pods")
    return pods_to_place


Made = tuple[core.Pod, Sequence[core.PersistentVolumeClaim]]


def _pods_of(resource: APIResource[Any], obj: Any, nodes: Sequence[core.Node]) -> Iterator[Made]:
    if resource is PODS:
        yield obj, ()
    elif resource is DAEMON_SETS:
        yield from _daemon_pods(obj, nodes)
    else:
        count = obj.spec.parallelism if resource is JOBS else obj.spec.replicas
        if resource is JOBS and obj.spec.completions is not None:
            count = min(1 if count is None else count, obj.spec.completions)
        for number in range(1 if count is None else count):
            pod = _from_template(resource, obj, obj.spec.template, f"{obj.metadata.name}-{number}")
            if resource is STATEFUL_SETS:
                yield _with_claims(pod, obj.spec.volume_claim_templates)
            else:
                yield pod, ()


def _daemon_pods(daemon_set: apps.DaemonSet, nodes: Sequence[core.Node]) -> Iterator[Made]:
    matches = NodeMatcher(daemon_set)
    template = template_for(daemon_set, "")
    for node in nodes:
        if matches(node)[0]:
            name = node.metadata.name
            pod = _from_template(
                DAEMON_SETS, daemon_set, bound_to(template, name), f"{daemon_set.metadata.name}-{name}"
            )
            yield pod, ()


def _from_template(resource: APIResource[Any], owner: Any, template: core.PodTemplateSpec, name: str) -> core.Pod:
    ref = OwnerReference(
        api_version=resource.api_version,
        kind=resource.kind,
        name=owner.metadata.name,
        uid=owner.metadata.uid or f"{resource.kind}/{owner.metadata.name}",
        controller=True,
    )
    metadata = ObjectMeta(
        name=name,
        labels=dict(template.metadata.labels),
        annotations=dict(template.metadata.annotations),
        owner_references=[ref],
    )
    return core.Pod(metadata=metadata, spec=deep_copy(template.spec))


def _with_claims(pod: core.Pod, templates: Sequence[core.PersistentVolumeClaim]) -> Made:
    """Return a pod of a StatefulSet with its claims, which it mounts by the names of their templates."""
    claims, volumes = [], []
    for each in templates:
        name = f"{each.metadata.name}-{pod.metadata.name}"
        claims.append(replace(each, metadata=replace(each.metadata, name=name)))
        source = core.PersistentVolumeClaimVolumeSource(claim_name=name)
        volumes.append(core.Volume(name=each.metadata.name, persistent_volume_claim=source))
    own = [each for each in pod.spec.volumes if each.name not in {claim.name for claim in volumes}]
    return replace(pod, spec=replace(pod.spec, volumes=[*own, *volumes])), claims


def _ephemeral(pod: core.Pod) -> Iterator[core.PersistentVolumeClaim]:
    for volume in pod.spec.volumes:
        template = None if volume.ephemeral is None else volume.ephemeral.volume_claim_template
        if template is not None:
            uid = f"{pod.metadata.namespace}/{pod.metadata.name}"
            owner = OwnerReference(
                api_version="v1", kind="Pod", name=pod.metadata.name, uid=pod.metadata.uid or uid, controller=True
            )
            metadata = ObjectMeta(
                name=f"{pod.metadata.name}-{volume.name}", namespace=pod.metadata.namespace, owner_references=[owner]
            )
            yield core.PersistentVolumeClaim(metadata=metadata, spec=template.spec)


def _with_defaults(pod: core.Pod, priorities: Mapping[str, PriorityClass], default: PriorityClass | None) -> core.Pod:
    """Return a pod with what the API server would set that decisions depend on."""
    spec = deep_copy(pod.spec)
    for container in (*(spec.containers or ()), *spec.init_containers):
        container.resources.requests = {**container.resources.limits, **container.resources.requests}
        for port in container.ports:
            if spec.host_network and not port.host_port:
                port.host_port = port.container_port
    chosen = priorities.get(spec.priority_class_name) or (None if spec.priority_class_name else default)
    if spec.priority is None and chosen is not None:
        spec.priority = chosen.value
        spec.preemption_policy = spec.preemption_policy or chosen.preemption_policy
    known = {(each.key, each.effect) for each in spec.tolerations}
    for key in _DEFAULT_TOLERATIONS:
        if (key, "NoExecute") not in known:
            toleration = core.Toleration(key=key, operator="Exists", effect="NoExecute", toleration_seconds=300)
            spec.tolerations = [*spec.tolerations, toleration]
    return replace(pod, spec=spec)
