"""A simulated kubelet: functions that run, end and delete pods."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from steersman.api.core.v1 import Binding, Container, ObjectReference, Pod, PodSpec, PodTemplateSpec
from steersman.api.meta.v1 import DeleteOptions, ObjectMeta
from steersman.client.client import STRATEGIC_MERGE_PATCH, Client
from steersman.client.errors import is_not_found
from steersman.client.resources import BINDINGS, PODS
from steersman.controllers.daemon_set.nodes import target_node
from steersman.machinery.errors.status import StatusError
from steersman.machinery.values import times

LABELS = {"app": "a"}


def template(image: str = "i", **spec: Any) -> PodTemplateSpec:
    """Return a pod template."""
    containers = [Container(name="c", image=image)]
    return PodTemplateSpec(metadata=ObjectMeta(labels=dict(LABELS)), spec=PodSpec(containers=containers, **spec))


async def pods_of(client: Client) -> list[Pod]:
    """Return the pods that are not being deleted."""
    return [pod for pod in (await client.list(PODS, "default")).items if not pod.metadata.deletion_timestamp]


async def run_pods(
    client: Client,
    *,
    phase: str = "Running",
    ready: bool = True,
    count: int | None = None,
    where: Callable[[Pod], bool] = lambda _: True,
    since: str = "",
    status: dict[str, Any] | None = None,
) -> int:
    """Bind pods and set their status, up to `count` pods whose status differs. Return their number."""
    condition = {"type": "Ready", "status": "True" if ready else "False", "lastTransitionTime": since or times.now()}
    done = 0
    for pod in filter(where, await pods_of(client)):
        said = (pod.status.phase, any(each.type == "Ready" and each.status == "True" for each in pod.status.conditions))
        if said == (phase, ready) or pod.status.phase in ("Succeeded", "Failed") or done == count:
            continue
        done += 1
        name = pod.metadata.name
        if not pod.spec.node_name:
            target = ObjectReference(kind="Node", name=target_node(pod) or "node-a")
            binding = Binding(metadata=ObjectMeta(name=name, namespace="default"), target=target)
            await client.post_to_subresource(PODS, name, "default", "binding", BINDINGS.encode(binding))
        said_now = {"status": {"phase": phase, "conditions": [condition], **(status or {})}}
        await client.patch(PODS, name, "default", said_now, media=STRATEGIC_MERGE_PATCH, subresource="status")
    return done


async def end_pods(client: Client) -> None:
    """Delete pods that are terminating."""
    for pod in (await client.list(PODS, "default")).items:
        if pod.metadata.deletion_timestamp:
            try:
                await client.delete(PODS, pod.metadata.name, "default", DeleteOptions(grace_period_seconds=0))
            except StatusError as error:
                if not is_not_found(error):
                    raise


async def live(client: Client, look: Callable[[], Awaitable[Any]], *, seconds: float = 30) -> Any:
    """Act as kubelets until `look` returns something true, and return that. Raises TimeoutError."""
    async with asyncio.timeout(seconds):
        while not (found := await look()):
            await run_pods(client)
            await end_pods(client)
            await asyncio.sleep(0.005)
    return found
