"""Nodes that are not ready, under pressure or closed for new pods."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Final

from steersman.api.core.v1 import Node
from steersman.client.api_resource import APIResource
from steersman.client.resources import LEASES, NODES, PODS
from steersman.explain.commands import kubectl
from steersman.explain.explainer import Explainer
from steersman.explain.finding import Finding, Suggestion, at_condition, at_field, error, note, reference, warning
from steersman.explain.warnings import age_of
from steersman.explain.world import World
from steersman.machinery.built_in.pod_state import is_active
from steersman.machinery.values.conditions import find_condition
from steersman.machinery.values.times import human_duration

LEASE_NAMESPACE: Final = "kube-node-lease"
_GRACE: Final = 50.0
"""Seconds without a heartbeat after which kube-controller-manager marks a node as unknown, by default."""
_READY: Final = "Ready"


def _summarize(node: Node) -> str:
    ready = find_condition(node.status.conditions, _READY)
    states = ["no condition Ready" if ready is None else f"Ready is {ready.status}"]
    states += [each.type for each in node.status.conditions if each.type != _READY and each.status == "True"]
    if node.spec.unschedulable:
        states.append("closed for new pods")
    return ", ".join(states)


def node_fault(node: Node) -> str:
    """Return the reason why a node is unhealthy, "" if it is not."""
    ready = find_condition(node.status.conditions, _READY)
    if ready is None or ready.status != "True":
        return "Ready is unknown" if ready is None else f"Ready is {ready.status}: {ready.reason}: {ready.message}"
    faults = [each.type for each in node.status.conditions if each.type != _READY and each.status == "True"]
    return f"has {', '.join(faults)}" if faults else ""


async def _check_conditions(_: World, resource: APIResource[Any], node: Node) -> AsyncIterator[Finding]:
    subject = reference(resource, node)
    ready = find_condition(node.status.conditions, _READY)
    if ready is None:
        none = at_field(subject, ".status.conditions", None)
        yield error("NoCondition", "no kubelet has reported the condition Ready", none)
    elif ready.status == "False":
        text = f"its kubelet says that it is not ready: {ready.message}"
        yield error(ready.reason or "NotReady", text, at_condition(subject, ready))
    elif ready.status == "Unknown":
        text = f"its kubelet has stopped reporting ({ready.reason}): {ready.message}"
        yield error(ready.reason or "NodeUnknown", text, at_condition(subject, ready))
    for each in node.status.conditions:
        if each.type != _READY and each.status == "True":
            yield error(each.type, f"{each.type}: {each.message or each.reason}", at_condition(subject, each))


async def _check_lease(world: World, resource: APIResource[Any], node: Node) -> AsyncIterator[Finding]:
    lease = await world.get(LEASES, node.metadata.name, LEASE_NAMESPACE)
    if lease is None:
        text = f"it has no Lease in {LEASE_NAMESPACE}: its kubelet has never started, or another one deleted it"
        yield warning("NoLease", text, at_field(reference(resource, node), ".metadata.name", node.metadata.name))
        return
    age = age_of(world, lease.spec.renew_time)
    if age is not None and age > _GRACE:
        text = f"the last heartbeat was {human_duration(age)} ago; it counts as lost after {human_duration(_GRACE)}"
        yield error("HeartbeatLost", text, at_field(reference(LEASES, lease), ".spec.renewTime", lease.spec.renew_time))


async def _check_taints(_: World, resource: APIResource[Any], node: Node) -> AsyncIterator[Finding]:
    subject = reference(resource, node)
    if node.spec.unschedulable:
        line = kubectl("uncordon", node.metadata.name)
        text = "it is closed for new pods (cordoned)"
        field = at_field(subject, ".spec.unschedulable", value=True)
        yield warning("Unschedulable", text, field, suggestions=(Suggestion("open it again", line),))
    taints = [f"{each.key}{f'={each.value}' if each.value else ''}:{each.effect}" for each in node.spec.taints]
    if taints:
        text = f"pods without a toleration stay away or must leave: {', '.join(taints)}"
        yield note("Taints", text, at_field(subject, ".spec.taints", node.spec.taints))


async def _check_pods(world: World, resource: APIResource[Any], node: Node) -> AsyncIterator[Finding]:
    """Yield the pods that are affected by a node that is not ready."""
    if not node_fault(node):
        return
    on_node = [each for each in await world.list(PODS) if each.spec.node_name == node.metadata.name and is_active(each)]
    if on_node:
        names = ", ".join(f"{each.metadata.namespace}/{each.metadata.name}" for each in on_node[:5])
        text = f"{len(on_node)} pods are on it: {names}{', ...' if len(on_node) > 5 else ''}"
        first = reference(PODS, on_node[0])
        yield note("PodsAffected", text, at_field(first, ".spec.nodeName", node.metadata.name))


NODE: Final = Explainer(NODES, _summarize, (_check_conditions, _check_lease, _check_taints, _check_pods), node_fault)
