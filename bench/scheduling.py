"""Time to register nodes, and to schedule pods until they run, in a whole cluster in this process.

    .venv/bin/python -m bench.scheduling --nodes 5000 --pods 10000
    .venv/bin/python -m bench.scheduling --scheduler-only

With `--scheduler-only` there are but a server and the scheduler: nodes are objects, and pods have nodes at the end. The
pods belong to one Service (`--kinds` for more), so that they are spread by default. Prints one JSON line: seconds and
CPU seconds of this process for the nodes to register, for the pods to be made, to have nodes, and to run.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import logging
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path

from steersman.api.core.v1 import (
    Container,
    Namespace,
    Node,
    Pod,
    PodSpec,
    ResourceRequirements,
    Service,
    ServicePort,
    ServiceSpec,
)
from steersman.api.meta.v1 import ObjectMeta
from steersman.authentication.user import UserInfo
from steersman.client.client import Client
from steersman.client.in_process import InProcessTransport
from steersman.client.informer import Informer, Informers
from steersman.client.resources import NAMESPACES, NODES, PODS, SERVICES
from steersman.cluster.cluster import Cluster
from steersman.cluster.components import SCHEDULER
from steersman.cluster.configuration import Configuration, NodeGroup
from steersman.controlplane.options import Options
from steersman.scheduler.scheduler import Scheduler
from steersman.testing import Environment

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
    print(name, found[name], file=sys.stderr, flush=True)


def configuration(nodes: int) -> Configuration:
    """Nodes in three zones."""
    groups = []
    for zone in range(ZONES):
        count = nodes // ZONES + (zone < nodes % ZONES)
        labels = {"topology.kubernetes.io/zone": f"zone-{zone}"}
        groups.append(NodeGroup(name=f"node-{zone}", count=count, labels=labels))
    return Configuration(tuple(groups))


async def run(nodes: int, pods: int, kinds: int, folder: Path) -> Mapping[str, object]:
    """The figures of a whole cluster."""
    found: dict[str, object] = {"nodes": nodes, "pods": pods, "kinds": kinds}
    cluster = Cluster(Options(data_dir=folder, storage="memory", listen=False), configuration(nodes))
    with measured(found, "registered"):
        await cluster.start()
        client = cluster.client(UserInfo("admin", groups=("system:masters",)), "bench")
        informers = Informers(client)
        of_nodes = informers.for_resource(NODES)
        informers.start()
        await until(lambda: len(of_nodes) >= nodes and not any(node.spec.taints for node in of_nodes.list()))
    await load(client, informers.for_resource(PODS), pods, kinds, found, running=True)
    await informers.stop()
    await cluster.stop()
    return found


async def run_scheduler(nodes: int, pods: int, kinds: int) -> Mapping[str, object]:
    """The figures of a server and a scheduler."""
    found: dict[str, object] = {"nodes": nodes, "pods": pods, "kinds": kinds}
    async with Environment() as environment:
        server = environment.plane.server
        assert server is not None

        def client_of(user: UserInfo, manager: str) -> Client:
            return Client(InProcessTransport(server.handler, environment.plane.token_of(user)), manager)

        of_scheduler = client_of(UserInfo(f"system:{SCHEDULER}"), SCHEDULER)
        client = client_of(UserInfo("admin", groups=("system:masters",)), "bench")
        informers = Informers(of_scheduler)
        scheduler = Scheduler(of_scheduler, informers)
        await scheduler.start()
        informers.start()
        with measured(found, "registered"):
            await each(nodes, lambda number: make_node(client, number))
            await until(lambda: scheduler.cluster.size >= nodes)
        await load(client, informers.for_resource(PODS), pods, kinds, found, running=False)
        await scheduler.stop()
        await informers.stop()
    return found


async def make_node(client: Client, number: int) -> None:
    """A node that is only an object."""
    name = f"node-{number:05}"
    labels = {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": f"zone-{number % ZONES}"}
    node = Node(metadata=ObjectMeta(name=name, labels=labels))
    node.status.allocatable = node.status.capacity = {"cpu": "32", "memory": "256Gi", "pods": "110"}
    made = await client.create(NODES, node)
    if made.spec.taints:
        made.spec.taints = []
        await client.update(NODES, made)


async def load(
    client: Client, of_pods: Informer[Pod], pods: int, kinds: int, found: dict[str, object], *, running: bool
) -> None:
    """Makes the pods, and waits for them."""
    await client.create(NAMESPACES, Namespace(metadata=ObjectMeta(name=NAMESPACE)))
    for kind in range(kinds):
        spec = ServiceSpec(selector=_labels(kind), ports=[ServicePort(port=80)])
        metadata = ObjectMeta(name=f"app-{kind}", namespace=NAMESPACE)
        await client.create(SERVICES, Service(metadata=metadata, spec=spec))
    await asyncio.sleep(1)  # until the namespace has its service account

    async def make_pod(number: int) -> None:
        await client.create(PODS, pod_of(number, number % kinds))

    with measured(found, "all"):
        with measured(found, "made"):
            await each(pods, make_pod)
        with measured(found, "have_nodes_after_that"):
            await until(lambda: sum(bool(pod.spec.node_name) for pod in of_pods.list(NAMESPACE)) >= pods)
        if running:
            await until(lambda: sum(pod.status.phase == "Running" for pod in of_pods.list(NAMESPACE)) >= pods)
    by_node = Counter(pod.spec.node_name for pod in of_pods.list(NAMESPACE))
    found["nodes_used"], found["most_on_a_node"] = len(by_node), max(by_node.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=10_000)
    parser.add_argument("--kinds", type=int, default=1)
    parser.add_argument("--scheduler-only", action="store_true")
    parser.add_argument("--profile", default="", help="write a profile of cProfile there")
    options = parser.parse_args()
    logging.basicConfig(level=logging.WARNING)
    with tempfile.TemporaryDirectory() as folder:
        work = (
            run_scheduler(options.nodes, options.pods, options.kinds)
            if options.scheduler_only
            else run(options.nodes, options.pods, options.kinds, Path(folder))
        )
        if options.profile:
            import cProfile

            profile = cProfile.Profile()
            found = profile.runcall(asyncio.run, work)
            profile.dump_stats(options.profile)
        else:
            found = asyncio.run(work)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
