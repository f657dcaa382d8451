"""Tests of users' kubectl commands for workloads on `steersman up`: rollouts, waiting, draining."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from steersman.cli.up.process_file import running
from steersman.testing import ServerProcess
from tests.e2e.kubectl import Kubectl

pytestmark = pytest.mark.slow


def rolled_out(kubectl: Kubectl, name: str) -> str:
    """Return the last line of `kubectl rollout status`."""
    return kubectl("rollout", "status", name, "--timeout=50s").splitlines()[-1]


def test_a_deployment_is_rolled_out_changed_and_taken_back(cluster_kubectl: Kubectl) -> None:
    kubectl = cluster_kubectl
    kubectl("create", "deployment", "web", "--image=nginx:1", "--replicas=3")
    assert rolled_out(kubectl, "deployment/web") == 'deployment "web" successfully rolled out'
    kubectl("set", "image", "deployment/web", "nginx=nginx:2")
    assert rolled_out(kubectl, "deployment/web") == 'deployment "web" successfully rolled out'
    history = kubectl("rollout", "history", "deployment/web").splitlines()
    assert [line.split()[0] for line in history if line[:1].isdigit()] == ["1", "2"]
    assert kubectl("rollout", "undo", "deployment/web") == "deployment.apps/web rolled back\n"
    rolled_out(kubectl, "deployment/web")
    images = {
        each["spec"]["containers"][0]["image"]
        for each in kubectl.json("get", "pods")["items"]
        if "deletionTimestamp" not in each["metadata"]
    }
    assert images == {"nginx:1"}
    kubectl("rollout", "restart", "deployment/web")
    rolled_out(kubectl, "deployment/web")


def test_a_rollout_that_is_paused_waits(cluster_kubectl: Kubectl) -> None:
    kubectl = cluster_kubectl
    kubectl("create", "deployment", "web", "--image=nginx:1")
    rolled_out(kubectl, "deployment/web")
    kubectl("rollout", "pause", "deployment/web")
    kubectl("set", "image", "deployment/web", "nginx=nginx:2")
    assert len(kubectl.json("get", "replicasets")["items"]) == 1
    kubectl("rollout", "resume", "deployment/web")
    rolled_out(kubectl, "deployment/web")
    assert len(kubectl.json("get", "replicasets")["items"]) == 2


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        ("StatefulSet", "partitioned roll out complete|statefulset rolling update complete 2 pods at revision"),
        ("DaemonSet", 'daemon set "set" successfully rolled out'),
    ],
)
def test_sets_are_rolled_out(cluster_kubectl: Kubectl, kind: str, told: str) -> None:
    kubectl = cluster_kubectl
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "main", "image": "nginx:1"}]}}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    if kind == "StatefulSet":
        spec |= {"serviceName": "set", "replicas": 2}
    kubectl.apply_file("create", {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "set"}, "spec": spec})
    rolled_out(kubectl, f"{kind}/set")
    kubectl("set", "image", f"{kind}/set", "main=nginx:2")
    assert re.match(told, rolled_out(kubectl, f"{kind}/set"))


def test_conditions_fields_and_ends_are_waited_for(cluster_kubectl: Kubectl) -> None:
    kubectl = cluster_kubectl
    kubectl("run", "web", "--image=nginx")
    assert kubectl("wait", "--for=condition=Ready", "pod/web") == "pod/web condition met\n"
    assert kubectl("wait", "--for=jsonpath={.status.phase}=Running", "pod/web") == "pod/web condition met\n"
    kubectl("create", "job", "hello", "--image=busybox", "--", "sh", "-c", "sleep 1; exit 0")
    assert kubectl("wait", "--for=condition=Complete", "job/hello") == "job.batch/hello condition met\n"
    kubectl("create", "job", "fails", "--image=busybox", "--", "false")
    kubectl("patch", "job", "fails", "--type=merge", "-p", '{"spec":{"activeDeadlineSeconds":1}}')
    assert kubectl("wait", "--for=condition=Failed", "job/fails") == "job.batch/fails condition met\n"
    kubectl("delete", "pod", "web", "--wait=false")
    kubectl("wait", "--for=delete", "pod/web")
    assert "timed out waiting for the condition" in kubectl.fails(
        "wait", "--for=condition=Suspended", "job/hello", "--timeout=1s"
    )


def test_a_node_is_drained_and_taken_back(cluster_kubectl: Kubectl) -> None:
    kubectl = cluster_kubectl
    kubectl("create", "deployment", "web", "--image=nginx", "--replicas=6")
    rolled_out(kubectl, "deployment/web")
    placed = [each["spec"]["nodeName"] for each in kubectl.json("get", "pods")["items"]]
    assert sorted(set(placed)) == ["node-0", "node-1", "node-2"]
    told = kubectl("drain", "node-1", "--ignore-daemonsets", "--timeout=50s")
    assert told.startswith("node/node-1 cordoned\n")
    assert told.endswith("node/node-1 drained\n")
    try:
        assert told.count(" evicted\n") == placed.count("node-1")
        rolled_out(kubectl, "deployment/web")
        left = [each["spec"]["nodeName"] for each in kubectl.json("get", "pods")["items"]]
        assert "node-1" not in left
        assert re.search(r"node-1 +Ready,SchedulingDisabled", kubectl("get", "nodes"))
    finally:
        assert kubectl("uncordon", "node-1") == "node/node-1 uncordoned\n"


def test_what_runs_goes_on_after_kill_9(kubectl_for: Callable[[ServerProcess, str], Kubectl], tmp_path: Path) -> None:
    """Nodes are the same, pods still run, and unfinished work is finished."""
    with ServerProcess(tmp_path / "data", "--nodes=2", verb="up") as cluster:
        kubectl = kubectl_for(cluster, "default")
        kubectl("create", "deployment", "web", "--image=nginx", "--replicas=4")
        rolled_out(kubectl, "deployment/web")
        before = {each["metadata"]["uid"]: each["spec"]["nodeName"] for each in kubectl.json("get", "pods")["items"]}
        nodes = {each["metadata"]["uid"] for each in kubectl.json("get", "nodes")["items"]}
        kubectl("scale", "deployment", "web", "--replicas=8")
        cluster.kill()
        assert running(cluster.folder) is None
        cluster.start()
        kubectl = kubectl_for(cluster, "default")
        rolled_out(kubectl, "deployment/web")
        found = kubectl.json("get", "pods")["items"]
        assert len(found) == 8
        assert before.items() <= {each["metadata"]["uid"]: each["spec"]["nodeName"] for each in found}.items()
        assert all(each["status"]["phase"] == "Running" for each in found)
        assert nodes == {each["metadata"]["uid"] for each in kubectl.json("get", "nodes")["items"]}
        kubectl("delete", "deployment", "web", "--cascade=foreground")
        assert kubectl.json("get", "pods")["items"] == []
