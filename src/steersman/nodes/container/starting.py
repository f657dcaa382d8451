"""The start of a container: its image, what its configuration asks for, its hook.

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
    LifecycleHandler,
)
from steersman.machinery.codec.serializer import deep_copy
from steersman.nodes import images
from steersman.nodes.behaviour import Behaviour
from steersman.nodes.container import hooks, restarts
from steersman.nodes.container.ending import TERMINATED_BY_SIGNAL, terminate
from steersman.nodes.container.look import Look, time_of
from steersman.nodes.container_status import AnyContainer, digest, image_name, mounted, wait
from steersman.nodes.place import POST_START, Begun, Happened

_RETRY: Final = 10.0
"""Seconds after which a start that has failed is tried again, and half of it more at most."""


def try_to_start(
    look: Look, container: AnyContainer, status: ContainerStatus, behaves: Behaviour, path: str, *, again: bool = False
) -> bool:
    """Whether a container has started now, with its image, what its configuration asks for, and its hook."""
    memory = look.remembered(container)
    if memory.begun is not None:
        return _has_begun(look, container, status, path, memory.begun)
    error = ""
    if behaves.pull_error or is_missing(look, container):
        error = images.refused(image_name(container.image), behaves.pull_error)
    wrong = look.place.wrong_with(container)
    if memory.tried_at is not None:
        never, _, _ = images.never_to_be_had(container.image, container.image_pull_policy, error)
        if (never or wrong) and not look.has_passed(retry_at(look, memory.tried_at)):
            return False
    if not _has_image(look, container, status, behaves, path, error):
        return False
    if wrong:
        _fail(look, container, status, path, "CreateContainerConfigError", wrong)
        return False
    look.remember(container, tried_at=None, ticks={})
    if again:
        last = status.state.terminated or status.last_state.terminated
        status.last_state = ContainerState(terminated=last)
        status.restart_count += 1
    create(look, container, status, path)
    if container.lifecycle is not None and (hook := container.lifecycle.post_start) is not None:
        look.remember(container, begun=Begun(_id_of(look, container, status), look.now))
        if status.state.waiting is None:
            put_waiting(status, "ContainerCreating", "")
        return _has_begun(look, container, status, path, Begun(_id_of(look, container, status), look.now), hook)
    run(look, container, status, look.now)
    return True


def is_missing(look: Look, container: AnyContainer) -> bool:
    """Whether nobody has a container's image."""
    return images.is_missing(container.image, look.place.missing_images)


def retry_at(look: Look, tried: float) -> float:
    """A while after a try, not the same for all pods."""
    part = int(digest(look.pod.metadata.uid)[:4], 16) / 0xFFFF
    return tried + _RETRY * (1 + part / 2)


def _has_image(
    look: Look, container: AnyContainer, status: ContainerStatus, behaves: Behaviour, path: str, error: str
) -> bool:  # fmt: skip
    full_name = image_name(container.image)
    memory = look.remembered(container)
    found = images.obtain(
        container.image, container.image_pull_policy, error=error, is_present=full_name in look.place.images,
        takes=behaves.pull_time, before=memory.pulls, since=memory.pulling_since,
        reason=status.state.waiting.reason if status.state.waiting is not None else "", now=look.now,
    )  # fmt: skip
    look.remember(container, pulls=found.pulls, pulling_since=found.pulling_since)
    look.happened += [Happened(*each, path) for each in found.happened]
    if found.again is not None:
        look.again_at(found.again)
    if found.reason:
        put_waiting(status, found.reason, found.message)
        if found.again is None:
            look.remember(container, tried_at=look.now)
            look.again_at(retry_at(look, look.now))
    elif found.again is not None:
        wait(status, "ContainerCreating")
    else:
        look.pulled.append(full_name)
        return True
    return False


def _fail(look: Look, container: AnyContainer, status: ContainerStatus, path: str, reason: str, message: str) -> None:
    """A start that has failed, and is tried again after a while."""
    look.happened.append(Happened("Warning", "Failed", f"Error: {message}", path))
    put_waiting(status, reason, message)
    look.remember(container, tried_at=look.now)
    look.again_at(retry_at(look, look.now))


def put_waiting(status: ContainerStatus, reason: str, message: str) -> None:
    """Has a container wait that does not run."""
    if status.state.terminated is not None:
        status.last_state = ContainerState(terminated=status.state.terminated)
    status.state = ContainerState(waiting=ContainerStateWaiting(reason=reason, message=message))
    status.started = False


def _id_of(look: Look, container: AnyContainer, status: ContainerStatus) -> str:
    return f"containerd://{digest(look.pod.metadata.uid, container.name, str(status.restart_count))}"


def create(look: Look, container: AnyContainer, status: ContainerStatus, path: str) -> None:
    """Makes a container that has not run yet."""
    status.image = image_name(container.image)
    status.image_id = f"{status.image.partition('@')[0].rpartition(':')[0]}@sha256:{digest(container.image)}"
    status.container_id = _id_of(look, container, status)
    look.happened += [
        Happened("Normal", "Created", "Container created", path),
        Happened("Normal", "Started", "Container started", path),
    ]  # fmt: skip


def run(look: Look, container: AnyContainer, status: ContainerStatus, since: float) -> None:
    """Has a container run that was made."""
    status.state = ContainerState(running=ContainerStateRunning(started_at=time_of(since)))
    status.started = status.ready = False
    if isinstance(container, Container):
        status.allocated_resources = dict(container.resources.requests)
        status.resources = deep_copy(container.resources)
    status.volume_mounts = [mounted(each) for each in container.volume_mounts]


def _has_begun(
    look: Look, container: AnyContainer, status: ContainerStatus, path: str, begun: Begun,
    hook: LifecycleHandler | None = None,
) -> bool:  # fmt: skip
    """Whether a container that was created has gone through its hook."""
    lifecycle = container.lifecycle
    hook = hook or (lifecycle.post_start if lifecycle is not None else None)
    ran = begun.hook or look.ran(container, POST_START, begun.container_id)
    seconds = hooks.seconds_of(hook, ran)
    if seconds is None:
        look.again_at(look.now)
        return False
    look.remember(container, begun=begun._replace(hook=ran))
    if not look.has_passed(begun.at + seconds):
        return False
    look.remember(container, begun=None)
    run(look, container, status, begun.at)
    if ran is None or ran.exit_code == 0:
        return True
    _end_after_hook(look, container, status, path, hooks.failed(look.pod, container, hook, ran))
    return False


def _end_after_hook(look: Look, container: AnyContainer, status: ContainerStatus, path: str, message: str) -> None:
    """Ends a container whose hook has failed."""
    look.happened += [
        Happened("Warning", "FailedPostStartHook", "PostStartHook failed", path),
        Happened("Normal", "Killing", "FailedPostStartHook", path),
    ]  # fmt: skip
    terminate(status, TERMINATED_BY_SIGNAL, "", look.now)
    if restarts.is_restarted(look, container, status):
        put_waiting(status, "PostStartHookError", message)
        look.remember(container, tried_at=look.now)
        look.again_at(retry_at(look, look.now))
