"""Short ways to create nodes and pods, and to wait for the scheduler's decisions."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from steersman.api.core.v1 import Node, Pod, PodCondition
from steersman.api.meta.v1 import DeleteOptions
from steersman.api.scheduling.v1 import PriorityClass
from steersman.client.api_resource import APIResource
from steersman.client.client import Client
from steersman.client.resources import NEW_EVENTS, NODES, PODS
from steersman.machinery.codec.serializer import from_plain
from steersman.scheduler.scheduler import Scheduler

T = TypeVar("T")

PRIORITY_CLASSES = APIResource(
    "scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", PriorityClass, namespaced=False
)


def node_of(name: str, **spec: Any) -> dict[str, Any]:
    """Return a ready node. Without `allocatable`, it has 2 CPUs, 4 GiB of memory and room for 110 pods."""
    labels = {"kubernetes.io/hostname": name, **spec.pop("labels", {})}
    allocatable = {"cpu": "2", "memory": "4Gi", "pods": "110", **spec.pop("allocatable", {})}
    status = {
        "allocatable": allocatable,
        "capacity": allocatable,
        "images": spec.pop("images", []),
        "conditions": [{"type": "Ready", "status": "True"}],
    }
    return {"metadata": {"name": name, "labels": labels}, "spec": spec, "status": status}


def pod_of(name: str, **spec: Any) -> dict[str, Any]:
    """Return a pod with one container that requests `cpu` and `memory`, and with `labels`."""
    requests = {key: spec.pop(key) for key in ("cpu", "memory") if key in spec}
    container = {"name": "c", "image": "image", "resources": {"requests": requests}}
    metadata = {"name": name, "namespace": "default", "labels": spec.pop("labels", {})}
    return {"metadata": metadata, "spec": {"containers": [container], **spec}}


class Scene:
    """A cluster with a running scheduler."""

    def __init__(self, client: Client, scheduler: Scheduler) -> None:
        self.client = client
        self.scheduler = scheduler

    async def node(self, name: str, **spec: Any) -> Node:
        """Create a node as described by `node_of`."""
        plain = node_of(name, **spec)
        made = await self.client.create(NODES, from_plain(Node, {"metadata": plain["metadata"]}))
        wanted = from_plain(Node, plain)
        made.spec, made.status = wanted.spec, wanted.status
        await self.client.update(NODES, made)
        return await self.client.patch(NODES, name, "", {"status": plain["status"]}, subresource="status")

    async def pod(self, name: str, **spec: Any) -> Pod:
        """Create a pod as described by `pod_of`."""
        return await self.client.create(PODS, from_plain(Pod, pod_of(name, **spec)))

    async def delete(self, name: str) -> None:
        """Delete a pod without a grace period."""
        await self.client.delete(PODS, name, "default", DeleteOptions(grace_period_seconds=0))

    async def get(self, name: str) -> Pod:
        return await self.client.get(PODS, name, "default")

    async def wait_for_node(self, name: str) -> str:
        """Wait until a pod has a node, and return the node's name."""
        return await wait_for(lambda: self._node_of(name))

    async def _node_of(self, name: str) -> str:
        return (await self.get(name)).spec.node_name

    async def wait_for_refusal(self, name: str) -> PodCondition:
        """Wait until a pod's condition says why it has no node, and return the condition."""

        async def read() -> PodCondition | None:
            for each in (await self.get(name)).status.conditions:
                if each.type == "PodScheduled" and each.status == "False":
                    return each
            return None

        found = await wait_for(read)
        assert found is not None
        return found

    async def wait_for_nomination(self, name: str) -> str:
        """Wait until a pod is nominated for a node, and return the node's name."""

        async def read() -> str:
            return (await self.get(name)).status.nominated_node_name

        return await wait_for(read)

    async def events(self, name: str) -> Mapping[str, str]:
        """Return the events about a pod: notes by reason."""
        found = (await self.client.list(NEW_EVENTS, "default")).items
        return {each.reason: each.note for each in found if each.regarding.name == name}

    async def wait_for_event(self, name: str, reason: str) -> str:
        """Wait for an event with this reason, and return its note."""

        async def read() -> str:
            return (await self.events(name)).get(reason, "")

        return await wait_for(read)


async def wait_for(read: Callable[[], Awaitable[T]], *, seconds: float = 30) -> T:
    """Call `read` until it returns something true, and return that. Raises TimeoutError."""
    async with asyncio.timeout(seconds):
        while True:
            found = await read()
            if found:
                return found
            await asyncio.sleep(0.002)


async def make_priorities(scene: Scene) -> None:
    """Create the classes low (1), high (100) and patient (100, which preempts nobody)."""
    for name, value, policy in (("low", 1, None), ("high", 100, None), ("patient", 100, "Never")):
        plain = {"metadata": {"name": name}, "value": value, "preemptionPolicy": policy}
        await scene.client.create(PRIORITY_CLASSES, from_plain(PriorityClass, plain))
