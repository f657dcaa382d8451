"""Behaviour of containers, and where it is configured."""

from __future__ import annotations

import pytest

from steersman.api.core.v1 import (
    ConfigMapVolumeSource,
    Container,
    Pod,
    PodSecurityContext,
    PodSpec,
    SecurityContext,
    Volume,
    VolumeMount,
)
from steersman.api.meta.v1 import ObjectMeta, OwnerReference
from steersman.nodes.behaviour import behaviour_of
from steersman.nodes.context import StartSnapshot

JOB = OwnerReference(api_version="batch/v1", kind="Job", name="j", uid="1", controller=True)


def runs_for(image: str, *command: str, owner: OwnerReference | None = JOB) -> float | None:
    container = Container(name="c", image=image, command=list(command))
    metadata = ObjectMeta(name="p", owner_references=[] if owner is None else [owner])
    return behaviour_of(Pod(metadata=metadata, spec=PodSpec(containers=[container])), container).runs_for


@pytest.mark.parametrize(
    ("image", "command", "seconds"),
    [
        ("busybox", (), 0.0),
        ("busybox", ("unheard-of",), 0.0),
        ("busybox", ("sleep", "3"), 3.0),
        ("busybox", ("sh", "-c", "while true; do sleep 1; done"), None),
        ("registry.k8s.io/pause:3.10", (), None),
        ("pause", (), None),
        ("menopause:1", (), 0.0),
    ],
)
def test_containers_of_jobs_end_unless_they_are_known_to_go_on(
    image: str, command: tuple[str, ...], seconds: float | None
) -> None:
    assert runs_for(image, *command) == seconds


def test_init_containers_end_and_sidecars_go_on() -> None:
    init, sidecar = Container(name="i", image="busybox"), Container(name="s", image="busybox", restart_policy="Always")
    pod = Pod(spec=PodSpec(containers=[Container(name="c", image="nginx")], init_containers=[init, sidecar]))
    assert behaviour_of(pod, init).runs_for == 0.0
    assert behaviour_of(pod, sidecar).runs_for is None


def test_other_containers_run_for_ever_unless_their_command_ends() -> None:
    assert runs_for("busybox", owner=None) is None
    assert runs_for("busybox", "unheard-of", owner=None) is None
    assert runs_for("busybox", "true", owner=None) == 0.0


@pytest.mark.parametrize(
    ("script", "policy", "message"),
    [
        ("echo -n done > /dev/termination-log", "File", "done"),
        ("echo why; false", "File", ""),
        ("echo why; false", "FallbackToLogsOnError", "why\n"),
        ("echo why", "FallbackToLogsOnError", ""),
        ("echo a > /dev/termination-log; echo b; false", "FallbackToLogsOnError", "a\n"),
    ],
)
def test_a_message_is_what_was_left_in_its_file_or_the_end_of_the_log(script: str, policy: str, message: str) -> None:
    container = Container(
        name="c",
        image="busybox",
        command=["sh", "-c", script],
        termination_message_path="/dev/termination-log",
        termination_message_policy=policy,
    )
    assert behaviour_of(Pod(spec=PodSpec(containers=[container])), container).message == message


def test_a_message_is_bounded() -> None:
    container = Container(
        name="c", command=["sh", "-c", "seq 1 5000; false"], termination_message_policy="FallbackToLogsOnError"
    )
    message = behaviour_of(Pod(spec=PodSpec(containers=[container])), container).message
    assert message.splitlines() == [str(each) for each in range(4921, 5001)]


def test_commands_run_as_whom_the_pod_says() -> None:
    shared = PodSecurityContext(run_as_user=1001, run_as_group=7)
    own = SecurityContext(run_as_user=65534)
    for security, code in ((own, 0), (None, 1)):
        script = "test $(id -u) -eq 65534 && test $(id -g) -eq 7"
        container = Container(name="c", command=["sh", "-c", script], security_context=security)
        spec = PodSpec(containers=[container], security_context=shared)
        assert behaviour_of(Pod(spec=spec), container).exit_code == code


def test_what_a_container_finds_in_its_volumes_is_there() -> None:
    mount = VolumeMount(name="e", mount_path="/data")
    container = Container(name="c", command=["sh", "-c", "exit $(cat /data/n)"], volume_mounts=[mount])
    start = StartSnapshot("c", {"/data/n": b"3"}, {}, 8)
    assert behaviour_of(Pod(spec=PodSpec(containers=[container])), container, start).exit_code == 3


def test_files_that_are_much_are_taken_to_be_there() -> None:
    mount = VolumeMount(name="e", mount_path="/data")
    container = Container(name="c", command=["test", "-f", "/data/n"], volume_mounts=[mount])
    start = StartSnapshot("c", {"/data/n": bytes(9000)}, {}, 9007)
    assert behaviour_of(Pod(spec=PodSpec(containers=[container])), container, start).exit_code == 0


def test_folders_of_volumes_are_there() -> None:
    mount = VolumeMount(name="e", mount_path="/scratch/")
    container = Container(name="c", command=["test", "-d", "/scratch"], volume_mounts=[mount])
    assert behaviour_of(Pod(spec=PodSpec(containers=[container])), container).exit_code == 0


def test_files_of_volumes_are_taken_to_be_there() -> None:
    mount = VolumeMount(name="m", mount_path="/cfg")
    container = Container(name="c", command=["cat", "/cfg/a"], volume_mounts=[mount])
    volume = Volume(name="m", config_map=ConfigMapVolumeSource(name="m"))
    assert behaviour_of(Pod(spec=PodSpec(containers=[container], volumes=[volume])), container).exit_code == 0
    assert behaviour_of(Pod(spec=PodSpec(containers=[container])), container).exit_code == 1
