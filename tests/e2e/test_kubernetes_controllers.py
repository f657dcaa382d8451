"""Tests of the real kube-controller-manager and kube-scheduler, where this machine has them, against a server process.

There is no kubelet: the tests write the status of pods and nodes.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from steersman.testing import ServerProcess
from tests.e2e.kubectl import Kubectl

pytestmark = pytest.mark.slow

PATIENCE = 40.0
NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n1", "labels": {"kubernetes.io/hostname": "n1"}},
}
READY = {
    "capacity": {"cpu": "16", "memory": "32Gi", "pods": "110"},
    "allocatable": {"cpu": "16", "memory": "32Gi", "pods": "110"},
    "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "as told by a test"}],
}
POD = {"containers": [{"name": "main", "image": "image"}]}


def find_program(name: str) -> str:
    """Return a program of Kubernetes: from $STEERSMAN_REFERENCE, the ones built for comparisons, or PATH."""
    built = Path.home() / ".cache" / "steersman-oracle" / "bin"
    for folder in (os.environ.get("STEERSMAN_REFERENCE"), str(built), os.environ.get("PATH")):
        found = shutil.which(name, path=folder) if folder else None
        if found:
            return found
    pytest.skip(f"no {name} on this machine: put one in PATH, or in the folder that $STEERSMAN_REFERENCE names")


def until(condition: Callable[[], Any], what: str) -> Any:
    """Wait until a condition is true, and return its value."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if found := condition():
            return found
        time.sleep(0.1)
    raise AssertionError(f"it never came to be: {what}")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """Yield a server with its default flags, and the two programs with the flags of a usual cluster."""
    manager, scheduler = find_program("kube-controller-manager"), find_program("kube-scheduler")
    folder = tmp_path_factory.mktemp("cluster")
    process = ServerProcess(folder / "data")
    process.start()
    common = [
        f"--{each}={process.kubeconfig}"
        for each in ("kubeconfig", "authentication-kubeconfig", "authorization-kubeconfig")
    ]
    programs = []
    try:
        for program, *flags in ([manager, f"--root-ca-file={process.ca}"], [scheduler]):
            with (folder / Path(program).name).with_suffix(".log").open("wb") as log:
                programs.append(subprocess.Popen([program, *common, "--secure-port=0", *flags], stderr=log))
        with process.client() as client:
            assert client.request("POST", "/api/v1/nodes", NODE)[0] == 201
            status, _ = client.request(
                "PATCH", "/api/v1/nodes/n1/status", {"status": READY}, {"Content-Type": "application/merge-patch+json"}
            )
            assert status == 200
        yield process
        assert all(each.poll() is None for each in programs), "one of the programs has ended"
    finally:
        for each in programs:
            each.terminate()
        for each in programs:
            each.wait(10)
        process.stop()


@pytest.fixture
def cluster(kubectl: Kubectl) -> Kubectl:
    """Return kubectl in a namespace that the controllers have already processed."""
    until(lambda: "default" in kubectl("get", "serviceaccounts", "-o", "name"), "the account of the namespace")
    until(lambda: kubectl.json("get", "node", "n1")["spec"].get("taints") is None, "a node without taints")
    return kubectl


def pods(kubectl: Kubectl, selector: str) -> list[dict[str, Any]]:
    """Return the pods that are not being deleted, and finish the deletion of the others, as a kubelet would."""
    stay = []
    for pod in kubectl.json("get", "pods", "-l", selector)["items"]:
        if "deletionTimestamp" in pod["metadata"]:
            kubectl("delete", "pod", pod["metadata"]["name"], "--force", "--grace-period=0", "--ignore-not-found")
        else:
            stay.append(pod)
    return stay


def placed(kubectl: Kubectl, selector: str, count: int) -> list[dict[str, Any]]:
    """Wait for `count` pods, each bound to a node, and return them."""

    def found() -> list[dict[str, Any]] | None:
        there = [each for each in pods(kubectl, selector) if each["spec"].get("nodeName")]
        return there if len(there) == count else None

    there: list[dict[str, Any]] = until(found, f"{count} pods of {selector} on a node")
    return there


def say(kubectl: Kubectl, pod: dict[str, Any], phase: str, **status: Any) -> None:
    """Write the status of a pod as a kubelet would."""
    ready = {"type": "Ready", "status": "True" if phase == "Running" else "False", **status}
    told = {"phase": phase, "podIP": "10.1.0.7", "podIPs": [{"ip": "10.1.0.7"}], "conditions": [ready]}
    kubectl(
        "patch",
        "pod",
        pod["metadata"]["name"],
        "--subresource=status",
        "--type=merge",
        "-p",
        json.dumps({"status": told}),
    )


def test_a_namespace_gets_what_its_pods_need(cluster: Kubectl) -> None:
    bundle = until(lambda: cluster.json("get", "configmaps")["items"], "the bundle of authorities")
    assert [each["metadata"]["name"] for each in bundle] == ["kube-root-ca.crt"]


def test_a_deployment_is_rolled_out_and_reached_through_its_service(cluster: Kubectl) -> None:
    cluster("create", "deployment", "web", "--image=nginx", "--replicas=2", "--port=80")
    cluster("expose", "deployment", "web")
    for pod in placed(cluster, "app=web", 2):
        say(cluster, pod, "Running")
    assert "successfully rolled out" in cluster("rollout", "status", "deployment/web", "--timeout=30s")

    def addresses() -> list[str]:
        slices = cluster.json("get", "endpointslices", "-l", "kubernetes.io/service-name=web")["items"]
        return [address for each in slices for endpoint in each["endpoints"] or () for address in endpoint["addresses"]]

    assert len(until(addresses, "addresses of the service")) == 2
    cluster("set", "image", "deployment/web", "nginx=nginx:2")
    until(lambda: len(cluster.json("get", "replicasets")["items"]) == 2, "a new replica set")
    cluster("rollout", "undo", "deployment/web")
    cluster("scale", "deployment/web", "--replicas=3")
    placed(cluster, "app=web", 3)
    cluster("delete", "deployment", "web", "--cascade=foreground", "--wait=false")
    until(lambda: not pods(cluster, "app=web"), "the end of all its pods")
    until(lambda: not cluster.json("get", "deployments")["items"], "the end of the deployment")


def test_a_job_runs_to_its_end(cluster: Kubectl) -> None:
    cluster("create", "job", "once", "--image=busybox", "--", "true")
    [pod] = placed(cluster, "job-name=once", 1)
    say(cluster, pod, "Succeeded", reason="PodCompleted")
    cluster("wait", "--for=condition=complete", "job/once", "--timeout=30s")


def test_a_stateful_set_gets_its_volumes(cluster: Kubectl) -> None:
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "disk"},
        "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/data"}},
    }
    stateful_set = {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "db"},
        "spec": {
            "serviceName": "db",
            "selector": {"matchLabels": {"app": "db"}},
            "template": {"metadata": {"labels": {"app": "db"}}, "spec": POD},
            "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": claim}],
        },
    }
    cluster.apply_file("create", volume, stateful_set)
    [pod] = placed(cluster, "app=db", 1)
    assert pod["metadata"]["name"] == "db-0"
    assert cluster.json("get", "pvc", "data-db-0")["status"]["phase"] == "Bound"
    assert cluster.json("get", "pv", "disk")["spec"]["claimRef"]["name"] == "data-db-0"


def test_a_quota_counts_and_a_budget_protects(cluster: Kubectl) -> None:
    cluster("create", "quota", "few", "--hard=pods=2")
    until(lambda: cluster.json("get", "quota", "few")["status"].get("used"), "what the quota counts")
    cluster("create", "deployment", "web", "--image=nginx", "--replicas=3")
    cluster("create", "poddisruptionbudget", "keep", "--selector=app=web", "--min-available=1")
    first, second = placed(cluster, "app=web", 2)
    assert cluster.json("get", "quota", "few")["status"]["used"] == {"pods": "2"}
    say(cluster, first, "Running")
    until(lambda: cluster.json("get", "pdb", "keep")["status"]["currentHealthy"] == 1, "one healthy pod")
    assert evict(cluster, first) == 429
    say(cluster, second, "Running")
    until(lambda: cluster.json("get", "pdb", "keep")["status"]["disruptionsAllowed"] == 1, "one that may go")
    assert evict(cluster, first) == 201


def evict(kubectl: Kubectl, pod: dict[str, Any]) -> int:
    """Return the status code of an eviction."""
    name = pod["metadata"]["name"]
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
    target = f"/api/v1/namespaces/{kubectl.namespace}/pods/{name}/eviction"
    done = kubectl.run("create", "--raw", target, "-f", "-", stdin=json.dumps(body))
    return 201 if done.returncode == 0 else 429 if "Cannot evict pod" in done.stderr else 0


def test_a_deleted_namespace_goes_with_all_that_is_in_it(cluster: Kubectl) -> None:
    name = f"{cluster.namespace}-gone"
    cluster("create", "namespace", name)
    cluster("create", "configmap", "c", f"--namespace={name}")
    cluster("delete", "namespace", name, "--timeout=30s")
    assert name not in cluster("get", "namespaces", "-o", "name")
