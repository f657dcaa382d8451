"""Cached results about nodes equal freshly computed ones."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from typing import Any, cast

import pytest

from steersman.api.core.v1 import Node, Pod, Service
from steersman.client.informer import Informers
from steersman.machinery.codec.serializer import from_plain
from steersman.scheduler.cycle import Cycle, Placement
from steersman.scheduler.demands import Demands
from steersman.scheduler.fit import ranking as ranking_module
from steersman.scheduler.fit import rankings as rankings_module
from steersman.scheduler.fit.node_fit import contents_score
from steersman.scheduler.preemption.nominator import Nominator
from steersman.scheduler.state.cluster import ClusterState
from tests.example_counts import examples
from tests.scheduler.scene import node_of, pod_of
from tools.scheduler_comparison.cases import NAMESPACES, Plain, case_of
from tools.scheduler_comparison.ours import decide


class _EmptyInformers:
    """Informers without objects."""

    def for_resource(self, resource: Any) -> _EmptyInformers:
        return self

    def list(self, namespace: str | None = None) -> Sequence[Service]:
        return ()

    def get(self, namespace: str, name: str) -> None:
        return None

    def on_change(self, handler: Any) -> None:
        """Do nothing, as nothing changes."""


def cycle_on(cluster: ClusterState) -> Cycle:
    demands = Demands(cast(Informers, _EmptyInformers()), cluster, lambda pod: frozenset())
    return Cycle(cluster, demands, Nominator(), lambda: (), lambda _: None, lambda _: None)


def with_uids(pods: Iterable[Plain]) -> list[Plain]:
    priorities = {"low": -10, "high": 100}
    for number, pod in enumerate(pods):
        pod["metadata"]["uid"] = f"uid-{number}"
        pod["spec"]["priority"] = priorities.get(pod["spec"].get("priorityClassName"), 0)
    return list(pods)


@pytest.mark.parametrize("seed", range(examples(40)))
async def test_decisions_after_any_changes_equal_those_without_caches(seed: int) -> None:
    chance = random.Random(seed)
    case = case_of(seed, 99)
    pods = {pod["metadata"]["uid"]: pod for pod in with_uids(case.pods)}
    nodes = {node["metadata"]["name"]: node for node in case.nodes}
    new = with_uids([case.pod])[0]
    new["metadata"]["uid"] = "new"
    namespaces = [{"metadata": {"name": name, "labels": labels}} for name, labels in NAMESPACES.items()]
    cluster = ClusterState()
    for name, labels in NAMESPACES.items():
        cluster.set_namespace(name, labels)
    for node in nodes.values():
        cluster.set_node(from_plain(Node, node))
    here: dict[str, Plain] = {}
    cycle = cycle_on(cluster)
    for _ in range(12):
        change(chance, cluster, pods, nodes, here)
        found = await cycle.decide(from_plain(Pod, new))
        fresh = await decide(nodes.values(), here.values(), namespaces, (), (), new)
        if isinstance(found, Placement):
            assert found.node.name in fresh.nodes
        else:
            victims = () if found.preemption is None else found.preemption.victims
            assert (found.message, len(victims)) == (fresh.message, len(fresh.victims))


Objects = dict[str, Plain]


def change(chance: random.Random, cluster: ClusterState, pods: Objects, nodes: Objects, here: Objects) -> None:
    """Make a random change: a pod comes, goes, is being deleted or gets other labels; or a node gets other labels,
    taints or capacity.
    """
    uid = chance.choice([*pods, ""])
    if uid and uid not in here:
        here[uid] = pods[uid]
        cluster.set_pod(from_plain(Pod, pods[uid]))
    elif uid and chance.random() < 0.5:
        del here[uid]
        cluster.remove_pod(uid)
    elif uid:
        metadata = here[uid]["metadata"]
        if chance.random() < 0.3:
            metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        else:
            metadata["labels"] = {key: chance.choice("xy") for key in ("app", "tier")}
        cluster.set_pod(from_plain(Pod, here[uid]))
    else:
        node = nodes[chance.choice(list(nodes))]
        node["metadata"]["labels"]["topology.kubernetes.io/zone"] = chance.choice(("z1", "z2"))
        node["spec"]["unschedulable"] = chance.random() < 0.2
        node["status"]["allocatable"]["cpu"] = chance.choice(("1", "4"))
        cluster.set_node(from_plain(Node, node))


async def test_only_changed_nodes_are_checked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    checked = 0
    original = contents_score

    def counted(*given: Any) -> int:
        nonlocal checked
        checked += 1
        return original(*given)

    monkeypatch.setattr(ranking_module, "contents_score", counted)
    cluster = ClusterState()
    for number in range(90):
        cluster.set_node(from_plain(Node, node_of(f"n{number}")))
    cycle = cycle_on(cluster)
    for number in range(50):
        plain = pod_of(f"p{number}", cpu="100m")
        plain["metadata"]["uid"] = str(number)
        pod = from_plain(Pod, plain)
        found = await cycle.decide(pod)
        assert isinstance(found, Placement)
        pod.spec.node_name = found.node.name
        cluster.assume(pod, found.node.name)
    assert checked == 90 + 49


async def test_distinct_pods_do_not_each_check_every_node(monkeypatch: pytest.MonkeyPatch) -> None:
    checked = 0
    original = contents_score

    def counted(*given: Any) -> int:
        nonlocal checked
        checked += 1
        return original(*given)

    monkeypatch.setattr(ranking_module, "contents_score", counted)
    cluster = ClusterState()
    for number in range(2000):
        cluster.set_node(from_plain(Node, node_of(f"n{number}")))
    cycle = cycle_on(cluster)
    for number in range(10):
        found = await cycle.decide(from_plain(Pod, pod_of(f"p{number}", cpu=f"{number + 1}m")))
        assert isinstance(found, Placement)
    assert checked <= 10 * 1000


async def test_more_demands_than_are_remembered_do_not_push_each_other_out(monkeypatch: pytest.MonkeyPatch) -> None:
    checked = 0
    original = contents_score

    def counted(*given: Any) -> int:
        nonlocal checked
        checked += 1
        return original(*given)

    monkeypatch.setattr(ranking_module, "contents_score", counted)
    monkeypatch.setattr(rankings_module, "LEAST_RANKINGS", 2)
    monkeypatch.setattr(rankings_module, "NODES_REMEMBERED", 0)
    cluster = ClusterState()
    for number in range(3000):
        cluster.set_node(from_plain(Node, node_of(f"n{number}")))
    cycle = cycle_on(cluster)
    for number in range(60):
        found = await cycle.decide(from_plain(Pod, pod_of(f"p{number}", cpu=f"{number % 6 + 1}m")))
        assert isinstance(found, Placement)
    assert checked <= 2 * 3000 + 60 * 1024


@pytest.mark.parametrize("seed", range(examples(40)))
async def test_decisions_about_heavy_pods_are_those_about_others(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(seed)
    case = case_of(seed, 99)
    pods = {pod["metadata"]["uid"]: pod for pod in with_uids(case.pods)}
    nodes = {node["metadata"]["name"]: node for node in case.nodes}
    new = with_uids([case.pod])[0]
    new["metadata"]["uid"] = "new"
    cluster = ClusterState()
    for name, labels in NAMESPACES.items():
        cluster.set_namespace(name, labels)
    for node in nodes.values():
        cluster.set_node(from_plain(Node, node))
    here: dict[str, Plain] = {}
    light, heavy = cycle_on(cluster), cycle_on(cluster)
    for _ in range(6):
        change(chance, cluster, pods, nodes, here)
        expected = await light.decide(from_plain(Pod, new))
        with monkeypatch.context() as patched:
            patched.setattr("steersman.scheduler.demand.weight.MOST", -1)
            found = await heavy.decide(from_plain(Pod, new))
            await heavy.free_heavy()
        if isinstance(expected, Placement):
            assert isinstance(found, Placement)
        else:
            assert not isinstance(found, Placement)
            assert found.message == expected.message


async def test_a_heavy_demand_is_ranked_again_if_a_left_out_count_appears(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = ClusterState()
    cluster.set_node(from_plain(Node, node_of("n")))
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"a": "b"}}}
    anti = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    new = from_plain(Pod, pod_of("new", affinity=anti))
    near = pod_of("near", labels={"a": "b"})
    near["spec"]["nodeName"] = "n"
    monkeypatch.setattr("steersman.scheduler.demand.weight.MOST", -1)
    cycle = cycle_on(cluster)
    was = rankings_module.Rankings.check_nodes
    checks = 0

    async def look(self: Any, *given: Any) -> bool:
        nonlocal checks
        checks += 1
        if checks == 1:
            cluster.set_pod(from_plain(Pod, near))
        return await was(self, *given)

    monkeypatch.setattr(rankings_module.Rankings, "check_nodes", look)
    found = await cycle.decide(new)
    assert not isinstance(found, Placement)
    assert "anti-affinity" in found.message
    assert checks == 2
