"""Statistics of a cluster: nodes, pods and request rate."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

import msgspec

from steersman.api.meta.v1 import ObjectMeta
from steersman.cli.up.trouble import EVENTS, WARNINGS, PodPart, Trouble
from steersman.cli.up.trouble import PODS as TROUBLED_PODS
from steersman.client.api_resource import APIResource
from steersman.client.client import Client
from steersman.client.informer import Informers
from steersman.machinery.go.strings import to_lower
from steersman.machinery.values.conditions import is_condition_true

REQUESTS: Final = "apiserver_request_total"


class _Condition(msgspec.Struct):
    type: str = ""
    status: str = ""


class _Status(msgspec.Struct):
    phase: str = ""
    conditions: list[_Condition] = []


class Part(msgspec.Struct):
    """Members of a node or pod that are decoded."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    status: _Status = msgspec.field(default_factory=_Status)
    kind: str = ""
    api_version: str = msgspec.field(default="", name="apiVersion")


NODES: Final = APIResource("", "v1", "nodes", "Node", Part, namespaced=False)


@dataclass(frozen=True, slots=True)
class Figures:
    """Statistics: `pods` are counts by phase, `requests` is the number per second."""

    nodes: int = 0
    ready: int = 0
    pods: dict[str, int] = field(default_factory=dict)
    requests: float = 0.0


def is_ready(node: Part) -> bool:
    """Return True if a node's condition Ready is True."""
    return is_condition_true(node.status.conditions, "Ready")


def phase(pod: Part | PodPart) -> str:
    """Return the phase of a pod: Pending, Running, Succeeded, Failed or Unknown."""
    return pod.status.phase or "Unknown"


async def measure(client: Client, seconds: float = 1.0, trouble: Trouble | None = None) -> Figures:
    """Return the statistics of another cluster, with the request rate measured over `seconds`.

    Passes pods and warning events to `trouble`. Raises StatusError, Unreachable.
    """
    nodes = [is_ready(node) async for node in client.iterate(NODES)]
    pods: Counter[str] = Counter()
    async for pod in client.iterate(TROUBLED_PODS):
        pods[phase(pod)] += 1
        if trouble is not None:
            trouble.pod_changed(None, pod)
    if trouble is not None:
        async for event in client.iterate(EVENTS, field_selector=WARNINGS):
            trouble.warned(None, event)
    before, began = _requests(await client.request("GET", "/metrics")), time.monotonic()
    await asyncio.sleep(seconds)
    after, ended = _requests(await client.request("GET", "/metrics")), time.monotonic()
    look = 1  # the first request for metrics is counted in the second answer
    return Figures(len(nodes), sum(nodes), dict(pods), max(after - before - look, 0) / (ended - began))


def _requests(metrics: bytes) -> float:
    """Return the number of requests answered so far, from a scrape of the metrics."""
    lines = (line for line in metrics.split(b"\n") if line.startswith(REQUESTS.encode() + b"{"))
    return sum(float(line.rpartition(b" ")[2]) for line in lines)


class LiveFigures:
    """Statistics of a cluster kept current by watches: `start`, then `now` any number of times, then `stop`.

    `requests` returns the number of requests answered so far. `trouble` lists pods with problems, and warnings.
    """

    def __init__(self, client: Client, requests: Callable[[], float]) -> None:
        self._informers = Informers(client)
        self.trouble = Trouble()
        self.trouble.follow(self._informers)
        self._requests = requests
        self._nodes = self._ready = 0
        self._pods: Counter[str] = Counter()
        self._before = (time.monotonic(), requests())
        self._rate = 0.0

    def start(self) -> None:
        """Start to follow nodes and pods."""
        self._informers.for_resource(NODES).on_change(self._node_changed)
        self._informers.for_resource(TROUBLED_PODS).on_change(self._pod_changed)
        self._informers.start()

    async def stop(self) -> None:
        """Stop following nodes and pods."""
        await self._informers.stop()

    def now(self) -> Figures:
        """Return the statistics; the request rate is since the previous call, or an older one within half a second."""
        moment, before = self._before
        now = time.monotonic()
        if now - moment >= 0.5:
            answered = self._requests()
            self._rate = (answered - before) / (now - moment)
            self._before = (now, answered)
        return Figures(self._nodes, self._ready, dict(+self._pods), self._rate)

    def _node_changed(self, old: Part | None, new: Part | None) -> None:
        self._nodes += (new is not None) - (old is not None)
        self._ready += (new is not None and is_ready(new)) - (old is not None and is_ready(old))

    def _pod_changed(self, old: PodPart | None, new: PodPart | None) -> None:
        if old is not None:
            self._pods[phase(old)] -= 1
        if new is not None:
            self._pods[phase(new)] += 1


_PHASES: Final = ("Running", "Pending", "Succeeded", "Failed", "Unknown")


def nodes_in_words(figures: Figures) -> str:
    """Return `3 ready`, `2 of 3 ready` or `none`."""
    if not figures.nodes:
        return "none"
    return f"{figures.ready} ready" if figures.ready == figures.nodes else f"{figures.ready} of {figures.nodes} ready"


def pods_in_words(figures: Figures) -> str:
    """Return `12 running, 1 pending` or `none`."""
    order: Iterable[str] = (*_PHASES, *sorted({*figures.pods} - {*_PHASES}))
    counts = [f"{figures.pods[each]} {to_lower(each)}" for each in order if figures.pods.get(each)]
    return ", ".join(counts) or "none"
