"""Verdicts and scores of all plugins, compared with the decisions of the same scheduler."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from steersman.api.core.v1 import Namespace, Node, Pod, Service
from steersman.api.policy.v1 import PodDisruptionBudget
from steersman.client.resources import NAMESPACES, NODES, POD_DISRUPTION_BUDGETS, PODS, SERVICES
from steersman.machinery.codec.serializer import from_plain
from steersman.scheduler.cycle import NoPlacement, Placement
from steersman.scheduler.fit.status import Diagnosis
from steersman.scheduler.inquiry.simulation import Simulation
from steersman.scheduler.inquiry.verdicts import examine
from tests.scheduler.scene import node_of, pod_of
from tools.scheduler_comparison import cases


def _simulation(case: cases.Case) -> Simulation:
    namespaces = [{"metadata": {"name": name, "labels": labels}} for name, labels in cases.NAMESPACES.items()]
    return Simulation(
        {
            NAMESPACES: [from_plain(Namespace, each) for each in namespaces],
            NODES: [from_plain(Node, each) for each in case.nodes],
            SERVICES: [from_plain(Service, each) for each in case.services],
            POD_DISRUPTION_BUDGETS: [from_plain(PodDisruptionBudget, each) for each in case.budgets],
            PODS: [_pod(each) for each in case.pods],
        }
    )


def _pod(plain: dict[str, Any]) -> Pod:
    pod = from_plain(Pod, plain)
    pod.spec.priority = cases.PRIORITIES.get(pod.spec.priority_class_name, 0)
    return pod


@pytest.mark.parametrize("seed", range(4))
def test_first_verdicts_are_the_rejections_of_the_decision_and_the_best_score_is_taken(seed: int) -> None:
    async def compare() -> Counter[str]:
        seen: Counter[str] = Counter()
        for number in range(60):
            case = cases.case_of(number, seed)
            simulation, pod = _simulation(case), _pod(case.pod)
            decided = await simulation.decide(pod)
            found = await examine(simulation.model, pod)
            if isinstance(found, NoPlacement):
                assert isinstance(decided, NoPlacement)
                assert found.message == decided.message
                seen["before"] += 1
            elif isinstance(decided, Placement):
                scores = {name: sum(each.values()) for name, each in found.scores().items()}
                assert scores[decided.node.name] == max(scores.values()), number
                assert len(scores) == found.feasible
                seen["placed"] += 1
            else:
                first = Counter(each.verdicts[0].rejection for each in found.nodes)
                told = Diagnosis(len(found.nodes), first).message()
                assert decided.message.startswith(told), number
                seen["more"] += any(len(each.verdicts) > 1 for each in found.nodes)
        return seen

    seen = asyncio.run(compare())
    assert seen["placed"] > 5
    assert seen["more"] > 2


def _cluster(*nodes: dict[str, Any], pods: tuple[dict[str, Any], ...] = ()) -> Simulation:
    return Simulation(
        {NODES: [from_plain(Node, each) for each in nodes], PODS: [from_plain(Pod, each) for each in pods]}
    )


def test_every_plugin_that_rejects_a_node_has_a_verdict() -> None:
    taint = {"key": "gpu", "value": "true", "effect": "NoSchedule"}
    simulation = _cluster(
        node_of("a", unschedulable=True, taints=[taint], labels={"disk": "hdd"}, allocatable={"cpu": "1"})
    )
    pod = from_plain(Pod, pod_of("p", cpu="2", memory="8Gi", nodeSelector={"disk": "ssd"}))
    found = asyncio.run(examine(simulation.model, pod))
    assert not isinstance(found, NoPlacement)
    (on_a,) = found.nodes
    assert [(each.rejection.plugin, each.rejection.reasons) for each in on_a.verdicts] == [
        ("NodeUnschedulable", ("node(s) were unschedulable",)),
        ("TaintToleration", ("node(s) had untolerated taint(s)",)),
        ("NodeAffinity", ("node(s) didn't match Pod's node affinity/selector",)),
        ("NodeResourcesFit", ("Insufficient cpu", "Insufficient memory")),
    ]


def test_a_hypothesis_ends_with_its_block() -> None:
    async def run() -> None:
        running = pod_of("old", cpu="2", nodeName="a")
        simulation = _cluster(node_of("a"), pods=(running,))
        pod = from_plain(Pod, pod_of("new", cpu="2"))
        assert isinstance(await simulation.decide(pod), NoPlacement)
        with simulation.hypothetical(without=[from_plain(Pod, running)]):
            assert isinstance(await simulation.decide(pod), Placement)
        assert isinstance(await simulation.decide(pod), NoPlacement)
        with simulation.hypothetical(nodes=[from_plain(Node, node_of("b"))]):
            assert isinstance(await simulation.decide(pod), Placement)
        again = await simulation.decide(pod)
        assert isinstance(again, NoPlacement)
        assert again.message.startswith("0/1 nodes are available: 1 Insufficient cpu.")

    asyncio.run(run())


def test_pods_are_placed_one_after_the_other() -> None:
    async def run() -> None:
        simulation = _cluster(node_of("a"))
        for name in ("one", "two"):
            pod = from_plain(Pod, pod_of(name, cpu="1"))
            placed = await simulation.decide(pod)
            assert isinstance(placed, Placement)
            assert simulation.place(pod, placed).spec.node_name == "a"
        assert isinstance(await simulation.decide(from_plain(Pod, pod_of("three", cpu="1"))), NoPlacement)

    asyncio.run(run())
