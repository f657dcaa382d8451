"""How long it takes to register nodes, and to schedule pods on them until they run, with everything in this process.

    .venv/bin/python -m bench.scheduling --nodes 5000 --pods 10000

The pods are those of one ReplicaSet (`--kinds` for more), so that they are spread by default. Prints one JSON line:
seconds and CPU seconds of this process for the nodes, for the pods until all have nodes, and until all run.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import logging
import time
from collections.abc import Callable, Iterator, Mapping

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
from steersman.client.informer import Informers
from steersman.client.resources import NAMESPACES, NODES, PODS, SERVICES
from steersman.cluster.cluster import SCHEDULER
from steersman.scheduler.scheduler import Scheduler
from steersman.testing import Environment

ZONES = 3
AT_ONCE = 64


def node_of(number: int) -> Node:
    """A node with 32 CPUs and 256 GiB in one of three zones."""
    name = f"node-{number:05}"
    labels = {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": f"zone-{number % ZONES}"}
    node = Node(metadata=ObjectMeta(name=name, labels=labels))
    node.status.allocatable = node.status.capacity = {"cpu": "32", "memory": "256Gi", "pods": "110"}
    return node


def pod_of(number: int, kind: int) -> Pod:
    """A pod that asks for 100m and 128 Mi."""
    resources = ResourceRequirements(requests={"cpu": "100m", "memory": "128Mi"})
    spec = PodSpec(containers=[Container(name="c", image="registry.example/app:1", resources=resources)])
    labels = {"app": f"app-{kind}"}
    return Pod(metadata=ObjectMeta(name=f"pod-{number:05}", namespace="load", labels=labels), spec=spec)


async def each(count: int, work: Callable[[int], object]) -> None:
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
        await asyncio.sleep(0.05)


@contextlib.contextmanager
def measured(found: dict[str, object], name: str) -> Iterator[None]:
    """Seconds, and CPU seconds of this process."""
    began, cpu = time.monotonic(), time.process_time()
    yield
    found[name] = {"seconds": round(time.monotonic() - began, 2), "cpu": round(time.process_time() - cpu, 2)}


async def run(nodes: int, pods: int, kinds: int) -> Mapping[str, object]:
    found: dict[str, object] = {"nodes": nodes, "pods": pods, "kinds": kinds}
    async with Environment() as environment:
        server = environment.plane.server
        assert server is not None

        def client(user: UserInfo, manager: str) -> Client:
            return Client(InProcessTransport(server.handler, environment.plane.token_of(user)), manager)

        of_scheduler = client(UserInfo("system:kube-scheduler"), SCHEDULER)
        admin = client(UserInfo("admin", groups=("system:masters",)), "bench")
        informers = Informers(of_scheduler)
        scheduler = Scheduler(of_scheduler, informers)
        await scheduler.start()
        informers.start()
        await admin.create(NAMESPACES, Namespace(metadata=ObjectMeta(name="load")))
        for kind in range(kinds):
            spec = ServiceSpec(selector={"app": f"app-{kind}"}, ports=[ServicePort(port=80)])
            await admin.create(SERVICES, Service(metadata=ObjectMeta(name=f"app-{kind}", namespace="load"), spec=spec))

        async def make_node(number: int) -> None:
            node = node_of(number)
            made = await admin.create(NODES, node)
            if made.spec.taints:
                made.spec.taints = []
                await admin.update(NODES, made)

        async def make_pod(number: int) -> None:
            await admin.create(PODS, pod_of(number, number % kinds))

        with measured(found, "register"):
            await each(nodes, make_node)
            await until(lambda: scheduler.cluster.size >= nodes)
        with measured(found, "create_and_schedule"):
            await each(pods, make_pod)
            informer = informers.of(PODS)
            await until(lambda: sum(bool(pod.spec.node_name) for pod in informer.list()) >= pods)
        by_node: dict[str, int] = {}
        for pod in informer.list():
            by_node[pod.spec.node_name] = by_node.get(pod.spec.node_name, 0) + 1
        found["most_on_a_node"] = max(by_node.values())
        found["nodes_used"] = len(by_node)
        await scheduler.stop()
        await informers.stop()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=10_000)
    parser.add_argument("--kinds", type=int, default=1)
    parser.add_argument("--profile", default="", help="write a profile of cProfile there")
    given = parser.parse_args()
    logging.basicConfig(level=logging.WARNING)
    if given.profile:
        import cProfile

        profile = cProfile.Profile()
        profile.enable()
    found = asyncio.run(run(given.nodes, given.pods, given.kinds))
    if given.profile:
        profile.disable()
        profile.dump_stats(given.profile)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
