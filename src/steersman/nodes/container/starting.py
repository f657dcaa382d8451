"""Start of a container: its image, its configuration and its postStart hook.

Follows pkg/kubelet `kuberuntime` (startContainer).
"""

from __future__ import annotations

from typing import Final

from steersman.api.core.v1 import (
    Container,
    ContainerState,
    ContainerStateRunning,
    ContainerStateWaiting,
    ContainerStatus,
)
from steersman.machinery.codec.serializer import deep_copy
from steersman.machinery.errors.field import quote
from steersman.nodes import images
from steersman.nodes.container import hooks, restarts
from steersman.nodes.container.ending import terminate
from steersman.nodes.container.sync import ContainerSync, PodSync, fractional, full_name, status_time
from steersman.nodes.container_status import container_id, digest, image_name, mounted, wait
from steersman.nodes.context import POST_START, PendingStart
from steersman.nodes.initial_world import breaks_non_root, user_of
from steersman.nodes.shell.effects import TERMINATED

_RETRY: Final = 10.0
"""Seconds before a failed start is tried again, plus up to half as much that depends on the pod."""


def try_to_start(one: ContainerSync, *, is_restart: bool = False) -> bool:
    """Start a container if its image and configuration allow it and its hook is done. Return True if it runs now.

    With `is_restart`, it is a restart: its last termination is kept and its restart count rises.
    """
    sync, container, status, memory = one.sync, one.container, one.status, one.record
    if memory.pending_start is not None:
        return _has_started(one, memory.pending_start)
    error = ""
    if one.behaves.pull_error or is_missing(one):
        error = images.pull_error_text(image_name(container.image), one.behaves.pull_error)
    wrong = sync.context.config_error(container)
    if not wrong and sync.context.shared is not None:
        wrong = sync.context.shared.config_error(container)
    if not wrong and breaks_non_root(sync.pod, container):
        pod = full_name(sync.pod)
        wrong = f"container's runAsUser breaks non-root policy (pod: {quote(pod)}, container: {container.name})"
    if memory.tried_at is not None:
        never, _, _ = images.permanent_error(container.image, container.image_pull_policy, error)
        if (never or wrong) and not sync.is_due(retry_at(sync, memory.tried_at)):
            return False
    if not _has_image(one, error):
        return False
    if wrong:
        _fail(one, "CreateContainerConfigError", wrong)
        return False
    one.update_record(tried_at=None, probe_states={})
    if is_restart:
        status.last_state = ContainerState(terminated=one.last_end)
        status.restart_count += 1
    create(one)
    if container.lifecycle is not None and container.lifecycle.post_start is not None:
        pending_start = PendingStart(status.container_id, sync.now)
        one.update_record(pending_start=pending_start)
        if status.state.waiting is None:
            put_waiting(status, "ContainerCreating", "")
        return _has_started(one, pending_start)
    run(one, sync.now)
    return True


def is_missing(one: ContainerSync) -> bool:
    """Return True if a container's image is configured as missing from all registries."""
    return images.is_missing(one.container.image, one.sync.context.missing_images)


def retry_at(sync: PodSync, tried: float) -> float:
    """Return the time to try again after a failed start at `tried`; pods differ, so that they do not retry together."""
    part = int(digest(sync.pod.metadata.uid)[:4], 16) / 0xFFFF
    return tried + _RETRY * (1 + part / 2)


def _has_image(one: ContainerSync, error: str) -> bool:
    sync, container, status, memory = one.sync, one.container, one.status, one.record
    full_name = image_name(container.image)
    found = images.ensure_image(
        container.image,
        container.image_pull_policy,
        error=error,
        is_present=full_name in sync.context.images,
        takes=one.behaves.pull_time,
        before=memory.pulls,
        since=memory.pulling_since,
        reason=status.state.waiting.reason if status.state.waiting is not None else "",
        now=sync.now,
    )
    one.update_record(pulls=found.pulls, pulling_since=found.pulling_since)
    for each in found.events:
        one.record_event(*each)
    if found.next_sync is not None:
        sync.resync_at(found.next_sync)
    if found.reason:
        put_waiting(status, found.reason, found.message)
        if found.next_sync is None:
            _try_again_later(one)
    elif found.next_sync is not None:
        wait(status, "ContainerCreating")
    else:
        sync.pulled.append(full_name)
        return True
    return False


def _fail(one: ContainerSync, reason: str, message: str) -> None:
    """Record a failed start, which is tried again later."""
    one.record_event("Warning", "Failed", f"Error: {message}")
    put_waiting(one.status, reason, message)
    _try_again_later(one)


def _try_again_later(one: ContainerSync) -> None:
    sync = one.sync
    one.update_record(tried_at=sync.now)
    sync.resync_at(retry_at(sync, sync.now))


def put_waiting(status: ContainerStatus, reason: str, message: str) -> None:
    """Set a container that does not run to waiting."""
    if status.state.terminated is not None:
        status.last_state = ContainerState(terminated=status.state.terminated)
    status.state = ContainerState(waiting=ContainerStateWaiting(reason=reason, message=message))
    status.started = False


def create(one: ContainerSync) -> None:
    """Create a container that does not run yet: its image, ID and user in the status."""
    image, status = one.container.image, one.status
    status.image = image_name(image)
    status.image_id = f"{status.image.partition('@')[0].rpartition(':')[0]}@sha256:{digest(image)}"
    status.container_id = container_id(one.sync.pod.metadata.uid, one.container.name, status.restart_count)
    status.user = user_of(one.sync.pod, one.container)
    one.record_event("Normal", "Created", "Container created")
    one.record_event("Normal", "Started", "Container started")


def run(one: ContainerSync, since: float) -> None:
    """Set a created container to running since the time `since`."""
    container, status = one.container, one.status
    status.state = ContainerState(running=ContainerStateRunning(started_at=status_time(since)))
    status.started = status.ready = False
    one.update_record(started_at=fractional(since), ended_at=None)
    if one.sync.context.shared is not None:
        one.sync.context.shared.start_container(container, status.container_id, since)
    if isinstance(container, Container):
        status.allocated_resources = dict(container.resources.requests)
        status.resources = deep_copy(container.resources)
    status.volume_mounts = [mounted(each) for each in container.volume_mounts]


def _has_started(one: ContainerSync, pending_start: PendingStart) -> bool:
    """Return True if the postStart hook of a created container has succeeded, and set the container to running then."""
    sync, lifecycle = one.sync, one.container.lifecycle
    hook = None if lifecycle is None else lifecycle.post_start
    ran = pending_start.hook or one.result_of(POST_START, pending_start.container_id)
    seconds = hooks.seconds_of(hook, ran)
    if seconds is None:
        sync.resync_at(sync.now)
        return False
    one.update_record(pending_start=pending_start._replace(hook=ran))
    if not sync.is_due(pending_start.at + seconds):
        return False
    one.update_record(pending_start=None)
    run(one, pending_start.at)
    if ran is None or ran.exit_code == 0:
        return True
    _end_after_hook(one, hooks.failed(sync.pod, one.container, hook, ran))
    return False


def _end_after_hook(one: ContainerSync, message: str) -> None:
    """Terminate a container whose postStart hook has failed."""
    one.record_event("Warning", "FailedPostStartHook", "PostStartHook failed")
    one.record_event("Normal", "Killing", "FailedPostStartHook")
    terminate(one, TERMINATED, "", one.sync.now)
    if restarts.is_restarted(one.sync.pod, one.container, one.status):
        put_waiting(one.status, "PostStartHookError", message)
        _try_again_later(one)
