"""Nodes may read the objects of their pods as soon as the pods are stored."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from steersman.controlplane.control_plane import ControlPlane
from steersman.testing import Client, User
from tests.controllers.waiting import eventually

NODE = User("system:node:n", ("system:nodes",))
SECRETS = "/api/v1/namespaces/default/secrets"
PODS = "/api/v1/namespaces/default/pods"


async def code(client: Client, path: str) -> int:
    return (await client.as_user(NODE).get(path)).status


def a_pod(name: str, volumes: list[dict[str, Any]], node: str = "n", **more: Any) -> dict[str, Any]:
    spec = {"nodeName": node, "containers": [{"name": "c", "image": "i"}], "volumes": volumes, **more}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


async def started(start_control_plane: Any, client_of: Any) -> Client:
    plane = await start_control_plane(
        authorization_mode=("Node", "RBAC"), disable_admission_plugins=("ServiceAccount",)
    )
    client: Client = client_of(plane)
    for name in ("a", "b"):
        body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}}
        assert (await client.post(SECRETS, body)).status == 201
    return client


async def test_what_is_written_counts_at_once(
    start_control_plane: Callable[..., Awaitable[ControlPlane]], client_of: Callable[..., Client]
) -> None:
    client = await started(start_control_plane, client_of)
    assert await code(client, f"{SECRETS}/a") == 403
    assert (await client.post(PODS, a_pod("p", [{"name": "v", "secret": {"secretName": "a"}}]))).status == 201
    assert await code(client, f"{SECRETS}/a") == 200
    assert await code(client, f"{SECRETS}/b") == 403
    assert (await client.delete(f"{PODS}/p?gracePeriodSeconds=0")).status == 200
    assert await code(client, f"{SECRETS}/a") == 403


async def test_through_a_claim_and_its_volume(
    start_control_plane: Callable[..., Awaitable[ControlPlane]], client_of: Callable[..., Client]
) -> None:
    client = await started(start_control_plane, client_of)
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "pv"},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "claimRef": {"namespace": "default", "name": "claim"},
            "csi": {"driver": "d", "volumeHandle": "h", "nodeStageSecretRef": {"name": "b", "namespace": "default"}},
        },
    }
    assert (await client.post("/api/v1/persistentvolumes", volume)).status == 201
    assert await code(client, "/api/v1/persistentvolumes/pv") == 403
    pod = a_pod("p", [{"name": "v", "persistentVolumeClaim": {"claimName": "claim"}}])
    assert (await client.post(PODS, pod)).status == 201
    assert await code(client, "/api/v1/persistentvolumes/pv") == 200
    assert await code(client, f"{SECRETS}/b") == 200
    assert (await client.delete("/api/v1/persistentvolumes/pv")).status == 200
    stored = (await client.get("/api/v1/persistentvolumes/pv")).json()
    stored["metadata"]["finalizers"] = []
    assert (await client.put("/api/v1/persistentvolumes/pv", stored)).status == 200
    assert await code(client, f"{SECRETS}/b") == 403


async def test_a_large_pod_is_read_beside_the_loop(
    start_control_plane: Callable[..., Awaitable[ControlPlane]], client_of: Callable[..., Client]
) -> None:
    client = await started(start_control_plane, client_of)
    variables = [
        {"name": f"V{number}", "valueFrom": {"secretKeyRef": {"name": f"s{number}", "key": "k"}}}
        for number in range(2_000)
    ]
    containers = [{"name": "c", "image": "i", "env": variables}]
    pod = a_pod("large", [{"name": "v", "secret": {"secretName": "a"}}], containers=containers)
    assert (await client.post(PODS, pod)).status == 201

    async def is_read() -> bool:
        return await code(client, f"{SECRETS}/a") == 200

    await eventually(is_read)
    assert await code(client, f"{SECRETS}/s1999") == 404
    assert await code(client, f"{SECRETS}/b") == 403
