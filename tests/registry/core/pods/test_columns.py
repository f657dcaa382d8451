"""The columns of `kubectl get pods` for pods in many states (from a real server's Tables)."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.api.core.v1 import Pod, PodStatus
from steersman.machinery.codec.serializer import from_plain
from steersman.registry.core.pods.columns import POD_COLUMNS, summarize
from tests.registry.podspecs import created_pod

TWO = [{"name": "c", "image": "x"}, {"name": "d", "image": "x"}]
RUNNING: dict[str, Any] = {"running": {}}
LATER = {"terminated": {"exitCode": 1, "finishedAt": "2999-01-01T00:00:00Z"}}


def status(name: str, state: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"name": name, "state": state, **more}


def ended(code: int = 0, **more: Any) -> dict[str, Any]:
    return {"terminated": {"exitCode": code, **more}}


def waiting(reason: str) -> dict[str, Any]:
    return {"waiting": {"reason": reason}}


def pod_with(status: dict[str, Any], **spec: Any) -> Pod:
    pod = created_pod(containers=TWO, **spec)
    pod.status = from_plain(PodStatus, status)
    return pod


INITS = [{"name": "i", "image": "x"}, {"name": "j", "image": "x"}]
READY = [{"type": "Ready", "status": "True"}]


@pytest.mark.parametrize(
    ("of", "cells"),
    [
        ({"phase": "Pending"}, ("0/2", "Pending", 0)),
        ({"initContainerStatuses": [status("i", RUNNING)]}, ("0/2", "Init:0/2", 0)),
        (
            {
                "initContainerStatuses": [
                    status("i", ended(), restartCount=1),
                    status("j", waiting("CrashLoopBackOff"), restartCount=3, lastState=LATER),
                ]
            },
            ("0/2", "Init:CrashLoopBackOff", 4),
        ),
        ({"initContainerStatuses": [status("i", ended()), status("j", ended(7))]}, ("0/2", "Init:ExitCode:7", 0)),
        (
            {"initContainerStatuses": [status("i", ended(1, signal=9))]},
            ("0/2", "Init:Signal:9", 0),
        ),
        (
            {
                "containerStatuses": [
                    status("c", RUNNING, ready=True, restartCount=2),
                    status("d", waiting("CrashLoopBackOff"), restartCount=5),
                ]
            },
            ("1/2", "CrashLoopBackOff", 7),
        ),
        (
            {
                "containerStatuses": [
                    status("c", ended(reason="Completed")),
                    status("d", ended(137, reason="OOMKilled")),
                ]
            },
            ("0/2", "OOMKilled", 0),
        ),
        (
            {
                "containerStatuses": [status("c", RUNNING, ready=True), status("d", ended(reason="Completed"))],
                "conditions": READY,
            },
            ("1/2", "Running", 0),
        ),
        ({"phase": "Failed", "reason": "Evicted"}, ("0/2", "Evicted", 0)),
        (
            {"phase": "Pending", "conditions": [{"type": "PodScheduled", "reason": "SchedulingGated"}]},
            ("0/2", "SchedulingGated", 0),
        ),
    ],
)
def test_states(of: dict[str, Any], cells: tuple[str, str, int]) -> None:
    summary = summarize(pod_with(of, initContainers=INITS))
    assert (f"{summary.ready}/{summary.containers}", summary.reason, summary.restarts) == cells


def test_a_pod_on_its_way_out_is_terminating() -> None:
    pod = pod_with({"phase": "Running"})
    pod.metadata.deletion_timestamp = "2020-01-01T00:00:00Z"
    assert summarize(pod).reason == "Terminating"
    pod.status.reason = "NodeLost"
    assert summarize(pod).reason == "Unknown"


def test_sidecars_count_as_containers() -> None:
    sidecar = {"name": "s", "image": "x", "restartPolicy": "Always"}
    of = {"initContainerStatuses": [status("s", RUNNING, ready=True, started=True, restartCount=2)]}
    summary = summarize(pod_with(of, initContainers=[sidecar]))
    assert (summary.ready, summary.containers, summary.restarts) == (1, 3, 2)


def test_wide_cells() -> None:
    gates = [{"conditionType": "a.b/one"}, {"conditionType": "a.b/two"}]
    pod = pod_with(
        {"podIPs": [{"ip": "10.1.1.1"}], "conditions": [{"type": "a.b/one", "status": "True"}]}, readinessGates=gates
    )
    wide = [column.cell(pod) for column in POD_COLUMNS if column.priority and column.cell]
    assert wide == ["10.1.1.1", "<none>", "<none>", "1/2"]


def test_the_last_restart_is_told_with_their_number() -> None:
    restarts = next(column.cell for column in POD_COLUMNS if column.name == "Restarts")
    assert restarts is not None
    old = {"terminated": {"exitCode": 1, "finishedAt": "2000-01-01T00:00:00Z"}}
    pod = pod_with({"containerStatuses": [status("c", RUNNING, restartCount=3, lastState=old)]})
    assert restarts(pod).startswith("3 (")
    assert restarts(pod).endswith("y ago)")
