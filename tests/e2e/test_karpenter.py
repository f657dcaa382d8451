"""Tests of Karpenter, by its kwok provider, unchanged, with `steersman up`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.autoscalers.manifests import NODE_CLASS, deployment, disruption_budget, node_pool
from bench.autoscalers.programs import definitions
from steersman.testing import ServerProcess
from tests.e2e.autoscalers import Deployed, find_autoscaler, running, taint_first_node
from tests.e2e.kubectl import Kubectl
from tests.storage.etcd.process import free_port

pytestmark = pytest.mark.slow


@pytest.fixture
def kubectl(kubectl_binary: str, tmp_path: Path) -> Iterator[Kubectl]:
    """Yield kubectl for a new cluster of one tainted node, with Karpenter."""
    karpenter = find_autoscaler("karpenter")
    with ServerProcess(tmp_path / "data", "--storage=memory", verb="up") as server:
        found = Kubectl(kubectl_binary, server, tmp_path, "default")
        taint_first_node(found)
        found("apply", *(f"--filename={each}" for each in definitions()))
        found("wait", "--for=condition=Established", "crd", "--all")
        settings = {"LEADER_ELECTION_NAMESPACE": "kube-system", "METRICS_PORT": "0"}
        probes = {"HEALTH_PROBE_PORT": str(free_port())}
        with running(karpenter, found, tmp_path / "karpenter.log", **settings, **probes):
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
