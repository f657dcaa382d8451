"""What a container does, and who says so."""

from __future__ import annotations

import pytest

from steersman.api.core.v1 import Container, Pod, PodSpec
from steersman.api.meta.v1 import ObjectMeta, OwnerReference
from steersman.nodes.behaviour import behaviour_of

JOB = OwnerReference(api_version="batch/v1", kind="Job", name="j", uid="1", controller=True)


def runs_for(image: str, *command: str, owner: OwnerReference | None = JOB) -> float | None:
    container = Container(name="c", image=image, command=list(command))
    metadata = ObjectMeta(name="p", owner_references=[] if owner is None else [owner])
    return behaviour_of(Pod(metadata=metadata, spec=PodSpec(containers=[container])), container).runs_for


@pytest.mark.parametrize(("image", "command", "seconds"), [
    ("busybox", (), 0.0), ("busybox", ("unheard-of",), 0.0), ("busybox", ("sleep", "3"), 3.0),
    ("busybox", ("sh", "-c", "while true; do sleep 1; done"), None), ("registry.k8s.io/pause:3.10", (), None),
    ("pause", (), None), ("menopause:1", (), 0.0),
])  # fmt: skip
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
