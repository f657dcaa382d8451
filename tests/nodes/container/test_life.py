"""Containers with probes and hooks, and containers that cannot start."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from steersman.api.core.v1 import (
    Container,
    ExecAction,
    GRPCAction,
    HTTPGetAction,
    Lifecycle,
    LifecycleHandler,
    Pod,
    PodSpec,
    PodStatus,
    Probe,
    SleepAction,
    TCPSocketAction,
)
from steersman.api.meta.v1 import ObjectMeta
from steersman.machinery.values import times
from steersman.nodes.behaviour import PREFIX
from steersman.nodes.container.probes import due_commands
from steersman.nodes.container.sync import status_time
from steersman.nodes.context import LIVENESS, POST_START, PRE_STOP, READINESS, CommandResult, PodContext
from steersman.nodes.pod_life import sync_pod

NOW = 1_800_000_000.0
HTTP = HTTPGetAction(path="/", port=80)


class PodOnNode:
    """A pod with one container on a node that keeps records of its containers. `at` is the current time."""

    def __init__(self, *, restart: str = "Always", annotations: dict[str, str] | None = None, **container: Any) -> None:
        prefixed = {PREFIX + name: value for name, value in (annotations or {}).items()}
        made = Container(**{"name": "c", "image": "nginx", **container})
        self.pod = Pod(
            metadata=ObjectMeta(name="p", namespace="n", uid="u", generation=1, annotations=prefixed),
            spec=PodSpec(containers=[made], restart_policy=restart, termination_grace_period_seconds=30),
            status=PodStatus(phase="Pending"),
        )
        self.context = PodContext(("172.16.0.2",), ("10.128.0.2",))
        self.at = NOW
        self.next_sync: float | None = None
        self.events: list[tuple[str, str]] = []

    def sync(self, **context: Any) -> PodOnNode:
        """Sync the pod once and collect its events."""
        done = sync_pod(self.pod, replace(self.context, **context), self.at)
        self.pod.status, self.next_sync = done.status, done.next_sync
        self.context = replace(self.context, records=done.records, images=[*self.context.images, *done.pulled])
        self.events += [(each.reason, each.message) for each in done.events]
        return self

    def sync_until(self, seconds: float) -> PodOnNode:
        """Sync the pod at each requested time up to `seconds` after the start."""
        for _ in range(100):
            if self.next_sync is None or self.next_sync > NOW + seconds:
                break
            self.at = max(self.next_sync, self.at)
            self.sync()
        self.at = NOW + seconds
        return self

    def delete(self, grace: int = 30) -> PodOnNode:
        """Mark the pod as deleted now."""
        self.pod.metadata.deletion_timestamp = status_time(self.at + grace)
        self.pod.metadata.deletion_grace_period_seconds = grace
        return self

    @property
    def state(self) -> str:
        state = self.pod.status.container_statuses[0].state
        if state.waiting is not None:
            return state.waiting.reason
        return "Running" if state.running is not None else "Terminated"

    @property
    def message(self) -> str:
        waiting = self.pod.status.container_statuses[0].state.waiting
        return "" if waiting is None else waiting.message

    @property
    def is_ready(self) -> bool:
        return self.pod.status.container_statuses[0].ready

    @property
    def restarts(self) -> int:
        return self.pod.status.container_statuses[0].restart_count

    def reasons(self) -> list[str]:
        return [reason for reason, _ in self.events]

    def sync_with_result(self, kind: str, exit_code: int = 0, *, seconds: float = 0.0, output: str = "") -> PodOnNode:
        """Sync the pod with the result of a command that is due."""
        found = next(each for each in due_commands(self.pod, self.context.records, self.at) if each.kind == kind)
        done = CommandResult(found.container_id, found.number, seconds, exit_code, output, output)
        return self.sync(results={("c", kind): done})


def probe(**more: Any) -> Probe:
    return Probe(**{"period_seconds": 10, "timeout_seconds": 1, "failure_threshold": 3, "success_threshold": 1, **more})


def test_a_probe_that_always_succeeds_needs_no_further_sync() -> None:
    it = PodOnNode(liveness_probe=probe(http_get=HTTP), readiness_probe=probe(http_get=HTTP)).sync()
    assert it.is_ready
    assert it.next_sync is None
    assert it.context.records == {}


def test_what_fails_its_liveness_probe_is_started_again_and_in_the_end_has_to_wait() -> None:
    it = PodOnNode(liveness_probe=probe(http_get=HTTP), annotations={"fails-liveness": "true"}).sync()
    it.sync_until(19)
    assert it.events[4:] == [("Unhealthy", "Liveness probe failed: HTTP probe failed with statuscode: 500")] * 2
    it.sync_until(20)
    assert it.events[7] == ("Killing", "Container c failed liveness probe, will be restarted")
    assert (it.state, it.restarts) == ("Running", 1)
    it.sync_until(80)
    assert (it.state, it.restarts) == ("Running", 4)
    it.sync_until(100)
    assert (it.state, it.restarts) == ("CrashLoopBackOff", 4)
    assert it.message == "back-off 1m20s restarting failed container=c pod=p_n(u)"
    it.sync_until(181)
    assert it.restarts == 5


def test_what_is_never_started_again_stays_ended() -> None:
    it = (
        PodOnNode(restart="Never", liveness_probe=probe(http_get=HTTP), annotations={"fails-liveness": "5s"})
        .sync()
        .sync_until(30)
    )
    assert it.events[-1] == ("Killing", "Container c failed liveness probe")
    assert it.pod.status.phase == "Failed"
    ended = it.pod.status.container_statuses[0].state.terminated
    assert ended is not None
    assert (ended.exit_code, times.unix(ended.finished_at or "")) == (143, NOW + 30)


def test_a_container_that_does_not_end_in_the_grace_of_its_probe_is_killed() -> None:
    failing = probe(failure_threshold=1, termination_grace_period_seconds=5, http_get=HTTP)
    it = PodOnNode(liveness_probe=failing, annotations={"fails-liveness": "true", "stop-after": "1m"}).sync()
    assert it.next_sync == NOW + 5
    it.sync_until(5)
    ended = it.pod.status.container_statuses[0].last_state.terminated
    assert ended is not None
    assert (ended.exit_code, it.restarts, it.state) == (137, 1, "Running")


@pytest.mark.parametrize(
    ("action", "message"),
    [
        ({"http_get": HTTP}, "HTTP probe failed with statuscode: 500"),
        ({"tcp_socket": TCPSocketAction(port=80)}, "dial tcp 10.128.0.2:80: connect: connection refused"),
        ({"grpc": GRPCAction(port=80)}, 'service unhealthy (responded with "NOT_SERVING")'),
    ],
)
def test_a_readiness_probe_respects_its_thresholds(action: dict[str, Any], message: str) -> None:
    it = PodOnNode(readiness_probe=probe(success_threshold=2, **action), annotations={"fails-readiness": "25s"}).sync()
    before = it.is_ready
    it.sync_until(10)
    assert (before, it.is_ready) == (False, True)
    it.sync_until(49)
    seen = [it.is_ready]
    assert it.events[4:] == [("Unhealthy", f"Readiness probe failed: {message}")] * 2
    for seconds in (50, 60, 70):
        if seconds == 60:
            it.pod.metadata.annotations = {}
        it.sync_until(seconds)
        seen.append(it.is_ready)
    assert seen == [True, False, False, True]
    assert it.restarts == 0


def test_other_probes_wait_for_the_one_of_the_start() -> None:
    it = PodOnNode(
        startup_probe=probe(http_get=HTTP),
        liveness_probe=probe(http_get=HTTP),
        readiness_probe=probe(initial_delay_seconds=3, http_get=HTTP),
        annotations={"fails-startup": "true", "fails-liveness": "true"},
    ).sync()
    assert it.events[4:] == [("Unhealthy", "Startup probe failed: HTTP probe failed with statuscode: 500")]
    it.sync_until(20)
    assert ("Killing", "Container c failed startup probe, will be restarted") in it.events
    assert it.restarts == 1
    it.pod.metadata.annotations = {}
    it.sync_until(30)
    assert it.is_ready
    assert it.next_sync is None


def test_a_command_says_how_a_container_is() -> None:
    it = PodOnNode(liveness_probe=probe(failure_threshold=2, exec=ExecAction(command=["cat", "/tmp/well"]))).sync()
    assert it.next_sync == NOW
    it.sync_with_result(LIVENESS)
    assert it.next_sync == NOW + 10
    it.at = NOW + 10
    it.sync().sync_with_result(LIVENESS, 1, output="cat: can't open '/tmp/well': No such file or directory\n")
    it.at = NOW + 21
    it.sync_with_result(LIVENESS, seconds=2.0)
    assert it.events[4:7] == [
        ("Unhealthy", "Liveness probe failed: cat: can't open '/tmp/well': No such file or directory\n"),
        ("Unhealthy", 'Liveness probe failed: command timed out: "cat /tmp/well" timed out after 1s'),
        ("Killing", "Container c failed liveness probe, will be restarted"),
    ]
    assert it.restarts == 1


def test_an_unknown_command_counts_as_successful() -> None:
    it = PodOnNode(readiness_probe=probe(exec=ExecAction(command=["pg_isready"]))).sync()
    assert it.is_ready
    assert list(due_commands(it.pod, it.context.records, NOW)) == []


def test_after_a_restart_of_the_node_what_was_ready_stays_so() -> None:
    it = PodOnNode(readiness_probe=probe(exec=ExecAction(command=["true"]))).sync().sync_with_result(READINESS)
    assert it.is_ready
    it.context = replace(it.context, records={})
    it.at += 100
    it.sync()
    assert it.is_ready
    it.sync_with_result(READINESS, 1)
    assert it.is_ready


def hook(command: str) -> LifecycleHandler:
    return LifecycleHandler(exec=ExecAction(command=["sh", "-c", command]))


def test_a_container_runs_when_its_first_hook_has_come_to_its_end() -> None:
    it = PodOnNode(lifecycle=Lifecycle(post_start=hook("sleep 2"))).sync()
    assert (it.state, it.reasons()) == ("ContainerCreating", ["Pulling", "Pulled", "Created", "Started"])
    it.sync_with_result(POST_START, seconds=2.0)
    assert (it.state, it.next_sync) == ("ContainerCreating", NOW + 2)
    it.sync_until(2)
    assert it.state == "Running"
    running = it.pod.status.container_statuses[0].state.running
    assert running is not None
    assert times.unix(running.started_at or "") == NOW


def test_a_container_whose_first_hook_fails_is_ended_and_tried_again() -> None:
    it = PodOnNode(lifecycle=Lifecycle(post_start=hook("exit 3"))).sync().sync_with_result(POST_START, 3, output="no\n")
    assert it.state == "PostStartHookError"
    assert it.message == (
        'Exec lifecycle hook ([sh -c exit 3]) for Container "c" in Pod "p_n(u)" failed - error: '
        "command 'sh -c exit 3' exited with 3: no\n, message: \"no\\n\""
    )
    assert it.events[4:] == [("FailedPostStartHook", "PostStartHook failed"), ("Killing", "FailedPostStartHook")]
    assert it.next_sync is not None
    assert NOW + 10 <= it.next_sync <= NOW + 15
    it.sync_until(15).sync_with_result(POST_START)
    assert (it.state, it.restarts) == ("Running", 1)


def test_a_hook_may_just_sleep() -> None:
    after, before = (LifecycleHandler(sleep=SleepAction(seconds=seconds)) for seconds in (4, 9))
    it = PodOnNode(lifecycle=Lifecycle(post_start=after, pre_stop=before)).sync().sync_until(4)
    assert it.state == "Running"
    it.delete().sync()
    assert it.events[-1] == ("Killing", "Stopping container c")
    assert it.next_sync == NOW + 13
    it.sync_until(13)
    assert it.state == "Terminated"


def test_a_grace_period_is_counted_from_the_moment_of_the_deletion() -> None:
    it = PodOnNode(annotations={"stop-after": "20s"}).sync()
    it.at = NOW + 4.75
    it.delete(grace=5).sync()
    assert it.next_sync == NOW + 9.75


def test_the_time_of_a_deletion_counts_even_if_the_sync_is_late() -> None:
    it = PodOnNode(annotations={"stop-after": "20s"}).sync()
    it.delete()
    it.at = NOW + 12
    it.sync()
    assert it.next_sync == NOW + 21


def test_a_script_ends_as_its_trap_says() -> None:
    script = "trap 'sleep 5; exit 3' TERM; while true; do sleep 1; done"
    it = PodOnNode(restart="Never", command=["sh", "-c", script]).sync()
    it.at = NOW + 2
    it.delete().sync()
    assert (it.state, it.next_sync) == ("Running", NOW + 7)
    it.sync_until(7)
    terminated = it.pod.status.container_statuses[0].state.terminated
    assert terminated is not None
    assert terminated.exit_code == 3


def test_a_grace_period_may_be_longer_than_timestamps_go() -> None:
    it = PodOnNode(annotations={"stop-after": "20s"}).sync()
    it.pod.metadata.deletion_timestamp = status_time(NOW)
    it.pod.metadata.deletion_grace_period_seconds = 2**63 - 1
    it.sync()
    assert it.next_sync == NOW + 20


def test_a_second_deletion_leaves_a_container_less_time() -> None:
    it = PodOnNode(annotations={"stop-after": "100s"}).sync()
    it.delete(grace=40).sync()
    assert it.next_sync == NOW + 40
    it.at = NOW + 3
    it.delete(grace=2).sync()
    assert it.next_sync == NOW + 5
    assert it.reasons().count("Killing") == 2
    it.delete(grace=30).sync()
    assert it.next_sync == NOW + 5
    it.sync_until(5)
    assert it.state == "Terminated"


def test_a_second_deletion_may_shorten_a_pre_stop_hook() -> None:
    it = PodOnNode(lifecycle=Lifecycle(pre_stop=LifecycleHandler(sleep=SleepAction(seconds=50)))).sync()
    it.delete(grace=60).sync()
    assert it.next_sync == NOW + 50
    it.delete(grace=1).sync()
    assert it.next_sync == NOW + 1
    assert it.sync_until(3).state == "Terminated"


def test_a_command_takes_its_time_from_the_moment_of_its_start() -> None:
    it = PodOnNode(command=["sleep", "5"], restart="OnFailure")
    it.at = NOW + 0.9
    it.sync()
    assert it.next_sync == NOW + 5.9
    assert it.sync_until(6).state == "Terminated"


def test_a_container_waits_from_the_moment_of_its_end() -> None:
    it = PodOnNode(command=["sh", "-c", "sleep 1; exit 1"], annotations={"exit-code": "1", "run-for": "1s"})
    it.at = NOW + 0.5
    it.sync()
    it.sync_until(3.0)
    assert it.restarts == 1
    assert (it.state, it.next_sync) == ("CrashLoopBackOff", NOW + 12.5)


def test_probes_count_from_the_exact_start() -> None:
    it = PodOnNode(readiness_probe=Probe(initial_delay_seconds=3, http_get=HTTP))
    it.at = NOW + 0.25
    assert it.sync().next_sync == NOW + 3.25


def test_the_last_hook_takes_from_the_grace_of_the_pod() -> None:
    it = PodOnNode(lifecycle=Lifecycle(pre_stop=hook("sleep 60")), annotations={"stop-after": "5s"}).sync()
    it.delete().sync().sync_with_result(PRE_STOP, seconds=60.0)
    assert it.next_sync == NOW + 32
    it.sync_until(32)
    ended = it.pod.status.container_statuses[0].state.terminated
    assert ended is not None
    assert ended.exit_code == 137
    assert it.reasons().count("Killing") == 1


def test_a_failed_pre_stop_hook_is_reported() -> None:
    it = PodOnNode(lifecycle=Lifecycle(pre_stop=hook("exit 1"))).sync().delete().sync().sync_with_result(PRE_STOP, 1)
    assert it.events[4:] == [("Killing", "Stopping container c"), ("FailedPreStopHook", "PreStopHook failed")]
    assert it.state == "Terminated"


def test_what_is_to_be_gone_at_once_has_no_last_hook() -> None:
    it = PodOnNode(lifecycle=Lifecycle(pre_stop=hook("sleep 5"))).sync().delete(grace=0).sync()
    assert it.state == "Terminated"


def test_a_container_that_cannot_be_made_is_tried_again_after_a_while() -> None:
    it = PodOnNode(image_pull_policy="Always").sync(config_error=lambda _: 'configmap "no" not found')
    assert (it.state, it.message) == ("CreateContainerConfigError", 'configmap "no" not found')
    assert it.events[2:] == [("Failed", 'Error: configmap "no" not found')]
    assert it.sync(config_error=lambda _: 'configmap "no" not found').events[3:] == []
    assert it.next_sync is not None
    it.at = it.next_sync
    it.sync(config_error=lambda _: 'configmap "no" not found')
    assert it.reasons()[3:] == ["Pulling", "Pulled", "Failed"]
    assert it.sync().state == "Running"


def test_an_image_may_have_to_be_there_already() -> None:
    it = PodOnNode(image="nginx:1", image_pull_policy="Never").sync()
    assert it.events[0] == (
        "Pulled",
        'Container image "nginx:1" already present on machine and can be accessed by the pod',
    )
    it = PodOnNode(image="nginx:1", image_pull_policy="Never", annotations={"pull-error": "true"}).sync()
    text = 'Container image "nginx:1" is not present with pull policy of Never'
    assert (it.state, it.message) == ("ErrImageNeverPull", text)
    assert it.events == [("ErrImageNeverPull", text), ("Failed", "Error: ErrImageNeverPull")]
    assert it.sync().events[2:] == []
    it.pod.metadata.annotations = {}
    assert it.sync().state == "Running"


@pytest.mark.parametrize(
    ("image", "why"),
    [
        ("Nginx", "invalid reference format: repository name (library/Nginx) must be lowercase"),
        ("nginx:", "invalid reference format"),
        ("nginx:a b", "invalid reference format"),
        ("a" * 64, f"invalid repository name ({'a' * 64}), cannot specify 64-byte hexadecimal strings"),
        ("a" * 256, "repository name must not be more than 255 characters"),
    ],
)
def test_a_name_may_be_none_of_an_image(image: str, why: str) -> None:
    it = PodOnNode(image=image).sync()
    text = f'Failed to apply default image tag "{image}": couldn\'t parse image name "{image}": {why}'
    assert (it.state, it.message) == ("InvalidImageName", text)
    assert it.events == [("InspectFailed", text), ("Failed", "Error: InvalidImageName")]


@pytest.mark.parametrize("image", ["a." * 1_000_000 + "b/c", "c:" + "b" * 2_000_000, "A" * 2_000_000])
def test_of_a_name_of_megabytes_a_part_is_shown(image: str) -> None:
    it = PodOnNode(image=image).sync()
    assert it.state == "InvalidImageName"
    assert it.message.endswith(": repository name must not be more than 255 characters")
    assert max(len(it.message), len(it.pod.status.container_statuses[0].image)) < 3_000
    assert max(len(text) for _, text in it.events) < 3_000


def test_names_of_255_characters_are_good() -> None:
    assert PodOnNode(image="a.b:5000/" + "c" * 255 + ":" + "d" * 128 + "@sha256:" + "e" * 64).sync().state == "Running"


@pytest.mark.parametrize("image", ["nginx", "a/b_c/d--e:V1.0", "Host/a", "localhost:5000/a@sha256:" + "0" * 64])
def test_names_of_images_are_taken(image: str) -> None:
    assert PodOnNode(image=image).sync().state == "Running"


def test_the_pull_of_a_new_image_takes_the_configured_time() -> None:
    it = PodOnNode(annotations={"pull-time": "1500ms"}).sync()
    assert (it.state, it.events, it.next_sync) == (
        "ContainerCreating",
        [("Pulling", 'Pulling image "nginx"')],
        NOW + 1.5,
    )
    it.sync_until(1.5)
    assert it.state == "Running"
    assert it.events[1][1].startswith(
        'Successfully pulled image "nginx" in 1.5s (1.5s including waiting). Image size: '
    )
    there = PodOnNode(annotations={"pull-time": "1500ms"})
    there.context = replace(there.context, images=it.context.images)
    assert there.sync().state == "Running"
