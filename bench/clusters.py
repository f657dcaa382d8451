#!/usr/bin/env python3
"""Two clusters side by side: how long things take in them, and what that costs.

    python bench/reference/reference build --cluster
    python -m bench.clusters --a 'python bench/reference/reference up --nodes {nodes}' \\
        --b 'python bench/serve up --nodes {nodes}' [--rows run,deployment,namespace,idle,...] [--rounds 3]

The commands are such as side_by_side.py takes, with `{nodes}` where they are told how many nodes to have. Each row has
a fresh cluster, and only one runs at a time. Prints a table: seconds on the clock, CPU seconds of all processes of the
cluster, and their memory at the end (RSS, MiB); ratios are B over A, from medians over the rounds.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

from bench.side_by_side import end, start
from steersman.api.apps.v1 import Deployment
from steersman.api.core.v1 import Pod
from steersman.client.api_resource import APIResource
from steersman.client.client import Client
from steersman.client.errors import is_not_found
from steersman.client.informer import Informers
from steersman.client.over_tls import TLSTransport
from steersman.client.resources import DEPLOYMENTS, NAMESPACES, NODES, PODS
from steersman.machinery.errors.status import StatusError

PATIENCE: Final = 900.0
AT_ONCE: Final = 32
_TICK: Final = os.sysconf("SC_CLK_TCK")
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")


@dataclass
class Processes:
    """The processes of a cluster: those that it named, and their children."""

    roots: Mapping[str, int]

    def each(self) -> Iterator[list[str]]:
        """The fields of /proc/PID/stat behind the name of the program."""
        found: dict[int, list[str]] = {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdecimal():
                try:
                    found[int(entry.name)] = (entry / "stat").read_text().rpartition(") ")[2].split()
                except OSError:
                    continue  # it has ended
        family = set(self.roots.values())
        while more := {pid for pid, fields in found.items() if int(fields[1]) in family} - family:
            family |= more
        yield from (found[pid] for pid in family if pid in found)

    def cpu(self) -> float:
        """CPU seconds, those of children that have ended too."""
        return sum(sum(map(int, fields[11:15])) for fields in self.each()) / _TICK

    def memory(self) -> float:
        """RSS in MiB."""
        return sum(int(fields[21]) for fields in self.each()) * _PAGE / 2**20


@dataclass
class Figures:
    """Costs of a row."""

    seconds: float = 0.0
    cpu: float = 0.0
    memory: float = 0.0


@dataclass
class Running:
    """A cluster, and a client of it."""

    client: Client
    processes: Processes
    began: float
    """Start of its command, on the monotonic clock."""
    informers: Informers = field(init=False)

    def __post_init__(self) -> None:
        self.informers = Informers(self.client)

    @contextmanager
    def measured(self, figures: Figures) -> Iterator[None]:
        """Time, processor time; memory at the end."""
        began, cpu = time.monotonic(), self.processes.cpu()
        yield
        figures.seconds, figures.cpu = time.monotonic() - began, self.processes.cpu() - cpu
        figures.memory = self.processes.memory()


async def until(look: Callable[[], bool], what: str) -> None:
    """Waits, looking now and then. Raises TimeoutError."""
    limit = time.monotonic() + PATIENCE
    while not look():
        if time.monotonic() > limit:
            raise TimeoutError(what)
        await asyncio.sleep(0.02)


async def at_once(work: Callable[..., Awaitable[object]], arguments: Iterable[tuple[Any, ...]]) -> None:
    """Does something for each, some at the same time."""
    waiting = iter(arguments)

    async def worker() -> None:
        for each in waiting:
            await work(*each)

    async with asyncio.TaskGroup() as group:
        for _ in range(AT_ONCE):
            group.create_task(worker())


def template(app: str) -> dict[str, Any]:
    """A pod template."""
    asked = {"cpu": "10m", "memory": "16Mi"}
    container = {"name": "c", "image": "registry.example/app:1", "resources": {"requests": asked}}
    return {"metadata": {"labels": {"app": app}}, "spec": {"containers": [container]}}


async def make(client: Client, resource: APIResource[Any], namespace: str, obj: dict[str, Any]) -> None:
    """Makes an object of plain data, again and again while the namespace has no account yet."""
    plain = replace(resource, type=dict)
    limit = time.monotonic() + PATIENCE
    while True:
        try:
            await client.create(plain, obj, namespace)
        except StatusError as error:
            if error.code != 403 or time.monotonic() > limit:
                raise
            await asyncio.sleep(0.01)
        else:
            return


def _running(pods: Iterable[Pod]) -> int:
    return sum(pod.status.phase == "Running" for pod in pods)


async def run_a_pod(cluster: Running) -> Figures:
    """From the start of the cluster until a first pod runs."""
    pods = cluster.informers.for_resource(PODS)
    cluster.informers.start()
    await make(cluster.client, PODS, "default", {"metadata": {"name": "nginx"}, "spec": template("nginx")["spec"]})
    await until(lambda: _running(pods.list("default")) == 1, "the pod runs")
    return Figures(time.monotonic() - cluster.began, cluster.processes.cpu(), cluster.processes.memory())


async def nodes_are_there(cluster: Running, count: int) -> None:
    """Until nodes are ready, and may be used."""
    nodes = cluster.informers.for_resource(NODES)
    cluster.informers.start()

    def ready() -> bool:
        found = nodes.list()
        return len(found) >= count and all(
            not node.spec.taints
            and any(each.type == "Ready" and each.status == "True" for each in node.status.conditions)
            for node in found
        )

    await until(ready, "the nodes are ready")


async def deploy(cluster: Running, replicas: int) -> None:
    """Makes a Deployment; until it is available."""
    deployments = cluster.informers.for_resource(DEPLOYMENTS)
    cluster.informers.start()
    await make(
        cluster.client,
        DEPLOYMENTS,
        "default",
        {
            "metadata": {"name": "web"},
            "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": template("web")},
        },
    )

    def available() -> bool:
        found: Deployment | None = deployments.get("default", "web")
        return found is not None and found.status.available_replicas == replicas

    await until(available, "the Deployment is available")


async def deployment(cluster: Running) -> Figures:
    """A Deployment of 1,000 on 100 nodes."""
    figures = Figures()
    await nodes_are_there(cluster, 100)
    with cluster.measured(figures):
        await deploy(cluster, 1000)
    return figures


async def idle(cluster: Running) -> Figures:
    """A minute in which nobody asks for anything, with 100 nodes and 1,000 pods."""
    figures = Figures()
    await nodes_are_there(cluster, 100)
    await deploy(cluster, 1000)
    await cluster.informers.stop()
    await asyncio.sleep(20)
    with cluster.measured(figures):
        await asyncio.sleep(60)
    return figures


async def nodes(cluster: Running, count: int) -> Figures:
    """From the start of the cluster until its nodes are ready."""
    await nodes_are_there(cluster, count)
    return Figures(time.monotonic() - cluster.began, cluster.processes.cpu(), cluster.processes.memory())


async def added_nodes(cluster: Running, count: int) -> Figures:
    """Nodes made through the API on a running cluster, until all are ready."""
    figures = Figures()
    await nodes_are_there(cluster, 1)

    def made(number: int) -> Awaitable[None]:
        metadata = {"name": f"added-{number}", "annotations": {"kwok.x-k8s.io/node": "fake"}}
        return make(cluster.client, NODES, "", {"metadata": metadata})

    with cluster.measured(figures):
        await at_once(made, [(number,) for number in range(count)])
        await nodes_are_there(cluster, count + 1)
    return figures


async def idle_nodes(cluster: Running, count: int) -> Figures:
    """A minute in which nobody asks for anything, with nodes and no pods."""
    figures = Figures()
    await nodes_are_there(cluster, count)
    await cluster.informers.stop()
    await asyncio.sleep(20)
    with cluster.measured(figures):
        await asyncio.sleep(60)
    return figures


async def many(cluster: Running, count: int) -> Figures:
    """Pods, two for each node, when all nodes are ready."""
    figures = Figures()
    await nodes_are_there(cluster, count // 2)
    pods = cluster.informers.for_resource(PODS)
    cluster.informers.start()

    def made(number: int) -> Awaitable[None]:
        metadata = {"name": f"pod-{number}", "labels": {"app": "many"}}
        return make(cluster.client, PODS, "default", {**template("many"), "metadata": metadata})

    with cluster.measured(figures):
        await at_once(made, [(number,) for number in range(count)])
        await until(lambda: _running(pods.list("default")) == count, "the pods run")
    return figures


_SELECTOR: Final = {"matchLabels": {"app": "none"}}
_SCALED: Final = {"replicas": 0, "selector": _SELECTOR, "template": template("none")}
_CLAIM: Final = {
    "accessModes": ["ReadWriteOnce"],
    "resources": {"requests": {"storage": "1Gi"}},
    "storageClassName": "",
}
_JOB: Final = {"suspend": True, "template": {"spec": {**template("job")["spec"], "restartPolicy": "Never"}}}
_CRON: Final = {"schedule": "0 0 1 1 *", "suspend": True, "jobTemplate": {"spec": _JOB}}
_SCALER: Final = {"maxReplicas": 2, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "none"}}
_INGRESS: Final = {"defaultBackend": {"service": {"name": "none", "port": {"number": 80}}}}
_ROLE: Final = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "none"}
_KINDS: Final[tuple[tuple[str, str, str, dict[str, Any]], ...]] = (
    ("", "configmaps", "ConfigMap", {"data": {"a": "b"}}),
    ("", "secrets", "Secret", {"stringData": {"a": "b"}}),
    ("", "serviceaccounts", "ServiceAccount", {}),
    ("", "services", "Service", {"spec": {"clusterIP": "None", "selector": {"app": "none"}, "ports": [{"port": 80}]}}),
    ("", "persistentvolumeclaims", "PersistentVolumeClaim", {"spec": _CLAIM}),
    ("", "limitranges", "LimitRange", {"spec": {"limits": []}}),
    ("", "podtemplates", "PodTemplate", {"template": template("none")}),
    (
        "",
        "replicationcontrollers",
        "ReplicationController",
        {"spec": {"replicas": 0, "selector": {"app": "none"}, "template": template("none")}},
    ),
    ("", "pods", "Pod", {"spec": template("pod")["spec"]}),
    ("apps", "deployments", "Deployment", {"spec": _SCALED}),
    ("apps", "replicasets", "ReplicaSet", {"spec": _SCALED}),
    ("apps", "statefulsets", "StatefulSet", {"spec": {**_SCALED, "serviceName": "none"}}),
    ("batch", "jobs", "Job", {"spec": _JOB}),
    ("batch", "cronjobs", "CronJob", {"spec": _CRON}),
    ("autoscaling", "horizontalpodautoscalers", "HorizontalPodAutoscaler", {"spec": _SCALER}),
    ("coordination.k8s.io", "leases", "Lease", {"spec": {"holderIdentity": "nobody"}}),
    ("networking.k8s.io", "ingresses", "Ingress", {"spec": _INGRESS}),
    ("networking.k8s.io", "networkpolicies", "NetworkPolicy", {"spec": {"podSelector": {}}}),
    ("rbac.authorization.k8s.io", "roles", "Role", {"rules": []}),
    ("rbac.authorization.k8s.io", "rolebindings", "RoleBinding", {"roleRef": _ROLE}),
)


async def namespace(cluster: Running) -> Figures:
    """A namespace with 1,000 objects of 20 kinds, deleted until it is gone."""
    figures = Figures()
    await nodes_are_there(cluster, 3)
    await make(cluster.client, NAMESPACES, "", {"metadata": {"name": "full"}})
    each = 1000 // len(_KINDS)

    def made(kind: tuple[str, str, str, dict[str, Any]], number: int) -> Awaitable[None]:
        group, plural, name, obj = kind
        resource = APIResource(group, "v1", plural, name, object)
        return make(cluster.client, resource, "full", {"metadata": {"name": f"n-{number}"}, **obj})

    await at_once(made, [(kind, number) for kind in _KINDS for number in range(each)])
    pods = cluster.informers.for_resource(PODS)
    cluster.informers.start()
    await until(lambda: _running(pods.list("full")) == each, "the pods run")
    await asyncio.sleep(3)
    with cluster.measured(figures):
        await cluster.client.delete(NAMESPACES, "full")
        await gone(cluster.client, "full")
    return figures


async def gone(client: Client, name: str) -> None:
    """Until a namespace is no more."""
    while True:
        try:
            await client.get(NAMESPACES, name)
        except StatusError as error:
            if is_not_found(error):
                return
            raise
        await asyncio.sleep(0.05)


ROWS: Final[dict[str, tuple[int, Callable[[Running], Awaitable[Figures]]]]] = {
    "run": (3, run_a_pod),
    "deployment": (100, deployment),
    "namespace": (3, namespace),
    "idle": (100, idle),
    "nodes": (1000, partial(nodes, count=1000)),
    "added-nodes": (1, partial(added_nodes, count=1000)),
    "idle-nodes": (1000, partial(idle_nodes, count=1000)),
    "pods": (1000, partial(many, count=2000)),
    "many-nodes": (5000, partial(nodes, count=5000)),
    "many-pods": (5000, partial(many, count=10_000)),
}
"""Number of nodes and the measured work, by row."""


def measure(command: str, row: str) -> Figures:
    """One row of one cluster."""
    nodes, work = ROWS[row]
    began = time.monotonic()
    server, reach = start(command.replace("{nodes}", str(nodes)), PATIENCE)
    try:
        with tempfile.TemporaryDirectory(prefix="steersman-bench-") as folder:
            kubeconfig = Path(folder) / "kubeconfig"
            write_kubeconfig(reach, kubeconfig)
            return asyncio.run(with_client(reach, began, work, kubeconfig))
    finally:
        end(server)


T = TypeVar("T")


def write_kubeconfig(reach: dict[str, Any], path: Path) -> None:
    """The kubeconfig of an administrator of a cluster."""
    path.write_text(
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "it",
                "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
                "clusters": [{"name": "it", "cluster": {"server": reach["url"], "certificate-authority": reach["ca"]}}],
                "users": [{"name": "it", "user": {"token": reach["token"]}}],
            }
        )
    )


async def with_client(
    reach: dict[str, Any], began: float, work: Callable[[Running], Awaitable[T]], kubeconfig: Path
) -> T:
    """Does something with a client of a cluster."""
    client = Client(TLSTransport.from_kubeconfig(kubeconfig), "bench")
    cluster = Running(client, Processes(reach["pids"]), began)
    try:
        return await work(cluster)
    finally:
        await cluster.informers.stop()
        await client.aclose()


def table(found: Mapping[str, Mapping[str, list[Figures]]]) -> Iterator[str]:
    """The table in Markdown."""
    yield "| row | seconds A | B | B/A | CPU A | B | B/A | MiB A | B | B/A |"
    yield "|---|" + "--:|" * 9
    for row, sides in found.items():
        cells = []
        for name in ("seconds", "cpu", "memory"):
            a, b = (
                statistics.median(getattr(each, name) for each in sides[side]) if sides[side] else 0 for side in "ab"
            )
            cells += [f"{a:.2f}", f"{b:.2f}", f"{b / a:.2f}" if a and b else "-"]
        yield f"| {row} | " + " | ".join(cells) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--a", default="", metavar="COMMAND")
    parser.add_argument("--b", default="", metavar="COMMAND")
    parser.add_argument("--rows", default="run,deployment,namespace,idle", help=",".join(ROWS))
    parser.add_argument("--rounds", type=int, default=1)
    options = parser.parse_args()
    rows = options.rows.split(",")
    if unknown := set(rows) - ROWS.keys():
        parser.error(f"unknown rows: {', '.join(sorted(unknown))}")
    found: dict[str, dict[str, list[Figures]]] = {row: {"a": [], "b": []} for row in rows}
    for number in range(options.rounds):
        for row in rows:
            for side in "ab" if number % 2 == 0 else "ba":
                if command := getattr(options, side):
                    figures = measure(command, row)
                    print(row, side, figures, file=sys.stderr, flush=True)
                    found[row][side].append(figures)
    print("\n".join(table(found)))


if __name__ == "__main__":
    main()
