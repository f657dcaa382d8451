"""The recommender of VerticalPodAutoscalers, unchanged, with `steersman up`: it follows the usage of simulated containers."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from bench.autoscalers.programs import vertical_definitions
from steersman.machinery.values.quantity import nanos
from steersman.testing import ServerProcess
from tests.e2e.autoscalers import find_autoscaler, running, until
from tests.e2e.kubectl import Kubectl

pytestmark = pytest.mark.slow

CONFIGURATION: Final[dict[str, Any]] = {
    "nodes": [{"count": 1}],
    "curves": [
        {"name": "work", "interpolation": "step", "repeat": "24h", "points": {"0:00": "200m", "12:00": "1200m"}},
    ],
    "usage": [{"selector": "app=web", "cpu": "curves.work", "memory": "300Mi"}],
}
SOON: Final = (
    "--recommender-interval=1s",
    "--cpu-histogram-decay-half-life=10s",
    "--memory-aggregation-interval=10s",
    "--address=127.0.0.1:0",
)
"""Flags by which a recommendation follows the usage after seconds instead of days."""
ADVANCE: Final = (sys.executable, "-m", "steersman.cli", "clock", "advance", "12h")
VERTICAL: Final = {
    "apiVersion": "autoscaling.k8s.io/v1",
    "kind": "VerticalPodAutoscaler",
    "metadata": {"name": "web"},
    "spec": {
        "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "updatePolicy": {"updateMode": "Off"},
    },
}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    """Yield a cluster whose pods work little until noon, and more then."""
    configuration = tmp_path / "cluster.yaml"
    configuration.write_text(json.dumps(CONFIGURATION))
    with ServerProcess(tmp_path / "data", "--storage=memory", f"--config={configuration}", verb="up") as found:
        yield found


def cpus(quantity: str) -> float:
    """Return the number of CPUs of a quantity."""
    return nanos(quantity) / 1e9


def test_recommendations_follow_the_curve_of_usage(kubectl_binary: str, server: ServerProcess, tmp_path: Path) -> None:
    recommender = find_autoscaler("vpa-recommender")
    kubectl = Kubectl(kubectl_binary, server, tmp_path, "default")
    kubectl("apply", "--server-side", "-f", str(vertical_definitions()))
    kubectl("create", "deployment", "web", "--image=nginx", "--replicas=2")
    kubectl("rollout", "status", "deployment/web")
    kubectl.apply_file("create", VERTICAL)

    def recommended() -> float:
        """Return the recommended CPUs; 0 while there is no recommendation."""
        found = kubectl.json("get", "vpa", "web").get("status", {}).get("recommendation", {})
        return max((cpus(each["target"]["cpu"]) for each in found.get("containerRecommendations", ())), default=0.0)

    def used() -> float:
        found = json.loads(kubectl("get", "--raw", "/apis/metrics.k8s.io/v1beta1/namespaces/default/pods"))["items"]
        return max((cpus(each["containers"][0]["usage"]["cpu"]) for each in found), default=0.0)

    flags = (f"--kubeconfig={server.kubeconfig}", *SOON)
    with running(recommender, kubectl, tmp_path / "recommender.log", *flags):
        until(partial(_differs, used, 0.0), "metrics of the pods")
        usage = used()
        until(partial(_is_about, recommended, usage), f"about {usage} CPUs recommended")
        subprocess.run([*ADVANCE, f"--kubeconfig={server.kubeconfig}"], check=True, capture_output=True)
        until(partial(_differs, used, usage), "usage of the other half of the day")
        assert {usage, used()} == {0.2, 1.2}
        until(partial(_is_about, recommended, used()), f"about {used()} CPUs recommended")


def _is_about(recommended: Callable[[], float], usage: float) -> bool:
    return usage <= recommended() <= 1.3 * usage


def _differs(used: Callable[[], float], before: float) -> bool:
    return used() != before
