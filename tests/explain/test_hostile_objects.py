"""Objects with thousands of labels, taints, rules or resources are explained in little time, and in few lines."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from steersman.cli import main
from steersman.explain.dump import load_dump
from steersman.explain.what_if.plan import plan
from tools.scheduler_comparison.named_cases import HOSTNAME, ZONE, Plain, node, pod

MANY = 3_000
NODES = 40
_SECONDS = 6.0
"""Processor time for each command. Before they were bounded these took minutes."""


def nodes(**more: Any) -> list[Plain]:
    return [node(f"n{number}", labels={ZONE: f"z{number % 2}"}, **more) for number in range(NODES)]


def required(**terms: Any) -> Plain:
    return {"requiredDuringSchedulingIgnoredDuringExecution": terms or []}


def of_affinity() -> list[Plain]:
    expressions = [{"key": f"k{number}", "operator": "In", "values": ["a"]} for number in range(MANY)]
    terms = required(nodeSelectorTerms=[{"matchExpressions": expressions}])
    return [*nodes(), pod(affinity={"nodeAffinity": terms})]


def of_affinity_terms() -> list[Plain]:
    expressions = [{"key": f"k{number}", "operator": "In", "values": ["a"]} for number in range(MANY)]
    terms = required(nodeSelectorTerms=[{"matchExpressions": [each]} for each in expressions])
    return [*nodes(), pod(affinity={"nodeAffinity": terms})]


def of_node_selector() -> list[Plain]:
    return [*nodes(), pod(nodeSelector={f"k{number}": "a" for number in range(20 * MANY)})]


def of_taints() -> list[Plain]:
    taints = [{"key": f"k{number}", "value": "a", "effect": "NoSchedule"} for number in range(MANY)]
    tolerations = [{"key": f"t{number}", "operator": "Exists"} for number in range(MANY)]
    return [*nodes(taints=taints), pod(tolerations=tolerations)]


def of_anti_affinity() -> list[Plain]:
    terms = [
        {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": f"a{number}"}}} for number in range(MANY // 10)
    ]
    others = [pod(f"o{number}", labels={"app": f"a{number}"}, nodeName="n0") for number in range(MANY // 10)]
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    return [*nodes(), *others, pod(affinity=affinity)]


def of_spread() -> list[Plain]:
    spread = [
        {
            "maxSkew": 1,
            "topologyKey": f"k{number}",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "a"}},
        }
        for number in range(MANY // 10)
    ]
    return [*nodes(), pod(labels={"app": "a"}, topologySpreadConstraints=spread)]


def of_resources() -> list[Plain]:
    return [*nodes(), pod(requests={f"example.com/r{number}": "1" for number in range(MANY)})]


def of_ports() -> list[Plain]:
    ports = {"ports": [{"containerPort": 1, "hostPort": number} for number in range(1, MANY)]}
    return [*nodes(), pod("old", nodeName="n0", container=ports), pod(container=ports)]


def of_gates() -> list[Plain]:
    return [*nodes(), pod(schedulingGates=[{"name": f"example.com/{number}"} for number in range(MANY)])]


def of_volumes() -> list[Plain]:
    volumes = [
        {"name": f"v{number}", "persistentVolumeClaim": {"claimName": f"c{number}"}} for number in range(MANY // 3)
    ]
    return [*nodes(), pod(volumes=volumes)]


def of_containers() -> list[Plain]:
    found = pod(nodeName="n0")
    found["spec"]["containers"] = [{"name": f"c{number}", "image": "i"} for number in range(MANY)]
    found["status"] = {
        "phase": "Running",
        "containerStatuses": [
            {
                "name": f"c{number}",
                "image": "i",
                "imageID": "",
                "ready": False,
                "restartCount": 1,
                "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "m" * 500}},
            }
            for number in range(MANY)
        ],
    }
    return [*nodes(), found]


def of_service() -> list[Plain]:
    selector = {f"k{number}": "a" for number in range(MANY)}
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "new", "namespace": "default"},
        "spec": {"selector": selector, "ports": [{"port": 80}]},
    }
    return [service, *(pod(f"p{number}", labels={"app": "a"}) for number in range(MANY))]


def of_quota() -> list[Plain]:
    amounts = {f"requests.example.com/r{number}": "1" for number in range(MANY)}
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "new", "namespace": "default"},
        "spec": {"hard": amounts},
        "status": {"hard": amounts, "used": amounts},
    }
    return [quota, *(pod(f"p{number}") for number in range(MANY // 3))]


def run(folder: Path, objects: list[Plain], *command: str) -> tuple[str, float]:
    """Return the output of a command on a dump, and the processor time that it took."""
    file = folder / "dump.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    began = time.process_time()
    result = CliRunner().invoke(main, [*command, "--dump", str(file)])
    assert (result.exit_code, result.stderr) == (0, "")
    return result.output, time.process_time() - began


@pytest.mark.parametrize(
    "make",
    [
        of_affinity,
        of_affinity_terms,
        of_node_selector,
        of_taints,
        of_anti_affinity,
        of_spread,
        of_resources,
        of_ports,
        of_gates,
        of_volumes,
        of_containers,
    ],
)
def test_a_pod_is_explained_in_bounded_time_and_length(tmp_path: Path, make: Callable[[], list[Plain]]) -> None:
    output, seconds = run(tmp_path, make(), "why", "pod/new")
    assert len(output) < 100_000
    assert seconds < _SECONDS


@pytest.mark.parametrize(("make", "kind"), [(of_service, "svc"), (of_quota, "quota")])
def test_another_object_is_explained_in_bounded_time_and_length(
    tmp_path: Path, make: Callable[[], list[Plain]], kind: str
) -> None:
    output, seconds = run(tmp_path, make(), "why", f"{kind}/new")
    assert len(output) < 100_000
    assert seconds < _SECONDS


def test_ways_of_more_edits_than_a_person_makes_are_not_suggested(tmp_path: Path) -> None:
    taints = [{"key": f"k{number}", "effect": "NoSchedule"} for number in range(100)]
    output, _ = run(tmp_path, [node("n0", taints=taints), pod()], "why", "pod/new")
    assert "taint k0:NoSchedule is not tolerated" in " ".join(output.split())
    assert "try" not in output.split()


def test_rules_beyond_the_first_are_judged_together(tmp_path: Path) -> None:
    terms = [{"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"app": f"a{number}"}}} for number in range(80)]
    other = pod("other", labels={"app": "a79"}, nodeName="n0")
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    output, _ = run(tmp_path, [node("n0"), other, pod(affinity=affinity)], "why", "pod/new")
    assert "does not fit on the only node" in output
    assert "didn't match pod anti-affinity rules" in " ".join(output.split())


@pytest.mark.parametrize("differ", [False, True])
def test_a_plan_of_many_pods_that_stay_pending_is_made_in_bounded_time(tmp_path: Path, *, differ: bool) -> None:
    pods = [
        {**pod(f"p{number}", requests={"cpu": f"{9000 + number * differ}m"}), "kind": "Pod"} for number in range(600)
    ]
    manifests = tmp_path / "manifests.json"
    manifests.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": pods}))
    output, seconds = run(tmp_path, nodes(), "what-if", "-f", str(manifests))
    assert "pod/p0 in default: 0 of 1 placed: none" in output
    assert seconds < _SECONDS


async def test_a_plan_that_takes_too_long_says_which_pods_are_not_decided(tmp_path: Path) -> None:
    state, manifests = tmp_path / "state.json", tmp_path / "manifests.json"
    state.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": nodes()}))
    manifests.write_text(json.dumps(pod()))
    (found,) = (await plan(load_dump(state), load_dump(manifests), "default", most_seconds=0)).pods
    assert (found.node, found.reason) == ("", "not decided, as the plan takes more than 0 seconds")
