"""Simulated CPU and memory usage of containers: the one place that says how much a container uses now.

Annotations of the pod set it: `simulation.steersman.dev/cpu` and `.../memory` for all its containers or, with the
suffix `.NAME`, for one. Sources added to `Usages` are asked next. Without either, a container uses a part of its
requests.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple, Protocol

from steersman.api.core.v1 import Container, ContainerStatus, Pod
from steersman.machinery.built_in.pod_resources import is_sidecar
from steersman.machinery.values import times
from steersman.machinery.values.quantity import QuantityError, nanos
from steersman.nodes.behaviour import PREFIX
from steersman.work.bounded_cache import BoundedCache

RESOURCES: Final = ("cpu", "memory")
NANO: Final = 10**9
"""Billionths in one."""
_MOST: Final = (2**63 - 1) * NANO
"""Largest usage in billionths; larger ones are cut to it."""
_PART: Final = {"cpu": 10, "memory": 4}
"""Divisors of requests: a container uses a tenth of its CPU request and a quarter of its memory request."""
_WITHOUT_REQUEST: Final = {"cpu": NANO // 1000, "memory": (16 << 20) * NANO}
"""Usage of a container without a request: 1m of CPU, 16Mi of memory."""
_MOST_METERED: Final = 1 << 17
"""Containers whose CPU time is counted; the least recently read beyond that count from their start again."""


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


class UsageSource(Protocol):
    """Source of the usage of containers, such as expressions over the time of day."""

    def used(self, pod: Pod, container: Container, resource: str, at: float) -> int | None:
        """Return the usage of `cpu` or `memory` at a moment (seconds since 1970), in billionths of a core or byte.

        None if the source has nothing to say about the container. Called for each container at each request for
        metrics, so it does not wait and takes microseconds. It does not raise.
        """
        ...


class _Metered(NamedTuple):
    """CPU time of a container up to a moment, since its start."""

    since: int
    moment: float
    cpu: int
    nanoseconds: float


class Usages:
    """Usage of all containers of a cluster."""

    def __init__(self) -> None:
        self._sources: list[UsageSource] = []
        self._metered: BoundedCache[tuple[str, str], _Metered] = BoundedCache(_MOST_METERED)

    def add(self, source: UsageSource) -> None:
        """Ask `source` where the annotations of a pod say nothing, before the sources that were added earlier."""
        self._sources.insert(0, source)

    def remove(self, source: UsageSource) -> None:
        """Ask a source no longer."""
        self._sources.remove(source)

    def of(self, pod: Pod) -> list[Usage]:
        """Return the usage of each running container and sidecar; nothing for a pod that does not run."""
        if pod.status.phase != "Running":
            return []
        statuses = {each.name: each for each in (*pod.status.container_statuses, *pod.status.init_container_statuses)}
        containers = (*(pod.spec.containers or ()), *filter(is_sidecar, pod.spec.init_containers))
        at = times.unix_now()
        found = []
        for container in containers:
            since = _running_since(statuses.get(container.name))
            if since is not None:
                cpu, memory = (self._used(pod, container, resource, at) for resource in RESOURCES)
                found.append(Usage(container.name, cpu, memory // NANO, since))
        return found

    def total(self, pod: Pod, parts: Iterable[Usage]) -> Total:
        """Return the sum of usages of a pod's containers, with the CPU time that they have used since their starts.

        CPU time is summed up over the moments at which it was read, so that it never falls while a container runs.
        """
        cores = memory = 0
        spent = 0.0
        for each in parts:
            cores += each.cpu
            memory += each.memory
            spent += self._cpu_time(pod.metadata.uid, each)
        return Total(cores, int(spent), memory)

    def _cpu_time(self, uid: str, usage: Usage) -> float:
        """Return the CPU time of a container since its start, in nanoseconds of a core."""
        key, now = (uid, usage.container), times.unix_now()
        before = self._metered[key]
        if before is None or before.since != usage.since:
            before = _Metered(usage.since, usage.since, usage.cpu, 0.0)
        passed = max(0.0, now - before.moment)
        spent = before.nanoseconds + (before.cpu + usage.cpu) / 2 * passed
        self._metered.keep(key, _Metered(usage.since, max(now, before.moment), usage.cpu, spent))
        return spent

    def _used(self, pod: Pod, container: Container, resource: str, at: float) -> int:
        """Return the usage of one resource in billionths."""
        annotations = pod.metadata.annotations
        for key in (f"{PREFIX}{resource}.{container.name}", f"{PREFIX}{resource}"):
            said = _nanos(annotations.get(key, ""))
            if said is not None:
                return said
        for source in self._sources:
            found = source.used(pod, container, resource, at)
            if found is not None:
                return min(max(found, 0), _MOST)
        request = _nanos(container.resources.requests.get(resource, ""))
        return _WITHOUT_REQUEST[resource] if not request else request // _PART[resource]


def number_of(amount: int) -> float:
    """Return an amount in billionths as a number, cut to 64 bits before the point."""
    return max(-_MOST, min(amount, _MOST)) / NANO


def bounded(number: float) -> float:
    """Return a number cut to 64 bits before the point."""
    return max(-_MOST / NANO, min(number, _MOST / NANO))


def sum_of(totals: Iterable[Total]) -> Total:
    """Return the sum of totals."""
    found = list(totals)
    return Total(
        sum(each.nano_cores for each in found),
        sum(each.core_nano_seconds for each in found),
        sum(each.memory for each in found),
    )


def _running_since(status: ContainerStatus | None) -> int | None:
    running = None if status is None else status.state.running
    return None if running is None or not running.started_at else times.unix(running.started_at)


def _nanos(text: str) -> int | None:
    """Return an amount in billionths; None for text that is no valid amount."""
    try:
        amount = nanos(text)
    except QuantityError:
        return None
    return amount if 0 <= amount <= _MOST else None
