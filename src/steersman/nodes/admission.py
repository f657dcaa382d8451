"""Admission of a pod by its node (pkg/kubelet `lifecycle` predicate, `eviction` Admit).

The scheduler has checked most pods before. Pods that name their node themselves are checked only here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final, NamedTuple

from steersman.api.core.v1 import Node, Pod, Taint
from steersman.client.informer import Key, key_of
from steersman.machinery.built_in.node_affinity import required
from steersman.machinery.built_in.pod_resources import compute_qos_class, pod_requests, requests_of_spec
from steersman.machinery.built_in.taints import is_tolerated, untolerated
from steersman.machinery.values.quantity import nanos
from steersman.nodes.sysctls import REASON, forbidden

_CRITICAL: Final = 2_000_000_000
"""Priority from which pods are admitted and not evicted under pressure."""
_OS: Final = "linux"
_UNITS: Final = {"cpu": 10**6}
"""Billionths that make one unit of a resource in messages; for all other resources the unit is 1."""
_WHOLE: Final = 10**9
_ORDER: Final = ("cpu", "memory", "ephemeral-storage")
_ANY_ADDRESS: Final = ("", "0.0.0.0")
MEMORY_PRESSURE: Final = "MemoryPressure"


class Refusal(NamedTuple):
    """Reason and message of a node's refusal of a pod."""

    reason: str
    message: str


class _Share(NamedTuple):
    """Resources and ports of a node that one pod uses."""

    generation: int
    amounts: dict[str, int]
    """Billionths of units, by resource."""
    ports: tuple[tuple[str, int, str], ...]
    """Protocol, port, address."""


class Allocated:
    """Resources and ports of a node that its pods use.

    A pod is counted when a decision first needs the sums: most nodes of an opened cluster never get another pod.
    """

    def __init__(self) -> None:
        self._uncounted: dict[Key, Pod] = {}
        """Pods that were added or updated since the sums were last needed."""
        self._shares: dict[Key, _Share] = {}
        self._used: dict[str, int] = {}
        self._ports: dict[tuple[str, int], dict[Key, str]] = {}

    def put(self, pod: Pod) -> None:
        """Add a pod, or update it after its spec has changed."""
        self._uncounted[key_of(pod)] = pod

    def _count(self) -> None:
        """Count all pods that are not counted yet."""
        while self._uncounted:
            self._count_pod(*self._uncounted.popitem())

    def _count_pod(self, key: Key, pod: Pod) -> None:
        known = self._shares.get(key)
        if known is not None and known.generation == pod.metadata.generation:
            return
        self._discount(key)
        amounts = {name: nanos(str(amount)) for name, amount in pod_requests(pod).items()}
        share = self._shares[key] = _Share(pod.metadata.generation, amounts, tuple(_host_ports(pod)))
        for name, amount in amounts.items():
            self._used[name] = self._used.get(name, 0) + amount
        for protocol, port, address in share.ports:
            self._ports.setdefault((protocol, port), {})[key] = address

    def remove(self, key: Key) -> None:
        """Remove a pod."""
        self._uncounted.pop(key, None)
        self._discount(key)

    def _discount(self, key: Key) -> None:
        share = self._shares.pop(key, None)
        if share is None:
            return
        for name, amount in share.amounts.items():
            self._used[name] -= amount
        for protocol, port, _ in share.ports:
            users = self._ports[(protocol, port)]
            users.pop(key, None)
            if not users:
                del self._ports[(protocol, port)]

    def lacking(self, pod: Pod, allocatable: dict[str, str]) -> Refusal | None:
        """Return the refusal if the node lacks a resource for a pod; None if it does not."""
        self._count()
        others = len(self._shares) - (key_of(pod) in self._shares)
        pods = nanos(allocatable.get("pods", "0")) // _WHOLE
        if others + 1 > pods:
            return _out_of("pods", 1, others, pods)
        own = self._shares.get(key_of(pod))
        wants = {name: nanos(str(amount)) for name, amount in requests_of_spec(pod.spec).items()}
        for name in (*_ORDER, *(each for each in wants if each not in _ORDER)):
            if not wants.get(name) or (name not in _ORDER and name not in allocatable):
                continue
            used = self._used.get(name, 0) - (own.amounts.get(name, 0) if own is not None else 0)
            capacity = nanos(allocatable.get(name, "0"))
            if wants[name] + used > capacity:
                unit = _UNITS.get(name, _WHOLE)
                return _out_of(name, -(-wants[name] // unit), -(-used // unit), capacity // unit)
        return None

    def has_conflict(self, pod: Pod) -> bool:
        """Return True if another pod uses a host port that the pod wants."""
        self._count()
        key = key_of(pod)
        for protocol, port, address in _host_ports(pod):
            for user, other in self._ports.get((protocol, port), {}).items():
                if user != key and (address == other or address in _ANY_ADDRESS or other in _ANY_ADDRESS):
                    return True
        return False


def refusal(pod: Pod, node: Node, allocated: Allocated, pressure: Collection[str]) -> Refusal | None:
    """Return the reason for which a node refuses a pod; None if it admits it.

    `pressure` are true conditions, in order.
    """
    if pressure and not _is_admitted_under(pod, pressure):
        return Refusal("Evicted", f"The node had condition: [{' '.join(pressure)}]. ")
    if why := forbidden(pod):
        return Refusal(REASON, why)
    if pod.spec.os is not None and pod.spec.os.name != _OS:
        return Refusal("PodOSNotSupported", "Failed to admit pod as the OS field doesn't match node OS")
    if (lacking := allocated.lacking(pod, node.status.allocatable)) is not None:
        return lacking
    matcher = required(pod.spec)
    if matcher is not None and not matcher(node.metadata.name, node.metadata.labels):
        return _failed("NodeAffinity", "node(s) didn't match Pod's node affinity/selector")
    if allocated.has_conflict(pod):
        return _failed("NodePorts", "node(s) didn't have free ports for the requested pod ports")
    if untolerated(pod.spec.tolerations, node.spec.taints, "NoExecute") is not None:
        return _failed("TaintToleration", "node(s) had taints that the pod didn't tolerate")
    return None


def is_critical(pod: Pod) -> bool:
    """Return True if a pod is critical, so that it stays where others are evicted."""
    return pod.spec.priority is not None and pod.spec.priority >= _CRITICAL


def _is_admitted_under(pod: Pod, pressure: Collection[str]) -> bool:
    if is_critical(pod):
        return True
    if list(pressure) != [MEMORY_PRESSURE]:
        return False
    if compute_qos_class(pod.spec) != "BestEffort":
        return True
    taint = Taint(key="node.kubernetes.io/memory-pressure", effect="NoSchedule")
    return is_tolerated(taint, pod.spec.tolerations)


def _out_of(name: str, requested: int, used: int, capacity: int) -> Refusal:
    text = f"Node didn't have enough resource: {name}, requested: {requested}, used: {used}, capacity: {capacity}"
    return Refusal(f"OutOf{name}", text)


def _failed(predicate: str, why: str) -> Refusal:
    return Refusal(predicate, f"Predicate {predicate} failed: {why}")


def _host_ports(pod: Pod) -> Iterator[tuple[str, int, str]]:
    for container in (*(pod.spec.containers or ()), *pod.spec.init_containers):
        for port in container.ports:
            if port.host_port > 0:
                yield port.protocol or "TCP", port.host_port, port.host_ip
