"""Cluster events: changes that may make a pod schedulable that was not before (framework/events.go)."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Flag, auto
from typing import Any

from msgspec import Struct

from steersman.api.core import v1 as core
from steersman.scheduler.demand.requests import used_by


class Action(Flag):
    """Kind of a change of an object."""

    ADD = auto()
    DELETE = auto()
    UPDATE = auto()
    """Any update without a kind of its own."""
    NODE_ALLOCATABLE = auto()
    NODE_LABEL = auto()
    NODE_TAINT = auto()
    NODE_CONDITION = auto()
    NODE_ANNOTATION = auto()
    NODE_FEATURES = auto()
    POD_LABEL = auto()
    POD_SCALE_DOWN = auto()
    POD_TOLERATION = auto()
    POD_GATES_ELIMINATED = auto()
    POD_GENERATED_CLAIM = auto()


class ClusterEvent(Struct, frozen=True):
    """Change of an object of a resource (its plural). `old` is None for a new object, `new` for a deleted one."""

    resource: str
    action: Action
    old: Any = None
    new: Any = None


def pod_changes(old: core.Pod, new: core.Pod) -> Iterator[ClusterEvent]:
    """Yield the events of an update of a pod."""
    actions = []
    if old.metadata.labels != new.metadata.labels:
        actions.append(Action.POD_LABEL)
    if _is_scaled_down(old, new):
        actions.append(Action.POD_SCALE_DOWN)
    if old.spec.scheduling_gates and not new.spec.scheduling_gates:
        actions.append(Action.POD_GATES_ELIMINATED)
    if len(old.spec.tolerations) != len(new.spec.tolerations):
        actions.append(Action.POD_TOLERATION)
    before, after = old.status, new.status
    if (
        before.resource_claim_statuses != after.resource_claim_statuses
        or before.extended_resource_claim_status != after.extended_resource_claim_status
    ):
        actions.append(Action.POD_GENERATED_CLAIM)
    for action in actions or (Action.UPDATE,):
        yield ClusterEvent("pods", action, old, new)


def _is_scaled_down(old: core.Pod, new: core.Pod) -> bool:
    before, after = used_by(old).total, used_by(new).total
    return before is not after and (
        before.milli_cpu > after.milli_cpu
        or before.memory > after.memory
        or before.ephemeral_storage > after.ephemeral_storage
        or any(amount > after.scalars.get(name, 0) for name, amount in before.scalars.items())
    )


def node_changes(old: core.Node, new: core.Node) -> Iterator[ClusterEvent]:
    """Yield the events of an update of a node; none for a mere heartbeat."""
    changed = (
        (Action.NODE_TAINT, old.spec.unschedulable and not new.spec.unschedulable),
        (Action.NODE_ALLOCATABLE, old.status.allocatable != new.status.allocatable),
        (Action.NODE_LABEL, old.metadata.labels != new.metadata.labels),
        (Action.NODE_TAINT, old.spec.taints != new.spec.taints),
        (Action.NODE_CONDITION, _conditions(old) != _conditions(new)),
        (Action.NODE_ANNOTATION, old.metadata.annotations != new.metadata.annotations),
        (Action.NODE_FEATURES, old.status.declared_features != new.status.declared_features),
    )
    for action, is_so in changed:
        if is_so:
            yield ClusterEvent("nodes", action, old, new)


def _conditions(node: core.Node) -> dict[str, str]:
    return {each.type: each.status for each in node.status.conditions}
