"""Statistics of a cluster, as numbers and words."""

from __future__ import annotations

from pathlib import Path

import pytest

from steersman.api.core.v1 import Container, Pod, PodSpec, ServiceAccount
from steersman.api.meta.v1 import DeleteOptions, ObjectMeta
from steersman.authentication.user import UserInfo
from steersman.cli.durations import in_words
from steersman.cli.up.figures import Figures, LiveFigures, measure, nodes_in_words, pods_in_words
from steersman.client.resources import PODS, SERVICE_ACCOUNTS
from steersman.cluster.cluster import Cluster
from steersman.cluster.configuration import Configuration, NodeGroup
from steersman.controlplane.options import Options
from tests.controllers.waiting import eventually

ENDS = {"simulation.steersman.dev/run-for": "1ms"}


def pod(name: str, *, annotations: dict[str, str] | None = None, restart: str = "", **selector: str) -> Pod:
    spec = PodSpec(containers=[Container(name="a", image="a")], restart_policy=restart, node_selector=selector)
    return Pod(metadata=ObjectMeta(name=name, namespace="default", annotations=annotations or {}), spec=spec)


async def test_figures_follow_a_cluster_and_are_what_it_says_when_asked(keys_folder: Path) -> None:
    options = Options(data_dir=keys_folder, storage="memory", listen=False)
    cluster = Cluster(options, Configuration((NodeGroup(count=2),)))
    await cluster.start()
    assert cluster.plane.server is not None
    client = cluster.client(UserInfo("admin", groups=("system:masters",)), "tests")
    followed = LiveFigures(client, cluster.plane.server.config.metrics.total.sum)
    followed.start()

    async def account() -> list[ServiceAccount]:
        return [each async for each in client.iterate(SERVICE_ACCOUNTS, "default")]

    async def ready() -> bool:
        return followed.now().ready == 2

    async def told() -> bool:
        return followed.now().pods == {"Running": 1, "Pending": 1, "Succeeded": 1}

    async def gone() -> bool:
        return "Pending" not in followed.now().pods

    try:
        await eventually(account)
        await eventually(ready)
        for each in (pod("runs"), pod("waits", nothing="here"), pod("ends", annotations=ENDS, restart="Never")):
            await client.create(PODS, each)
        await eventually(told)
        found = await measure(client, seconds=0.05)
        assert (found.nodes, found.ready, found.pods) == (2, 2, followed.now().pods)
        await client.delete(PODS, "waits", "default", DeleteOptions(grace_period_seconds=0))
        await eventually(gone)
    finally:
        await followed.stop()
        await cluster.stop()


@pytest.mark.parametrize(
    ("figures", "nodes", "pods"),
    [
        (Figures(), "none", "none"),
        (Figures(3, 3, {"Running": 2}), "3 ready", "2 running"),
        (Figures(3, 1, {"Failed": 1, "Pending": 2, "Running": 3}), "1 of 3 ready", "3 running, 2 pending, 1 failed"),
    ],
)
def test_figures_in_words(figures: Figures, nodes: str, pods: str) -> None:
    assert (nodes_in_words(figures), pods_in_words(figures)) == (nodes, pods)


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.4, "0s"), (59, "59s"), (60, "1m"), (184, "3m4s"), (7500, "2h5m"), (90000, "1d1h")]
)
def test_durations_in_words(seconds: float, words: str) -> None:
    assert in_words(seconds) == words
