"""Probes of containers: when they run and how their results count (pkg/kubelet/prober).

A command whose program the simulated shell knows is run. Every other probe succeeds while the container runs, unless an
annotation makes it fail.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from steersman.api.core.v1 import ContainerStatus, ExecAction, Pod, Probe
from steersman.machinery.built_in.pod_resources import AnyContainer, all_containers
from steersman.machinery.errors.field import quote
from steersman.machinery.values.durations import format_duration
from steersman.nodes.container_status import all_statuses, is_of_other_kubelet
from steersman.nodes.context import (
    EMPTY_RECORD,
    LIVENESS,
    POST_START,
    PRE_STOP,
    READINESS,
    STARTUP,
    CommandResult,
    ContainerRecord,
    ProbeState,
    exact_time,
)
from steersman.nodes.shell.built_in import SHELLS
from steersman.nodes.shell.programs import PROGRAMS

KINDS: Final = (STARTUP, LIVENESS, READINESS)
_MOST_OUTPUT: Final = 10 << 10
"""Characters of a command's output that are reported."""


class ProbeResult(NamedTuple):
    """Result of one attempt of a probe. `output` says why it failed."""

    succeeded: bool
    output: str = ""


def probe_of(container: AnyContainer, kind: str) -> Probe | None:
    """Return the probe of the given kind of a container, or None."""
    match kind:
        case "Startup":
            return container.startup_probe
        case "Liveness":
            return container.liveness_probe
    return container.readiness_probe


def attempt_at(probe: Probe, started: float, now: float) -> int:
    """Return the number of the last attempt that is due at `now`; the first is 0, and -1 means that none is due."""
    passed = now - started - probe.initial_delay_seconds
    return -1 if passed < 0 else int(passed // max(probe.period_seconds, 1))


def time_at(probe: Probe, started: float, number: int) -> float:
    """Return the time at which the attempt `number` is due."""
    return started + probe.initial_delay_seconds + number * max(probe.period_seconds, 1)


def first_from(probe: Probe, started: float, at: float) -> float:
    """Return the time of the first attempt that is due at `at` or later."""
    number = max(attempt_at(probe, started, at), 0)
    due = time_at(probe, started, number)
    return due if due >= at else time_at(probe, started, number + 1)


def state_in_run(probe_states: ProbeState | None, status: ContainerStatus, kind: str) -> ProbeState:
    """Return the state of a probe in this run of the container: the recorded one, or the one that its
    status implies.
    """
    if probe_states is not None and probe_states.container_id == status.container_id:
        return probe_states
    succeeded = {STARTUP: bool(status.started), READINESS: status.ready}.get(kind, True)
    return ProbeState(status.container_id, -1, succeeded, last=succeeded, run=0)


def state_after(probe: Probe, before: ProbeState, number: int, *, succeeded: bool) -> ProbeState:
    """Return the state of a probe after the attempt `number` with the given result."""
    run = before.run + 1 if before.last == succeeded else 1
    threshold = probe.success_threshold if succeeded else probe.failure_threshold
    counts = succeeded if run >= max(threshold, 1) else before.succeeded
    return ProbeState(before.container_id, number, counts, succeeded, run)


def has_failed(probe: Probe, probe_states: ProbeState) -> bool:
    """Return True if the last attempts failed in a row, as many as the failure threshold."""
    return not probe_states.last and probe_states.run >= max(probe.failure_threshold, 1)


def is_run(action: ExecAction | None) -> bool:
    """Return True if the simulated shell can run a command, because it knows its program."""
    if action is None or not action.command:
        return False
    name = action.command[0].rpartition("/")[2]
    return name in PROGRAMS or name in SHELLS


def result_of_command(probe: Probe, ran: CommandResult) -> ProbeResult:
    """Return the result of a probe whose command was run."""
    timeout = max(probe.timeout_seconds, 1)
    if ran.seconds > timeout:
        command = " ".join(probe.exec.command) if probe.exec is not None else ""
        limit = format_duration(timeout * 10**9)
        return ProbeResult(succeeded=False, output=f"command timed out: {quote(command)} timed out after {limit}")
    return ProbeResult(ran.exit_code == 0, ran.output[:_MOST_OUTPUT])


def simulated_failure(probe: Probe, address: str) -> str:
    """Return the output of a probe that an annotation makes fail, as a kubelet words it."""
    if probe.http_get is not None:
        return "HTTP probe failed with statuscode: 500"
    if probe.tcp_socket is not None:
        host = probe.tcp_socket.host or address
        return f"dial tcp {host}:{probe.tcp_socket.port}: connect: connection refused"
    if probe.grpc is not None:
        return 'service unhealthy (responded with "NOT_SERVING")'
    return ""


class DueCommand(NamedTuple):
    """Command of a probe or hook that is due in a container."""

    container: AnyContainer
    status: ContainerStatus
    kind: str
    words: list[str]
    container_id: str
    number: int = 0


def due_commands(pod: Pod, memory: Mapping[str, ContainerRecord], now: float) -> Iterator[DueCommand]:
    """Yield the commands of probes and hooks of a pod that are due."""
    containers = {each.name: each for each in all_containers(pod.spec)}
    for status in all_statuses(pod.status):
        container = containers.get(status.name)
        if container is not None:
            remembered = memory.get(status.name, EMPTY_RECORD)
            yield from _hook_commands(container, status, remembered)
            if is_of_other_kubelet(pod, status):
                continue  # its commands are not known to do here what they did there
            if status.state.running is not None and pod.metadata.deletion_timestamp is None:
                yield from _probe_commands(container, status, remembered, now)


def _hook_commands(container: AnyContainer, status: ContainerStatus, memory: ContainerRecord) -> Iterator[DueCommand]:
    if container.lifecycle is None:
        return
    pending_start, termination = memory.pending_start, memory.termination
    after, before = container.lifecycle.post_start, container.lifecycle.pre_stop
    if pending_start is not None and pending_start.hook is None and after is not None and after.exec is not None:
        yield DueCommand(container, status, POST_START, after.exec.command, pending_start.container_id)
    if termination is not None and termination.hook is None and before is not None and before.exec is not None:
        yield DueCommand(container, status, PRE_STOP, before.exec.command, termination.container_id)


def _probe_commands(
    container: AnyContainer, status: ContainerStatus, memory: ContainerRecord, now: float
) -> Iterator[DueCommand]:
    running = status.state.running
    assert running is not None
    started = exact_time(running.started_at, memory.started_at)
    for kind in KINDS:
        probe = probe_of(container, kind)
        if probe is None or probe.exec is None or not is_run(probe.exec):
            continue
        if (kind == STARTUP) == bool(status.started) or memory.termination is not None:
            continue
        number = attempt_at(probe, started, now)
        if number > state_in_run(memory.probe_states.get(kind), status, kind).number:
            yield DueCommand(container, status, kind, probe.exec.command, status.container_id, number)
