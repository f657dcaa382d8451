"""Controller that deletes pods from nodes with NoExecute taints they do not tolerate (pkg/controller/tainteviction)."""

from __future__ import annotations

from steersman.api.core.v1 import Node, ObjectReference, Pod, PodCondition, Taint
from steersman.client.errors import ignoring, is_not_found
from steersman.client.indexes import BY_NODE, by_node
from steersman.client.informer import Key, key_of
from steersman.client.pod_status import patch_pod_status
from steersman.client.resources import NODES, PODS
from steersman.controllers.controller import Controller, ControllerDependencies
from steersman.machinery.built_in.taints import matching_tolerations
from steersman.machinery.codec.serializer import to_plain
from steersman.machinery.values import times
from steersman.machinery.values.conditions import is_condition_true
from steersman.work import simulated_time


class TaintEvictionController(Controller[Key]):
    """Deletes pods by taints. A key is the namespace and name of a pod whose toleration has run out."""

    name = "taint-eviction-controller"
    account = "node-controller"
    component = "taint-eviction-controller"
    workers = 8

    def __init__(self, dependencies: ControllerDependencies) -> None:
        super().__init__(dependencies)
        self._nodes = self.informers.for_resource(NODES)
        self._pods = self.informers.for_resource(PODS)
        self._pods.add_index(BY_NODE, by_node)
        self._since: dict[Key, float] = {}
        """Time when each scheduled deletion began to wait, on the event loop's clock."""
        self._timers: dict[Key, simulated_time.Timer] = {}
        self._nodes.on_change(self._node_changed)
        self._pods.on_change(self._pod_changed)

    def _node_changed(self, old: Node | None, new: Node | None) -> None:
        if new is None:
            return
        taints = _no_execute(new)
        if old is not None and _no_execute(old) == taints:
            return
        for pod in self._pods.indexed(BY_NODE, new.metadata.name):
            self._schedule_eviction(pod, taints)

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        if new is None:
            if old is not None:
                self._cancel(key_of(old))
            return
        same = old is not None and old.spec.node_name == new.spec.node_name
        if same and old is not None and old.spec.tolerations == new.spec.tolerations:
            return
        node = self._nodes.get("", new.spec.node_name) if new.spec.node_name else None
        if node is not None:
            self._schedule_eviction(new, _no_execute(node))

    def _schedule_eviction(self, pod: Pod, taints: list[Taint]) -> None:
        """Schedule the deletion of a pod now or after its toleration seconds, or cancel it."""
        key = key_of(pod)
        used = matching_tolerations(taints, pod.spec.tolerations)
        if not taints:
            self._cancel(key)
        elif used is None:
            self._cancel(key)
            self._schedule(key, simulated_time.time(), 0)
        else:
            limits = [each.toleration_seconds for each in used if each.toleration_seconds is not None]
            if not limits:
                self._cancel(key)
                return
            if key not in self._since:  # a scheduled deletion keeps its time
                self._schedule(key, simulated_time.time(), max(0, min(limits)))

    def _schedule(self, key: Key, since: float, wait: float) -> None:
        self._since[key] = since
        self._timers[key] = simulated_time.call_at(since + wait, self._enqueue, key)

    def _enqueue(self, key: Key) -> None:
        self._timers.pop(key, None)
        self.queue.add(key)

    def _cancel(self, key: Key) -> None:
        timer = self._timers.pop(key, None)
        if self._since.pop(key, None) is not None and timer is not None:
            timer.cancel()
            if self._pods.get(*key) is not None:
                self._record_event(key, "Cancelling deletion of")

    def _record_event(self, key: Key, what: str) -> None:
        about = ObjectReference(api_version="v1", kind="Pod", namespace=key[0], name=key[1])
        self.recorder.event(about, "Normal", "TaintManagerEviction", f"{what} Pod {key[0]}/{key[1]}")

    async def sync(self, key: Key) -> None:
        if self._since.get(key) is None:
            return
        self._record_event(key, "Marking for deletion")
        namespace, name = key
        condition = PodCondition(
            type="DisruptionTarget",
            status="True",
            reason="DeletionByTaintManager",
            message="Taint manager: deleting due to NoExecute taint",
            last_transition_time=times.now(),
        )
        with ignoring(is_not_found):
            pod = await self.client.get(PODS, name, namespace)
            condition.observed_generation = pod.metadata.generation
            if not is_condition_true(pod.status.conditions, condition.type):
                await patch_pod_status(self.client, pod, {"conditions": [to_plain(condition)]})
            await self.client.delete(PODS, name, namespace)
        self._since.pop(key, None)


def _no_execute(node: Node) -> list[Taint]:
    return [taint for taint in node.spec.taints if taint.effect == "NoExecute"]
