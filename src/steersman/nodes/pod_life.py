"""The life of a pod on a simulated node: from what its status says, to what it says next, and when to look again.

Nothing is remembered beside the status, so a node goes on after a restart as a kubelet does (pkg/kubelet
`kubelet_pods.go`, `kuberuntime`). Times are seconds since 1970.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, NamedTuple

from steersman.api.core.v1 import (
    Container,
    ContainerState,
    ContainerStateRunning,
    ContainerStateTerminated,
    ContainerStateWaiting,
    ContainerStatus,
    EphemeralContainer,
    HostIP,
    Pod,
    PodIP,
    PodStatus,
    Probe,
)
from steersman.machinery.built_in.pod_resources import is_sidecar
from steersman.machinery.codec.serializer import deep_copy
from steersman.machinery.values import times
from steersman.nodes import images, restart_all
from steersman.nodes.behaviour import Behaviour, behaviour_of
from steersman.nodes.container_status import (
    AnyContainer,
    aligned,
    all_statuses,
    digest,
    image_name,
    mounted,
    never_started,
    wait,
)
from steersman.nodes.containers import Ended
from steersman.nodes.images import Pulls
from steersman.nodes.pod_status import phase_of, put_conditions
from steersman.nodes.resize import Room, resize

BACKOFF: Final = 10.0
MAX_BACKOFF: Final = 300.0
"""Seconds before a container is started again: doubled each time, at most so long."""
_BACKOFF_RESET: Final = 600.0
"""Seconds of running after which the next restart is the first again."""
_TERMINATED_BY_SIGNAL: Final = 143
_SHOWN: Final = 1.0
"""Seconds that a failed pull is shown as such, before it is said that there will be another."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a pod runs."""

    host_ips: Sequence[str]
    pod_ips: Sequence[str]
    mounted: bool = True
    """Whether the pod's volumes are there; it starts nothing before."""
    ended: Mapping[str, Ended] = field(default_factory=dict)
    """Containers that have ended from inside, by name."""
    pulls: Mapping[str, Pulls] = field(default_factory=dict)
    """Images that were tried in vain, by the name of their container."""
    start_delay: float = 0.0
    """Seconds from the pod's start until its containers begin."""
    room: Room | None = None
    """What the node has; None for enough of everything."""
    missing_images: Sequence[str] = ()
    """Patterns of the full names of images that nobody has."""


class Happened(NamedTuple):
    """An event about a container of the pod, or about the pod (no field path)."""

    type: str
    reason: str
    message: str
    field_path: str = ""


@dataclass(slots=True)
class Step:
    """What became of a pod."""

    status: PodStatus
    changed: bool
    again: float | None
    """When to look again, if nothing else happens before."""
    over: bool
    """Whether it was to be deleted, and nothing of it runs any more."""
    happened: list[Happened] = field(default_factory=list)
    pulls: dict[str, Pulls] = field(default_factory=dict)
    """Images that have been tried in vain by now."""


def is_over(pod: Pod) -> bool:
    """Whether its containers have ended and are not started again."""
    return pod.status.phase in ("Succeeded", "Failed")


def step(pod: Pod, place: Place, now: float) -> Step:
    """What a pod that is bound to a node becomes at this time."""
    deleting = pod.metadata.deletion_timestamp is not None
    if is_over(pod):
        return Step(pod.status, changed=False, again=None, over=deleting)
    return _Life(pod, place, now, deleting=deleting).step()


class _Life:
    """One look at a pod."""

    def __init__(self, pod: Pod, place: Place, now: float, *, deleting: bool) -> None:
        self._pod = pod
        self._place = place
        self._now = now
        self._deleting = deleting
        self._status = deep_copy(pod.status)
        self._again: float | None = None
        self._happened: list[Happened] = []
        self._pulls: dict[str, Pulls] = {}

    def step(self) -> Step:
        pod, status = self._pod, self._status
        first = not status.start_time
        if first:
            status.start_time = _time(self._now)
        self._put_addresses()
        past_deadline = self._is_past_deadline()
        stopping = self._deleting or past_deadline
        initialized = self._advance_init_containers(stopping)
        self._advance_containers(initialized, stopping)
        if self._place.mounted:
            self._advance_ephemeral_containers(stopping)
        restarting = not stopping and restart_all.is_wanted(pod, status)
        if restarting:
            self._happened += [Happened("Normal", "Killing", "killing") for _ in restart_all.reset(pod, status)]
            self._look_again(self._now)
        elif not stopping:
            self._resize()
        if self._main_containers_are_over() or (stopping and self._all_are_over()):
            self._end_sidecars()
        phase = phase_of(pod, status, initialized=initialized, stopping=stopping)
        if past_deadline and self._all_are_over():
            phase = "Failed"
            status.reason = "DeadlineExceeded"
            status.message = "Pod was active on the node longer than the specified deadline"
        status.phase = phase
        status.observed_generation = pod.metadata.generation
        put_conditions(pod, status, _time(self._now), restarting=restarting)
        over = self._deleting and self._all_are_over()
        return Step(status, status != pod.status, self._again, over, self._happened, self._pulls)

    def _put_addresses(self) -> None:
        status, place = self._status, self._place
        status.host_ip = place.host_ips[0]
        status.host_ips = [HostIP(ip=ip) for ip in place.host_ips]
        if not status.pod_ip and place.mounted:
            status.pod_ip = place.pod_ips[0]
            status.pod_ips = [PodIP(ip=ip) for ip in place.pod_ips]

    def _is_past_deadline(self) -> bool:
        seconds = self._pod.spec.active_deadline_seconds
        if seconds is None or not self._status.start_time:
            return False
        due = times.unix(self._status.start_time) + seconds
        if self._now < due:
            self._look_again(due)
        return self._now >= due

    def _look_again(self, at: float) -> None:
        self._again = at if self._again is None else min(self._again, at)

    # Containers

    def _advance_init_containers(self, stopping: bool) -> bool:
        """Runs them one after the other; whether all have done what they should."""
        statuses = aligned(self._pod.spec.init_containers, self._status.init_container_statuses)
        self._status.init_container_statuses = statuses
        initialized = self._place.mounted
        for container, status in zip(self._pod.spec.init_containers, statuses, strict=True):
            if initialized or is_sidecar(container):
                self._advance(container, status, "spec.initContainers", stopping=stopping, may_start=initialized)
            else:
                wait(status, "PodInitializing")
            if is_sidecar(container):
                initialized = initialized and bool(status.started)
            else:
                terminated = status.state.terminated
                status.ready = terminated is not None and terminated.exit_code == 0
                initialized = initialized and status.ready
        return initialized

    def _advance_containers(self, initialized: bool, stopping: bool) -> None:
        containers = self._pod.spec.containers or []
        statuses = self._status.container_statuses = aligned(containers, self._status.container_statuses)
        reason = "PodInitializing" if self._pod.spec.init_containers else "ContainerCreating"
        for container, status in zip(containers, statuses, strict=True):
            if not initialized and never_started(status):
                wait(status, reason)
            else:
                self._advance(container, status, "spec.containers", stopping=stopping, may_start=initialized)

    def _advance_ephemeral_containers(self, stopping: bool) -> None:
        containers = self._pod.spec.ephemeral_containers
        statuses = aligned(containers, self._status.ephemeral_container_statuses)
        self._status.ephemeral_container_statuses = statuses
        for container, status in zip(containers, statuses, strict=True):
            self._advance(container, status, "spec.ephemeralContainers", stopping=stopping, may_start=True)
            status.started, status.ready = None, False

    def _advance(
        self, container: AnyContainer, status: ContainerStatus, where: str, *, stopping: bool, may_start: bool
    ) -> None:
        """Brings one container to where it is now: it starts, ends, waits, starts again."""
        path = f"{where}{{{container.name}}}"
        while True:
            behaves = behaviour_of(self._pod, container, status.restart_count)
            if status.state.running is not None:
                if not self._end(container, status, behaves, stopping=stopping, path=path):
                    return
            elif never_started(status):
                if stopping and status.state.waiting is not None:
                    return
                if stopping or not may_start or self._is_delayed(behaves):
                    wait(status, "ContainerCreating")
                    return
                if behaves.pull_error or images.is_missing(container.image, self._place.missing_images):
                    self._wait_for_image(container, status, behaves.pull_error, path)
                    return
                self._start(container, status, path)
            elif stopping or not self._restarts(container, status) or not self._start_again(container, status, path):
                return

    def _is_delayed(self, behaves: Behaviour) -> bool:
        """Whether it is too early for the container to begin."""
        delay = self._place.start_delay if behaves.start_delay is None else behaves.start_delay
        return bool(delay) and not self._has_passed(times.unix(self._status.start_time or times.now()) + delay)

    def _wait_for_image(self, container: AnyContainer, status: ContainerStatus, said: str, path: str) -> None:
        before = status.state.waiting.reason if status.state.waiting is not None else ""
        error = images.refused(image_name(container.image), said)
        found = images.waiting(container.image, error, self._place.pulls.get(container.name), before, self._now)
        self._pulls[container.name] = found.pulls
        status.state = ContainerState(waiting=ContainerStateWaiting(reason=found.reason, message=found.message))
        status.started = False
        self._happened += [Happened(*each, path) for each in found.happened]
        self._look_again(found.pulls.next if found.reason == "ImagePullBackOff" else self._now + _SHOWN)

    def _start(self, container: AnyContainer, status: ContainerStatus, path: str) -> None:
        status.image = image_name(container.image)
        status.image_id = f"{status.image.partition('@')[0].rpartition(':')[0]}@sha256:{digest(container.image)}"
        status.container_id = (
            f"containerd://{digest(self._pod.metadata.uid, container.name, str(status.restart_count))}"
        )
        status.state = ContainerState(running=ContainerStateRunning(started_at=_time(self._now)))
        if isinstance(container, Container):
            status.allocated_resources = dict(container.resources.requests)
            status.resources = deep_copy(container.resources)
        status.volume_mounts = [mounted(each) for each in container.volume_mounts]
        present = f'Container image "{container.image}" already present on machine'
        self._happened += [
            Happened("Normal", "Pulled", present, path), Happened("Normal", "Created", "Container created", path),
            Happened("Normal", "Started", "Container started", path),
        ]  # fmt: skip

    def _end(
        self, container: AnyContainer, status: ContainerStatus, behaves: Behaviour, *, stopping: bool, path: str
    ) -> bool:
        """Whether a running container has ended now; else what it says of itself is put right."""
        running = status.state.running
        assert running is not None
        started = times.unix(running.started_at or times.now())
        due, code, reason, message = None, behaves.exit_code, behaves.reason, behaves.message
        if behaves.runs_for is not None:
            due = started + behaves.runs_for
        ended = self._place.ended.get(container.name)
        if ended is not None and ended.container_id == status.container_id and (due is None or ended.at < due):
            due, code, reason, message = ended.at, ended.exit_code, ended.reason, ""
        stopped = stopping and (due is None or due > self._now)
        if stopped:
            due, code, reason, message = self._stopped_at(behaves), _TERMINATED_BY_SIGNAL, "", ""
        if due is None or due > self._now:
            if due is not None:
                self._look_again(due)
            self._put_ready(container, status, behaves, started)
            return False
        status.state = ContainerState(terminated=ContainerStateTerminated(
            exit_code=code, reason=reason or ("Error" if code else "Completed"), started_at=running.started_at,
            finished_at=_time(max(due, started)), container_id=status.container_id, message=message,
        ))  # fmt: skip
        status.ready = status.started = False
        if stopped:
            self._happened.append(Happened("Normal", "Killing", f"Stopping container {container.name}", path))
        return True

    def _stopped_at(self, behaves: Behaviour) -> float:
        """When a container that is told to stop has stopped."""
        deleted = self._pod.metadata.deletion_timestamp
        if deleted is None:
            return self._now
        grace = self._pod.metadata.deletion_grace_period_seconds or 0
        return times.unix(deleted) - grace + min(behaves.stops_after, grace)

    def _put_ready(self, container: AnyContainer, status: ContainerStatus, behaves: Behaviour, started: float) -> None:
        status.started = self._has_passed(started + _delay(container.startup_probe))
        ready = started + max(_delay(container.readiness_probe), behaves.ready_after)
        status.ready = bool(status.started) and self._has_passed(ready)

    def _has_passed(self, due: float) -> bool:
        if due > self._now:
            self._look_again(due)
            return False
        return True

    def _resize(self) -> None:
        """Gives containers what they ask for by now, if that has changed."""
        done = resize(self._pod, self._status, self._place.room, _time(self._now))
        if done.event is not None:
            self._happened.append(Happened(*done.event))
        if done.again is not None:
            self._look_again(self._now + done.again)
        for where, containers, statuses in (
            ("spec.initContainers", self._pod.spec.init_containers, self._status.init_container_statuses),
            ("spec.containers", self._pod.spec.containers or (), self._status.container_statuses),
        ):
            for container, status in zip(containers, statuses, strict=True):
                if container.name in done.restart:
                    self._renew(container, status, f"{where}{{{container.name}}}")

    def _renew(self, container: AnyContainer, status: ContainerStatus, path: str) -> None:
        """Starts a running container anew, as what it is given cannot be changed while it runs."""
        running = status.state.running
        assert running is not None
        text = f"Container {container.name} resize requires restart"
        self._happened.append(Happened("Normal", "Killing", text, path))
        status.last_state = ContainerState(terminated=ContainerStateTerminated(
            exit_code=_TERMINATED_BY_SIGNAL, reason="Error", started_at=running.started_at,
            finished_at=_time(self._now), container_id=status.container_id,
        ))  # fmt: skip
        status.restart_count += 1
        self._start(container, status, path)
        status.ready = False
        self._look_again(self._now)

    def _restarts(self, container: AnyContainer, status: ContainerStatus) -> bool:
        """Whether a container that has ended is started again."""
        last = status.state.terminated or status.last_state.terminated
        code = last.exit_code if last is not None else 0
        if isinstance(container, EphemeralContainer):
            return False
        if (rule := restart_all.matching_rule(container, code)) is not None:
            return rule.action == "Restart"
        policy = container.restart_policy or self._pod.spec.restart_policy
        if where_init(self._pod, container) and not is_sidecar(container):
            return code != 0 and policy != "Never"
        if policy == "Always":
            return True
        return policy == "OnFailure" and code != 0

    def _start_again(self, container: AnyContainer, status: ContainerStatus, path: str) -> bool:
        """Starts a container again, or has it wait until it may be."""
        last = status.state.terminated or status.last_state.terminated
        assert last is not None
        finished = times.unix(last.finished_at or times.now())
        ran = finished - times.unix(last.started_at or last.finished_at or times.now())
        failures = 0 if ran >= _BACKOFF_RESET else status.restart_count
        wait = 0.0 if failures == 0 else min(BACKOFF * 2 ** min(failures - 1, 10), MAX_BACKOFF)
        if finished + wait > self._now:
            self._look_again(finished + wait)
            if status.state.waiting is None:
                metadata = self._pod.metadata
                named = f"{metadata.name}_{metadata.namespace}({metadata.uid})"
                text = f"back-off {_go_duration(wait)} restarting failed container={container.name} pod={named}"
                status.last_state = ContainerState(terminated=last)
                status.state = ContainerState(waiting=ContainerStateWaiting(reason="CrashLoopBackOff", message=text))
                self._happened.append(Happened(
                    "Warning", "BackOff", f"Back-off restarting failed container {container.name} in pod {named}", path
                ))  # fmt: skip
            return False
        status.last_state = ContainerState(terminated=last)
        status.restart_count += 1
        self._start(container, status, path)
        return True

    # The whole

    def _main_containers_are_over(self) -> bool:
        """Whether the containers beside which sidecars run have ended for good."""
        statuses = self._status.container_statuses
        pairs = zip(self._pod.spec.containers or [], statuses, strict=True)
        return bool(statuses) and all(
            status.state.terminated is not None and not self._restarts(container, status) for container, status in pairs
        )

    def _end_sidecars(self) -> None:
        pairs = zip(self._pod.spec.init_containers, self._status.init_container_statuses, strict=True)
        for container, status in pairs:
            running = status.state.running
            if is_sidecar(container) and running is not None:
                status.state = ContainerState(terminated=ContainerStateTerminated(
                    exit_code=0, reason="Completed", started_at=running.started_at, finished_at=_time(self._now),
                    container_id=status.container_id,
                ))  # fmt: skip
                status.ready = status.started = False

    def _all_are_over(self) -> bool:
        """Whether nothing runs."""
        return all(status.state.running is None for status in all_statuses(self._status))


def where_init(pod: Pod, container: AnyContainer) -> bool:
    """Whether a container is one of the init containers."""
    return any(each is container for each in pod.spec.init_containers)


def _delay(probe: Probe | None) -> float:
    return 0.0 if probe is None else float(probe.initial_delay_seconds)


def _time(seconds: float) -> str:
    return times.format_time(datetime.fromtimestamp(int(seconds), UTC))


def _go_duration(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes}m{rest}s" if minutes else f"{rest}s"
