"""Controller of the health of nodes: silent nodes become Unknown, taints follow conditions
(pkg/controller/nodelifecycle).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from steersman.api.coordination.v1 import Lease
from steersman.api.core.v1 import Node, NodeCondition, ObjectReference, Taint
from steersman.client.client import MERGE_PATCH
from steersman.client.errors import ignoring, is_not_found
from steersman.client.events import reference
from steersman.client.indexes import BY_NODE, by_node
from steersman.client.informer import new_or_old
from steersman.client.resources import LEASES, NODES, PODS
from steersman.controllers.controller import Controller, ControllerDependencies
from steersman.controllers.node_zones import Zones
from steersman.machinery.built_in.taints import NOT_READY, UNREACHABLE, UNSCHEDULABLE
from steersman.machinery.codec.serializer import deep_copy, to_plain
from steersman.machinery.values import times
from steersman.machinery.values.conditions import find_condition, is_condition_true
from steersman.work import simulated_time
from steersman.work.upkeep import upkeep

GRACE: Final = 50.0
"""Seconds without a heartbeat after which a node is Unknown (`--node-monitor-grace-period`)."""
STARTUP_GRACE: Final = 60.0
"""Grace period in seconds of a node that has never posted its status."""

_TAINTS_OF_CONDITIONS: Final = (
    ("Ready", "False", NOT_READY),
    ("Ready", "Unknown", UNREACHABLE),
    ("MemoryPressure", "True", "node.kubernetes.io/memory-pressure"),
    ("DiskPressure", "True", "node.kubernetes.io/disk-pressure"),
    ("NetworkUnavailable", "True", "node.kubernetes.io/network-unavailable"),
    ("PIDPressure", "True", "node.kubernetes.io/pid-pressure"),
)
"""Condition, status, and the key of the NoSchedule taint that a node with this status gets."""
_NO_SCHEDULE_KEYS: Final = frozenset({UNSCHEDULABLE, *(key for _, _, key in _TAINTS_OF_CONDITIONS)})
_REPORTED: Final = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")
"""Conditions that a kubelet posts."""
RENAMED_LABELS: Final = (
    ("kubernetes.io/os", "beta.kubernetes.io/os"),
    ("kubernetes.io/arch", "beta.kubernetes.io/arch"),
)
"""Labels, and their deprecated names."""


class NodeLifecycleController(Controller[str]):
    """Sets conditions and taints of nodes by their heartbeats. A key is the name of a node."""

    name = "node-lifecycle-controller"
    account = "node-controller"
    component = "node-controller"
    workers = 8

    def __init__(self, dependencies: ControllerDependencies) -> None:
        super().__init__(dependencies)
        self._nodes = self.informers.for_resource(NODES)
        self._leases = self.informers.for_resource(LEASES)
        self._pods = self.informers.for_resource(PODS)
        self._pods.add_index(BY_NODE, by_node)
        self._last_heartbeat: dict[str, float] = {}
        """Time of the last heartbeat of each node, on the event loop's clock."""
        self._zones = Zones(self.queue.add)
        self._nodes.on_change(self._node_changed)
        self._leases.on_change(self._lease_changed)

    async def run(self) -> None:
        """Reconcile. The grace periods of known nodes begin now: in a large cluster other objects arrive long after
        them.
        """
        self._last_heartbeat = dict.fromkeys(self._last_heartbeat, simulated_time.time())
        await super().run()

    def _node_changed(self, old: Node | None, new: Node | None) -> None:
        name = (new or old).metadata.name  # type: ignore[union-attr]
        if new is None or old is None:
            self._record_membership(name, old, new)
        if new is None:
            self._last_heartbeat.pop(name, None)
            self._zones.remove(name)
            return
        before = None if old is None else find_condition(old.status.conditions, "Ready")
        ready = find_condition(new.status.conditions, "Ready")
        if old is None or (
            ready is not None and (before is None or before.last_heartbeat_time != ready.last_heartbeat_time)
        ):
            self._last_heartbeat[name] = simulated_time.time()
        self._zones.update(new, _is_ready(new))
        self.queue.add(name)

    def _lease_changed(self, old: Lease | None, new: Lease | None) -> None:
        if new is None or new.metadata.namespace != "kube-node-lease" or new.metadata.name not in self._last_heartbeat:
            return
        if old is None or (old.spec.renew_time or "") < (new.spec.renew_time or ""):
            self._last_heartbeat[new.metadata.name] = simulated_time.time()

    def _record_membership(self, name: str, old: Node | None, new: Node | None) -> None:
        node = new_or_old(old, new)
        if new is not None:
            reason, text = "RegisteredNode", f"Registered Node {name} in Controller"
        else:
            reason, text = "RemovingNode", f"Removing Node {name} from Controller"
        self.recorder.event(_reference(node), "Normal", reason, f"Node {name} event: {text}")

    async def sync(self, key: str) -> None:
        node = self._nodes.get("", key)
        if node is None:
            return
        await self._update_deprecated_labels(node)
        if self._is_gone(key):
            return
        was_ready = _is_ready(node)
        if self._is_overdue(node):
            node = await self._mark_unknown(node)
            if node is None:
                return
            if was_ready:
                self.recorder.event(
                    _reference(node), "Normal", "NodeNotReady", f"Node {key} status is now: NodeNotReady"
                )
                await self._mark_pods_not_ready(key)
        if not self._is_gone(key):
            await self._update_taints(node)

    def _is_gone(self, name: str) -> bool:
        """Return True if a node was deleted, perhaps during a request about it."""
        return name not in self._last_heartbeat

    async def _update_deprecated_labels(self, node: Node) -> None:
        labels = node.metadata.labels
        wrong = {old: labels[new] for new, old in RENAMED_LABELS if new in labels and labels.get(old) != labels[new]}
        if wrong:
            await self.client.patch(NODES, node.metadata.name, "", {"metadata": {"labels": wrong}})

    # Health

    def _is_overdue(self, node: Node) -> bool:
        """Return True if a node's grace period is over. Otherwise queue the node for the end of the period."""
        name, ready = node.metadata.name, find_condition(node.status.conditions, "Ready")
        if ready is not None and ready.status == "Unknown" and ready.reason == "NodeStatusUnknown":
            return False
        grace = STARTUP_GRACE if ready is None else GRACE
        left = self._last_heartbeat[name] + grace - simulated_time.time()
        if left > 0:
            with upkeep():  # the next heartbeat postpones it
                self.queue.add_after(name, left + 0.001)
        return left <= 0

    async def _mark_unknown(self, node: Node) -> Node | None:
        changed = deep_copy(node)
        by_type = {each.type: each for each in changed.status.conditions}
        for type_ in _REPORTED:
            condition = by_type.get(type_)
            if condition is None:
                changed.status.conditions.append(
                    NodeCondition(
                        type=type_,
                        status="Unknown",
                        reason="NodeStatusNeverUpdated",
                        message="Kubelet never posted node status.",
                        last_transition_time=times.now(),
                        last_heartbeat_time=node.metadata.creation_timestamp,
                    )
                )
            elif condition.status != "Unknown":
                condition.status, condition.reason = "Unknown", "NodeStatusUnknown"
                condition.message = "Kubelet stopped posting node status."
                condition.last_transition_time = times.now()
        if changed.status.conditions == node.status.conditions:
            return node
        with ignoring(is_not_found):
            return await self.client.update_status(NODES, changed)
        return None

    async def _mark_pods_not_ready(self, node: str) -> None:
        for pod in self._pods.indexed(BY_NODE, node):
            changed = deep_copy(pod)
            ready = find_condition(changed.status.conditions, "Ready")
            if ready is None or ready.status == "False":
                continue
            ready.status, ready.last_transition_time = "False", times.now()
            with ignoring(is_not_found):
                await self.client.update_status(PODS, changed)
                self.recorder.event(reference(PODS, pod), "Warning", "NodeNotReady", "Node is not ready")

    # Taints

    async def _update_taints(self, node: Node) -> None:
        """Update the taints by the conditions. NoExecute taints are added at the rate that the node's zone allows."""
        taint_key = [
            Taint(key=key, effect="NoSchedule", time_added=times.now()) for key in sorted(_no_schedule_keys(node))
        ]
        taints = [each for each in node.spec.taints if not _is_managed_no_schedule(each) or _has_equal(each, taint_key)]
        taints += [each for each in taint_key if not _has_equal(each, taints)]
        taints = self._with_no_execute_taint(node, taints)
        if taints == node.spec.taints:
            return
        patch: dict[str, Any] = {
            "metadata": {"resourceVersion": node.metadata.resource_version},
            "spec": {"taints": [to_plain(each) for each in taints] or None},
        }
        with ignoring(is_not_found):
            await self.client.patch(NODES, node.metadata.name, "", patch, media=MERGE_PATCH)

    def _with_no_execute_taint(self, node: Node, taints: list[Taint]) -> list[Taint]:
        ready = find_condition(node.status.conditions, "Ready")
        status = ready.status if ready is not None else ""
        others = [each for each in taints if not (each.effect == "NoExecute" and each.key in (NOT_READY, UNREACHABLE))]
        driving = [each for each in taints if each not in others]
        taint_key = {"False": NOT_READY, "Unknown": UNREACHABLE}.get(status)
        name = node.metadata.name
        if taint_key is None or self._zones.all_disrupted:
            self._zones.cancel(name)
            return others
        if any(each.key == taint_key for each in driving):
            return [*others, *(each for each in driving if each.key == taint_key)]
        if not driving and not self._zones.may_taint(name):
            return others  # the zone wakes the node when the rate allows its taint
        return [*others, Taint(key=taint_key, effect="NoExecute", time_added=times.now())]


def _no_schedule_keys(node: Node) -> set[str]:
    status = {each.type: each.status for each in node.status.conditions}
    keys = {key for type_, wrong, key in _TAINTS_OF_CONDITIONS if status.get(type_) == wrong}
    return keys | {UNSCHEDULABLE} if node.spec.unschedulable else keys


def _is_managed_no_schedule(taint: Taint) -> bool:
    return taint.effect == "NoSchedule" and taint.key in _NO_SCHEDULE_KEYS


def _has_equal(taint: Taint, among: Sequence[Taint]) -> bool:
    return any((each.key, each.effect) == (taint.key, taint.effect) for each in among)


def _is_ready(node: Node) -> bool:
    return is_condition_true(node.status.conditions, "Ready")


def _reference(node: Node) -> ObjectReference:
    return ObjectReference(api_version="v1", kind="Node", name=node.metadata.name, uid=node.metadata.uid)
