"""Life cycle of one container: it waits for its needs, starts, is probed, ends, and starts again."""

from __future__ import annotations

from msgspec.structs import replace

from steersman.api.core.v1 import (
    ContainerState,
    ContainerStateTerminated,
)
from steersman.machinery.values import times
from steersman.nodes import images
from steersman.nodes.behaviour import PREFIX, Behaviour, behaviour_of
from steersman.nodes.container import restarts
from steersman.nodes.container.ending import (
    KILLED,
    begin_pod_termination,
    end_time_of,
    has_shorter_grace,
    terminate,
)
from steersman.nodes.container.probing import run_probes
from steersman.nodes.container.starting import create, is_missing, retry_at, run, try_to_start
from steersman.nodes.container.sync import ContainerSync, status_time
from steersman.nodes.container_status import image_name, is_of_other_kubelet, never_started, wait
from steersman.nodes.context import exact_time
from steersman.nodes.shell.effects import TERMINATED


def advance(one: ContainerSync, *, stopping: bool, may_start: bool) -> None:
    """Advance one container to its state at the time of this sync.

    With `stopping`, its pod ends, and it does not start again. Without `may_start`, it waits.
    """
    sync, container, status = one.sync, one.container, one.status
    if (remembered := sync.context.records.get(container.name)) is not None:
        sync.records[container.name] = remembered
    while True:
        one.behaves = _behaviour(one)
        if status.state.running is not None:
            if not _end(one, stopping=stopping):
                return
        elif never_started(status):
            if stopping and status.state.waiting is not None:
                return
            if stopping or not may_start or _is_delayed(one):
                wait(status, "ContainerCreating")
                return
            if not try_to_start(one):
                return
            _record_unknown_programs(one)
        elif stopping or not restarts.is_restarted(sync.pod, container, status) or not _start_again(one):
            return


def _behaviour(one: ContainerSync) -> Behaviour:
    """Return the behaviour of a container.

    If the kubelet has done its work (`work_errors`), it ends at once with that result.
    """
    wrong = one.sync.context.work_errors.get(one.container.name)
    behaves = _by_command(one)
    if wrong is None or behaves.is_configured:
        return behaves
    return replace(behaves, runs_for=0.0, exit_code=int(bool(wrong)), message=wrong, reason="", not_simulated="")


def _by_command(one: ContainerSync) -> Behaviour:
    """Return the behaviour of a container by its annotations and command; a followed command decides when it ends."""
    sync, status, shared = one.sync, one.status, one.sync.context.shared
    running = status.state.running
    if is_of_other_kubelet(sync.pod, status):
        behaves = behaviour_of(sync.pod, one.container, default=sync.context.unknown_programs)
        return behaves if behaves.is_configured else replace(behaves, runs_for=None, not_simulated="")
    if shared is None or running is None:
        return behaviour_of(sync.pod, one.container, default=sync.context.unknown_programs)
    start = shared.start_of(one.container, status.container_id)
    behaves = behaviour_of(sync.pod, one.container, start, default=sync.context.unknown_programs)
    progress = None if behaves.is_configured else shared.progress(status.container_id, sync.now)
    if progress is None:
        return behaves
    started = exact_time(running.started_at, one.record.started_at)
    if progress.ended_at is not None and progress.exit_code is not None:
        message = behaves.message if behaves.exit_code == progress.exit_code else ""
        return replace(behaves, runs_for=progress.ended_at - started, exit_code=progress.exit_code, message=message)
    if progress.next is not None and behaves.runs_for is not None and started + behaves.runs_for <= sync.now:
        sync.resync_at(max(progress.next, sync.now))
        return replace(behaves, runs_for=None)
    return behaves


def restart_for_resize(one: ContainerSync) -> None:
    """Restart a running container, as its new resources cannot be applied while it runs."""
    sync, container, status = one.sync, one.container, one.status
    running = status.state.running
    assert running is not None
    one.record_event("Normal", "Killing", f"Container {container.name} resize requires restart")
    if sync.context.shared is not None:
        sync.context.shared.end_container(status.container_id, sync.now)
    status.last_state = ContainerState(
        terminated=ContainerStateTerminated(
            exit_code=TERMINATED,
            reason="Error",
            started_at=running.started_at,
            finished_at=status_time(sync.now),
            container_id=status.container_id,
        )
    )
    status.restart_count += 1
    error = images.pull_error_text(image_name(container.image), "") if is_missing(one) else ""
    image = images.ensure_image(
        container.image,
        container.image_pull_policy,
        error=error,
        is_present=True,
        takes=0.0,
        before=None,
        since=None,
        reason="",
        now=sync.now,
    )
    for each in image.events:
        one.record_event(*each)
    create(one)
    run(one, sync.now)
    status.ready = False
    sync.resync_at(sync.now)


def _end(one: ContainerSync, *, stopping: bool) -> bool:
    """Return True if a running container has ended by now, and set its status; otherwise probe it and
    schedule a sync.
    """
    sync, status, behaves = one.sync, one.status, one.behaves
    running = status.state.running
    assert running is not None
    started = exact_time(running.started_at, one.record.started_at)
    due, code, reason, message = None, behaves.exit_code, behaves.reason, behaves.message
    if behaves.runs_for is not None:
        due = started + behaves.runs_for
    ended_at = sync.context.exits.get(one.container.name)
    if ended_at is not None and ended_at.container_id == status.container_id and (due is None or ended_at.at < due):
        due, code, reason, message = ended_at.at, ended_at.exit_code, ended_at.reason, ""
    termination = one.record.termination
    if termination is not None and termination.container_id != status.container_id:
        termination = None
    if termination is not None and stopping and has_shorter_grace(one, termination):
        termination = begin_pod_termination(one)
    if termination is None and (due is None or due > sync.now):
        termination = begin_pod_termination(one) if stopping else run_probes(one, started)
    if termination is not None:
        at, killed = end_time_of(one, termination)
        if at is not None and (due is None or at < due):
            due, code, reason, message = at, (KILLED if killed else behaves.stop_code), "", ""
    if due is None or due > sync.now:
        if due is not None:
            sync.resync_at(due)
        return False
    terminate(one, code, reason, max(due, started), message)
    if termination is not None and termination.by_probe:
        sync.ended_for_probes.add(one.container.name)
    one.update_record(termination=None, probe_states={})
    return True


def _record_unknown_programs(one: ContainerSync) -> None:
    """Record an event that names the first program of a container that is not simulated, and the
    annotations that help.
    """
    behaves = one.behaves
    if not behaves.not_simulated:
        return
    does = "runs until it is stopped" if behaves.runs_for is None else f"ends with {behaves.exit_code}"
    one.record_event(
        "Normal",
        "NotSimulated",
        (
            f'program "{behaves.not_simulated}" is not simulated: the container {does}; annotations of the pod say what it '
            f"does instead ({PREFIX}run-for, {PREFIX}exit-code, {PREFIX}logs)"
        ),
    )


def _start_again(one: ContainerSync) -> bool:
    """Restart an ended container, or keep it waiting until its back-off is over. Return True if it has started."""
    if one.record.pending_start is None and not restarts.is_backoff_over(one):
        return False
    tried, waiting = one.record.tried_at, one.status.state.waiting
    if tried is not None and waiting is not None and waiting.reason == "PostStartHookError":
        if not one.sync.is_due(retry_at(one.sync, tried)):
            return False
        one.update_record(tried_at=None)
    return try_to_start(one, is_restart=True)


def _is_delayed(one: ContainerSync) -> bool:
    """Return True if the container's start delay is not over yet."""
    sync, own = one.sync, one.behaves.start_delay
    delay = sync.context.start_delay if own is None else own
    return bool(delay) and not sync.is_due(times.unix(sync.pod_status.start_time or times.now()) + delay)
