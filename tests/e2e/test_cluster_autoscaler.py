"""Tests of cluster-autoscaler, by its kwok provider, unchanged, with `steersman up`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from bench.autoscalers.manifests import deployment, disruption_budget, node_group
from steersman.testing import ServerProcess
from tests.e2e.autoscalers import Deployed, find_autoscaler, running, taint_first_node
from tests.e2e.kubectl import Kubectl

pytestmark = pytest.mark.slow

SOON: Final = (
    "--scan-interval=3s",
    "--scale-down-delay-after-add=5s",
    "--scale-down-unneeded-time=5s",
    "--unremovable-node-recheck-timeout=5s",
    "--max-scale-down-parallelism=20",
    "--max-drain-parallelism=5",
)
"""Flags by which it removes nodes after seconds instead of ten minutes."""


@pytest.fixture
def kubectl(kubectl_binary: str, tmp_path: Path) -> Iterator[Kubectl]:
    """Yield kubectl for a new cluster of one tainted node, with cluster-autoscaler."""
    autoscaler = find_autoscaler("cluster-autoscaler")
    with ServerProcess(tmp_path / "data", "--storage=memory", verb="up") as server:
        found = Kubectl(kubectl_binary, server, tmp_path, "default")
        taint_first_node(found)
        found.apply_file("create", *node_group())
        flags = ("--cloud-provider=kwok", f"--kubeconfig={server.kubeconfig}", "--address=127.0.0.1:0", *SOON)
        settings = {"POD_NAMESPACE": found.namespace, "KWOK_PROVIDER_MODE": "local"}
        with running(autoscaler, found, tmp_path / "autoscaler.log", *flags, environment=settings):
            yield found


def test_a_deployment_gets_nodes_and_loses_them_again(kubectl: Kubectl) -> None:
    """300 pods are served by nodes of a group, which are drained as a disruption budget allows when they idle."""
    kubectl.apply_file("create", disruption_budget("10%"), deployment(0))
    web = Deployed(kubectl)
    web.scale(300)
    assert len(web.nodes()) >= 300 // 16
    web.assert_each_pod_has_its_node_and_address()

    web.scale(30)
    web.until(lambda: web.capacity() <= 64, "at most 64 CPUs for 30 pods")
    assert web.fewest_available >= 27
    web.until(lambda: web.available == 30, "30 pods available on the nodes that are left")
    web.assert_each_pod_has_its_node_and_address()

    web.scale(0)
    web.until(lambda: web.nodes() == [], "no nodes without pods")
    web.assert_nothing_is_left_of_removed_nodes()
