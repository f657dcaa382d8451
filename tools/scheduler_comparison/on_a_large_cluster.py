"""Compares where the real kube-scheduler and ours put pods on a large cluster that is opened from a dump.

    python -m tools.scheduler_comparison.on_a_large_cluster --server COMMAND --scheduler KUBE_SCHEDULER
        [--nodes 500] [--pods 10000] [--further 200] [--seed 1]

The dump is that of `bench.opening`, opened by `steersman up --from`. The reference gets the objects of the opened
cluster. Then it gets one pod after the other: the node that kube-scheduler chooses must be one of those that ours likes
best, and the pod is put there on both sides. Both compare all nodes (`percentageOfNodesToScore: 100`). COMMAND starts a
kube-apiserver and prints one JSON line with url, ca and token. Exit code 1 for a difference.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import tempfile
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

from bench.opening.dump import NAMESPACES, Maker, write_dump
from steersman.api.core.v1 import Pod
from steersman.client.api_resource import APIResource
from steersman.client.resources import NAMESPACES as NAMESPACE_OBJECTS
from steersman.client.resources import NODES, POD_DISRUPTION_BUDGETS, PODS, REPLICA_SETS, SERVICES, STATEFUL_SETS
from steersman.machinery.codec.serializer import from_plain
from steersman.scheduler.cycle import NoPlacement
from steersman.scheduler.inquiry.simulation import Simulation
from steersman.testing import ServerProcess
from tools.differential.server import Client, Server
from tools.scheduler_comparison.cases import Plain
from tools.scheduler_comparison.command import Reference, running_scheduler

_COMPARED: Final[tuple[APIResource[Any], ...]] = (
    NAMESPACE_OBJECTS,
    NODES,
    SERVICES,
    REPLICA_SETS,
    STATEFUL_SETS,
    POD_DISRUPTION_BUDGETS,
    PODS,
)
"""Resources on which decisions depend, in the order in which the reference gets their objects."""
_AT_ONCE: Final = 8
_PATIENCE: Final = 120.0
_OPENING: Final = 600.0
"""Seconds in which the dump is opened, and in which a list of its objects is read."""
_ZONE: Final = "topology.kubernetes.io/zone"
_OF_SERVER: Final = ("uid", "resourceVersion", "creationTimestamp", "managedFields", "generation", "ownerReferences")
_EXISTING: Final = frozenset({"default", "kube-system", "kube-public", "kube-node-lease"})


def further_pod(chance: random.Random, number: int) -> Plain:
    """Return a pod that needs a node: some are of workloads of the dump, some have demands."""
    namespace = chance.choice(NAMESPACES)
    labels = {"app.kubernetes.io/name": chance.choice(("api", "web", "new")), "app.kubernetes.io/part-of": namespace}
    cpu, memory = chance.choice((("100m", "128Mi"), ("500m", "1Gi"), ("2", "4Gi"), ("8", "16Gi")))
    container: Plain = {
        "name": "main",
        "image": f"registry.example.com/shop/image-{chance.randrange(100)}:v1",
        "resources": {"requests": {"cpu": cpu, "memory": memory}},
    }
    spec: Plain = {"containers": [container], "automountServiceAccountToken": False}
    selector = {"labelSelector": {"matchLabels": {"app.kubernetes.io/part-of": namespace}}}
    kind = chance.choice(("plain", "plain", "spread", "apart", "near", "pinned", "batch", "large"))
    if kind == "spread":
        hard = chance.choice(("DoNotSchedule", "ScheduleAnyway"))
        spec["topologySpreadConstraints"] = [
            {"maxSkew": 50, "topologyKey": _ZONE, "whenUnsatisfiable": hard, **selector}
        ]
    elif kind in ("apart", "near"):
        term = {"topologyKey": "kubernetes.io/hostname" if kind == "apart" else _ZONE, **selector}
        affinity = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 50, "podAffinityTerm": term}]}
        spec["affinity"] = {"podAntiAffinity" if kind == "apart" else "podAffinity": affinity}
    elif kind == "pinned":
        spec["nodeSelector"] = {_ZONE: f"north-{chance.choice('abc')}"}
    elif kind == "batch":
        spec["tolerations"] = [{"key": "dedicated", "value": "batch", "effect": "NoSchedule"}]
    elif kind == "large":
        container["resources"]["requests"]["cpu"] = chance.choice(("40", "100"))
    return {"metadata": {"name": f"further-{number}", "namespace": namespace, "labels": labels}, "spec": spec}


def opened_objects(dump: Path, folder: Path) -> dict[APIResource[Any], list[Plain]]:
    """Open a dump, and return the objects on which decisions depend."""
    server, found = ServerProcess(folder, f"--from={dump}", "--storage=memory", verb="up"), {}
    try:
        server.start(_OPENING)
        with server.client(timeout=_OPENING) as client:
            for resource in _COMPARED:
                code, body = client.json("GET", resource.path())
                assert code == 200, body
                found[resource] = body["items"]
    finally:
        server.kill()
    return found


class Filling:
    """Creation of the opened cluster's objects on the reference, several at once."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def fill(self, objects: dict[APIResource[Any], list[Plain]]) -> None:
        """Create all objects with what decisions depend on."""
        for resource in _COMPARED:
            if resource == NAMESPACE_OBJECTS:
                self._each(objects[resource], self._namespace)
            elif resource == NODES:
                self._each(objects[resource], self._node)
            else:
                self._each([each for each in objects[resource] if _counts(each)], self._maker(resource))

    def _each(self, objects: list[Plain], work: Callable[[Reference, Plain], None]) -> None:
        def part(number: int) -> None:
            client = self._client.another()
            try:
                for each in objects[number::_AT_ONCE]:
                    work(Reference(client), each)
            finally:
                client.close()

        with ThreadPoolExecutor(_AT_ONCE) as threads:
            list(threads.map(part, range(_AT_ONCE)))

    @staticmethod
    def _namespace(reference: Reference, found: Plain) -> None:
        name = found["metadata"]["name"]
        if name not in _EXISTING:
            reference.ask(
                "POST", "/api/v1/namespaces", {"metadata": {"name": name, "labels": found["metadata"]["labels"]}}
            )
        path = f"/api/v1/namespaces/{name}/serviceaccounts"
        reference.ask("POST", path, {"metadata": {"name": "default"}})

    @staticmethod
    def _node(reference: Reference, found: Plain) -> None:
        """Create a node; admission adds a taint for nodes that are not ready, which goes again."""
        path = f"/api/v1/nodes/{found['metadata']['name']}"
        made = reference.ask("POST", "/api/v1/nodes", {"metadata": _own(found)})
        spec = {key: each for key, each in found["spec"].items() if key in ("taints", "unschedulable", "providerID")}
        made = reference.ask("PUT", path, {**made, "spec": spec})
        reference.ask("PUT", f"{path}/status", {**made, "status": found["status"]})

    @staticmethod
    def _maker(resource: APIResource[Any]) -> Callable[[Reference, Plain], None]:
        def make(reference: Reference, found: Plain) -> None:
            body = {"metadata": _own(found), "spec": found["spec"]}
            if resource in (SERVICES, PODS):
                body["spec"] = {
                    key: each for key, each in found["spec"].items() if key not in ("clusterIP", "clusterIPs")
                }
            reference.ask("POST", resource.path(found["metadata"]["namespace"]), body)

        return make


def _own(found: Plain) -> Plain:
    """Return the metadata without what the server sets, and without owners, which do not exist on the reference."""
    return {key: each for key, each in found["metadata"].items() if key not in _OF_SERVER}


def _counts(found: Plain) -> bool:
    """Return False for pods that have ended, and for what the reference makes itself."""
    is_server = found["metadata"]["name"] == "kubernetes"
    return not is_server and found.get("status", {}).get("phase") not in ("Succeeded", "Failed")


async def best_nodes(simulation: Simulation, pod: Pod) -> frozenset[str] | str:
    """Return the nodes with the highest score for a pod, or the message that no node has room."""
    attempt = await simulation.model.cycle.examine(pod)
    if isinstance(attempt, NoPlacement):
        return attempt.message
    scores = {index: sum(each.values()) for index, each in attempt.ranking.scores(attempt.excluded).items()}
    if not scores:
        decided = await simulation.decide(pod)
        assert isinstance(decided, NoPlacement)
        return decided.message
    most = max(scores.values())
    nodes = simulation.model.cluster.nodes
    return frozenset(nodes[index].name for index, score in scores.items() if score == most)


def theirs(reference: Reference, pod: Plain) -> tuple[str, str]:
    """Create a pod on the reference. Return the node that it gets, and the message if it gets none."""
    metadata = pod["metadata"]
    path = f"/api/v1/namespaces/{metadata['namespace']}/pods"
    reference.ask("POST", path, pod)
    end = time.monotonic() + _PATIENCE
    while time.monotonic() < end:
        found = reference.ask("GET", f"{path}/{metadata['name']}")
        if found["spec"].get("nodeName"):
            return found["spec"]["nodeName"], ""
        for each in found.get("status", {}).get("conditions", ()):
            if each["type"] == "PodScheduled":
                return "", each["message"]
        time.sleep(0.02)
    raise RuntimeError(f"{metadata['name']}: nothing became of the pod")


async def compare(reference: Reference, simulation: Simulation, pods: Iterable[Plain]) -> int:
    """Return the number of pods about which both disagree, after printing them."""
    different = 0
    for pod in pods:
        made = reference.ask("POST", f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods?dryRun=All", pod)
        ours = await best_nodes(simulation, from_plain(Pod, made))
        node, message = theirs(reference, pod)
        agree = node in ours if node and not isinstance(ours, str) else message == ours
        if not agree:
            different += 1
            print(
                f"{pod['metadata']['name']}: theirs {node or message}, ours {ours if isinstance(ours, str) else sorted(ours)}"
            )
        if node:
            made["spec"]["nodeName"] = node
            simulation.put(PODS, from_plain(Pod, made))
    return different


def main() -> int:
    """Open a dump, fill the reference, and compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", required=True, help="starts a kube-apiserver, prints a JSON line")
    parser.add_argument("--scheduler", required=True, type=Path, help="the real kube-scheduler")
    parser.add_argument("--nodes", type=int, default=500)
    parser.add_argument("--pods", type=int, default=10_000)
    parser.add_argument("--further", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    chance = random.Random(options.seed)
    pods = [further_pod(chance, number) for number in range(options.further)]
    with tempfile.TemporaryDirectory(prefix="steersman-comparison-") as folder:
        dump = Path(folder) / "dump.json"
        write_dump(dump, Maker(options.seed, options.nodes, options.pods).objects())
        objects = opened_objects(dump, Path(folder) / "data")
    with Server(options.server) as client:
        Filling(client).fill(objects)
        simulation = Simulation({each: [from_plain(each.type, one) for one in objects[each]] for each in _COMPARED})
        with running_scheduler(client, options.scheduler, share=100):
            different = asyncio.run(compare(Reference(client), simulation, pods))
    print(f"{len(pods)} pods on {len(objects[NODES])} nodes with {len(objects[PODS])} pods, {different} different")
    return 1 if different else 0


if __name__ == "__main__":
    raise SystemExit(main())
