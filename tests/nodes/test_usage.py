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
from steersman.machinery.values import times
from steersman.nodes.usage import Usage, Usages

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
    assert Usages().of(pod()) == [
        Usage("asks", 50_000_000, 100 << 20, SINCE),
        Usage("other", 1_000_000, 16 << 20, SINCE),
        Usage("sidecar", 1_000_000, 16 << 20, SINCE),
    ]


def test_annotations_say_what_they_use() -> None:
    found = Usages().of(pod(**{"cpu": "2", "cpu.other": "0", "memory.asks": "1Gi", "memory": "none"}))
    assert [each.cpu for each in found] == [2_000_000_000, 0, 2_000_000_000]
    assert [each.memory for each in found] == [1 << 30, 16 << 20, 16 << 20]
    assert Usages().of(pod(cpu="-1"))[0].cpu == 50_000_000


def test_only_what_runs_uses_anything() -> None:
    assert Usages().of(pod("Pending")) == []
    given = pod()
    given.status.container_statuses[0].state = ContainerState()
    assert [each.container for each in Usages().of(given)] == ["other", "sidecar"]


class Halved:
    """A source that knows one container, whose usage falls with time."""

    def used(self, pod: Pod, container: Container, resource: str, at: float) -> int | None:
        if container.name != "other":
            return None
        assert at >= SINCE
        return int(10**18 / (1 + self.passed)) if resource == "cpu" else -5

    passed = 0.0


def test_sources_are_asked_after_annotations_and_before_requests() -> None:
    usages = Usages()
    usages.add(Halved())
    assert [(each.cpu, each.memory) for each in usages.of(pod())[:2]] == [(50_000_000, 100 << 20), (10**18, 0)]
    assert usages.of(pod(**{"cpu.other": "3"}))[1].cpu == 3_000_000_000


def test_cpu_time_never_falls_while_a_container_runs() -> None:
    usages, source = Usages(), Halved()
    usages.add(source)
    given = pod()
    spent = [usages.total(given, usages.of(given)).core_nano_seconds]
    for _ in range(3):
        source.passed = source.passed * 10 + 9
        spent.append(usages.total(given, usages.of(given)).core_nano_seconds)
    assert spent == sorted(spent)
    given.status.container_statuses[1].state = ContainerState(running=ContainerStateRunning(started_at=times.now()))
    assert usages.total(given, usages.of(given)[1:2]).core_nano_seconds < spent[0], "it began again"
