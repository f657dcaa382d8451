"""Simulated behaviour of a container: how long it runs and how it ends.

Annotations of the pod decide, for one container or for all of them. Without annotations the command decides, if it is a
script of programs that the simulated shell has (see `rehearsal`). Otherwise the container runs until it is stopped. But
init containers, containers of Jobs, and containers with a command in pods that are not always restarted succeed at
once, unless their image is a pause image.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from msgspec import Struct, field

from steersman.api.core.v1 import EphemeralContainer, Pod
from steersman.machinery.built_in.pod_resources import AnyContainer, is_sidecar
from steersman.machinery.values.durations import DurationError, parse_duration
from steersman.net.ascii import lower
from steersman.nodes.container_status import MOST_IMAGE
from steersman.nodes.context import LIVENESS, READINESS, STARTUP, StartSnapshot
from steersman.nodes.initial_world import expanded_words, identity_of, plain_variables, unexpanded_command_of
from steersman.nodes.rehearsal import MOST_FILES, Outcome, Setting, Unknown, outcome
from steersman.nodes.shell.effects import TERMINATED
from steersman.nodes.variables import ArgumentsTooLong
from steersman.nodes.volume_files import folders_with_contents
from steersman.work.patterns import late_pattern

PREFIX: Final = "simulation.steersman.dev/"
"""Prefix of annotations: `run-for` (a duration, or `forever`), `exit-code`, `ready-after`, `stop-after`, `start-delay`,
`oom-after`, `pull-error`, `pull-time`, `fails-startup`, `fails-liveness`, `fails-readiness`, `unknown-programs`. A
suffix `.NAME` makes an annotation apply to one container."""

_ENDS_AFTER: Final = 0.0
_PAUSE: Final = late_pattern(r"(^|/)pause([:@]|$)")
"""Pattern of images whose containers do nothing but stay."""
_NOT_ALWAYS: Final = frozenset({"Never", "OnFailure"})
_KILLED: Final = 137
_NOT_STARTED: Final = 128
_MOST_PROGRAM: Final = 256
_MOST_DURATION: Final = 64
"""Characters of a duration in an annotation; it is parsed at each sync of its pod."""
_PROBES: Final = (STARTUP, LIVENESS, READINESS)
_ENDS: Final = ("run-for", "exit-code", "oom-after")


class Behaviour(Struct, frozen=True):
    """Behaviour of a container. All times are seconds."""

    runs_for: float | None = None
    """Duration of its run; None until it is stopped."""
    exit_code: int = 0
    ready_after: float = 0.0
    """Time from its start until it can be ready, besides its probes."""
    stops_after: float = 0.0
    """Time that it takes to end when it is stopped; the grace period bounds it."""
    stop_code: int = TERMINATED
    """Exit code when it is stopped and need not be killed."""
    reason: str = ""
    """Reason of its termination; empty if the exit code implies it."""
    message: str = ""
    """Termination message that its command leaves."""
    start_delay: float | None = None
    """Delay from the pod's start until it starts; None for the node's delay."""
    pull_error: str = ""
    """Error of pulls of its image; "" if they succeed."""
    pull_time: float = 0.0
    """Duration of a pull, if the node does not have the image."""
    fails_after: Mapping[str, float] = field(default_factory=dict)
    """Time from its start after which probes fail, by kind of probe; other probes report what they find."""
    is_configured: bool = False
    """True if annotations decide how it ends, and not its command."""
    not_simulated: str = ""
    """First program of its command that is not simulated and for which nobody has configured a treatment."""


def behaviour_of(
    pod: Pod, container: AnyContainer, start: StartSnapshot | None = None, *, default: Unknown | None = None
) -> Behaviour:
    """Return the behaviour of a container of a pod, given the snapshot of files from its start.

    `default` is the treatment of programs that are not simulated, if no annotation of the pod says it.
    """
    reason = ""
    try:
        behaviour = _by_command(pod, container, start, unknown_programs(pod, container, default))
    except ArgumentsTooLong:
        behaviour, reason = Outcome(0.0, _NOT_STARTED, message=_too_long(container)), "StartError"
    runs_for, exit_code, message = behaviour.seconds, behaviour.exit_code, behaviour.message
    if behaviour.cannot_start:
        message, reason = _not_started(behaviour.missing, "executable file not found in $PATH: unknown"), "StartError"
    if runs_for is None and not (behaviour.is_known or behaviour.missing) and _is_to_end(pod, container):
        runs_for = _ENDS_AFTER
    missing = "" if isinstance(container, EphemeralContainer) else behaviour.missing
    if missing and not container.command and missing == container.args[0]:  # args of the image's own entrypoint
        missing = container.image.rpartition("/")[2][:_MOST_PROGRAM]
    annotations = pod.metadata.annotations
    if not any(key.startswith(PREFIX) for key in annotations):
        return Behaviour(
            runs_for,
            exit_code,
            stops_after=behaviour.stops_after,
            stop_code=behaviour.stop_code,
            reason=reason,
            message=message,
            not_simulated=missing,
        )

    def annotation(what: str) -> str:
        return annotation_of(pod, container.name, what)

    if annotation("run-for"):
        reason = ""
        runs_for = None if annotation("run-for") == "forever" else duration_of(annotation("run-for"))
    if annotation("exit-code"):
        exit_code = _exit_code(annotation("exit-code"))
        runs_for = 0.0 if runs_for is None else runs_for
    if annotation("oom-after"):
        runs_for, exit_code, reason = duration_of(annotation("oom-after")), _KILLED, "OOMKilled"
    return Behaviour(
        runs_for,
        exit_code,
        duration_of(annotation("ready-after")),
        duration_of(annotation("stop-after")) if annotation("stop-after") else behaviour.stops_after,
        behaviour.stop_code,
        reason,
        message if reason == "StartError" else "",
        duration_of(annotation("start-delay")) if annotation("start-delay") else None,
        annotation("pull-error"),
        duration_of(annotation("pull-time")),
        {
            kind: 0.0 if value == "true" else duration_of(value)
            for kind in _PROBES
            if (value := annotation(f"fails-{lower(kind)}")) not in ("", "false")
        },
        any(map(annotation, _ENDS)),
        "" if any(map(annotation, _ENDS)) else missing,
    )


def annotation_of(pod: Pod, container: str, what: str) -> str:
    """Return the value of an annotation for a container: its own, or the one for all containers; "" for none."""
    annotations = pod.metadata.annotations
    return annotations.get(f"{PREFIX}{what}.{container}") or annotations.get(PREFIX + what, "")


def unknown_programs(pod: Pod, container: AnyContainer, default: Unknown | None = None) -> Unknown:
    """Return the treatment of programs that are not simulated: by the pod's annotation, or else `default`.

    Without both they succeed in a container that should end, are not found in an ephemeral one, and run in any other.
    """
    annotation = annotation_of(pod, container.name, "unknown-programs")
    for each in Unknown:
        if each.value == annotation:
            return each
    if isinstance(container, EphemeralContainer):
        return Unknown.FAIL
    return default or (Unknown.SUCCEED if _is_to_end(pod, container) else Unknown.RUN)


def _is_to_end(pod: Pod, container: AnyContainer) -> bool:
    """Return True if a container is expected to end, as others wait for its end."""
    own = next((each for each in pod.spec.init_containers if each.name == container.name), None)
    if own is not None:
        return not is_sidecar(own)
    if any(each.kind == "Job" and each.controller for each in pod.metadata.owner_references):
        return True
    return bool(container.command or container.args) and pod.spec.restart_policy in _NOT_ALWAYS


def _by_command(pod: Pod, container: AnyContainer, start: StartSnapshot | None, unknown: Unknown) -> Outcome:
    """Return the outcome of a container's command. Raises ArgumentsTooLong if no process could be started with it."""
    words = tuple(unexpanded_command_of(container))
    if not words:  # the command of the image, which is not known
        return Outcome(None, is_known=_PAUSE.search(container.image[:MOST_IMAGE]) is not None)
    variables: dict[str, str] = {}
    if any("$" in each for each in words):
        variables = plain_variables(pod, container, {} if start is None else start.variables)
        words = tuple(expanded_words(words, variables))
    files: tuple[tuple[str, bytes], ...] = ()
    unread = folders_with_contents(pod, container)
    if start is not None and start.size <= MOST_FILES:
        files = tuple(start.files.items())
    elif start is not None:
        unread += tuple(each.mount_path.rstrip("/") for each in container.volume_mounts)
    return outcome(
        words,
        Setting(
            tuple(variables.items()),
            unread,
            tuple(each.mount_path.rstrip("/") for each in container.volume_mounts),
            identity_of(pod, container),
            container.termination_message_path,
            container.termination_message_policy == "FallbackToLogsOnError",
            files,
            container.stdin,
            unknown,
        ),
    )


def _too_long(container: AnyContainer) -> str:
    """Return containerd's message for a container whose arguments and variables are too long."""
    return _not_started(unexpanded_command_of(container)[0], "argument list too long")


def _not_started(program: str, why: str) -> str:
    """Return containerd's message for a container whose command could not be started."""
    return (
        "failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: "
        f'unable to start container process: error during container init: exec: "{program[:_MOST_PROGRAM]}": {why}'
    )


def duration_of(text: str) -> float:
    """Return the seconds of a duration in an annotation; 0 for text that is no duration or has over 64 characters."""
    return duration_or_none(text) or 0.0


def duration_or_none(text: str) -> float | None:
    """Return the seconds of a duration in an annotation; None for text that is no duration or has over 64
    characters.
    """
    if not text or len(text) > _MOST_DURATION:
        return None
    try:
        return max(0.0, parse_duration(text) / 1e9)
    except DurationError:
        return None


def _exit_code(text: str) -> int:
    return int(text) if re.fullmatch("[0-9]{1,3}", text, re.ASCII) else 0
