"""What becomes of containers that are looked after, have hooks, or cannot start."""

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
HTTP = {"http_get": HTTPGetAction(path="/", port=80)}


class Living:
    """A pod with one container on a node that remembers; `at` is its time."""

    def __init__(self, *, restart: str = "Always", annotations: dict[str, str] | None = None, **container: Any) -> None:
        said = {PREFIX + name: value for name, value in (annotations or {}).items()}
        made = Container(**{"name": "c", "image": "nginx", **container})
        self.pod = Pod(
            metadata=ObjectMeta(name="p", namespace="n", uid="u", generation=1, annotations=said),
            spec=PodSpec(containers=[made], restart_policy=restart, termination_grace_period_seconds=30),
            status=PodStatus(phase="Pending"),
        )
        self.place = PodContext(("172.16.0.2",), ("10.128.0.2",))
        self.at = NOW
        self.next_sync: float | None = None
        self.told: list[tuple[str, str]] = []

    def look(self, **place: Any) -> Living:
        """One look; what it tells is added to what was told."""
        done = sync_pod(self.pod, replace(self.place, **place), self.at)
        self.pod.status, self.next_sync = done.status, done.next_sync
        self.place = replace(self.place, records=done.records, images=[*self.place.images, *done.pulled])
        self.told += [(each.reason, each.message) for each in done.events]
        return self

    def until(self, seconds: float) -> Living:
        """Looks whenever that was asked for, until so long after the beginning."""
        for _ in range(100):
            if self.next_sync is None or self.next_sync > NOW + seconds:
                break
            self.at = max(self.next_sync, self.at)
            self.look()
        self.at = NOW + seconds
        return self

    def deleted(self, grace: int = 30) -> Living:
        """Has the pod deleted now."""
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
        return [reason for reason, _ in self.told]

    def ran(self, kind: str, exit_code: int = 0, *, seconds: float = 0.0, output: str = "") -> Living:
        """Looks with what came of a command that is wanted."""
        found = next(each for each in due_commands(self.pod, self.place.records, self.at) if each.kind == kind)
        done = CommandResult(found.container_id, found.number, seconds, exit_code, output, output)
        return self.look(results={("c", kind): done})


def probe(**more: Any) -> Probe:
    return Probe(**{"period_seconds": 10, "timeout_seconds": 1, "failure_threshold": 3, "success_threshold": 1, **more})


def test_a_probe_that_finds_what_it_looks_for_costs_no_further_look() -> None:
    it = Living(liveness_probe=probe(**HTTP), readiness_probe=probe(**HTTP)).look()
    assert it.is_ready
    assert it.next_sync is None
    assert it.place.records == {}


def test_what_fails_its_liveness_probe_is_started_again_and_in_the_end_has_to_wait() -> None:
    it = Living(liveness_probe=probe(**HTTP), annotations={"fails-liveness": "true"}).look()
    it.until(19)
    assert it.told[4:] == [("Unhealthy", "Liveness probe failed: HTTP probe failed with statuscode: 500")] * 2
    it.until(20)
    assert it.told[7] == ("Killing", "Container c failed liveness probe, will be restarted")
    assert (it.state, it.restarts) == ("Running", 1)
    it.until(80)
    assert (it.state, it.restarts) == ("Running", 4)
    it.until(100)
    assert (it.state, it.restarts) == ("CrashLoopBackOff", 4)
    assert it.message == "back-off 1m20s restarting failed container=c pod=p_n(u)"
    it.until(181)
    assert it.restarts == 5


def test_what_is_never_started_again_stays_ended() -> None:
    it = Living(restart="Never", liveness_probe=probe(**HTTP), annotations={"fails-liveness": "5s"}).look().until(30)
    assert it.told[-1] == ("Killing", "Container c failed liveness probe")
    assert it.pod.status.phase == "Failed"
    ended = it.pod.status.container_statuses[0].state.terminated
    assert ended is not None
    assert (ended.exit_code, times.unix(ended.finished_at or "")) == (143, NOW + 30)


def test_a_container_that_does_not_end_in_the_grace_of_its_probe_is_killed() -> None:
    failing = probe(failure_threshold=1, termination_grace_period_seconds=5, **HTTP)
    it = Living(liveness_probe=failing, annotations={"fails-liveness": "true", "stop-after": "1m"}).look()
    assert it.next_sync == NOW + 5
    it.until(5)
    ended = it.pod.status.container_statuses[0].last_state.terminated
    assert ended is not None
    assert (ended.exit_code, it.restarts, it.state) == (137, 1, "Running")


@pytest.mark.parametrize(
    ("action", "said"),
    [
        (HTTP, "HTTP probe failed with statuscode: 500"),
        ({"tcp_socket": TCPSocketAction(port=80)}, "dial tcp 10.128.0.2:80: connect: connection refused"),
        ({"grpc": GRPCAction(port=80)}, 'service unhealthy (responded with "NOT_SERVING")'),
    ],
)
def test_a_readiness_probe_has_to_fail_and_succeed_as_often_as_it_says(action: dict[str, Any], said: str) -> None:
    it = Living(readiness_probe=probe(success_threshold=2, **action), annotations={"fails-readiness": "25s"}).look()
    before = it.is_ready
    it.until(10)
    assert (before, it.is_ready) == (False, True)
    it.until(49)
    seen = [it.is_ready]
    assert it.told[4:] == [("Unhealthy", f"Readiness probe failed: {said}")] * 2
    for seconds in (50, 60, 70):
        if seconds == 60:
            it.pod.metadata.annotations = {}
        it.until(seconds)
        seen.append(it.is_ready)
    assert seen == [True, False, False, True]
    assert it.restarts == 0


def test_other_probes_wait_for_the_one_of_the_start() -> None:
    it = Living(
        startup_probe=probe(**HTTP),
        liveness_probe=probe(**HTTP),
        readiness_probe=probe(initial_delay_seconds=3, **HTTP),
        annotations={"fails-startup": "true", "fails-liveness": "true"},
    ).look()
    assert it.told[4:] == [("Unhealthy", "Startup probe failed: HTTP probe failed with statuscode: 500")]
    it.until(20)
    assert ("Killing", "Container c failed startup probe, will be restarted") in it.told
    assert it.restarts == 1
    it.pod.metadata.annotations = {}
    it.until(30)
    assert it.is_ready
    assert it.next_sync is None


def test_a_command_says_how_a_container_is() -> None:
    it = Living(liveness_probe=probe(failure_threshold=2, exec=ExecAction(command=["cat", "/tmp/well"]))).look()
    assert it.next_sync == NOW
    it.ran(LIVENESS)
    assert it.next_sync == NOW + 10
    it.at = NOW + 10
    it.look().ran(LIVENESS, 1, output="cat: can't open '/tmp/well': No such file or directory\n")
    it.at = NOW + 21
    it.ran(LIVENESS, seconds=2.0)
    assert it.told[4:7] == [
        ("Unhealthy", "Liveness probe failed: cat: can't open '/tmp/well': No such file or directory\n"),
        ("Unhealthy", 'Liveness probe failed: command timed out: "cat /tmp/well" timed out after 1s'),
        ("Killing", "Container c failed liveness probe, will be restarted"),
    ]
    assert it.restarts == 1


def test_a_command_that_nobody_knows_counts_as_done_well() -> None:
    it = Living(readiness_probe=probe(exec=ExecAction(command=["pg_isready"]))).look()
    assert it.is_ready
    assert list(due_commands(it.pod, it.place.records, NOW)) == []


def test_after_a_restart_of_the_node_what_was_ready_stays_so() -> None:
    it = Living(readiness_probe=probe(exec=ExecAction(command=["true"]))).look().ran(READINESS)
    assert it.is_ready
    it.place = replace(it.place, records={})
    it.at += 100
    it.look()
    assert it.is_ready
    it.ran(READINESS, 1)
    assert it.is_ready


def hook(command: str) -> LifecycleHandler:
    return LifecycleHandler(exec=ExecAction(command=["sh", "-c", command]))


def test_a_container_runs_when_its_first_hook_has_come_to_its_end() -> None:
    it = Living(lifecycle=Lifecycle(post_start=hook("sleep 2"))).look()
    assert (it.state, it.reasons()) == ("ContainerCreating", ["Pulling", "Pulled", "Created", "Started"])
    it.ran(POST_START, seconds=2.0)
    assert (it.state, it.next_sync) == ("ContainerCreating", NOW + 2)
    it.until(2)
    assert it.state == "Running"
    running = it.pod.status.container_statuses[0].state.running
    assert running is not None
    assert times.unix(running.started_at or "") == NOW


def test_a_container_whose_first_hook_fails_is_ended_and_tried_again() -> None:
    it = Living(lifecycle=Lifecycle(post_start=hook("exit 3"))).look().ran(POST_START, 3, output="no\n")
    assert it.state == "PostStartHookError"
    assert it.message == (
        'Exec lifecycle hook ([sh -c exit 3]) for Container "c" in Pod "p_n(u)" failed - error: '
        "command 'sh -c exit 3' exited with 3: no\n, message: \"no\\n\""
    )
    assert it.told[4:] == [("FailedPostStartHook", "PostStartHook failed"), ("Killing", "FailedPostStartHook")]
    assert it.next_sync is not None
    assert NOW + 10 <= it.next_sync <= NOW + 15
    it.until(15).ran(POST_START)
    assert (it.state, it.restarts) == ("Running", 1)


def test_a_hook_may_just_sleep() -> None:
    after, before = (LifecycleHandler(sleep=SleepAction(seconds=seconds)) for seconds in (4, 9))
    it = Living(lifecycle=Lifecycle(post_start=after, pre_stop=before)).look().until(4)
    assert it.state == "Running"
    it.deleted().look()
    assert it.told[-1] == ("Killing", "Stopping container c")
    assert it.next_sync == NOW + 13
    it.until(13)
    assert it.state == "Terminated"


def test_a_grace_period_is_counted_from_the_moment_of_the_deletion() -> None:
    it = Living(annotations={"stop-after": "20s"}).look()
    it.at = NOW + 4.75
    it.deleted(grace=5).look()
    assert it.next_sync == NOW + 9.75


def test_a_deletion_that_was_told_of_while_nobody_looked_is_not_begun_anew() -> None:
    it = Living(annotations={"stop-after": "20s"}).look()
    it.deleted()
    it.at = NOW + 12
    it.look()
    assert it.next_sync == NOW + 21


def test_a_script_ends_as_its_trap_says() -> None:
    script = "trap 'sleep 5; exit 3' TERM; while true; do sleep 1; done"
    it = Living(restart="Never", command=["sh", "-c", script]).look()
    it.at = NOW + 2
    it.deleted().look()
    assert (it.state, it.next_sync) == ("Running", NOW + 7)
    it.until(7)
    assert it.pod.status.container_statuses[0].state.terminated.exit_code == 3


def test_a_grace_period_may_be_longer_than_timestamps_go() -> None:
    it = Living(annotations={"stop-after": "20s"}).look()
    it.pod.metadata.deletion_timestamp = status_time(NOW)
    it.pod.metadata.deletion_grace_period_seconds = 2**63 - 1
    it.look()
    assert it.next_sync == NOW + 20


def test_a_second_deletion_leaves_a_container_less_time() -> None:
    it = Living(annotations={"stop-after": "100s"}).look()
    it.deleted(grace=40).look()
    assert it.next_sync == NOW + 40
    it.at = NOW + 3
    it.deleted(grace=2).look()
    assert it.next_sync == NOW + 5
    assert it.reasons().count("Killing") == 2
    it.deleted(grace=30).look()
    assert it.next_sync == NOW + 5
    it.until(5)
    assert it.state == "Terminated"


def test_a_second_deletion_gives_a_last_hook_its_time_anew() -> None:
    it = Living(lifecycle=Lifecycle(pre_stop=LifecycleHandler(sleep=SleepAction(seconds=50)))).look()
    it.deleted(grace=60).look()
    assert it.next_sync == NOW + 50
    it.deleted(grace=1).look()
    assert it.next_sync == NOW + 1
    assert it.until(3).state == "Terminated"


def test_a_command_takes_its_time_from_the_moment_of_its_start() -> None:
    it = Living(command=["sleep", "5"], restart="OnFailure")
    it.at = NOW + 0.9
    it.look()
    assert it.next_sync == NOW + 5.9
    assert it.until(6).state == "Terminated"


def test_a_container_waits_from_the_moment_of_its_end() -> None:
    it = Living(command=["sh", "-c", "sleep 1; exit 1"], annotations={"exit-code": "1", "run-for": "1s"})
    it.at = NOW + 0.5
    it.look()
    it.until(3.0)
    assert it.restarts == 1
    assert (it.state, it.next_sync) == ("CrashLoopBackOff", NOW + 12.5)


def test_probes_look_from_the_moment_of_the_start() -> None:
    it = Living(readiness_probe=Probe(initial_delay_seconds=3, **HTTP))
    it.at = NOW + 0.25
    assert it.look().next_sync == NOW + 3.25


def test_the_last_hook_takes_from_the_grace_of_the_pod() -> None:
    it = Living(lifecycle=Lifecycle(pre_stop=hook("sleep 60")), annotations={"stop-after": "5s"}).look()
    it.deleted().look().ran(PRE_STOP, seconds=60.0)
    assert it.next_sync == NOW + 32
    it.until(32)
    ended = it.pod.status.container_statuses[0].state.terminated
    assert ended is not None
    assert ended.exit_code == 137
    assert it.reasons().count("Killing") == 1


def test_a_last_hook_that_fails_is_told_of() -> None:
    it = Living(lifecycle=Lifecycle(pre_stop=hook("exit 1"))).look().deleted().look().ran(PRE_STOP, 1)
    assert it.told[4:] == [("Killing", "Stopping container c"), ("FailedPreStopHook", "PreStopHook failed")]
    assert it.state == "Terminated"


def test_what_is_to_be_gone_at_once_has_no_last_hook() -> None:
    it = Living(lifecycle=Lifecycle(pre_stop=hook("sleep 5"))).look().deleted(grace=0).look()
    assert it.state == "Terminated"


def test_a_container_that_cannot_be_made_is_tried_again_after_a_while() -> None:
    it = Living(image_pull_policy="Always").look(config_error=lambda _: 'configmap "no" not found')
    assert (it.state, it.message) == ("CreateContainerConfigError", 'configmap "no" not found')
    assert it.told[2:] == [("Failed", 'Error: configmap "no" not found')]
    assert it.look(config_error=lambda _: 'configmap "no" not found').told[3:] == []
    assert it.next_sync is not None
    it.at = it.next_sync
    it.look(config_error=lambda _: 'configmap "no" not found')
    assert it.reasons()[3:] == ["Pulling", "Pulled", "Failed"]
    assert it.look().state == "Running"


def test_an_image_may_have_to_be_there_already() -> None:
    it = Living(image="nginx:1", image_pull_policy="Never").look()
    assert it.told[0] == (
        "Pulled",
        'Container image "nginx:1" already present on machine and can be accessed by the pod',
    )
    it = Living(image="nginx:1", image_pull_policy="Never", annotations={"pull-error": "true"}).look()
    text = 'Container image "nginx:1" is not present with pull policy of Never'
    assert (it.state, it.message) == ("ErrImageNeverPull", text)
    assert it.told == [("ErrImageNeverPull", text), ("Failed", "Error: ErrImageNeverPull")]
    assert it.look().told[2:] == []
    it.pod.metadata.annotations = {}
    assert it.look().state == "Running"


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
    it = Living(image=image).look()
    text = f'Failed to apply default image tag "{image}": couldn\'t parse image name "{image}": {why}'
    assert (it.state, it.message) == ("InvalidImageName", text)
    assert it.told == [("InspectFailed", text), ("Failed", "Error: InvalidImageName")]


@pytest.mark.parametrize("image", ["a." * 1_000_000 + "b/c", "c:" + "b" * 2_000_000, "A" * 2_000_000])
def test_of_a_name_of_megabytes_a_part_is_shown(image: str) -> None:
    it = Living(image=image).look()
    assert it.state == "InvalidImageName"
    assert it.message.endswith(": repository name must not be more than 255 characters")
    assert max(len(it.message), len(it.pod.status.container_statuses[0].image)) < 3_000
    assert max(len(text) for _, text in it.told) < 3_000


def test_names_of_255_characters_are_good() -> None:
    assert Living(image="a.b:5000/" + "c" * 255 + ":" + "d" * 128 + "@sha256:" + "e" * 64).look().state == "Running"


@pytest.mark.parametrize("image", ["nginx", "a/b_c/d--e:V1.0", "Host/a", "localhost:5000/a@sha256:" + "0" * 64])
def test_names_of_images_are_taken(image: str) -> None:
    assert Living(image=image).look().state == "Running"


def test_a_pull_takes_the_time_that_is_said_where_the_image_is_new() -> None:
    it = Living(annotations={"pull-time": "1500ms"}).look()
    assert (it.state, it.told, it.next_sync) == ("ContainerCreating", [("Pulling", 'Pulling image "nginx"')], NOW + 1.5)
    it.until(1.5)
    assert it.state == "Running"
    assert it.told[1][1].startswith('Successfully pulled image "nginx" in 1.5s (1.5s including waiting). Image size: ')
    there = Living(annotations={"pull-time": "1500ms"})
    there.place = replace(there.place, images=it.place.images)
    assert there.look().state == "Running"
