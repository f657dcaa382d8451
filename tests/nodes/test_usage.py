"""Resource usage of simulated containers."""

from __future__ import annotations

from steersman.api.core.v1 import (
    Container,
    ContainerState,
    ContainerStateRunning,
    ContainerStatus,
    Pod,
    PodSpec,
    PodStatus,
    ResourceRequirements,
)
from steersman.api.meta.v1 import ObjectMeta
from steersman.nodes.usage import Usage, usage_of

SINCE = 1704067200
RUNNING = ContainerState(running=ContainerStateRunning(started_at="2024-01-01T00:00:00Z"))


def pod(phase: str = "Running", **annotations: str) -> Pod:
    containers = [
        Container(name="asks", resources=ResourceRequirements(requests={"cpu": "500m", "memory": "400Mi"})),
        Container(name="other"),
    ]
    sidecar = Container(name="sidecar", restart_policy="Always")
    prefixed = {f"simulation.steersman.dev/{name}": value for name, value in annotations.items()}
    return Pod(
        metadata=ObjectMeta(annotations=prefixed),
        spec=PodSpec(containers=containers, init_containers=[Container(name="init"), sidecar]),
        status=PodStatus(
            phase=phase,
            container_statuses=[ContainerStatus(name=name, state=RUNNING) for name in ("asks", "other")],
            init_container_statuses=[ContainerStatus(name=name, state=RUNNING) for name in ("init", "sidecar")],
        ),
    )


def test_containers_use_a_part_of_what_they_ask_for() -> None:
    assert usage_of(pod()) == [
        Usage("asks", 50_000_000, 100 << 20, SINCE),
        Usage("other", 1_000_000, 16 << 20, SINCE),
        Usage("sidecar", 1_000_000, 16 << 20, SINCE),
    ]


def test_annotations_say_what_they_use() -> None:
    found = usage_of(pod(**{"cpu": "2", "cpu.other": "0", "memory.asks": "1Gi", "memory": "none"}))
    assert [each.cpu for each in found] == [2_000_000_000, 0, 2_000_000_000]
    assert [each.memory for each in found] == [1 << 30, 16 << 20, 16 << 20]
    assert usage_of(pod(cpu="-1"))[0].cpu == 50_000_000


def test_only_what_runs_uses_anything() -> None:
    assert usage_of(pod("Pending")) == []
    given = pod()
    given.status.container_statuses[0].state = ContainerState()
    assert [each.container for each in usage_of(given)] == ["other", "sidecar"]
