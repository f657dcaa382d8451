"""Pods that go on without a sync: a sync of them computes the same."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, Final

import pytest

from bench.opening.dump import Maker
from steersman.api.core.v1 import Pod
from steersman.machinery.codec.serializer import from_plain
from steersman.machinery.values import times
from steersman.nodes.context import EMPTY_RECORD, ContainerExit, PodContext
from steersman.nodes.pod_life import compute_status
from steersman.nodes.undisturbed import is_undisturbed

NOW: Final = float(times.unix("2026-11-29T12:00:00Z"))
PODS: Final = [
    each for each in Maker(3, 5, 60).objects() if each["kind"] == "Pod" and each["status"]["phase"] == "Running"
]

Plain = dict[str, Any]


def context_of(pod: Pod) -> PodContext:
    return PodContext((pod.status.host_ip,), (pod.status.pod_ip,))


def test_a_sync_of_an_undisturbed_pod_changes_nothing() -> None:
    assert len(PODS) > 40
    for plain in PODS:
        pod = from_plain(Pod, plain)
        assert is_undisturbed(pod, context_of(pod), NOW)
        done = compute_status(pod, context_of(pod), NOW)
        assert (done.changed, done.next_sync, done.is_finished, done.events, done.pulled) == (
            False,
            None,
            False,
            [],
            [],
        )
        assert all(each == EMPTY_RECORD for each in done.records.values())


def _status(**changes: Any) -> Callable[[Plain], object]:
    return lambda pod: pod["status"].update(changes)


def _spec(**changes: Any) -> Callable[[Plain], object]:
    return lambda pod: pod["spec"].update(changes)


def _container(**changes: Any) -> Callable[[Plain], object]:
    return lambda pod: pod["spec"]["containers"][0].update(changes)


def _container_status(**changes: Any) -> Callable[[Plain], object]:
    return lambda pod: pod["status"]["containerStatuses"][0].update(changes)


def _metadata(**changes: Any) -> Callable[[Plain], object]:
    return lambda pod: pod["metadata"].update(changes)


@pytest.mark.parametrize(
    "disturb",
    [
        _status(phase="Pending"),
        _status(podIP="10.244.9.9"),
        _status(conditions=[]),
        _status(containerStatuses=[]),
        _metadata(deletionTimestamp="2026-11-29T11:59:59Z"),
        _metadata(annotations={"simulation.steersman.dev/run-for": "1s"}),
        _spec(activeDeadlineSeconds=5),
        _spec(readinessGates=[{"conditionType": "example.com/ready"}]),
        _spec(initContainers=[{"name": "first", "image": "busybox"}]),
        _spec(ephemeralContainers=[{"name": "shell", "image": "busybox"}]),
        _container(resources={"requests": {"cpu": "7"}}),
        _container(readinessProbe={"tcpSocket": {"port": 80}, "initialDelaySeconds": 10**9}),
        _container_status(ready=False),
        _container_status(started=False),
        _container_status(state={"waiting": {"reason": "CrashLoopBackOff"}}),
        _container_status(state={"terminated": {"exitCode": 1}}),
    ],
)
def test_a_disturbed_pod_is_synced(disturb: Callable[[Plain], object]) -> None:
    given = from_plain(Pod, PODS[0])
    plain = copy.deepcopy(PODS[0])
    disturb(plain)
    pod = from_plain(Pod, plain)
    assert not is_undisturbed(pod, context_of(given), NOW)


def test_the_state_of_the_kubelet_disturbs_a_pod() -> None:
    pod = from_plain(Pod, PODS[0])
    place, name = context_of(pod), pod.status.container_statuses[0].name
    for disturbed in (
        PodContext(place.host_ips, place.pod_ips, mounted=False),
        PodContext(place.host_ips, place.pod_ips, eviction_message="no memory"),
        PodContext(place.host_ips, place.pod_ips, exits={name: ContainerExit("other", 1, NOW)}),
        PodContext(place.host_ips, place.pod_ips, records={name: EMPTY_RECORD}),
    ):
        assert not is_undisturbed(pod, disturbed, NOW)
