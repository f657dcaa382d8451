"""Pods that end, or have ended: deletion, eviction, preemption, and failure as a whole."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from steersman.api.core import v1 as core
from steersman.client.api_resource import APIResource
from steersman.client.resources import NODES
from steersman.explain.finding import Finding, Severity, at_condition, at_field, reference
from steersman.explain.warnings import age_of
from steersman.explain.world import Unreadable, World
from steersman.machinery.built_in.pod_state import is_terminal
from steersman.machinery.values.conditions import find_condition
from steersman.machinery.values.times import human_duration


async def check_deletion_of_pod(world: World, resource: APIResource[Any], pod: core.Pod) -> AsyncIterator[Finding]:
    """Yield a finding about a pod that is being deleted: its grace period, and a node that does not answer."""
    metadata = pod.metadata
    if not metadata.deletion_timestamp:
        return
    subject = reference(resource, pod)
    grace = metadata.deletion_grace_period_seconds or 0
    late = age_of(world, metadata.deletion_timestamp)
    evidence = (at_field(subject, ".metadata.deletionTimestamp", metadata.deletion_timestamp),)
    if late is not None and late <= 0:
        text = f"is ending: its grace period of {grace} s has {human_duration(-late)} left"
        yield Finding(Severity.NOTE, "Terminating", text, evidence)
        return
    ago = "" if late is None else f" {human_duration(late)} ago"
    text = f"is being deleted, and its grace period of {grace} s ended{ago}"
    if pod.spec.node_name and not is_terminal(pod):
        text += await _state_of_node(world, pod.spec.node_name)
    severity = Severity.WARNING if metadata.finalizers else Severity.ERROR
    yield Finding(severity, "Terminating", text, evidence)


async def _state_of_node(world: World, name: str) -> str:
    try:
        node = await world.get(NODES, name)
    except Unreadable:
        return ""
    if node is None:
        return f": its node {name} does not exist any more"
    ready = find_condition(node.status.conditions, "Ready")
    if ready is None or ready.status != "True":
        return f": the kubelet of its node {name} does not report (Ready is {'missing' if ready is None else ready.status})"
    return f": the kubelet of node {name} has not confirmed that its containers have ended"


async def check_failure(world: World, resource: APIResource[Any], pod: core.Pod) -> AsyncIterator[Finding]:
    """Yield findings about a pod that has failed as a whole, or that is to be disrupted."""
    subject = reference(resource, pod)
    status = pod.status
    if status.phase == "Failed" and (status.reason or status.message):
        text = f"has failed: {': '.join(filter(None, (status.reason, status.message)))}"
        yield Finding(
            Severity.ERROR, status.reason or "Failed", text, (at_field(subject, ".status.reason", status.reason),)
        )
    target = find_condition(status.conditions, "DisruptionTarget")
    if target is not None and target.status == "True":
        text = f"was chosen to end: {target.reason}: {target.message}"
        yield Finding(Severity.WARNING, "DisruptionTarget", text, (at_condition(subject, target),))
