"""Processes that commands find in containers."""

from __future__ import annotations

from steersman.api.core.v1 import (
    Container,
    ContainerState,
    ContainerStateRunning,
    ContainerStatus,
    EphemeralContainer,
    Pod,
    PodSpec,
    PodStatus,
)
from steersman.api.meta.v1 import ObjectMeta
from steersman.nodes.processes import processes_of

WEB = Container(name="web", image="docker.io/library/nginx:1.27@sha256:0", command=[])
OTHER = Container(name="other", image="busybox", command=["sh", "-c", "sleep 5"])
DEBUG = EphemeralContainer(name="d", command=["sh"], target_container_name="other")


def pod(*, shares: bool | None = None) -> Pod:
    running = ContainerState(running=ContainerStateRunning(started_at="2026-01-01T00:00:00Z"))
    statuses = [ContainerStatus(name=each.name, state=running) for each in (WEB, OTHER)]
    return Pod(
        metadata=ObjectMeta(name="p"),
        status=PodStatus(container_statuses=statuses),
        spec=PodSpec(containers=[WEB, OTHER], ephemeral_containers=[DEBUG], share_process_namespace=shares),
    )


def test_a_container_finds_its_own() -> None:
    assert [(each.number, each.command) for each in processes_of(pod(), WEB)] == [(1, "nginx")]


def test_a_container_for_debugging_finds_those_of_its_target() -> None:
    assert [each.command for each in processes_of(pod(), DEBUG)] == ["sh -c sleep 5", "sh"]


def test_where_a_pod_shares_them_all_are_found() -> None:
    assert [each.command for each in processes_of(pod(shares=True), WEB)] == ["/pause", "sh -c sleep 5", "nginx"]
