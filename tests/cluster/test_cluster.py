"""A control plane with controllers, scheduler and nodes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest

from steersman.api.core.v1 import Container, Namespace, Pod, PodSpec
from steersman.api.meta.v1 import ObjectMeta
from steersman.authentication.user import UserInfo
from steersman.client.api_resource import APIResource
from steersman.client.resources import EVENTS, NAMESPACES, PODS, SERVICE_ACCOUNTS
from steersman.cluster.cluster import Cluster
from steersman.cluster.configuration import Configuration
from steersman.controlplane.options import Options
from tests.controllers.waiting import eventually

DEPLOYMENTS: Final[APIResource[dict[str, Any]]] = APIResource("apps", "v1", "deployments", "Deployment", dict)


async def test_pods_can_be_made_in_a_fresh_namespace_which_goes_again(keys_folder: Path) -> None:
    cluster = Cluster(Options(data_dir=keys_folder, storage="memory", listen=False))
    await cluster.start()
    try:
        client = cluster.client(UserInfo("admin", groups=("system:masters",)), "tests")
        await client.create(NAMESPACES, Namespace(metadata=ObjectMeta(name="a")))

        async def accounts() -> int:
            return len((await client.list(SERVICE_ACCOUNTS, "a")).items)

        await eventually(accounts)
        pod = Pod(
            metadata=ObjectMeta(name="web", namespace="a"),
            spec=PodSpec(containers=[Container(name="web", image="nginx")]),
        )
        made = await client.create(PODS, pod)
        assert made.spec.service_account_name == "default"
        await client.delete(NAMESPACES, "a")

        async def gone() -> bool:
            return "a" not in [each.metadata.name for each in (await client.list(NAMESPACES)).items]

        await eventually(gone)
    finally:
        await cluster.stop()


def deployment(name: str) -> dict[str, Any]:
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "web", "image": "nginx"}]}}
    spec = {"replicas": 3, "selector": {"matchLabels": {"app": name}}, "template": template}
    return {"metadata": {"name": name}, "spec": spec}


async def test_what_a_file_begins_with_runs_on_the_nodes_that_it_names(tmp_path: Path) -> None:
    (tmp_path / "app.json").write_text(json.dumps({"apiVersion": "apps/v1", "kind": "Deployment", **deployment("web")}))
    file = tmp_path / "cluster.yaml"
    file.write_text("nodes: [{name: worker, count: 2}]\nobjects: [app.json]")
    cluster = Cluster(Options(data_dir=tmp_path / "data", storage="memory", listen=False), Configuration.load(file))
    await cluster.start()
    try:
        client = cluster.client(UserInfo("admin", groups=("system:masters",)), "tests")

        async def running() -> bool:
            pods = (await client.list(PODS, "default")).items
            return [each.status.phase for each in pods] == ["Running"] * 3

        await eventually(running)
        assert {each.spec.node_name for each in (await client.list(PODS)).items} == {"worker-0", "worker-1"}
    finally:
        await cluster.stop()


@pytest.mark.parametrize("rests", [True, False])
async def test_a_cluster_is_brought_back_whether_it_rests_or_not(
    rests: bool, keys_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Controllers, scheduler and nodes of a busy cluster are restarted.

    Nothing of their earlier state may be left.
    """
    cluster = Cluster(Options(data_dir=keys_folder, storage="memory", listen=False))
    await cluster.start()
    try:
        assert await cluster.settle(30)
        client = cluster.client(UserInfo("admin", groups=("system:masters",)), "tests")
        snapshot = cluster.snapshot()
        if not rests:

            async def never(self: Cluster, patience: float = 1.0) -> bool:
                return False

            monkeypatch.setattr(Cluster, "settle", never)

        async def pods(phase: str) -> int:
            return sum(each.status.phase == phase for each in (await client.list(PODS, "default")).items)

        async def three() -> bool:
            return await pods("Running") == 3

        for _ in range(2):
            await client.create(DEPLOYMENTS, deployment("web"), "default")
            await eventually(three)
            await cluster.restore(snapshot)
            assert (await client.list(PODS, "default")).items == []
            events = (await client.list(EVENTS, "default")).items
            assert {each.involved_object.kind for each in events} <= {"Node"}
    finally:
        await cluster.stop()


async def test_without_a_scheduler_pods_stay_where_they_are(keys_folder: Path) -> None:
    configuration = Configuration((), schedules=False)
    cluster = Cluster(Options(data_dir=keys_folder, storage="memory", listen=False), configuration)
    await cluster.start()
    try:
        client = cluster.client(UserInfo("admin", groups=("system:masters",)), "tests")
        assert await cluster.settle(30)
        await client.create(DEPLOYMENTS, deployment("web"), "default")

        async def pods() -> list[Pod]:
            return list((await client.list(PODS, "default")).items)

        await eventually(pods)
        assert await cluster.settle(30)
        found = await pods()
        assert [(each.spec.node_name, each.status.phase, each.status.conditions) for each in found] == [
            ("", "Pending", [])
        ] * 3
    finally:
        await cluster.stop()
