"""Published autoscalers in processes of their own, with `steersman up` and a Deployment that they serve."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from bench.autoscalers.manifests import TAINT
from bench.autoscalers.programs import NoProgram, program
from tests.e2e.kubectl import Kubectl

PATIENCE: Final = 240.0
"""Seconds in which an autoscaler reaches a state. It decides to remove nodes after tens of seconds."""


def find_autoscaler(name: str) -> Path:
    """Return the path of an autoscaler's program. Skips the test if there is none and none can be built."""
    try:
        return program(name)
    except NoProgram as reason:
        pytest.skip(str(reason))


@contextmanager
def running(
    path: Path, kubectl: Kubectl, log: Path, *flags: str, environment: Mapping[str, str] | None = None
) -> Iterator[None]:
    """Run an autoscaler with the administrator's kubeconfig."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            [path, *flags],
            env={**kubectl.environment, **(environment or {})},
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        yield
        assert process.poll() is None, f"the autoscaler has ended: {log.read_text(errors='replace')[-3000:]}"
    finally:
        process.terminate()
        process.wait(60)


def taint_first_node(kubectl: Kubectl) -> None:
    """Keep pods away from the node that no autoscaler made."""
    kubectl("taint", "nodes", "node-0", f"{TAINT['key']}={TAINT['value']}:{TAINT['effect']}")


def until(condition: Callable[[], bool], what: str) -> None:
    """Wait until a condition is true."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, f"never: {what}"
        time.sleep(0.2)


class Deployed:
    """The Deployment `web` as it is served."""

    def __init__(self, kubectl: Kubectl) -> None:
        self._kubectl = kubectl
        self.fewest_available = 0
        """Lowest number of available pods since the last change of the number of replicas."""

    def scale(self, replicas: int) -> None:
        """Change the number of replicas and wait until as many are available."""
        self._kubectl("scale", "deployment", "web", f"--replicas={replicas}")
        self.until(lambda: self.available == replicas, f"{replicas} pods available")
        self.fewest_available = replicas

    @property
    def available(self) -> int:
        """Number of available pods."""
        status = self._kubectl.json("get", "deployment", "web")["status"]
        return (
            int(status.get("availableReplicas", 0))
            if status.get("replicas", 0) == status.get("readyReplicas", 0)
            else -1
        )

    def nodes(self) -> list[dict[str, Any]]:
        """Return all nodes that the autoscaler made."""
        found: list[dict[str, Any]] = self._kubectl.json("get", "nodes")["items"]
        return [each for each in found if each["metadata"]["name"] != "node-0"]

    def capacity(self) -> int:
        """Return the CPUs of all nodes that the autoscaler made."""
        return sum(int(each["status"]["capacity"]["cpu"]) for each in self.nodes())

    def until(self, condition: Callable[[], bool], what: str) -> None:
        """Wait until a condition is true, and keep the lowest number of available pods."""

        def reached() -> bool:
            status = self._kubectl.json("get", "deployment", "web")["status"]
            self.fewest_available = min(self.fewest_available, int(status.get("availableReplicas", 0)))
            return condition()

        until(reached, what)

    def assert_each_pod_has_its_node_and_address(self) -> None:
        """Assert that pods run on nodes of the autoscaler, each with an address of its own."""
        pods = self._kubectl.json("get", "pods", "-l", "app=web")["items"]
        names = {each["metadata"]["name"] for each in self.nodes()}
        assert {each["spec"]["nodeName"] for each in pods} <= names
        assert len({each["status"]["podIP"] for each in pods}) == len(pods)

    def assert_nothing_is_left_of_removed_nodes(self) -> None:
        """Assert that there are no leases and pods of nodes that are gone."""
        names = {each["metadata"]["name"] for each in self._kubectl.json("get", "nodes")["items"]}

        def leases() -> set[str]:
            found = self._kubectl.json("get", "leases", "--namespace=kube-node-lease")["items"]
            return {each["metadata"]["name"] for each in found}

        self.until(lambda: leases() == names, "as many leases as nodes")
        assert {each["spec"]["nodeName"] for each in self._kubectl.json("get", "pods", "-A")["items"]} <= names
