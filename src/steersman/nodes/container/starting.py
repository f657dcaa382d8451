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
from steersman.nodes.container.look import ContainerLook, Look, exact, full_name, time_of
from steersman.nodes.container_status import digest, image_name, mounted, wait
from steersman.nodes.place import POST_START, Begun
from steersman.nodes.shell.effects import TERMINATED
from steersman.nodes.surroundings import breaks_non_root, user_of

_RETRY: Final = 10.0
"""Seconds before a failed start is tried again, plus up to half as much that depends on the pod."""


def try_to_start(one: ContainerLook, *, again: bool = False) -> bool:
    """Start a container if its image and configuration allow it and its hook is done. Return True if it runs now.

    With `again`, it is a restart: its last termination is kept and its restart count rises.
    """
    look, container, status, memory = one.look, one.container, one.status, one.memory
    if memory.begun is not None:
        return _has_begun(one, memory.begun)
    error = ""
    if one.behaves.pull_error or is_missing(one):
        error = images.refused(image_name(container.image), one.behaves.pull_error)
    wrong = look.place.wrong_with(container)
    if not wrong and look.place.shared is not None:
        wrong = look.place.shared.wrong_with(container)
    if not wrong and breaks_non_root(look.pod, container):
        pod = full_name(look.pod)
        wrong = f"container's runAsUser breaks non-root policy (pod: {quote(pod)}, container: {container.name})"
    if memory.tried_at is not None:
        never, _, _ = images.never_to_be_had(container.image, container.image_pull_policy, error)
        if (never or wrong) and not look.has_passed(retry_at(look, memory.tried_at)):
            return False
    if not _has_image(one, error):
        return False
    if wrong:
        _fail(one, "CreateContainerConfigError", wrong)
        return False
    one.remember(tried_at=None, ticks={})
    if again:
        status.last_state = ContainerState(terminated=one.last_end)
        status.restart_count += 1
    create(one)
    if container.lifecycle is not None and container.lifecycle.post_start is not None:
        begun = Begun(_id_of(one), look.now)
        one.remember(begun=begun)
        if status.state.waiting is None:
            put_waiting(status, "ContainerCreating", "")
        return _has_begun(one, begun)
    run(one, look.now)
    return True


def is_missing(one: ContainerLook) -> bool:
    """Return True if a container's image is configured as missing from all registries."""
    return images.is_missing(one.container.image, one.look.place.missing_images)


def retry_at(look: Look, tried: float) -> float:
    """Return the time to try again after a failed start at `tried`; pods differ, so that they do not retry together."""
    part = int(digest(look.pod.metadata.uid)[:4], 16) / 0xFFFF
    return tried + _RETRY * (1 + part / 2)


def _has_image(one: ContainerLook, error: str) -> bool:
    look, container, status, memory = one.look, one.container, one.status, one.memory
    full_name = image_name(container.image)
    found = images.obtain(
        container.image,
        container.image_pull_policy,
        error=error,
        is_present=full_name in look.place.images,
        takes=one.behaves.pull_time,
        before=memory.pulls,
        since=memory.pulling_since,
        reason=status.state.waiting.reason if status.state.waiting is not None else "",
        now=look.now,
    )
    one.remember(pulls=found.pulls, pulling_since=found.pulling_since)
    for each in found.happened:
        one.tell(*each)
    if found.again is not None:
        look.again_at(found.again)
    if found.reason:
        put_waiting(status, found.reason, found.message)
        if found.again is None:
            _try_again_later(one)
    elif found.again is not None:
        wait(status, "ContainerCreating")
    else:
        look.pulled.append(full_name)
        return True
    return False


def _fail(one: ContainerLook, reason: str, message: str) -> None:
    """Record a failed start, which is tried again later."""
    one.tell("Warning", "Failed", f"Error: {message}")
    put_waiting(one.status, reason, message)
    _try_again_later(one)


def _try_again_later(one: ContainerLook) -> None:
    look = one.look
    one.remember(tried_at=look.now)
    look.again_at(retry_at(look, look.now))


def put_waiting(status: ContainerStatus, reason: str, message: str) -> None:
    """Set a container that does not run to waiting."""
    if status.state.terminated is not None:
        status.last_state = ContainerState(terminated=status.state.terminated)
    status.state = ContainerState(waiting=ContainerStateWaiting(reason=reason, message=message))
    status.started = False


def _id_of(one: ContainerLook) -> str:
    return f"containerd://{digest(one.look.pod.metadata.uid, one.container.name, str(one.status.restart_count))}"


def create(one: ContainerLook) -> None:
    """Create a container that does not run yet: its image, ID and user in the status."""
    image, status = one.container.image, one.status
    status.image = image_name(image)
    status.image_id = f"{status.image.partition('@')[0].rpartition(':')[0]}@sha256:{digest(image)}"
    status.container_id = _id_of(one)
    status.user = user_of(one.look.pod, one.container)
    one.tell("Normal", "Created", "Container created")
    one.tell("Normal", "Started", "Container started")


def run(one: ContainerLook, since: float) -> None:
    """Set a created container to running since the time `since`."""
    container, status = one.container, one.status
    status.state = ContainerState(running=ContainerStateRunning(started_at=time_of(since)))
    status.started = status.ready = False
    one.remember(began=exact(since), ended=None)
    if one.look.place.shared is not None:
        one.look.place.shared.begin(container, status.container_id, since)
    if isinstance(container, Container):
        status.allocated_resources = dict(container.resources.requests)
        status.resources = deep_copy(container.resources)
    status.volume_mounts = [mounted(each) for each in container.volume_mounts]


def _has_begun(one: ContainerLook, begun: Begun) -> bool:
    """Return True if the postStart hook of a created container has succeeded, and set the container to running then."""
    look, lifecycle = one.look, one.container.lifecycle
    hook = None if lifecycle is None else lifecycle.post_start
    ran = begun.hook or one.ran(POST_START, begun.container_id)
    seconds = hooks.seconds_of(hook, ran)
    if seconds is None:
        look.again_at(look.now)
        return False
    one.remember(begun=begun._replace(hook=ran))
    if not look.has_passed(begun.at + seconds):
        return False
    one.remember(begun=None)
    run(one, begun.at)
    if ran is None or ran.exit_code == 0:
        return True
    _end_after_hook(one, hooks.failed(look.pod, one.container, hook, ran))
    return False


def _end_after_hook(one: ContainerLook, message: str) -> None:
    """Terminate a container whose postStart hook has failed."""
    one.tell("Warning", "FailedPostStartHook", "PostStartHook failed")
    one.tell("Normal", "Killing", "FailedPostStartHook")
    terminate(one, TERMINATED, "", one.look.now)
    if restarts.is_restarted(one.look.pod, one.container, one.status):
        put_waiting(one.status, "PostStartHookError", message)
        _try_again_later(one)
