"""The scheduler's last decisions, served by a cluster and shown by explanations."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from steersman.api.core.v1 import Container, Pod, PodSpec, ResourceRequirements
from steersman.api.meta.v1 import ObjectMeta
from steersman.authentication.user import UserInfo
from steersman.cli.explained import explanation_lines
from steersman.client.client import Client
from steersman.client.resources import PODS
from steersman.cluster.cluster import Cluster
from steersman.controlplane.options import Options
from steersman.explain.explainers import explain
from steersman.explain.world import LiveWorld
from steersman.machinery.errors.status import StatusError
from tests.controllers.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="module")

PATH = "/debug/scheduling"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def cluster(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Cluster]:
    cluster = Cluster(Options(data_dir=tmp_path_factory.mktemp("scheduling"), storage="memory", listen=False))
    await cluster.start()
    try:
        client = admin(cluster)
        for name, cpu in (("small", "1"), ("large", "1000")):
            resources = ResourceRequirements(requests={"cpu": cpu})
            spec = PodSpec(containers=[Container(name="c", image="nginx", resources=resources)])
            await client.create(PODS, Pod(metadata=ObjectMeta(name=name, namespace="default"), spec=spec))
        await eventually(lambda: _decided(client))
        yield cluster
    finally:
        await cluster.stop()


def admin(cluster: Cluster) -> Client:
    return cluster.client(UserInfo("admin", groups=("system:masters",)), "tests")


async def _decided(client: Client) -> bool:
    small, large = [await client.get(PODS, name, "default") for name in ("small", "large")]
    return small.status.phase == "Running" and bool(large.status.conditions)


async def code_of(client: Client, path: str) -> int:
    with pytest.raises(StatusError) as raised:
        await client.get_plain(path)
    return raised.value.code


async def test_decisions_are_served(cluster: Cluster) -> None:
    plain = await admin(cluster).get_plain(f"{PATH}/default/small")
    node = (await admin(cluster).get(PODS, "small", "default")).spec.node_name
    (decision,) = plain["decisions"]
    assert (plain["namespace"], plain["name"]) == ("default", "small")
    assert (decision["result"], decision["node"]) == ("Scheduled", node)
    (decision,) = (await admin(cluster).get_plain(f"{PATH}/default/large"))["decisions"]
    assert decision["rejections"] == [{"plugin": "NodeResourcesFit", "reason": "Insufficient cpu", "nodes": 1}]
    assert "node" not in decision


async def test_only_a_user_with_the_right_to_the_path_reads_them(cluster: Cluster) -> None:
    joe = cluster.client(UserInfo("joe", groups=("system:authenticated",)), "tests")
    assert await code_of(joe, f"{PATH}/default/small") == 403


@pytest.mark.parametrize("path", ["", "/", "/default", "/default/none", "/none/small", "/default/small/more"])
async def test_other_paths_are_not_found(cluster: Cluster, path: str) -> None:
    assert await code_of(admin(cluster), f"{PATH}{path}") == 404


async def test_an_explanation_has_the_last_decisions(cluster: Cluster) -> None:
    found = await explain(LiveWorld(admin(cluster)), PODS, "large", "default")
    (note,) = [each for each in found.findings if each.reason == "LastDecisions"]
    (decision,) = note.details["decisions"]
    assert decision["result"] == "Unschedulable"
    lines = list(explanation_lines(found))
    heads, row = lines[lines.index("note     last decision of the scheduler") + 1 :][:2]
    assert heads.split() == ["TIME", "TIMES", "RESULT", "NODE,", "OR", "REASONS"]
    assert row.endswith("Unschedulable  1 Insufficient cpu")


async def test_without_the_right_an_explanation_leaves_them_out(cluster: Cluster) -> None:
    reader = cluster.client(UserInfo("system:kube-scheduler"), "tests")
    found = await explain(LiveWorld(reader), PODS, "small", "default")
    reasons = [each.reason for each in found.findings]
    assert "Placed" in reasons
    assert "LastDecisions" not in reasons
    assert not [each.message for each in found.findings if "/debug" in each.message]
