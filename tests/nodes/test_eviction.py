"""Choice of the pods that a node under pressure evicts."""

from __future__ import annotations

from steersman.api.core.v1 import (
    Container,
    ContainerState,
    ContainerStateRunning,
    ContainerStatus,
    Node,
    Pod,
    PodSpec,
    PodStatus,
    ResourceRequirements,
)
from steersman.api.meta.v1 import ObjectMeta
from steersman.nodes.eviction import message_of, pressure_of, victim
from steersman.nodes.usage import Usages


def pod(name: str, usage: str, requests: str = "", priority: int = 0) -> Pod:
    amounts = {"memory": requests} if requests else {}
    status = ContainerStatus(
        name="c", state=ContainerState(running=ContainerStateRunning(started_at="2027-01-15T08:00:00Z"))
    )
    return Pod(
        metadata=ObjectMeta(name=name, annotations={"simulation.steersman.dev/memory": usage}),
        spec=PodSpec(
            containers=[Container(name="c", resources=ResourceRequirements(requests=amounts))], priority=priority
        ),
        status=PodStatus(phase="Running", container_statuses=[status]),
    )


def order(pressure: str, *pods: Pod) -> list[str]:
    left, found = list(pods), []
    while (first := victim(left, (pressure,), Usages())) is not None:
        found.append(first.metadata.name)
        left.remove(first)
    return found


def test_pods_go_that_use_more_than_they_ask_for_then_those_of_low_priority_then_the_large_ones() -> None:
    assert order(
        "MemoryPressure",
        pod("within", "1Gi", "2Gi"),
        pod("small", "10Mi"),
        pod("important", "3Gi", "1Gi", priority=10),
        pod("large", "2Gi"),
        pod("over", "4Gi", "3Gi"),
        pod("system", "9Gi", priority=2_000_000_000),
    ) == ["large", "over", "small", "important", "within"]
    assert order("DiskPressure", pod("requests", "1Mi", "1Mi"), pod("best-effort", "1Mi")) == [
        "best-effort",
        "requests",
    ]


def test_messages_about_an_evicted_pod() -> None:
    assert message_of(pod("p", "2Gi", "1Gi"), ("MemoryPressure",), Usages()) == (
        "The node was low on resource: memory. Threshold quantity: 100Mi, available: 0. "
        "Container c was using 2Gi, request is 1Gi, has larger consumption of memory. "
    )
    assert message_of(pod("p", "2Gi"), ("PIDPressure",), Usages()) == "The node was low on resource: pids. "


def test_annotations_say_the_pressure() -> None:
    said = {"simulation.steersman.dev/disk-pressure": "true", "simulation.steersman.dev/memory-pressure": "no"}
    assert pressure_of(Node(metadata=ObjectMeta(annotations=said))) == ("DiskPressure",)
