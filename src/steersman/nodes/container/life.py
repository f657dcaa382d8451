"""The life of a container in a pod: it waits for what it needs, starts, is looked after, ends, starts again."""

from __future__ import annotations

from steersman.api.core.v1 import (
    ContainerState,
    ContainerStateTerminated,
    ContainerStatus,
)
from steersman.machinery.values import times
from steersman.nodes import images
from steersman.nodes.behaviour import Behaviour, behaviour_of
from steersman.nodes.container import restarts
from steersman.nodes.container.ending import KILLED, TERMINATED_BY_SIGNAL, end_of, terminate, told_to_stop
from steersman.nodes.container.look import Look, time_of
from steersman.nodes.container.probing import looked_after
from steersman.nodes.container.starting import create, is_missing, retry_at, run, try_to_start
from steersman.nodes.container_status import AnyContainer, image_name, never_started, wait
from steersman.nodes.place import Happened


def _end(
    look: Look, container: AnyContainer, status: ContainerStatus, behaves: Behaviour, *, stopping: bool, path: str
) -> bool:
    """Whether a running container has ended now; else what it says of itself is put right."""
    running = status.state.running
    assert running is not None
    started = float(times.unix(running.started_at or times.now()))
    due, code, reason, message = None, behaves.exit_code, behaves.reason, behaves.message
    if behaves.runs_for is not None:
        due = started + behaves.runs_for
    ended = look.place.ended.get(container.name)
    if ended is not None and ended.container_id == status.container_id and (due is None or ended.at < due):
        due, code, reason, message = ended.at, ended.exit_code, ended.reason, ""
    stop = look.remembered(container).stop
    if stop is not None and stop.container_id != status.container_id:
        stop = None
    if stop is None and (due is None or due > look.now):
        if stopping:
            stop = told_to_stop(look, container, status, path)
        else:
            stop = looked_after(look, container, status, behaves, started, path)
    if stop is not None:
        at, killed = end_of(look, container, stop, behaves, path)
        if at is not None and (due is None or at < due):
            due, code, reason, message = at, (KILLED if killed else TERMINATED_BY_SIGNAL), "", ""
    if due is None or due > look.now:
        if due is not None:
            look.again_at(due)
        return False
    terminate(status, code, reason, max(due, started), message)
    if stop is not None and stop.by_probe:
        look.ended_for_probes.add(container.name)
    look.remember(container, stop=None, ticks={})
    return True


def _start_again(
    look: Look, container: AnyContainer, status: ContainerStatus, behaves: Behaviour, path: str
) -> bool:  # fmt: skip
    """Starts a container again, or has it wait until it may be."""
    if look.remembered(container).begun is None and not restarts.is_due(look, container, status, path):
        return False
    tried = look.remembered(container).tried_at
    waiting = status.state.waiting
    if tried is not None and waiting is not None and waiting.reason == "PostStartHookError":
        if not look.has_passed(retry_at(look, tried)):
            return False
        look.remember(container, tried_at=None)
    return try_to_start(look, container, status, behaves, path, again=True)


def renew(look: Look, container: AnyContainer, status: ContainerStatus, path: str) -> None:
    """Starts a running container anew, as what it is given cannot be changed while it runs."""
    running = status.state.running
    assert running is not None
    text = f"Container {container.name} resize requires restart"
    look.happened.append(Happened("Normal", "Killing", text, path))
    status.last_state = ContainerState(terminated=ContainerStateTerminated(
        exit_code=TERMINATED_BY_SIGNAL, reason="Error", started_at=running.started_at,
        finished_at=time_of(look.now), container_id=status.container_id,
    ))  # fmt: skip
    status.restart_count += 1
    error = images.refused(image_name(container.image), "") if is_missing(look, container) else ""
    obtained = images.obtain(
        container.image, container.image_pull_policy, error=error, is_present=True, takes=0.0, before=None,
        since=None, reason="", now=look.now,
    )  # fmt: skip
    look.happened += [Happened(*each, path) for each in obtained.happened]
    create(look, container, status, path)
    run(look, container, status, look.now)
    status.ready = False
    look.again_at(look.now)


def advance(
    look: Look, container: AnyContainer, status: ContainerStatus, path: str, *, stopping: bool, may_start: bool
) -> None:  # fmt: skip
    """Brings one container to where it is now."""
    if (remembered := look.place.memory.get(container.name)) is not None:
        look.memory[container.name] = remembered
    while True:
        behaves = behaviour_of(look.pod, container, status.restart_count)
        if status.state.running is not None:
            if not _end(look, container, status, behaves, stopping=stopping, path=path):
                return
        elif never_started(status):
            if stopping and status.state.waiting is not None:
                return
            if stopping or not may_start or _is_delayed(look, behaves):
                wait(status, "ContainerCreating")
                return
            if not try_to_start(look, container, status, behaves, path):
                return
        elif (
            stopping
            or not restarts.is_restarted(look, container, status)
            or not _start_again(look, container, status, behaves, path)
        ):
            return


def _is_delayed(look: Look, behaves: Behaviour) -> bool:
    """Whether it is too early for the container to begin."""
    delay = look.place.start_delay if behaves.start_delay is None else behaves.start_delay
    return bool(delay) and not look.has_passed(times.unix(look.pod_status.start_time or times.now()) + delay)
