"""How much simulated containers use: what annotations of their pod say, else a modest part of what they ask for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from steersman.api.core.v1 import Container, Pod
from steersman.machinery.values import times
from steersman.machinery.values.quantity import QuantityError, nanos
from steersman.nodes.behaviour import said_of
from steersman.nodes.simulated_node import SimulatedNode

_NANO: Final = 10**9
_PART: Final = 4
"""Of its request a container uses one part in so many."""
_LEAST_CPU: Final = 1_000_000
_LEAST_MEMORY: Final = 8 << 20
_OF_NODE: Final = 100_000_000, 512 << 20
"""Nano-cores and bytes that a node uses itself."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Billionths of a core now, nanoseconds of a core since the start, bytes."""

    nano_cores: int = 0
    core_nano_seconds: int = 0
    memory: int = 0

    @classmethod
    def sum(cls, parts: Iterable[Usage]) -> Usage:
        """Of several."""
        cores = seconds = memory = 0
        for each in parts:
            cores += each.nano_cores
            seconds += each.core_nano_seconds
            memory += each.memory
        return cls(cores, seconds, memory)


def usage_of(pod: Pod, container: Container, now: float) -> Usage:
    """Of a container; nothing if it does not run. Annotations `cpu` and `memory` say how much (`cpu.NAME` of one)."""
    status = next((each for each in pod.status.container_statuses if each.name == container.name), None)
    if status is None or status.state.running is None:
        return Usage()
    requests = container.resources.requests
    cores = _amount(said_of(pod, container.name, "cpu"))
    if cores is None:
        cores = max((_amount(requests.get("cpu", "")) or 0) // _PART, _LEAST_CPU)
    memory = _amount(said_of(pod, container.name, "memory"))
    memory = (
        max((_amount(requests.get("memory", "")) or 0) // _PART, _LEAST_MEMORY * _NANO) if memory is None else memory
    )
    ran = max(0.0, now - times.unix(status.state.running.started_at or times.now()))
    return Usage(cores, int(cores * ran), memory // _NANO)


def _amount(quantity: str) -> int | None:
    try:
        return max(0, nanos(quantity)) if quantity else None
    except QuantityError:
        return None


def node_usage(node: SimulatedNode, pods: Iterable[Pod], now: float) -> Usage:
    """Of a node: its own, and that of its pods."""
    cores, memory = _OF_NODE
    own = Usage(cores, int(cores * max(0.0, now - node.began)), memory)
    return Usage.sum([own, *(usage_of(pod, each, now) for pod in pods for each in pod.spec.containers or ())])
