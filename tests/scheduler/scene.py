"""Nodes and pods by a few words, and what becomes of them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from steersman.api.core.v1 import Node, Pod, PodCondition
from steersman.api.meta.v1 import DeleteOptions
from steersman.client.client import Client
from steersman.client.resources import NEW_EVENTS, NODES, PODS
from steersman.machinery.codec.serializer import from_plain
from steersman.scheduler.scheduler import Scheduler

T = TypeVar("T")


def node_of(name: str, **spec: Any) -> dict[str, Any]:
    """A node that is ready and has 2 CPUs, 4 GiB and room for 110 pods, if `allocatable` does not say otherwise."""
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
    """A pod of one container that asks for `cpu` and `memory`; with `labels`."""
    requests = {key: spec.pop(key) for key in ("cpu", "memory") if key in spec}
    container = {"name": "c", "image": "image", "resources": {"requests": requests}}
    metadata = {"name": name, "namespace": "default", "labels": spec.pop("labels", {})}
    return {"metadata": metadata, "spec": {"containers": [container], **spec}}


class Scene:
    """A cluster in which the scheduler runs."""

    def __init__(self, client: Client, scheduler: Scheduler) -> None:
        self.client = client
        self.scheduler = scheduler

    async def node(self, name: str, **spec: Any) -> Node:
        """A node as `node_of` has it."""
        plain = node_of(name, **spec)
        made = await self.client.create(NODES, from_plain(Node, {"metadata": plain["metadata"]}))
        wanted = from_plain(Node, plain)
        made.spec, made.status = wanted.spec, wanted.status
        await self.client.update(NODES, made)
        return await self.client.patch(NODES, name, "", {"status": plain["status"]}, subresource="status")

    async def pod(self, name: str, **spec: Any) -> Pod:
        """A pod as `pod_of` has it."""
        return await self.client.create(PODS, from_plain(Pod, pod_of(name, **spec)))

    async def delete(self, name: str) -> None:
        """Deletes a pod at once."""
        await self.client.delete(PODS, name, "default", DeleteOptions(grace_period_seconds=0))

    async def get(self, name: str) -> Pod:
        return await self.client.get(PODS, name, "default")

    async def placed(self, name: str) -> str:
        """The node of a pod, once it has one."""
        return await eventually(lambda: self._node_of(name))

    async def _node_of(self, name: str) -> str:
        return (await self.get(name)).spec.node_name

    async def refused(self, name: str) -> PodCondition:
        """What is said of a pod that has no node, once something is."""

        async def look() -> PodCondition | None:
            for each in (await self.get(name)).status.conditions:
                if each.type == "PodScheduled" and each.status == "False":
                    return each
            return None

        found = await eventually(look)
        assert found is not None
        return found

    async def nominated(self, name: str) -> str:
        """The node that a pod is meant for, once it is meant for one."""

        async def look() -> str:
            return (await self.get(name)).status.nominated_node_name

        return await eventually(look)

    async def events(self, name: str) -> Mapping[str, str]:
        """What has been told about a pod: notes by reason."""
        found = (await self.client.list(NEW_EVENTS, "default")).items
        return {each.reason: each.note for each in found if each.regarding.name == name}

    async def told(self, name: str, reason: str) -> str:
        """The note of an event, once there is one."""

        async def look() -> str:
            return (await self.events(name)).get(reason, "")

        return await eventually(look)


async def eventually(look: Callable[[], Awaitable[T]], *, seconds: float = 30) -> T:
    """What `look` finds, once that is true. Raises TimeoutError."""
    async with asyncio.timeout(seconds):
        while True:
            found = await look()
            if found:
                return found
            await asyncio.sleep(0.002)
