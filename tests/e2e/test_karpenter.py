"""Tests of Karpenter, by its kwok provider, unchanged, with `steersman up`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from bench.autoscalers import programs
from bench.autoscalers.manifests import NODE_CLASS, deployment, disruption_budget, node_pool
from steersman.testing import ServerProcess
from tests.e2e.autoscalers import Deployed, find_autoscaler, running, taint_first_node, until
from tests.e2e.kubectl import Kubectl

pytestmark = pytest.mark.slow

DRIVER: Final = "gpu.example.com"
GPUS: Final = f"""
apiVersion: test.karpenter.sh/v1alpha1
kind: DRAConfig
metadata: {{name: gpus}}
spec:
  driver: {DRIVER}
  pools:
  - name: two
    nodeSelectorTerms:
    - matchExpressions: [{{key: gpus, operator: In, values: [two]}}]
    resourceSlices:
    - devices:
      - {{name: gpu-0, attributes: {{type: {{string: a}}}}, capacity: {{memory: {{value: 80Gi}}}}}}
      - {{name: gpu-1, attributes: {{type: {{string: b}}}}, capacity: {{memory: {{value: 80Gi}}}}}}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {{name: {DRIVER}}}
spec: {{selectors: [{{cel: {{expression: device.driver == "{DRIVER}"}}}}]}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {{name: gpu}}
spec: {{spec: {{devices: {{requests: [{{name: gpu, exactly: {{deviceClassName: {DRIVER}}}}}]}}}}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: train}}
spec:
  replicas: 5
  selector: {{matchLabels: {{app: train}}}}
  template:
    metadata: {{labels: {{app: train}}}}
    spec:
      resourceClaims: [{{name: gpu, resourceClaimTemplateName: gpu}}]
      containers:
      - {{name: train, image: registry.example/train:1, resources: {{claims: [{{name: gpu}}]}}}}
"""


@pytest.fixture
def kubectl(kubectl_binary: str, tmp_path: Path) -> Iterator[Kubectl]:
    """Yield kubectl for a new cluster of one tainted node, with Karpenter."""
    karpenter = find_autoscaler("karpenter")
    with ServerProcess(tmp_path / "data", "--storage=memory", verb="up") as server:
        found = Kubectl(kubectl_binary, server, tmp_path, "default")
        taint_first_node(found)
        found("apply", *(f"--filename={each}" for each in programs.definitions()))
        found("wait", "--for=condition=Established", "crd", "--all")
        settings = {"LEADER_ELECTION_NAMESPACE": "kube-system", "METRICS_PORT": "0", "HEALTH_PROBE_PORT": "0"}
        with running(karpenter, found, tmp_path / "karpenter.log", environment=settings):
            yield found


def test_a_deployment_gets_nodes_and_loses_them_again(kubectl: Kubectl) -> None:
    """300 pods are served by new nodes; consolidation drains these as a disruption budget allows."""
    kubectl.apply_file("create", NODE_CLASS, node_pool(), disruption_budget("10%"), deployment(0))
    web = Deployed(kubectl)
    web.scale(300)
    assert len(web.nodes()) >= 300 // 16
    web.assert_each_pod_has_its_node_and_address()

    web.scale(30)
    web.until(lambda: web.capacity() <= 48, "at most 48 CPUs for 30 pods")
    assert web.fewest_available >= 27
    web.until(lambda: web.available == 30, "30 pods available on the nodes that are left")
    web.assert_each_pod_has_its_node_and_address()

    web.scale(0)
    web.until(lambda: web.nodes() == [], "no nodes without pods")
    assert kubectl.json("get", "nodeclaims")["items"] == []
    web.assert_nothing_is_left_of_removed_nodes()


def test_devices_of_its_driver_are_allocated(kubectl_binary: str, tmp_path: Path) -> None:
    """Its DRA driver publishes devices of simulated nodes, which pods get until there are no more."""
    driver = find_autoscaler("dra-kwok-driver")
    files = programs.karpenter_module() / "dra-kwok-driver/pkg/apis/crds"
    with ServerProcess(tmp_path / "data", "--storage=memory", verb="up") as server:
        kubectl = Kubectl(kubectl_binary, server, tmp_path, "default")
        kubectl("apply", f"--filename={files / 'test.karpenter.sh_draconfigs.yaml'}")
        kubectl("wait", "--for=condition=Established", "crd", "--all")
        kubectl.apply_file("create", *(gpu_node(f"gpu-{number}") for number in range(2)))
        kubectl("create", "-f", "-", stdin=GPUS)
        with running(driver, kubectl, tmp_path / "driver.log"):
            until(
                lambda: kubectl.json("get", "deployment", "train")["status"].get("availableReplicas") == 4, "4 pods run"
            )
            claims = kubectl.json("get", "resourceclaims")["items"]
            results = [
                each
                for claim in claims
                for each in claim["status"].get("allocation", {}).get("devices", {}).get("results", [])
            ]
            devices = {(each["driver"], each["pool"], each["device"]) for each in results}
            assert devices == {
                (DRIVER, f"{DRIVER}/gpu-{node}", f"gpu-{number}") for node in range(2) for number in range(2)
            }
            kubectl("delete", "node", "gpu-1")
            until(lambda: len(kubectl.json("get", "resourceslices")["items"]) == 1, "the slice of the node is deleted")


def gpu_node(name: str) -> dict[str, Any]:
    """Return a Node object for which the driver publishes two devices."""
    room = {"cpu": "8", "memory": "32Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"gpus": "two"}, "annotations": {"kwok.x-k8s.io/node": "fake"}},
        "status": {"capacity": room, "allocatable": room},
    }
