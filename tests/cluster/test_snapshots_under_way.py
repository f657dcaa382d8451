"""Snapshots that are taken and restored while controllers, scheduler, nodes and clients are at work."""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random
from typing import Any

import pytest

from steersman.api.core.v1 import Pod
from steersman.authentication.user import UserInfo
from steersman.client.api_resource import APIResource
from steersman.client.client import Client
from steersman.client.informer import Informer
from steersman.client.resources import PODS, REPLICA_SETS
from steersman.cluster.cluster import Cluster
from steersman.cluster.configuration import Configuration, NodeGroup
from steersman.controlplane.options import Options
from steersman.machinery.errors.status import StatusError
from tests.controllers.waiting import eventually

pytestmark = pytest.mark.slow

DEPLOYMENTS = APIResource("apps", "v1", "deployments", "Deployment", dict)
JOBS = APIResource("batch", "v1", "jobs", "Job", dict)
NAMESPACES = APIResource("", "v1", "namespaces", "Namespace", dict, namespaced=False)


def workload(name: str, replicas: int) -> dict[str, Any]:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "app"}]}}
    return {
        "metadata": {"name": name},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template},
    }


class BusyClient:
    """A client that creates, scales and deletes objects without a pause. Refused requests are ignored."""

    def __init__(self, client: Client, random: Random) -> None:
        self._client = client
        self._random = random
        self.count = 0

    async def run(self) -> None:
        while True:
            self.count += 1
            name = f"w{self._random.randrange(6)}"
            try:
                match self._random.randrange(4):
                    case 0:
                        await self._client.create(DEPLOYMENTS, workload(name, self._random.randrange(6)), "default")
                    case 1:
                        scale = {"spec": {"replicas": self._random.randrange(6)}}
                        await self._client.patch(DEPLOYMENTS, name, "default", scale)
                    case 2:
                        await self._client.delete(DEPLOYMENTS, name, "default")
                    case 3:
                        await self._client.create(NAMESPACES, {"metadata": {"name": name}})
                        await self._client.delete(NAMESPACES, name)
            except StatusError:
                pass
            await asyncio.sleep(self._random.uniform(0, 0.02))


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_whatever_moves_a_cluster_is_brought_back(seed: int, keys_folder: Path) -> None:
    random = Random(seed)
    cluster = Cluster(
        Options(data_dir=keys_folder, storage="memory", listen=False), Configuration(nodes=(NodeGroup(count=3),))
    )
    await cluster.start()
    busy: asyncio.Task[None] | None = None
    try:
        client = cluster.client(UserInfo("admin", groups=("system:masters",)), "tests")
        follower = Informer(client, PODS)
        follower.start()
        work = BusyClient(client, random)
        busy = asyncio.create_task(work.run())
        for _ in range(6):
            await asyncio.sleep(random.uniform(0, 0.6))
            snapshot = cluster.snapshot()
            await asyncio.sleep(random.uniform(0, 0.6))
            await cluster.restore(snapshot)
        done = work.count
        busy.cancel()
        await asyncio.wait([busy])
        assert done > 50
        assert not isinstance(busy.exception() if not busy.cancelled() else None, Exception)
        wrong = ["not looked at"]
        for _ in range(600):
            wrong = await _unfinished(client)
            if not wrong:
                break
            await asyncio.sleep(0.1)
        assert wrong == []
        assert await cluster.settle(30)

        async def follows() -> bool:
            pods = (await client.list(PODS)).items
            return {_identity(each) for each in pods} == {_identity(each) for each in follower}

        await eventually(follows)
        # the current state is restored unchanged
        snapshot = cluster.snapshot()
        there = {_identity(each)[:3] for each in (await client.list(PODS)).items}
        await client.create(DEPLOYMENTS, workload("later", 3), "default")
        await cluster.restore(snapshot)
        assert {_identity(each)[:3] for each in (await client.list(PODS)).items} == there
        assert "later" not in {name async for name in _deployments(client)}
        await follower.stop()
    finally:
        if busy is not None:
            busy.cancel()
        await cluster.stop()


def _identity(pod: Pod) -> tuple[str, str, str, str]:
    metadata = pod.metadata
    return metadata.namespace, metadata.name, metadata.uid, metadata.resource_version


async def _deployments(client: Client) -> Any:
    for each in (await client.list(DEPLOYMENTS, "default")).items:
        yield each["metadata"]["name"]


async def _unfinished(client: Client) -> list[str]:
    """Return what is not finished: Deployments without all their pods, superfluous pods, and namespaces that are being
    deleted.
    """
    found, wanted = [], 0
    for each in (await client.list(DEPLOYMENTS, "default")).items:
        status, replicas = each["status"], each["spec"]["replicas"]
        wanted += replicas
        if [status.get("availableReplicas", 0), status.get("replicas", 0)] != [replicas] * 2:
            found.append(f"{each['metadata']['name']} wants {replicas}: {status}")
    for pod in (await client.list(PODS, "default")).items:
        wanted -= 1
        if pod.status.phase != "Running" or pod.metadata.deletion_timestamp:
            found.append(f"{pod.metadata.name} on {pod.spec.node_name or 'no node'}: {pod.status}")
    if wanted:
        sets = [
            f"{each.metadata.name} {each.metadata.uid} {each.status}"
            for each in (await client.list(REPLICA_SETS)).items
        ]
        pods = [(each.metadata.name, each.metadata.owner_references) for each in (await client.list(PODS)).items]
        found.append(f"{wanted} pods are missing: {pods} of {sets}")
    for each in (await client.list(NAMESPACES)).items:
        if each["status"]["phase"] == "Terminating":
            found.append(f"namespace {each['metadata']['name']} is not gone: {each['status']}")
    return found
