"""Eviction of pods from a node under pressure, with the kubelet's messages (pkg/kubelet/eviction).

An annotation of the node puts it under pressure. Every few seconds one pod is evicted, until the annotation is removed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Final

from steersman.api.core.v1 import Node, Pod
from steersman.machinery.built_in.pod_resources import requests_of_spec
from steersman.machinery.values.quantity import BINARY_SI, Quantity, nanos
from steersman.nodes.admission import MEMORY_PRESSURE, is_critical
from steersman.nodes.behaviour import PREFIX
from steersman.nodes.usage import Usages

EVERY: Final = 10.0
"""Seconds between two evictions on a node."""
CONDITIONS: Final[Mapping[str, str]] = {
    MEMORY_PRESSURE: "memory-pressure",
    "DiskPressure": "disk-pressure",
    "PIDPressure": "pid-pressure",
}
"""Annotation (without prefix) for each pressure condition."""
_RESOURCES: Final = {MEMORY_PRESSURE: "memory", "DiskPressure": "ephemeral-storage", "PIDPressure": "pids"}
_EVENTS: Final = {
    (MEMORY_PRESSURE, True): "NodeHasInsufficientMemory",
    (MEMORY_PRESSURE, False): "NodeHasSufficientMemory",
    ("DiskPressure", True): "NodeHasDiskPressure",
    ("DiskPressure", False): "NodeHasNoDiskPressure",
    ("PIDPressure", True): "NodeHasInsufficientPID",
    ("PIDPressure", False): "NodeHasSufficientPID",
}
_THRESHOLD: Final = "Threshold quantity: 100Mi, available: 0. "
_WHOLE: Final = 10**9


def pressure_of(node: Node) -> tuple[str, ...]:
    """Return the pressure conditions that the node's annotations set."""
    said = node.metadata.annotations
    return tuple(condition for condition, name in CONDITIONS.items() if said.get(PREFIX + name) == "true")


def event_of(condition: str, *, there: bool) -> str:
    """Return the reason of the event for a condition that has become true (`there`) or false."""
    return _EVENTS[condition, there]


def victim(pods: Iterable[Pod], pressure: tuple[str, ...], usages: Usages) -> Pod | None:
    """Return the pod to be evicted first, or None.

    Pods that use more than they request come first, then pods of low priority, then pods that exceed their request
    most.
    """
    candidates = [each for each in pods if not is_critical(each)]
    if not candidates or not pressure:
        return None
    return min(candidates, key=partial(_rank_by_memory, usages) if pressure[0] == MEMORY_PRESSURE else _rank)


def message_of(pod: Pod, pressure: tuple[str, ...], usages: Usages) -> str:
    """Return the message of an evicted pod."""
    resource = _RESOURCES[pressure[0]]
    text = f"The node was low on resource: {resource}. "
    if pressure[0] != MEMORY_PRESSURE:
        return text
    text += _THRESHOLD
    requests = {each.name: each.resources.requests.get("memory", "0") for each in pod.spec.containers or ()}
    for each in usages.of(pod):
        request = requests.get(each.container, "0")
        if each.memory > nanos(request) // _WHOLE:
            used = Quantity(each.memory, format=BINARY_SI)
            text += (
                f"Container {each.container} was using {used}, request is {request}, "
                f"has larger consumption of {resource}. "
            )
    return text


def _rank(pod: Pod) -> tuple[int, ...]:
    return (0 if not requests_of_spec(pod.spec) else 1, pod.spec.priority or 0)


def _rank_by_memory(usages: Usages, pod: Pod) -> tuple[int, ...]:
    used = sum(each.memory for each in usages.of(pod))
    asked = nanos(str(requests_of_spec(pod.spec).get("memory", "0"))) // _WHOLE
    return (0 if used > asked else 1, pod.spec.priority or 0, asked - used)
