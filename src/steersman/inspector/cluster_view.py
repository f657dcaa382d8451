"""Figures of nodes and pods for the page's view of the cluster, kept current by watches while a page reads them."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from typing import Final

import msgspec
from msgspec import Struct, field

from steersman.api.core import v1 as core
from steersman.client.client import Client
from steersman.client.informer import Informer, Key, key_of
from steersman.client.metrics_types import NODE_METRICS
from steersman.client.resources import NODES, PODS
from steersman.client.transport import Unreachable
from steersman.machinery.built_in.pod_resources import pod_requests
from steersman.machinery.errors.status import StatusError
from steersman.machinery.values.quantity import QuantityError, nanos
from steersman.work.periodic import Periodic
from steersman.work.yielding import time_sliced

INTERVAL: Final = 0.1
"""Seconds between two batches of changes for one page."""
_USED_EVERY: Final = 15.0
"""Seconds between two readings of what nodes use."""
_MILLI: Final = 1_000_000
_WHOLE: Final = 1_000_000_000
_SHOWN: Final = ("cpu", "memory")
_ENDED: Final = ("Succeeded", "Failed")
_ZONE: Final = "topology.kubernetes.io/zone"
_ENCODER: Final = msgspec.json.Encoder()


class Amount(Struct, rename="camel"):
    """A resource of a node: CPU in millicores, memory in bytes."""

    allocatable: int = 0
    requested: int = 0
    used: int | None = None


class NodeRow(Struct, rename="camel"):
    """Figures of one node. `problems` are its conditions that tell of trouble; `phases` are its pods by phase."""

    name: str
    ready: bool = False
    cordoned: bool = False
    zone: str = ""
    problems: list[str] = []
    taints: int = 0
    cpu: Amount = field(default_factory=Amount)
    memory: Amount = field(default_factory=Amount)
    most_pods: int = 0
    phases: dict[str, int] = {}


class Changes(Struct, rename="camel"):
    """One line for a page: nodes that are new or have changed, names of nodes that are gone, and pods by phase.

    `unplaced` is the number of pods without a node; `synced` is False until all nodes and pods are known.
    """

    nodes: list[NodeRow]
    gone: list[str]
    phases: dict[str, int]
    unplaced: int
    synced: bool


class _Share(Struct, frozen=True):
    """Share of one pod in the figures."""

    node: str
    phase: str
    cpu: int
    memory: int


class _Node:
    """A node, and the sum of its pods."""

    def __init__(self) -> None:
        self.node: core.Node | None = None
        self.phases: Counter[str] = Counter()
        self.cpu = 0
        self.memory = 0
        self.used: tuple[int, int] | None = None

    def add(self, share: _Share, sign: int) -> None:
        self.phases[share.phase] += sign
        if share.phase not in _ENDED:
            self.cpu += sign * share.cpu
            self.memory += sign * share.memory

    def row(self, name: str, node: core.Node) -> NodeRow:
        """Return the node's figures."""
        allocatable = node.status.allocatable or node.status.capacity
        conditions = {each.type: each.status for each in node.status.conditions}
        used_cpu, used_memory = self.used or (None, None)
        return NodeRow(
            name,
            ready=conditions.get("Ready") == "True",
            cordoned=node.spec.unschedulable,
            zone=node.metadata.labels.get(_ZONE, ""),
            problems=[kind for kind, status in conditions.items() if kind != "Ready" and status == "True"],
            taints=len(node.spec.taints),
            cpu=Amount(_amount(allocatable, "cpu", _MILLI), self.cpu // _MILLI, used_cpu),
            memory=Amount(_amount(allocatable, "memory", _WHOLE), self.memory // _WHOLE, used_memory),
            most_pods=_amount(allocatable, "pods", _WHOLE),
            phases={phase: count for phase, count in self.phases.items() if count > 0},
        )


class ClusterView:
    """Figures of a cluster. The first reader starts the watches, the end of the last one stops them."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._nodes: dict[str, _Node] = {}
        self._shares: dict[Key, _Share] = {}
        self._phases: Counter[str] = Counter()
        self._readers: set[_Reader] = set()
        self._followed: tuple[Informer[core.Node], Informer[core.Pod], Periodic] | None = None

    async def read(self) -> AsyncIterator[list[bytes]]:
        """Yield lines of `Changes`: first all nodes, then what changes, at most one line each INTERVAL seconds."""
        if self._followed is None:
            self._start()
        reader = _Reader(dict.fromkeys(self._nodes))
        self._readers.add(reader)
        try:
            while True:
                await reader.changed.wait()
                reader.changed.clear()
                names, reader.names = reader.names, {}
                yield [_ENCODER.encode(await self._changes(names))]
                await asyncio.sleep(INTERVAL)
        finally:
            self._readers.discard(reader)
            if not self._readers:
                await self._stop()

    async def _changes(self, names: dict[str, None]) -> Changes:
        rows: list[NodeRow] = []
        gone: list[str] = []
        async for name in time_sliced(names):
            found = self._nodes.get(name)
            if found is None or found.node is None:
                gone.append(name)
            else:
                rows.append(found.row(name, found.node))
        unplaced = self._nodes.get("")
        return Changes(
            rows,
            gone,
            {phase: count for phase, count in self._phases.items() if count > 0},
            0 if unplaced is None else sum(n for phase, n in unplaced.phases.items() if phase not in _ENDED),
            self._followed is not None and self._followed[0].has_synced and self._followed[1].has_synced,
        )

    def _start(self) -> None:
        nodes, pods = Informer(self._client, NODES), Informer(self._client, PODS)
        used = Periodic("usage of nodes", self._read_usage, _USED_EVERY, expected=(StatusError, Unreachable))
        self._followed = nodes, pods, used
        nodes.on_change(self._node_changed)
        pods.on_change(self._pod_changed)
        nodes.start()
        pods.start()
        used.start()

    async def _stop(self) -> None:
        """Stop the watches and forget everything."""
        if self._followed is None:
            return
        nodes, pods, used = self._followed
        self._followed = None
        self._nodes.clear()
        self._shares.clear()
        self._phases.clear()
        await nodes.stop()
        await pods.stop()
        await used.stop()

    async def _read_usage(self) -> None:
        """Read what nodes use from the resource metrics API; a cluster without it has no such figures."""
        try:
            found = await self._client.list(NODE_METRICS)
        except StatusError as error:
            if error.code in (403, 404, 503):
                return
            raise
        for each in found.items:
            node = self._nodes.get(each.metadata.name)
            if node is not None:
                usage = _amount(each.usage, "cpu", _MILLI), _amount(each.usage, "memory", _WHOLE)
                if usage != node.used:
                    node.used = usage
                    self._mark(each.metadata.name)

    def _node_changed(self, old: core.Node | None, new: core.Node | None) -> None:
        name = (new or old or core.Node()).metadata.name
        found = self._nodes.setdefault(name, _Node())
        found.node = new
        if new is None and not found.phases.total():
            del self._nodes[name]
        self._mark(name)

    def _pod_changed(self, old: core.Pod | None, new: core.Pod | None) -> None:
        key = key_of(new or old or core.Pod())
        before = self._shares.pop(key, None)
        after = None
        if new is not None:
            after = self._shares[key] = _share_of(new)
            new.spec, new.status = core.PodSpec(), core.PodStatus()  # the informer's own copy; its share is all of use
        if before != after:
            for share, sign in ((before, -1), (after, 1)):
                if share is not None:
                    self._phases[share.phase] += sign
                    self._nodes.setdefault(share.node, _Node()).add(share, sign)
                    self._mark(share.node)

    def _mark(self, name: str) -> None:
        for each in self._readers:
            each.names[name] = None
            each.changed.set()


class _Reader:
    """Names of nodes that one page has not been told of yet."""

    def __init__(self, names: dict[str, None]) -> None:
        self.names = names
        self.changed = asyncio.Event()
        self.changed.set()


def _share_of(pod: core.Pod) -> _Share:
    try:
        requests = {name: amount.nanos() for name, amount in pod_requests(pod).items() if name in _SHOWN}
    except QuantityError:  # another server may hold such a pod
        requests = {}
    phase = "Terminating" if pod.metadata.deletion_timestamp else pod.status.phase or "Unknown"
    return _Share(pod.spec.node_name, phase, requests.get("cpu", 0), requests.get("memory", 0))


def _amount(amounts: dict[str, str], name: str, unit: int) -> int:
    try:
        return nanos(amounts.get(name, "0")) // unit
    except QuantityError:
        return 0
