"""Plans of manifests: places of the pods of workloads, pods that are pushed out, and reasons for pending ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from steersman.cli.main import main
from steersman.explain.dump import load_dump
from steersman.explain.what_if.plan import Plan, plan
from steersman.explain.what_if.pods import TooManyPods
from tests.explain.pods.recorded_cases import FOLDER

Plain = dict[str, Any]


def _template(app: str, **requests: str) -> Plain:
    container = {"name": "c", "image": "image", "resources": {"requests": requests}}
    return {"metadata": {"labels": {"app": app}}, "spec": {"containers": [container]}}


def _workload(kind: str, name: str, template: Plain, **spec: Any) -> Plain:
    selector = {"matchLabels": template["metadata"]["labels"]}
    group = "batch/v1" if kind == "Job" else "apps/v1"
    return {
        "apiVersion": group,
        "kind": kind,
        "metadata": {"name": name},
        "spec": {**spec, "selector": selector, "template": template},
    }


def _file(folder: Path, *objects: Plain) -> Path:
    path = folder / "manifests.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    return path


async def _plan(folder: Path, case: str, *objects: Plain) -> Plan:
    return await plan(load_dump(FOLDER / f"{case}.json"), load_dump(_file(folder, *objects)), "default")


async def test_replicas_are_placed_one_after_the_other_and_the_rest_stays_pending(tmp_path: Path) -> None:
    found = await _plan(tmp_path, "cpu", _workload("Deployment", "web", _template("web", cpu="500m"), replicas=8))
    assert [bool(each.node) for each in found.pods] == [True] * 6 + [False] * 2
    assert {each.source.name for each in found.pods} == {"web"}
    assert found.pods[-1].reason.startswith("3 nodes: insufficient cpu (short by 500m")
    assert found.pods[-1].message.startswith("0/3 nodes are available: 3 Insufficient cpu.")


async def test_a_daemon_set_gets_a_pod_on_each_node(tmp_path: Path) -> None:
    found = await _plan(tmp_path, "cpu", _workload("DaemonSet", "agent", _template("agent")))
    assert sorted(each.node for each in found.pods) == ["node-0", "node-1", "node-2"]


async def test_pods_of_a_higher_priority_push_others_out(tmp_path: Path) -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "urgent"}, **_template("urgent", cpu="3")}
    pod["metadata"] = {"name": "urgent"}
    pod["spec"]["priorityClassName"] = "high"
    found = await _plan(tmp_path, "preemption", pod)
    (urgent,) = found.pods
    assert urgent.node
    assert len(urgent.pushes_out) == 1


async def test_nodes_of_the_manifests_count_as_if_they_existed(tmp_path: Path) -> None:
    amounts = {"cpu": "8", "memory": "8Gi", "pods": "110"}
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "big"},
        "spec": {},
        "status": {"allocatable": amounts, "capacity": amounts},
    }
    found = await _plan(tmp_path, "cpu", node, _workload("Job", "sum", _template("sum", cpu="7"), parallelism=1))
    assert [each.node for each in found.pods] == ["big"]


async def test_claims_of_a_stateful_set_are_made_with_its_pods(tmp_path: Path) -> None:
    claims = [
        {
            "metadata": {"name": "data"},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "late",
                "resources": {"requests": {"storage": "1Gi"}},
            },
        }
    ]
    late = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "late"},
        "provisioner": "csi.example",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    found = await _plan(
        tmp_path, "cpu", late, _workload("StatefulSet", "db", _template("db"), replicas=2, volumeClaimTemplates=claims)
    )
    assert all(each.node for each in found.pods)


async def test_a_workload_that_exists_is_planned_in_place_of_its_pods(tmp_path: Path) -> None:
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": "1", "controller": True}
    dump = json.loads((FOLDER / "cpu.json").read_text())
    for each in dump["items"]:
        if each["kind"] == "Pod" and each["metadata"]["name"] == "old-0":
            each["metadata"]["ownerReferences"] = [owner]
    (tmp_path / "dump.json").write_text(json.dumps(dump))
    manifests = load_dump(_file(tmp_path, _workload("StatefulSet", "db", _template("db", cpu="4"), replicas=1)))
    found = await plan(load_dump(tmp_path / "dump.json"), manifests, "default")
    assert [each.name for each in found.replaced] == ["old-0"]
    assert [each.node for each in found.pods] == ["node-0"]


async def test_more_pods_than_a_plan_may_have_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TooManyPods):
        await _plan(tmp_path, "cpu", _workload("Deployment", "web", _template("web"), replicas=1_000_000_000))


def test_the_command_prints_a_line_for_each_workload(tmp_path: Path) -> None:
    file = _file(tmp_path, _workload("Deployment", "web", _template("web", cpu="2"), replicas=1))
    arguments = ["what-if", "-f", str(file), "--dump", str(FOLDER / "cpu.json")]
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 0, done.output
    assert done.output.startswith("deployment/web in default: 0 of 1 placed: none\n  1 stay pending: 3 nodes: insuff")
    plain = json.loads(CliRunner().invoke(main, [*arguments, "-o", "json"]).output)
    assert plain["kind"] == "Plan"
    assert plain["pods"][0]["groups"][0]["count"] == 3


def test_a_command_without_a_dump_that_can_be_read_prints_one_line(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["what-if", "-f", str(tmp_path / "none.yaml"), "--dump", str(FOLDER / "cpu.json")])
    assert done.exit_code == 1
    assert "Traceback" not in done.output
