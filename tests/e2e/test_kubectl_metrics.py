"""`kubectl top` and `kubectl autoscale` on a cluster of `steersman up`."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest

Run = Callable[..., str]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def kubectl_up(kubectl_binary: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """Yield kubectl for a fresh cluster with a Deployment of two running pods."""
    folder = tmp_path_factory.mktemp("up")
    steersman = [sys.executable, "-m", "steersman.cli"]
    flags = ["--storage=memory", "--secure-port=0", "--nodes=2", "--detach"]
    subprocess.run([*steersman, "up", "--data-dir", str(folder), *flags], check=True, timeout=120, capture_output=True)

    def run(*arguments: str, may_fail: bool = False) -> str:
        done = subprocess.run(
            [kubectl_binary, f"--kubeconfig={folder}/admin.kubeconfig", f"--cache-dir={folder}/cache", *arguments],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert may_fail or done.returncode == 0, done.stderr
        return done.stdout

    try:
        run("create", "deployment", "web", "--image=nginx", "--replicas=2")
        run("set", "resources", "deployment", "web", "--requests=cpu=200m,memory=128Mi")
        run("rollout", "status", "deployment", "web", "--timeout=30s")
        yield run
    finally:
        subprocess.run([*steersman, "down", "--data-dir", str(folder)], check=True, timeout=120, capture_output=True)


def eventually(look: Callable[[], str], pattern: str) -> str:
    """Return the result of `look` once it contains the pattern."""
    until = time.monotonic() + 60
    while not re.search(pattern, seen := look()):
        assert time.monotonic() < until, seen
        time.sleep(0.5)
    return seen


def test_top_shows_usage(kubectl_up: Run) -> None:
    pod = r"web-[0-9a-z-]+ +nginx +20m +32Mi +\n"
    eventually(lambda: kubectl_up("top", "pods", "--containers", may_fail=True), rf"^POD.*\n({pod}){{2}}$")
    nodes = kubectl_up("top", "nodes", "--no-headers").split("\n")[:2]
    assert sorted(line.split()[0] for line in nodes) == ["node-0", "node-1"]
    assert sum(int(line.split()[1].removesuffix("m")) for line in nodes) == 40


def test_autoscalers_follow_usage(kubectl_up: Run) -> None:
    kubectl_up("autoscale", "deployment", "web", "--min=1", "--max=8", "--cpu=50%")
    kubectl_up("annotate", "pods", "-l", "app=web", "simulation.steersman.dev/cpu=180m")
    eventually(lambda: kubectl_up("get", "deployment", "web", "-o", "jsonpath={.spec.replicas}"), "^4$")
    assert re.search(r"Deployment/web +cpu: \d+%/50% +1 +8 ", kubectl_up("get", "hpa", "web"))
    described = eventually(lambda: kubectl_up("describe", "hpa", "web"), "SuccessfulRescale")
    assert "New size: 4; reason: cpu resource utilization (percentage of request) above target" in described
