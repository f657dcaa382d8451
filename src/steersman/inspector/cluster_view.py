"""Figures of nodes and pods for the page's view of the cluster, kept current by watches while a page reads them."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator
from typing import Final

import msgspec
from msgspec import Struct, field

from steersman.api.core import v1 as core
from steersman.client.client import Client
from steersman.client.informer import Informer, Key, key_of, new_or_old
from steersman.client.metrics_types import NODE_METRICS
from steersman.client.resources import NODES, PODS
from steersman.client.transport import Unreachable
from steersman.inspector.source import SourceFailed
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
_NO_SPEC: Final = core.PodSpec()
_NO_STATUS: Final = core.PodStatus()
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
        self._figures: _Figures | None = None

    async def read(self) -> AsyncGenerator[list[bytes], None]:
        """Yield lines of `Changes`: first all nodes, then what changes, at most one line each INTERVAL seconds.

        Raises SourceFailed for all readers if nodes or pods cannot be followed. The next reader tries again.
        """
        figures = self._figures
        if figures is None or figures.failure is not None:
            figures = self._figures = _Figures(self._client)
        reader = figures.join()
        try:
            while True:
                await reader.changed.wait()
                reader.changed.clear()
                if figures.failure is not None:
                    raise SourceFailed(figures.failure)
                names, reader.names = reader.names, {}
                yield [_ENCODER.encode(await figures.changes(names))]
                await asyncio.sleep(INTERVAL)
        finally:
            if figures.leave(reader):
                if self._figures is figures:
                    self._figures = None
                await figures.stop()


class _Figures:
    """Figures of all nodes and pods from the start of their watches to `stop`."""

    def __init__(self, client: Client) -> None:
        self.failure: Exception | None = None
        """Reason why nodes or pods cannot be followed any more."""
        self._client = client
        self._entries: dict[str, _Node] = {}
        self._shares: dict[Key, _Share] = {}
        self._phases: Counter[str] = Counter()
        self._readers: set[_Reader] = set()
        self._nodes = Informer(client, NODES)
        self._pods = Informer(client, PODS)
        self._used = Periodic("usage of nodes", self._read_usage, _USED_EVERY, expected=(StatusError, Unreachable))
        self._nodes.on_change(self._node_changed)
        self._pods.on_change(self._pod_changed)
        for each in (self._nodes, self._pods):
            each.on_failure(self._failed)
            each.start()
        self._used.start()
        self._used.wake()
        self._syncing = asyncio.create_task(self._wake_when_synced())

    def join(self) -> _Reader:
        """Return a new reader, which knows of no node yet."""
        reader = _Reader({name: None for name, each in self._entries.items() if each.node is not None})
        if self._entries or self._is_synced:
            reader.changed.set()
        self._readers.add(reader)
        return reader

    def leave(self, reader: _Reader) -> bool:
        """Remove a reader and return True if it was the last one."""
        self._readers.discard(reader)
        return not self._readers

    async def stop(self) -> None:
        """Stop the watches."""
        self._syncing.cancel()
        await asyncio.gather(self._nodes.stop(), self._pods.stop(), self._used.stop())

    async def changes(self, names: dict[str, None]) -> Changes:
        """Return the present figures of the nodes of these names, and of the cluster."""
        rows: list[NodeRow] = []
        gone: list[str] = []
        async for name in time_sliced(names):
            found = self._entries.get(name)
            if found is not None and found.node is not None:
                rows.append(found.row(name, found.node))
            elif name:
                gone.append(name)
        unplaced = self._entries.get("")
        return Changes(
            rows,
            gone,
            {phase: count for phase, count in self._phases.items() if count > 0},
            0 if unplaced is None else sum(n for phase, n in unplaced.phases.items() if phase not in _ENDED),
            self._is_synced,
        )

    @property
    def _is_synced(self) -> bool:
        return self._nodes.has_synced and self._pods.has_synced

    async def _wake_when_synced(self) -> None:
        await self._nodes.wait_until_synced()
        await self._pods.wait_until_synced()
        self._wake()

    def _failed(self, error: Exception) -> None:
        self.failure = error
        self._wake()

    def _wake(self) -> None:
        for each in self._readers:
            each.changed.set()

    async def _read_usage(self) -> None:
        """Read what nodes use from the resource metrics API; a cluster without it has no such figures."""
        await self._nodes.wait_until_synced()
        try:
            node_metrics = await self._client.list(NODE_METRICS)
        except StatusError as error:
            if error.code in (403, 404, 503):
                return
            raise
        for each in node_metrics.items:
            entry = self._entries.get(each.metadata.name)
            if entry is not None:
                usage = _amount(each.usage, "cpu", _MILLI), _amount(each.usage, "memory", _WHOLE)
                if usage != entry.used:
                    entry.used = usage
                    self._mark(each.metadata.name)

    def _node_changed(self, old: core.Node | None, new: core.Node | None) -> None:
        name = new_or_old(old, new).metadata.name
        if new is not None:
            new.status.images = []  # the informer's own copy
        self._entries.setdefault(name, _Node()).node = new
        self._mark(name)

    def _pod_changed(self, old: core.Pod | None, new: core.Pod | None) -> None:
        key = key_of(new_or_old(old, new))
        before = self._shares.pop(key, None)
        after = None
        if new is not None:
            after = self._shares[key] = _share_of(new)
            new.spec, new.status = _NO_SPEC, _NO_STATUS  # the informer's own copy; its share is all of use
            new.metadata.annotations, new.metadata.labels = {}, {}
        if before != after:
            for share, sign in ((before, -1), (after, 1)):
                if share is not None:
                    self._phases[share.phase] += sign
                    self._entries.setdefault(share.node, _Node()).add(share, sign)
                    self._mark(share.node)

    def _mark(self, name: str) -> None:
        """Note a change of a node for all readers. Forget a node that is gone, with all its pods."""
        entry = self._entries[name]
        if entry.node is None and not entry.phases.total():
            del self._entries[name]
        for each in self._readers:
            each.names[name] = None
            each.changed.set()


class _Reader:
    """Names of nodes that one page has not been told of yet."""

    def __init__(self, names: dict[str, None]) -> None:
        self.names = names
        self.changed = asyncio.Event()


def _share_of(pod: core.Pod) -> _Share:
    try:
        requests = {name: amount.nanos() for name, amount in pod_requests(pod).items() if name in _SHOWN}
    except QuantityError:  # another server may hold such a pod
        requests = {}
    phase = pod.status.phase or "Unknown"
    if pod.metadata.deletion_timestamp and phase not in _ENDED:
        phase = "Terminating"
    return _Share(pod.spec.node_name, phase, requests.get("cpu", 0), requests.get("memory", 0))


def _amount(amounts: dict[str, str], name: str, unit: int) -> int:
    try:
        return nanos(amounts.get(name, "0")) // unit
    except QuantityError:
        return 0
