"""The rows: a cluster, an autoscaler, a Deployment that grows and shrinks; and their table."""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from bench.autoscalers import __doc__ as about
from bench.autoscalers.manifests import (
    NODE_CLASS,
    TAINT,
    Plain,
    deployment,
    disruption_budget,
    node_group,
    node_pool,
)
from bench.autoscalers.programs import definitions, program
from bench.clusters import PATIENCE, Processes, Running, make, nodes_are_there, until, with_client, write_kubeconfig
from bench.side_by_side import end, end_on_sigterm, start
from steersman.client.api_resource import APIResource
from steersman.client.client import MERGE_PATCH, Client
from steersman.client.resources import DEPLOYMENTS, NODES
from steersman.machinery.errors.status import StatusError

ROOM: Final = 2.2
"""CPUs of nodes, by requested CPU, at which a cluster counts as shrunk. A node may be half empty."""
SOON: Final = (
    "--scan-interval=3s",
    "--scale-down-delay-after-add=5s",
    "--scale-down-unneeded-time=10s",
    "--unremovable-node-recheck-timeout=5s",
    "--max-scale-down-parallelism=100",
    "--max-drain-parallelism=20",
)
"""Flags by which cluster-autoscaler removes nodes after seconds, as Karpenter does, instead of ten minutes."""
_DEFINITIONS: Final[APIResource[Plain]] = APIResource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", dict, namespaced=False
)
_NODE_CLASSES: Final[APIResource[Plain]] = APIResource(
    "karpenter.kwok.sh", "v1alpha1", "kwoknodeclasses", "KWOKNodeClass", dict, namespaced=False
)
_NODE_POOLS: Final[APIResource[Plain]] = APIResource(
    "karpenter.sh", "v1", "nodepools", "NodePool", dict, namespaced=False
)
_BUDGETS: Final[APIResource[Plain]] = APIResource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", dict)
_CONFIG_MAPS: Final[APIResource[Plain]] = APIResource("", "v1", "configmaps", "ConfigMap", dict)


@dataclass(frozen=True)
class Step:
    """Figures of one step of a row: seconds by the clock, CPU seconds, and memory (RSS, MiB) at the end."""

    autoscaler: str
    name: str
    nodes: int
    """Nodes of the autoscaler at the end."""
    seconds: float
    cpu: float
    memory: float
    own_cpu: float
    """CPU seconds of the autoscaler's process. `cpu` counts the processes of the cluster."""
    own_memory: float


async def with_karpenter(client: Client) -> None:
    """Install Karpenter's definitions and a pool."""
    for path in definitions():
        await client.create(_DEFINITIONS, yaml.safe_load(path.read_text()))
    for resource, obj in ((_NODE_CLASSES, NODE_CLASS), (_NODE_POOLS, node_pool())):
        limit = time.monotonic() + 30
        while True:
            try:
                await client.create(resource, obj)
            except StatusError as error:
                if error.code != 404 or time.monotonic() > limit:  # the definition is not served yet
                    raise
                await asyncio.sleep(0.1)
            else:
                break


async def with_cluster_autoscaler(client: Client) -> None:
    """Install the configuration of cluster-autoscaler's kwok provider."""
    for each in node_group():
        await client.create(_CONFIG_MAPS, each, "default")


def _karpenter_command(kubeconfig: Path) -> tuple[list[str], dict[str, str]]:
    settings = {"METRICS_PORT": "0", "HEALTH_PROBE_PORT": "0", "LEADER_ELECTION_NAMESPACE": "kube-system"}
    return [str(program("karpenter"))], {"KUBECONFIG": str(kubeconfig), **settings}


def _cluster_autoscaler_command(kubeconfig: Path) -> tuple[list[str], dict[str, str]]:
    flags = ["--cloud-provider=kwok", f"--kubeconfig={kubeconfig}", "--address=127.0.0.1:0", *SOON]
    settings = {"KUBECONFIG": str(kubeconfig), "POD_NAMESPACE": "default", "KWOK_PROVIDER_MODE": "local"}
    return [str(program("cluster-autoscaler")), *flags], settings


ROWS: Final = {
    "karpenter": (with_karpenter, _karpenter_command),
    "cluster-autoscaler": (with_cluster_autoscaler, _cluster_autoscaler_command),
}
"""Preparation of the cluster and the command, by autoscaler."""


class Course:
    """One course of a Deployment: it grows, shrinks and ends."""

    def __init__(self, cluster: Running, name: str, own: Processes) -> None:
        self._cluster = cluster
        self._name = name
        self._own = own
        self._nodes = cluster.informers.for_resource(NODES)
        self._deployments = cluster.informers.for_resource(DEPLOYMENTS)
        cluster.informers.start()

    async def run(self, pods: int) -> list[Step]:
        """Return the figures of all steps."""
        client, few = self._cluster.client, pods // 10
        await make(client, _BUDGETS, "default", disruption_budget("10%"))
        await make(client, DEPLOYMENTS, "default", deployment(0))
        return [
            await self._step(f"{pods} pods served", pods, lambda: self._available() == pods),
            await self._step(
                f"shrunk to {few} pods", few, lambda: self._available() == few and self._cpus() <= few * ROOM
            ),
            await self._step("no pods, no nodes", 0, lambda: self._made() == 0),
        ]

    async def _step(self, name: str, replicas: int, reached: Callable[[], bool]) -> Step:
        cluster, own = self._cluster, self._own
        began, cpu, own_cpu = time.monotonic(), cluster.processes.cpu(), own.cpu()
        await cluster.client.patch(DEPLOYMENTS, "web", "default", {"spec": {"replicas": replicas}}, media=MERGE_PATCH)
        await until(reached, name)
        return Step(
            self._name,
            name,
            self._made(),
            time.monotonic() - began,
            cluster.processes.cpu() - cpu,
            cluster.processes.memory(),
            own.cpu() - own_cpu,
            own.memory(),
        )

    def _available(self) -> int:
        found = self._deployments.get("default", "web")
        return (found.status.available_replicas or 0) if found is not None else 0

    def _made(self) -> int:
        return sum(each.metadata.name != "node-0" for each in self._nodes.list())

    def _cpus(self) -> int:
        return sum(int(each.status.capacity["cpu"]) for each in self._nodes.list() if each.metadata.name != "node-0")


async def course(cluster: Running, name: str, pods: int, kubeconfig: Path) -> list[Step]:
    """Start an autoscaler on a cluster of one node, and return the figures of its course."""
    prepare, command_of = ROWS[name]
    await nodes_are_there(cluster, 1)
    await cluster.client.patch(NODES, "node-0", "", {"spec": {"taints": [TAINT]}}, media=MERGE_PATCH)
    await prepare(cluster.client)
    with _running(*command_of(kubeconfig), kubeconfig.with_suffix(".log")) as process:
        return await Course(cluster, name, Processes({name: process.pid})).run(pods)


@contextmanager
def _running(command: list[str], settings: dict[str, str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run an autoscaler."""
    with log.open("wb") as output:
        process = subprocess.Popen(command, env={**os.environ, **settings}, stdout=output, stderr=subprocess.STDOUT)
    try:
        time.sleep(5)  # until it leads
        if process.poll() is not None:
            raise RuntimeError(f"{command[0]} has ended: {log.read_text(errors='replace')[-2000:]}")
        yield process
    finally:
        process.terminate()
        process.wait(60)


def measure(command: str, name: str, pods: int) -> list[Step]:
    """Start a cluster and return the figures of an autoscaler on it."""
    began = time.monotonic()
    server, reach = start(command.replace("{nodes}", "1"), PATIENCE)
    try:
        with tempfile.TemporaryDirectory(prefix="steersman-autoscaler-") as folder:
            kubeconfig = Path(folder) / "kubeconfig"
            write_kubeconfig(reach, kubeconfig)
            return asyncio.run(
                with_client(reach, began, lambda cluster: course(cluster, name, pods, kubeconfig), kubeconfig)
            )
    finally:
        end(server)


def table(found: Sequence[tuple[str, Step]]) -> Iterator[str]:
    """Yield the lines of the table in Markdown."""
    yield "| autoscaler | step | side | nodes | seconds | CPU s | MiB | its CPU s | its MiB |"
    yield "|---|---|---|--:|--:|--:|--:|--:|--:|"
    for side, step in found:
        figures = (
            f"{step.seconds:.1f} | {step.cpu:.1f} | {step.memory:.0f} | {step.own_cpu:.1f} | {step.own_memory:.0f}"
        )
        yield f"| {step.autoscaler} | {step.name} | {side} | {step.nodes} | {figures} |"


def main() -> None:
    """Run the rows and print the table."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--a", default="", metavar="COMMAND")
    parser.add_argument("--b", default="", metavar="COMMAND")
    parser.add_argument("--rows", default=",".join(ROWS), help=",".join(ROWS))
    parser.add_argument("--pods", type=int, default=300)
    options = parser.parse_args()
    rows = options.rows.split(",")
    if unknown := set(rows) - ROWS.keys():
        parser.error(f"unknown rows: {', '.join(sorted(unknown))}")
    end_on_sigterm()
    found: list[tuple[str, Any]] = []
    for row in rows:
        for side in "ab":
            if command := getattr(options, side):
                for step in measure(command, row, options.pods):
                    print(side, step, file=sys.stderr, flush=True)
                    found.append((side.upper(), step))
    print("\n".join(table(found)))
