"""What a simulated container does: how long it runs, and how it ends.

An annotation of the pod says it, for one container or for all; else the command, where that is a script of programs that
there are (`rehearsal`); else it runs for ever, but in the pods of a Job, where it ends well after a moment.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from steersman.api.core.v1 import Container, EphemeralContainer, Pod
from steersman.machinery.values.durations import DurationError, parse_duration
from steersman.nodes.rehearsal import Outcome, outcome
from steersman.nodes.surroundings import command_of, plain_variables

PREFIX: Final = "simulation.steersman.dev/"
"""Of annotations: `run-for` (a duration, or `forever`), `exit-code`, `ready-after`, `stop-after`. With `.NAME` behind,
they are about one container."""

_JOB_RUNS_FOR: Final = 0.0


@dataclass(frozen=True, slots=True)
class Behaviour:
    """Times are in seconds."""

    runs_for: float | None = None
    """None: until it is stopped."""
    exit_code: int = 0
    ready_after: float = 0.0
    """From its start on, beside what its probes say."""
    stops_after: float = 0.0
    """How long it takes to end when it is told to; at most its grace period."""


def behaviour_of(pod: Pod, container: Container | EphemeralContainer) -> Behaviour:
    """What a container of a pod does."""
    runs_for, exit_code = _by_command(pod, container)
    owners = pod.metadata.owner_references
    if runs_for is None and any(each.kind == "Job" and each.controller for each in owners):
        runs_for = _JOB_RUNS_FOR
    annotations = pod.metadata.annotations
    if not any(key.startswith(PREFIX) for key in annotations):
        return Behaviour(runs_for, exit_code)

    def said(what: str) -> str:
        return said_of(pod, container.name, what)

    if said("run-for"):
        runs_for = None if said("run-for") == "forever" else _duration(said("run-for"))
    if said("exit-code"):
        exit_code = _exit_code(said("exit-code"))
        runs_for = 0.0 if runs_for is None else runs_for
    return Behaviour(runs_for, exit_code, _duration(said("ready-after")), _duration(said("stop-after")))


def said_of(pod: Pod, container: str, what: str) -> str:
    """What an annotation of the pod says of a container, by its name or of all; "" for nothing."""
    annotations = pod.metadata.annotations
    return annotations.get(f"{PREFIX}{what}.{container}") or annotations.get(PREFIX + what, "")


def _by_command(pod: Pod, container: Container | EphemeralContainer) -> Outcome:
    words = (*container.command, *container.args)
    if not words:  # the image's own
        return Outcome(None)
    variables: dict[str, str] = {}
    if any("$" in each for each in words):
        variables = plain_variables(pod, container)
        words = tuple(command_of(container, variables))
    return outcome(words, tuple(variables.items()), stdin=container.stdin)


def _duration(text: str) -> float:
    try:
        return max(0.0, parse_duration(text) / 1e9) if text else 0.0
    except DurationError:
        return 0.0


def _exit_code(text: str) -> int:
    return int(text) if re.fullmatch("[0-9]{1,3}", text, re.ASCII) else 0
