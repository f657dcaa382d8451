"""Simulated CPU and memory usage of containers.

Annotations of the pod set it: `simulation.steersman.dev/cpu` and `.../memory` for all its containers or, with the
suffix `.NAME`, for one. Without annotations a container uses a part of its requests.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from steersman.api.core.v1 import Container, ContainerStatus, Pod
from steersman.machinery.built_in.pod_resources import is_sidecar
from steersman.machinery.values import times
from steersman.machinery.values.quantity import QuantityError, nanos
from steersman.nodes.behaviour import PREFIX

RESOURCES: Final = ("cpu", "memory")
_NANO: Final = 10**9
_MOST: Final = (2**63 - 1) * _NANO
_PART: Final = {"cpu": 10, "memory": 4}
"""Divisors of requests: a container uses a tenth of its CPU request and a quarter of its memory request."""
_WITHOUT_REQUEST: Final = {"cpu": _NANO // 1000, "memory": (16 << 20) * _NANO}
"""Usage of a container without a request: 1m of CPU, 16Mi of memory."""


class Usage(NamedTuple):
    """Usage of a container: billionths of a CPU and bytes of memory, while running since `since` (seconds
    since 1970).
    """

    container: str
    cpu: int
    memory: int
    since: int


class Total(NamedTuple):
    """Usage of several containers: billionths of a core now, nanoseconds of a core since their starts,
    bytes of memory.
    """

    nano_cores: int
    core_nano_seconds: int
    memory: int


def total_of(parts: Iterable[Usage], now: float) -> Total:
    """Return the sum of usages. `now` is in seconds since 1970."""
    cores = seconds = memory = 0
    for each in parts:
        cores += each.cpu
        seconds += int(each.cpu * max(0.0, now - each.since))
        memory += each.memory
    return Total(cores, seconds, memory)


def usage_of(pod: Pod) -> list[Usage]:
    """Return the usage of each running container and sidecar; nothing for a pod that does not run."""
    if pod.status.phase != "Running":
        return []
    statuses = {each.name: each for each in (*pod.status.container_statuses, *pod.status.init_container_statuses)}
    containers = (*(pod.spec.containers or ()), *filter(is_sidecar, pod.spec.init_containers))
    usages = []
    for container in containers:
        since = _running_since(statuses.get(container.name))
        if since is not None:
            cpu, memory = (_used(pod, container, resource) for resource in RESOURCES)
            usages.append(Usage(container.name, cpu, memory // _NANO, since))
    return usages


def _running_since(status: ContainerStatus | None) -> int | None:
    running = None if status is None else status.state.running
    return None if running is None or not running.started_at else times.unix(running.started_at)


def _used(pod: Pod, container: Container, resource: str) -> int:
    """Return the usage of one resource in billionths."""
    annotations = pod.metadata.annotations
    for key in (f"{PREFIX}{resource}.{container.name}", f"{PREFIX}{resource}"):
        said = _nanos(annotations.get(key, ""))
        if said is not None:
            return said
    request = _nanos(container.resources.requests.get(resource, ""))
    return _WITHOUT_REQUEST[resource] if not request else request // _PART[resource]


def _nanos(text: str) -> int | None:
    """Return an amount in billionths; None for text that is no valid amount."""
    try:
        amount = nanos(text)
    except QuantityError:
        return None
    return amount if 0 <= amount <= _MOST else None
