"""Containers that run programs which are not simulated."""

from __future__ import annotations

import pytest

from steersman.api.core.v1 import Container, EphemeralContainer, Pod, PodSpec
from steersman.api.meta.v1 import ObjectMeta, OwnerReference
from steersman.nodes.behaviour import Behaviour, behaviour_of
from steersman.nodes.rehearsal import Unknown

JOB = OwnerReference(api_version="batch/v1", kind="Job", name="j", uid="1", controller=True)


def behaves(
    *command: str, restart: str = "Always", annotations: dict[str, str] | None = None, default: Unknown | None = None
) -> Behaviour:
    container = Container(name="c", image="registry/postgres:17", command=list(command))
    metadata = ObjectMeta(name="p", annotations=annotations or {})
    return behaviour_of(
        Pod(metadata=metadata, spec=PodSpec(containers=[container], restart_policy=restart)), container, default=default
    )


@pytest.mark.parametrize(("restart", "seconds"), [("Always", None), ("Never", 0.0), ("OnFailure", 0.0)])
def test_a_container_that_is_to_end_ends_well(restart: str, seconds: float | None) -> None:
    found = behaves("psql", "-h", "db", "-c", "select 1", restart=restart)
    assert (found.runs_for, found.exit_code, found.not_simulated) == (seconds, 0, "psql")


def test_its_script_goes_on() -> None:
    found = behaves("sh", "-c", "psql -f a && sleep 3; exit 4", restart="Never")
    assert (found.runs_for, found.exit_code, found.not_simulated) == (3.0, 4, "psql")
    assert behaves("sh", "-c", "psql -f a; exit 4").runs_for is None


def test_the_image_s_own_command_runs() -> None:
    found = behaves(restart="Never")
    assert (found.runs_for, found.not_simulated) == (None, "")
    image = Container(name="c", image="registry/tool:1", args=["--serve"])
    pod = Pod(metadata=ObjectMeta(name="p"), spec=PodSpec(containers=[image]))
    assert behaviour_of(pod, image).not_simulated == "tool:1"


def test_a_switch_has_them_fail() -> None:
    found = behaves("psql", default=Unknown.FAIL)
    assert (found.runs_for, found.exit_code, found.reason) == (0.0, 128, "StartError")
    assert 'exec: "psql": executable file not found in $PATH' in found.message
    said = {"simulation.steersman.dev/unknown-programs": "fail"}
    assert behaves("sh", "-c", "psql; exit $?", restart="Never", annotations=said).exit_code == 127
    said = {"simulation.steersman.dev/unknown-programs.c": "run"}
    assert behaves("psql", restart="Never", annotations=said, default=Unknown.FAIL).runs_for is None


def test_annotations_say_more_than_the_switch() -> None:
    said = {"simulation.steersman.dev/run-for": "5s", "simulation.steersman.dev/exit-code": "2"}
    found = behaves("psql", annotations=said, default=Unknown.FAIL)
    assert (found.runs_for, found.exit_code, found.reason, found.not_simulated) == (5.0, 2, "", "")


def test_in_a_container_for_debugging_they_are_not_found() -> None:
    container = EphemeralContainer(name="d", command=["sh", "-c", "strace -p 1; echo $?; exit 3"])
    pod = Pod(metadata=ObjectMeta(name="p"), spec=PodSpec(containers=[Container(name="c", image="x")]))
    found = behaviour_of(pod, container)
    assert (found.runs_for, found.exit_code, found.not_simulated) == (0.0, 3, "")
