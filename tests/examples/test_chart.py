"""The chart of examples/chart becomes ready on `steersman up`, with a real Helm."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from steersman.testing import ServerProcess
from tests import ROOT
from tests.e2e.helm_program import find_helm

pytestmark = pytest.mark.slow

CHART = str(ROOT / "examples" / "chart")
TIMEOUT = 120.0


class Shop:
    """Helm and the API, for a release in the namespace `shop`."""

    def __init__(self, binary: str, cluster: ServerProcess, folder: Path) -> None:
        self._binary = binary
        self._cluster = cluster
        homes = {f"HELM_{each}_HOME": str(folder / each) for each in ("CACHE", "CONFIG", "DATA")}
        self._environment = {**os.environ, **homes, "KUBECONFIG": str(cluster.kubeconfig), "HELM_NAMESPACE": "shop"}

    def helm(self, *arguments: str) -> str:
        """Run Helm and return its output. An exit code other than 0 fails the test."""
        done = subprocess.run(
            [self._binary, *arguments],
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
            check=False,
        )
        assert done.returncode == 0, f"helm {' '.join(arguments)}: {done.stderr}"
        return done.stdout

    def objects(self, resource: str) -> list[Any]:
        """Return the objects of a resource in the namespace."""
        group = {"pods": "api/v1", "jobs": "apis/batch/v1"}.get(resource, "apis/apps/v1")
        with self._cluster.client() as client:
            status, found = client.json("GET", f"/{group}/namespaces/shop/{resource}")
            assert status == 200
            items: list[Any] = found["items"]
            return items

    def status(self, resource: str, name: str) -> dict[str, Any]:
        """Return the status of the object of that name."""
        (found,) = (each for each in self.objects(resource) if each["metadata"]["name"] == name)
        status: dict[str, Any] = found["status"]
        return status


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    binary = find_helm()
    if binary is None:
        pytest.skip("no Helm on this machine: put it in PATH, or name it in $STEERSMAN_HELM")
    with ServerProcess(tmp_path / "data", "--storage=memory", "--nodes=3", verb="up") as cluster:
        yield Shop(binary, cluster, tmp_path)


def test_it_is_installed_tested_upgraded_and_taken_away(shop: Shop) -> None:
    wait = ("--wait", "--wait-for-jobs", "--timeout=100s")
    shop.helm("install", "a", CHART, "--create-namespace", *wait)
    assert json.loads(shop.helm("status", "a", "-o", "json"))["info"]["status"] == "deployed"
    assert shop.status("deployments", "a-web")["readyReplicas"] == 3
    assert shop.status("statefulsets", "a-store")["readyReplicas"] == 2
    assert shop.status("daemonsets", "a-agent")["numberReady"] == 3
    assert shop.status("jobs", "a-migration")["succeeded"] == 1
    assert shop.status("jobs", "a-index")["succeeded"] == 1
    assert "Phase:          Succeeded" in shop.helm("test", "a")

    shop.helm("upgrade", "a", CHART, "--set=web.replicas=5,migration.seconds=0", *wait)
    assert shop.status("deployments", "a-web")["readyReplicas"] == 5

    shop.helm("uninstall", "a", "--wait")
    gone = [
        each["metadata"]["name"]
        for kind in ("deployments", "statefulsets", "daemonsets")
        for each in shop.objects(kind)
    ]
    assert gone == []
