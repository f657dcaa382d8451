"""Limit on the size of environment variables and arguments, as for a process."""

from __future__ import annotations

import pytest

from steersman.api.core.v1 import Container, EnvVar, Pod, PodSpec
from steersman.api.meta.v1 import ObjectMeta
from steersman.nodes.behaviour import behaviour_of
from steersman.nodes.initial_world import command_of, plain_variables
from steersman.nodes.variables import MOST_ARGUMENT, ArgumentsTooLong, Variables, expanded

BOMB = [EnvVar(name="A0", value="x" * 1000)] + [
    EnvVar(name=f"A{level}", value=f"$(A{level - 1})" * 400) for level in range(1, 12)
]
"""Each level makes the value 400 times as long."""


def pod_of(env: list[EnvVar], *command: str, **annotations: str) -> tuple[Pod, Container]:
    container = Container(name="c", image="busybox", command=list(command), env=env)
    said = {f"simulation.steersman.dev/{key.replace('_', '-')}": value for key, value in annotations.items()}
    return Pod(metadata=ObjectMeta(name="p", annotations=said), spec=PodSpec(containers=[container])), container


def test_variables_that_name_variables_are_not_made_longer_than_a_process_may_have_them() -> None:
    with pytest.raises(ArgumentsTooLong):
        plain_variables(*pod_of(BOMB))


def test_an_argument_may_be_nearly_as_long_as_linux_takes_it() -> None:
    variables = {"A": "x" * 1000}
    assert len(expanded("$(A)" * 131, variables)) == 131_000
    with pytest.raises(ArgumentsTooLong):
        expanded("$(A)" * 132, variables)


def test_all_variables_share_the_room_of_a_process() -> None:
    variables = Variables({f"V{number}": "x" * (MOST_ARGUMENT // 2) for number in range(31)})
    with pytest.raises(ArgumentsTooLong):
        variables.put("V31", "x" * (MOST_ARGUMENT // 2))


def test_a_container_whose_arguments_are_too_long_does_not_start() -> None:
    behaves = behaviour_of(*pod_of(BOMB, "sh", "-c", "echo $(A11)"))
    assert (behaves.runs_for, behaves.exit_code, behaves.reason) == (0.0, 128, "StartError")
    assert behaves.message.endswith('exec: "sh": argument list too long')
    many = behaviour_of(*pod_of([EnvVar(name="A", value="x" * 100_000)], "sh", *["$(A)"] * 30))
    assert many.reason == "StartError"


def test_annotations_say_more_than_a_command_that_cannot_start() -> None:
    behaves = behaviour_of(*pod_of(BOMB, "sh", "$(A11)", run_for="5s"))
    assert (behaves.runs_for, behaves.reason) == (5.0, "")


def test_a_command_that_is_too_long_is_shown_as_it_was_given() -> None:
    _, container = pod_of([], "echo", "$(A)" * 1000)
    assert command_of(container, {"A": "x" * 1000}) == ["echo", "$(A)" * 1000]


def test_durations_of_annotations_are_short() -> None:
    assert behaviour_of(*pod_of([], run_for="1ns" * 60_000)).runs_for == 0.0
    assert behaviour_of(*pod_of([], run_for="1h" * 30)).runs_for == 30 * 3600
