"""Messages and groups of nodes, compared with what kube-scheduler said about the same objects."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from steersman.explain.pods.world_simulation import simulation_of
from steersman.scheduler.cycle import NoPlacement, Placement
from tests.explain.pods.recorded_cases import BEFORE_NODES, EXPECTED, WITHOUT_WAYS, explained, pending_pod, world_of
from tests.explain.pods.told_groups import difference

_GATED = "gates"
_ONLY_NOMINATIONS = frozenset({"preemption-chooses", "preemption-of-a-port"})
"""Cases in which one node is better for a preemption than all others."""
_PLUGINS = frozenset(
    {
        "DynamicResources",
        "InterPodAffinity",
        "NodeAffinity",
        "NodePorts",
        "NodeResourcesFit",
        "NodeUnschedulable",
        "NodeVolumeLimits",
        "PodTopologySpread",
        "TaintToleration",
        "VolumeBinding",
        "VolumeRestrictions",
        "VolumeZone",
    }
)
"""Filters that reject pods of the cases. NodeName rejects no pod that a scheduler gets."""


async def test_every_filter_and_preemption_have_two_cases_at_least() -> None:
    counts: Counter[str] = Counter()
    for case in EXPECTED:
        decided = await (await simulation_of(world_of(case))).simulation.decide(await pending_pod(world_of(case)))
        if isinstance(decided, NoPlacement):
            counts.update(decided.plugins)
            counts["preemption"] += decided.preemption is not None
    assert {plugin for plugin, count in counts.items() if count >= 2} == _PLUGINS | {"preemption"}


@pytest.mark.parametrize("case", EXPECTED)
async def test_messages_are_those_of_kube_scheduler(case: str) -> None:
    world = world_of(case)
    simulation = (await simulation_of(world)).simulation
    decided = await simulation.decide(await pending_pod(world))
    if case == _GATED:
        assert isinstance(decided, Placement)
        return
    assert isinstance(decided, NoPlacement)
    assert decided.message == EXPECTED[case]["message"]
    assert bool(decided.nominated) == bool(EXPECTED[case]["nominated"])
    if case in _ONLY_NOMINATIONS:
        assert decided.nominated == EXPECTED[case]["nominated"]


async def _details(case: str) -> dict[str, Any]:
    (finding, *_) = (await explained(case)).findings
    assert finding.reason == EXPECTED[case]["reason"]
    details: dict[str, Any] = finding.details
    return details


@pytest.mark.parametrize("case", sorted(EXPECTED.keys() - BEFORE_NODES - {_GATED}))
async def test_groups_have_the_numbers_of_nodes_that_kube_scheduler_counts(case: str) -> None:
    assert difference(await _details(case), EXPECTED[case]["message"]) == ""


@pytest.mark.parametrize("case", sorted(EXPECTED.keys() - WITHOUT_WAYS))
async def test_each_pod_that_can_be_helped_has_ways_onto_a_node(case: str) -> None:
    (finding, *_) = (await explained(case)).findings
    assert finding.suggestions
    assert all(each.verified for each in finding.suggestions)
    assert len(finding.suggestions) == len(finding.details["ways"])


async def test_a_smaller_request_is_exact() -> None:
    details = await _details("cpu")
    assert details["groups"][0]["reasons"][0] == {
        "plugin": "NodeResourcesFit",
        "text": "insufficient cpu",
        "message": "Insufficient cpu",
        "resource": "cpu",
        "requested": "1300m",
        "shortBy": "300m",
        "freeMost": "1",
    }
    (change,) = details["ways"][0]["changes"]
    assert change["patch"]["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "1"}


async def test_a_message_groups_nodes_as_a_person_would() -> None:
    (finding, *_) = (await explained("taints-and-cpu")).findings
    assert finding.message == (
        "does not fit on any of 5 nodes. 3 nodes: taint gpu=true:NoSchedule is not tolerated; 2 nodes: too small: "
        "insufficient cpu even if it were empty (short by 1: 2 requested, at most 1 free)"
    )


async def test_a_pod_with_gates_is_compared_as_if_it_had_none() -> None:
    (finding, *_) = (await explained(_GATED)).findings
    assert finding.message.endswith("example.com/quota. Without them it fits on 3 of 3 nodes")
    assert finding.suggestions[0].text.startswith("remove the scheduling gates: it goes to node ")


async def test_preemption_that_would_be_done_is_told() -> None:
    details = await _details("preemption")
    assert len(details["preemption"]["victims"]) == 1
    refused = (await _details("preemption-never"))["preemption"]["refused"]
    assert refused == "not eligible due to preemptionPolicy=Never."
