"""Nodes that come and go on a simulated cluster: no write to a node that is gone, and no memory that grows.

    python -m tools.node_churn [--nodes 5000] [--rate 20] [--minutes 10] [--pods 500]

`steersman up` gets as many Node objects, and a Deployment of pods. Then the oldest nodes are deleted and others are made,
`--rate` of each a second; deleted names return after some seconds. The audit log has every write to Node objects and
their leases: a write whose request came later than the deletion of its node counts, unless the node was made again.
Afterwards there must be as many leases as nodes, no pods of nodes that are gone, no error in the log, and no growth of
memory from half of the deletions to their end. Exit code 1 if something is not as it must be.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import tempfile
import time
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

from steersman.testing import BlockingClient, ServerProcess

Plain = dict[str, Any]

_AUDITED: Final = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {
            "level": "Metadata",
            "verbs": ["create", "update", "patch", "delete"],
            "resources": [
                {"group": "", "resources": ["nodes", "nodes/status"]},
                {"group": "coordination.k8s.io", "resources": ["leases"]},
            ],
        },
        {"level": "None"},
    ],
}
_ROOM: Final = {"cpu": "8", "memory": "32Gi", "pods": "110"}
_RESTING: Final = 100
"""Deleted names that wait until they return, beyond those of five seconds."""
_GROWTH: Final = 1.1
"""Memory at the end, by that after half of the deletions, from which on it counts as growing."""
_PATIENCE: Final = 180.0
"""Seconds until pods of deleted nodes are gone: the pod garbage collector waits for up to a minute, too."""


@dataclass
class Course:
    """Nodes of a run, in the order of their creation, and memory as it was sampled."""

    client: BlockingClient
    alive: deque[str] = field(default_factory=deque)
    resting: deque[str] = field(default_factory=deque)
    deleted: int = 0

    def make(self, name: str) -> None:
        """Create a node as an autoscaler does."""
        metadata = {"name": name, "annotations": {"kwok.x-k8s.io/node": "fake"}}
        status = {"capacity": _ROOM, "allocatable": _ROOM}
        code, body = self.client.request("POST", "/api/v1/nodes", {"metadata": metadata, "status": status})
        assert code == 201, body
        self.alive.append(name)

    def replace(self) -> None:
        """Delete the oldest node and create another one."""
        gone = self.alive.popleft()
        code, body = self.client.request("DELETE", f"/api/v1/nodes/{gone}")
        assert code == 200, body
        self.deleted += 1
        self.resting.append(gone)
        self.make(self.resting.popleft())


def ready(client: BlockingClient) -> int:
    """Return the number of ready nodes."""
    return sum(
        any(each["type"] == "Ready" and each["status"] == "True" for each in node["status"].get("conditions", ()))
        for node in listed(client, "/api/v1/nodes")
    )


def listed(client: BlockingClient, path: str) -> list[Plain]:
    """Return the objects of a list."""
    code, found = client.json("GET", path)
    assert code == 200, found
    items: list[Plain] = found["items"]
    return items


@dataclass(frozen=True)
class Late:
    """A write to a node that is gone."""

    node: str
    user: str
    verb: str
    resource: str
    code: int
    seconds: float
    """Time from the node's deletion until the request."""


def late_writes(events: Iterable[Plain]) -> Iterator[Late]:
    """Yield the writes to Node objects and their leases after the deletion of the node, from events of an audit log.

    A write in flight as its node is deleted is not late: its request came before the response to the deletion.
    """
    by_name: dict[str, list[tuple[float, Plain]]] = {}
    for event in events:
        reference = event["objectRef"]
        if reference["resource"] == "leases" and reference.get("namespace") != "kube-node-lease":
            continue
        is_end = reference["resource"] == "nodes" and event["verb"] == "delete"
        time_of = event["stageTimestamp" if is_end else "requestReceivedTimestamp"]
        by_name.setdefault(reference.get("name", ""), []).append((datetime.fromisoformat(time_of).timestamp(), event))
    for name, found in by_name.items():
        gone: float | None = None
        for at, event in sorted(found, key=lambda each: each[0]):
            reference = event["objectRef"]
            is_node = reference["resource"] == "nodes" and not reference.get("subresource")
            if is_node and event["verb"] in ("create", "delete") and event["responseStatus"]["code"] < 300:
                gone = at if event["verb"] == "delete" else None
            elif gone is not None and event["verb"] != "delete":
                user, code = event["user"]["username"], event["responseStatus"]["code"]
                yield Late(name, user, event["verb"], reference["resource"], code, at - gone)


def events_of(log: Path) -> Iterator[Plain]:
    """Yield the events of an audit log."""
    with log.open() as lines:
        yield from map(json.loads, lines)


def leftovers(client: BlockingClient) -> Iterator[str]:
    """Yield what is left of nodes that are gone."""
    nodes = {each["metadata"]["name"] for each in listed(client, "/api/v1/nodes")}
    leases = {
        each["metadata"]["name"]
        for each in listed(client, "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases")
    }
    if leases != nodes:
        yield f"{len(leases - nodes)} leases without a node, {len(nodes - leases)} nodes without a lease"
    pods = listed(client, "/api/v1/pods")
    lost = sum(each["spec"].get("nodeName", "") not in {"", *nodes} for each in pods)
    if lost:
        yield f"{lost} pods of nodes that are gone"
    waiting = sum(each["status"]["phase"] != "Running" for each in pods)
    if waiting:
        yield f"{waiting} pods that do not run"


def deployment(pods: int) -> Plain:
    """Return a Deployment of pods."""
    container = {"name": "c", "image": "registry.example/app:1", "resources": {"requests": {"cpu": "1"}}}
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    return {
        "metadata": {"name": "web"},
        "spec": {"replicas": pods, "selector": {"matchLabels": labels}, "template": template},
    }


def run(server: ServerProcess, nodes: int, rate: float, minutes: float, pods: int) -> list[str]:
    """Play nodes that come and go. Return what is not as it must be."""
    course = Course(server.client(timeout=60.0))
    began = time.monotonic()
    for number in range(nodes):
        course.make(f"churn-{number}")
    course.resting.extend(f"churn-{nodes + number}" for number in range(int(rate * 5) + _RESTING))
    while ready(course.client) < nodes:
        time.sleep(0.5)
    print(f"{nodes} nodes ready after {time.monotonic() - began:.1f} s", flush=True)
    code, body = course.client.request("POST", "/apis/apps/v1/namespaces/default/deployments", deployment(pods))
    assert code == 201, body
    samples = churn(server, course, rate, minutes)
    return ended(server, course, samples)


class Sample(NamedTuple):
    """Memory of the cluster after a number of deletions."""

    deleted: int
    resident: int
    """Bytes."""


def churn(server: ServerProcess, course: Course, rate: float, minutes: float) -> list[Sample]:
    """Replace nodes at a rate. Return the memory, sampled 20 times."""
    began, samples, length = time.monotonic(), [Sample(0, server.resident_bytes())], minutes * 60
    while (passed := time.monotonic() - began) < length:
        if passed >= len(samples) * length / 20:
            samples.append(Sample(course.deleted, server.resident_bytes()))
            print(f"{passed:.0f} s: {course.deleted} deleted, {samples[-1].resident >> 20} MiB", flush=True)
        if course.deleted < passed * rate:
            course.replace()
        else:
            time.sleep(0.005)
    samples.append(Sample(course.deleted, server.resident_bytes()))
    return samples


def ended(server: ServerProcess, course: Course, samples: list[Sample]) -> list[str]:
    """Wait until the cluster is at rest. Return what is not as it must be."""
    began, found = time.monotonic(), ["never looked"]
    while found and time.monotonic() - began < _PATIENCE:
        time.sleep(1)
        found = list(leftovers(course.client))
    usable = ready(course.client)
    half = next(each.resident for each in samples if each.deleted * 2 >= course.deleted)
    print(
        f"{course.deleted} nodes deleted and made; {usable} ready, at rest after {time.monotonic() - began:.0f} s; "
        f"{half >> 20} MiB after half of them, {samples[-1].resident >> 20} MiB at the end",
        flush=True,
    )
    if usable != len(course.alive) + 1:
        found.append(f"{usable} of {len(course.alive) + 1} nodes are ready")
    if samples[-1].resident > half * _GROWTH:
        found.append("memory grows")
    return found


def main() -> None:
    """Run it, and tell what is not as it must be."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--rate", type=float, default=20, metavar="A_SECOND")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--pods", type=int, default=500)
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the cluster ends with it
    with tempfile.TemporaryDirectory(prefix="steersman-churn-") as name:
        folder = Path(name)
        (policy := folder / "policy.json").write_text(json.dumps(_AUDITED))
        log = folder / "audit.log"
        flags = [f"--audit-policy-file={policy}", f"--audit-log-path={log}", "--event-ttl=1m0s"]
        with ServerProcess(folder / "data", *flags, verb="up") as server:
            wrong = run(server, options.nodes, options.rate, options.minutes, options.pods)
            late = list(late_writes(events_of(log)))
            errors = server.errors.read_text()
    for each in late[:20]:
        print(each)
    print(f"{len(late)} writes to nodes that are gone")
    failed = [line for line in errors.splitlines() if line.startswith("E ")]
    print("\n".join([*wrong, *failed[:20]]))
    sys.exit(1 if wrong or late or failed else 0)


if __name__ == "__main__":
    main()
