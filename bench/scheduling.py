"""How long it takes to register nodes, and to schedule pods on them until they run, all of a cluster in this process.

    .venv/bin/python -m bench.scheduling --nodes 5000 --pods 10000

The pods belong to one Service (`--kinds` for more), so that they are spread by default. Prints one JSON line: seconds
and CPU seconds of this process for the nodes to register, for the pods to be made, to have nodes, and to run.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import logging
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path

from steersman.api.core.v1 import (
    Container,
    Namespace,
    Pod,
    PodSpec,
    ResourceRequirements,
    Service,
    ServicePort,
    ServiceSpec,
)
from steersman.api.meta.v1 import ObjectMeta
from steersman.authentication.user import UserInfo
from steersman.client.informer import Informers
from steersman.client.resources import NAMESPACES, NODES, PODS, SERVICES
from steersman.cluster.cluster import Cluster
from steersman.cluster.configuration import Configuration, NodeGroup
from steersman.controlplane.options import Options

ZONES = 3
AT_ONCE = 64
NAMESPACE = "load"


def pod_of(number: int, kind: int) -> Pod:
    """A pod that asks for 100m and 128 Mi."""
    resources = ResourceRequirements(requests={"cpu": "100m", "memory": "128Mi"})
    containers = [Container(name="c", image="registry.example/app:1", resources=resources)]
    spec = PodSpec(containers=containers, automount_service_account_token=False)
    return Pod(metadata=ObjectMeta(name=f"pod-{number:05}", namespace=NAMESPACE, labels=_labels(kind)), spec=spec)


def _labels(kind: int) -> dict[str, str]:
    return {"app": f"app-{kind}"}


async def each(count: int, work: Callable[[int], Awaitable[object]]) -> None:
    """Does something for each number, some at once."""
    numbers = iter(range(count))

    async def worker() -> None:
        for number in numbers:
            await work(number)

    async with asyncio.TaskGroup() as group:
        for _ in range(AT_ONCE):
            group.create_task(worker())


async def until(look: Callable[[], bool]) -> None:
    """Waits, looking now and then."""
    while not look():  # noqa: ASYNC110 - nothing tells of it
        await asyncio.sleep(0.2)


@contextlib.contextmanager
def measured(found: dict[str, object], name: str) -> Iterator[None]:
    """Seconds, and CPU seconds of this process."""
    began, cpu = time.monotonic(), time.process_time()
    yield
    found[name] = {"seconds": round(time.monotonic() - began, 2), "cpu": round(time.process_time() - cpu, 2)}


def configuration(nodes: int) -> Configuration:
    """Nodes in three zones."""
    groups = []
    for zone in range(ZONES):
        count = nodes // ZONES + (zone < nodes % ZONES)
        labels = {"topology.kubernetes.io/zone": f"zone-{zone}"}
        groups.append(NodeGroup(name=f"node-{zone}", count=count, labels=labels))
    return Configuration(tuple(groups))


async def run(nodes: int, pods: int, kinds: int, folder: Path) -> Mapping[str, object]:
    """The figures."""
    found: dict[str, object] = {"nodes": nodes, "pods": pods, "kinds": kinds}
    cluster = Cluster(Options(data_dir=folder, storage="memory", listen=False), configuration(nodes))
    with measured(found, "nodes"):
        await cluster.start()
        client = cluster.client(UserInfo("admin", groups=("system:masters",)), "bench")
        informers = Informers(client)
        of_nodes, of_pods = informers.of(NODES), informers.of(PODS)
        informers.start()
        await until(lambda: len(of_nodes) >= nodes and not any(node.spec.taints for node in of_nodes.list()))
    await client.create(NAMESPACES, Namespace(metadata=ObjectMeta(name=NAMESPACE)))
    for kind in range(kinds):
        spec = ServiceSpec(selector=_labels(kind), ports=[ServicePort(port=80)])
        metadata = ObjectMeta(name=f"app-{kind}", namespace=NAMESPACE)
        await client.create(SERVICES, Service(metadata=metadata, spec=spec))
    await asyncio.sleep(1)  # until the namespace has its service account

    async def make_pod(number: int) -> None:
        await client.create(PODS, pod_of(number, number % kinds))

    with measured(found, "running"):
        with measured(found, "made"):
            await each(pods, make_pod)
        with measured(found, "have_nodes_after_that"):
            await until(lambda: sum(bool(pod.spec.node_name) for pod in of_pods.list(NAMESPACE)) >= pods)
        await until(lambda: sum(pod.status.phase == "Running" for pod in of_pods.list(NAMESPACE)) >= pods)
    by_node = Counter(pod.spec.node_name for pod in of_pods.list(NAMESPACE))
    found["nodes_used"], found["most_on_a_node"] = len(by_node), max(by_node.values())
    await informers.stop()
    await cluster.stop()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=10_000)
    parser.add_argument("--kinds", type=int, default=1)
    parser.add_argument("--profile", default="", help="write a profile of cProfile there")
    given = parser.parse_args()
    logging.basicConfig(level=logging.WARNING)
    with tempfile.TemporaryDirectory() as folder:
        work = run(given.nodes, given.pods, given.kinds, Path(folder))
        if given.profile:
            import cProfile

            profile = cProfile.Profile()
            found = profile.runcall(asyncio.run, work)
            profile.dump_stats(given.profile)
        else:
            found = asyncio.run(work)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
