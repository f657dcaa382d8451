"""Cost of the Node authorizer's graph: `python -m bench.node_graph`.

Feeds it events of pods as the cache would, made on the way, and prints the processor time of each, the memory of a pod
and the time of a question. A pod has an account, three secrets, three ConfigMaps and, one in four, a claim of its own
with a volume.
"""

from __future__ import annotations

import argparse
import gc
import os
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from statistics import median
from types import SimpleNamespace
from typing import Any

from steersman.api.core.v1 import PersistentVolume, Pod
from steersman.authorization.node.graph import Graph
from steersman.authorization.node.references import SECRET, PodReferences, pod_references, volume_references
from steersman.controlplane.feed import Feed
from steersman.machinery.codec.serializer import encode, from_plain
from steersman.storage.cache.entry import Entry, WatchEvent

_PREFIX = "/registry/pods/"
_PODS_OF_A_NAMESPACE = 1_000
_BATCH = 100


def a_pod(number: int, nodes: int, phase: str) -> dict[str, Any]:
    """A pod of a Deployment with what such pods have, some 3.5 KB; without `nodes` it has none yet."""
    application = number // 20 % 50
    name = f"application-{application}-6d4b75cb6d-{number:05x}"
    environment = [
        {"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": f"database-{application}", "key": "password"}}},
        {"name": "LEVEL", "valueFrom": {"configMapKeyRef": {"name": f"settings-{application}", "key": "level"}}},
        *({"name": f"PLAIN_{each}", "value": "a value that is no reference"} for each in range(10)),
    ]
    volumes: list[dict[str, Any]] = [
        {"name": "tls", "secret": {"secretName": f"tls-{application}"}},
        {"name": "files", "configMap": {"name": f"files-{application}"}},
        {
            "name": "token",
            "projected": {
                "sources": [{"serviceAccountToken": {"path": "token"}}, {"configMap": {"name": "kube-root-ca.crt"}}]
            },
        },
    ]
    if number % 4 == 0:
        volumes.append({"name": "data", "persistentVolumeClaim": {"claimName": f"data-{name}"}})
    containers = [
        {
            "name": each,
            "image": "registry.example.com/application:1.2.3",
            "env": environment,
            "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}},
            "volumeMounts": [{"name": volume["name"], "mountPath": f"/mnt/{volume['name']}"} for volume in volumes],
        }
        for each in ("main", "side")
    ]
    spec = {
        **({"nodeName": f"node-{number % nodes:05}"} if nodes else {}),
        "serviceAccountName": f"account-{application}",
        "imagePullSecrets": [{"name": "registry"}],
        "containers": containers,
        "volumes": volumes,
    }
    metadata = {"name": name, "namespace": f"namespace-{number // _PODS_OF_A_NAMESPACE}", "uid": f"{number:036}"}
    return {"metadata": metadata, "spec": spec, "status": {"phase": phase}}


def events(type: str, pods: int, nodes: int, phase: str) -> Iterator[WatchEvent]:
    """One event of each pod."""
    for number in range(pods):
        plain = a_pod(number, nodes, phase)
        key = f"{_PREFIX}{plain['metadata']['namespace']}/{plain['metadata']['name']}"
        yield WatchEvent(type, Entry(key, encode(from_plain(Pod, plain))[1:], number), number)


def resident() -> int:
    """Bytes."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def fed(deliver: Callable[[WatchEvent], None], given: Iterator[WatchEvent]) -> float:
    """Microseconds of processor time of an event, without making it: the median over batches."""
    times: list[float] = []
    while batch := list(islice(given, _BATCH)):
        began = time.process_time_ns()
        for event in batch:
            deliver(event)
        times.append((time.process_time_ns() - began) / len(batch) / 1000)
    return median(times)


def main() -> None:
    """Prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--pods", type=int, default=100_000)
    options = parser.parse_args()
    graph = Graph()

    def put(namespace: str, name: str, pod: PodReferences | None, newer: object) -> None:
        graph.put_pod(namespace, name, pod)

    store: Any = SimpleNamespace(prefix=_PREFIX, cacher=None)

    def of_pod(namespace: str, name: str, body: bytes) -> PodReferences:
        return pod_references(name, b"{" + body, graph.pod(namespace, name))

    feed = Feed(store, of_pod, put, lambda *_: None)
    deliver = feed._follower._deliver
    warm = list(events("ADDED", 1_000, options.nodes, "Pending"))
    print(f"{sum(len(each.entry.body) for each in warm) // len(warm)} bytes a pod")
    before = resident()
    created = fed(deliver, events("ADDED", options.pods, 0, "Pending"))
    bound = fed(deliver, events("MODIFIED", options.pods, options.nodes, "Pending"))
    memory = (resident() - before) / options.pods
    for number in range(0, options.pods, 4):
        graph.put_volume(f"pv-{number}", volume_references(_a_volume(number, options.nodes)))
    changed = fed(deliver, events("MODIFIED", options.pods, options.nodes, "Running"))
    questions = 200_000
    began = time.process_time_ns()
    for number in range(questions):
        graph.names(f"node-{number % options.nodes:05}", SECRET, "namespace-1", "tls-3")
    asked = (time.process_time_ns() - began) / questions / 1000
    deleted = fed(deliver, events("DELETED", options.pods, options.nodes, "Running"))
    print(f"{options.pods} pods on {options.nodes} nodes; microseconds of CPU an event")
    mean = (created + bound + 4 * changed + deleted) / 7
    print(f"created {created:.1f}, bound {bound:.1f}, changed {changed:.1f}, deleted {deleted:.1f}")
    print(f"of a pod that is created, bound, changed four times and deleted: {mean:.1f} an event")
    print(f"{asked:.2f} a question")
    print(f"{memory:.0f} bytes a pod, the follower's included")


def _a_volume(number: int, nodes: int) -> bytes:
    """The volume of a pod's claim, which needs a secret that all of its driver share."""
    metadata = a_pod(number, nodes, "")["metadata"]
    claim = {"namespace": metadata["namespace"], "name": f"data-{metadata['name']}"}
    csi = {"driver": "d", "volumeHandle": "h", "nodeStageSecretRef": {"name": "driver", "namespace": "kube-system"}}
    return encode(from_plain(PersistentVolume, {"metadata": {"name": "v"}, "spec": {"claimRef": claim, "csi": csi}}))


if __name__ == "__main__":
    main()
