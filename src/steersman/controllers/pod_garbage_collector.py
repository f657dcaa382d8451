"""Garbage collector of pods: pods of deleted nodes, and finished pods beyond a limit (pkg/controller/podgc)."""

from __future__ import annotations

from typing import Any, Final

from steersman.api.core.v1 import Node, Pod, PodCondition
from steersman.api.meta.v1 import DeleteOptions
from steersman.client.errors import ignoring, is_not_found
from steersman.client.indexes import BY_NODE, by_node
from steersman.client.informer import Key, key_of
from steersman.client.pod_status import patch_pod_status
from steersman.client.resources import NODES, PODS
from steersman.controllers.controller import Controller, ControllerDependencies
from steersman.machinery.built_in.pod_state import is_terminal
from steersman.machinery.codec.serializer import to_plain
from steersman.machinery.values import times
from steersman.machinery.values.conditions import is_condition_true

QUARANTINE: Final = 40.0
"""Seconds that a node must be missing before its pods are deleted."""
MOST_ENDED: Final = 12_500
"""Most finished pods of all namespaces (`--terminated-pod-gc-threshold`). The oldest are deleted first."""
OUT_OF_SERVICE: Final = "node.kubernetes.io/out-of-service"


class PodGarbageCollector(Controller[Key]):
    """Deletes pods that no kubelet deletes. A key is the namespace and name of a pod."""

    name = "pod-garbage-collector-controller"
    account = "pod-garbage-collector"

    def __init__(self, dependencies: ControllerDependencies) -> None:
        super().__init__(dependencies)
        self._pods = self.informers.for_resource(PODS)
        self._nodes = self.informers.for_resource(NODES)
        self._pods.add_index(BY_NODE, by_node)
        self._ended: dict[Key, None] = {}
        self._pods.on_change(self._pod_changed)
        self._nodes.on_change(self._node_changed)

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        if new is None:
            if old is not None:
                self._ended.pop(key_of(old), None)
            return
        key = key_of(new)
        if is_terminal(new):
            self._ended[key] = None
            if len(self._ended) > MOST_ENDED:
                self._queue_oldest()
        if new.metadata.deletion_timestamp and (not new.spec.node_name or old is None or _is_not_deleted(old)):
            self.queue.add(key)
        if new.spec.node_name and self._nodes.has_synced and self._nodes.get("", new.spec.node_name) is None:
            self.queue.add_after(key, QUARANTINE)

    def _node_changed(self, old: Node | None, new: Node | None) -> None:
        name = (new or old).metadata.name  # type: ignore[union-attr]
        if new is None:
            for pod in self._pods.indexed(BY_NODE, name):
                self.queue.add_after(key_of(pod), QUARANTINE)
        elif _is_out_of_service(new):
            for pod in self._pods.indexed(BY_NODE, name):
                if pod.metadata.deletion_timestamp:
                    self.queue.add(key_of(pod))

    def _queue_oldest(self) -> None:
        pods = (self._pods.get(*key) for key in self._ended)
        ended = sorted((pod for pod in pods if pod is not None), key=_age)
        for pod in ended[: len(ended) - MOST_ENDED]:
            self.queue.add(key_of(pod))

    async def run(self) -> None:
        for pod in self._pods:
            if pod.spec.node_name and self._nodes.get("", pod.spec.node_name) is None:
                self.queue.add_after(key_of(pod), QUARANTINE)
        await super().run()

    async def sync(self, key: Key) -> None:
        pod = self._pods.get(*key)
        if pod is None:
            return
        node = self._nodes.get("", pod.spec.node_name) if pod.spec.node_name else None
        deleting = pod.metadata.deletion_timestamp is not None
        if not pod.spec.node_name:
            if deleting:
                await self._delete_pod(pod, None)
        elif node is None:
            if await self.client.find(NODES, pod.spec.node_name) is None:
                await self._delete_pod(
                    pod,
                    PodCondition(
                        type="DisruptionTarget",
                        status="True",
                        reason="DeletionByPodGC",
                        message="PodGC: node no longer exists",
                        last_transition_time=times.now(),
                        observed_generation=pod.metadata.generation,
                    ),
                )
        elif (deleting and _is_out_of_service(node)) or (key in self._ended and len(self._ended) > MOST_ENDED):
            await self._delete_pod(pod, None)

    async def _delete_pod(self, pod: Pod, condition: PodCondition | None) -> None:
        """Delete a pod without a grace period. Before that, set the phase of an unfinished pod to Failed."""
        namespace, name = key_of(pod)
        with ignoring(is_not_found):
            if not is_terminal(pod):
                status: dict[str, Any] = {"phase": "Failed", "observedGeneration": pod.metadata.generation}
                if condition is not None:
                    status["conditions"] = [to_plain(condition)]
                await patch_pod_status(self.client, pod, status)
            await self.client.delete(PODS, name, namespace, DeleteOptions(grace_period_seconds=0))


def _is_not_deleted(pod: Pod) -> bool:
    return not pod.metadata.deletion_timestamp


def _age(pod: Pod) -> tuple[bool, str, str]:
    """Return the sort key of finished pods: evicted pods first, then by age, the oldest first."""
    evicted = pod.status.phase == "Failed" and pod.status.reason == "Evicted"
    return not evicted, pod.metadata.creation_timestamp or "", pod.metadata.name


def _is_out_of_service(node: Node) -> bool:
    ready = is_condition_true(node.status.conditions, "Ready")
    return not ready and any(each.key == OUT_OF_SERVICE for each in node.spec.taints)
