"""What a simulated container does: how long it runs, and how it ends.

An annotation of the pod says it, for one container or for all; else the command, where that is `sleep`, `true`, `false`
or `exit`; else it runs for ever, but in the pods of a Job, where it ends well after a moment.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from steersman.api.core.v1 import Container, EphemeralContainer, Pod
from steersman.machinery.values.durations import DurationError, parse_duration

PREFIX: Final = "simulation.steersman.dev/"
"""Of annotations: `run-for` (a duration, or `forever`), `exit-code`, `ready-after`, `stop-after`. With `.NAME` behind,
they are about one container."""

_JOB_RUNS_FOR: Final = 0.0
_SECONDS: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)([smhd]?)", re.ASCII)
_UNITS: Final = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
_BLANKS: Final = re.compile("[ \\t]+")
_SHELLS: Final = frozenset({"sh", "bash", "ash", "/bin/sh", "/bin/bash", "/bin/ash"})
_MOST_WORDS: Final = 4096


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
    runs_for, exit_code = _by_command([*container.command, *container.args])
    owners = pod.metadata.owner_references
    if runs_for is None and any(each.kind == "Job" and each.controller for each in owners):
        runs_for = _JOB_RUNS_FOR
    annotations = pod.metadata.annotations
    if not any(key.startswith(PREFIX) for key in annotations):
        return Behaviour(runs_for, exit_code)

    def said(what: str) -> str:
        return annotations.get(f"{PREFIX}{what}.{container.name}") or annotations.get(PREFIX + what, "")

    if said("run-for"):
        runs_for = None if said("run-for") == "forever" else _duration(said("run-for"))
    if said("exit-code"):
        exit_code = _exit_code(said("exit-code"))
        runs_for = 0.0 if runs_for is None else runs_for
    return Behaviour(runs_for, exit_code, _duration(said("ready-after")), _duration(said("stop-after")))


def _duration(text: str) -> float:
    try:
        return max(0.0, parse_duration(text) / 1e9) if text else 0.0
    except DurationError:
        return 0.0


def _exit_code(text: str) -> int:
    return int(text) if re.fullmatch("[0-9]{1,3}", text, re.ASCII) else 0


def _by_command(words: list[str]) -> tuple[float | None, int]:
    """How long a command runs (None: nobody knows) and its exit code, where it is one of a few."""
    if len(words) >= 3 and words[0] in _SHELLS and words[1] in ("-c", "-ec", "-cx", "-xc"):
        if len(words[2]) > _MOST_WORDS:
            return None, 0
        return _by_script(words[2])
    return _by_words(words)


def _by_script(script: str) -> tuple[float | None, int]:
    """Of a sequence of such commands: the times together, the code of the last."""
    seconds, code = 0.0, 0
    for line in re.split(r"&&|;|\n", script):
        words = [each for each in _BLANKS.split(line) if each]
        if not words or words[0] == "echo":
            code = 0
            continue
        took, code = _by_words(words)
        if took is None:
            return None, 0
        seconds += took
        if words[0] == "exit":
            break
    return seconds, code


def _by_words(words: list[str]) -> tuple[float | None, int]:
    name = words[0].rpartition("/")[2] if words else ""
    if name == "sleep" and len(words) > 1:
        seconds = 0.0
        for word in words[1:]:
            found = _SECONDS.fullmatch(word)
            if found is None:
                return None, 0
            seconds += float(found[1]) * _UNITS[found[2]]
        return seconds, 0
    if name in ("true", "echo"):
        return 0.0, 0
    if name == "false":
        return 0.0, 1
    if name == "exit":
        return 0.0, _exit_code(words[1]) if len(words) > 1 else 0
    return None, 0
