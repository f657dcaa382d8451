"""NodePools of configured groups of nodes, over several runs of a cluster."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from shutil import copytree
from typing import Any, Final

import pytest

from steersman.cli.up.scale import UnknownGroup, scale_group
from steersman.client.api_resource import APIResource
from steersman.client.client import Client
from steersman.client.resources import NODES
from steersman.cluster import definitions
from steersman.cluster.cluster import Cluster
from steersman.cluster.configuration import Configuration, NodeGroup
from steersman.controlplane.options import Options
from tests.cluster.node_pools.pools import ADMIN, POOLS, has_nodes, names, status_with

DEFINITIONS: Final[APIResource[dict[str, Any]]] = APIResource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", dict, namespaced=False
)
Run = Callable[..., AbstractAsyncContextManager[Client]]


@pytest.fixture
def run(keys_folder: Path, tmp_path: Path) -> Run:
    """Return a function that runs a cluster on one database, as `steersman up` does."""

    folder = tmp_path / "data"
    copytree(keys_folder, folder)

    @asynccontextmanager
    async def started(*groups: NodeGroup) -> AsyncIterator[Client]:
        options = Options(data_dir=folder, storage="sqlite", listen=False)
        cluster = Cluster(options, Configuration(groups, pools=True))
        await cluster.start()
        try:
            yield cluster.client(ADMIN, "test")
        finally:
            await cluster.stop()

    return started


async def test_what_was_scaled_stays_so_at_the_next_start(run: Run) -> None:
    worker, gpu = NodeGroup("worker", 2), NodeGroup("gpu", 1, capacity={"example.com/gpu": 4}, labels={"kind": "gpu"})
    async with run(worker, gpu) as client:
        await status_with(client, "worker", replicas=2, readyReplicas=2)
        node = await client.get(NODES, "gpu-0")
        assert [(each.kind, each.name, each.controller) for each in node.metadata.owner_references] == [
            ("NodePool", "gpu", True)
        ]
        assert await scale_group(client, "worker", 3) == "group worker: 3 nodes, 1 added"
        assert await scale_group(client, "gpu", 0) == "group gpu: 0 nodes, 1 removed"
        await client.delete(NODES, "worker-0")
        await has_nodes(client, "worker-0", "worker-1", "worker-2")
        uids = {each.metadata.uid for each in (await client.list(NODES)).items}
    async with run(worker, gpu) as client:
        await status_with(client, "worker", replicas=3, readyReplicas=3)
        assert {each.metadata.uid for each in (await client.list(NODES)).items} == uids
        assert await scale_group(client, "gpu", 1) == "group gpu: 1 nodes, 1 added"
        node = await client.get(NODES, "gpu-0")
        assert (node.metadata.labels["kind"], node.status.capacity["example.com/gpu"]) == ("gpu", "4")


async def test_a_changed_configuration_changes_the_pool(run: Run) -> None:
    async with run(NodeGroup("worker", 1)) as client:
        assert await scale_group(client, "worker", 2) == "group worker: 2 nodes, 1 added"
    async with run(NodeGroup("worker", 3, capacity={"cpu": 4})) as client:
        status = await status_with(client, "worker", replicas=3, readyReplicas=3)
        assert status["capacity"]["cpu"] == "12"


async def test_the_command_names_pools_without_nodes_and_says_what_limits_allow(run: Run) -> None:
    async with run(NodeGroup("worker", 1), NodeGroup("gpu", 0)) as client:
        with pytest.raises(UnknownGroup, match=r"^--group is needed, as there are several: gpu, worker$"):
            await scale_group(client, "", 1)
        limits = {"spec": {"limits": {"nodes": 2}}}
        await client.patch_without_result(POOLS, "worker", "", limits)
        assert await scale_group(client, "worker", 5) == (
            "group worker: 2 nodes, 1 added; 2 of 5 nodes, as the limits allow no more"
        )


async def test_a_cluster_starts_without_pools_if_another_definition_has_their_names(
    run: Run, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with run(NodeGroup("worker", 1)) as client:
        await client.delete(DEFINITIONS, "nodepools.simulation.steersman.dev")
        await has_nodes(client)
        names_of_pools = {"plural": "others", "kind": "NodePool"}
        schema = {"openAPIV3Schema": {"type": "object"}}
        version = {"name": "v1", "served": True, "storage": True, "schema": schema}
        spec = {"group": POOLS.group, "scope": "Cluster", "names": names_of_pools, "versions": [version]}
        await client.create(DEFINITIONS, {"metadata": {"name": "others.simulation.steersman.dev"}, "spec": spec})
    monkeypatch.setattr(definitions, "PATIENCE", 0.2)
    async with run(NodeGroup("worker", 2)) as client:
        await has_nodes(client, "worker-0", "worker-1")
    assert "there are no NodePools" in caplog.text


async def test_manifests_of_the_configuration_may_be_pools(keys_folder: Path, tmp_path: Path) -> None:
    pool = {"apiVersion": POOLS.api_version, "kind": POOLS.kind, "metadata": {"name": "spot"}, "spec": {"replicas": 2}}
    (tmp_path / "pool.json").write_text(json.dumps(pool))
    (tmp_path / "cluster.yaml").write_text("nodes: []\nobjects: [pool.json]")
    configuration = replace(Configuration.load(tmp_path / "cluster.yaml"), pools=True)
    cluster = Cluster(Options(data_dir=keys_folder, storage="memory", listen=False), configuration)
    await cluster.start()
    try:
        await has_nodes(cluster.client(ADMIN, "test"), "spot-0", "spot-1")
    finally:
        await cluster.stop()


async def test_a_group_that_no_pool_can_have_has_nodes_as_before(run: Run) -> None:
    annotations = {f"a{each}": "x" * 4096 for each in range(8)}
    async with run(NodeGroup("large", 1, annotations=annotations), NodeGroup("n" * 64, 1)) as client:
        assert await names(client) == ["large-0", "n" * 64 + "-0"]
        assert (await client.list(POOLS)).items == []
        assert await scale_group(client, "large", 2) == "group large: 2 nodes, 1 added"
