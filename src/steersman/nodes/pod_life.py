"""Life cycle of a pod on a simulated node: from its status to its next status and the time of the next sync.

Nearly all state is in the pod's status, so a node goes on after a restart as a kubelet does (pkg/kubelet
`kubelet_pods.go`, `kuberuntime`). Times are seconds since 1970.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from steersman.api.core.v1 import (
    ContainerState,
    ContainerStateTerminated,
    HostIP,
    Pod,
    PodIP,
    PodStatus,
)
from steersman.machinery.built_in.pod_resources import is_sidecar
from steersman.machinery.built_in.pod_state import is_terminal
from steersman.machinery.codec.serializer import deep_copy
from steersman.machinery.values import times
from steersman.nodes import restart_all
from steersman.nodes.container import life
from steersman.nodes.container.restarts import is_restarted
from steersman.nodes.container.sync import ContainerSync, PodSync, status_time
from steersman.nodes.container_status import aligned, all_statuses, is_of_other_kubelet, never_started, wait
from steersman.nodes.context import ContainerRecord, PodContext, PodEvent
from steersman.nodes.dns import REASON, resolving_of
from steersman.nodes.initial_world import has_long_texts
from steersman.nodes.naming import name_error
from steersman.nodes.pod_status import phase_of, put_conditions, put_disruption
from steersman.nodes.resize import put_pod_resources, resize
from steersman.nodes.undisturbed import is_undisturbed

_RETRY: Final = 12.0
"""Seconds after which the creation of a sandbox that failed is tried again."""

_FEW_CONTAINERS: Final = 5
"""Containers of a pod that is synced on the event loop."""
_FEW: Final = 500
"""Annotations of a pod that is synced on the event loop, and variables and words of commands of its containers."""


class PodSyncResult(Struct):
    """Result of one sync of a pod."""

    status: PodStatus
    changed: bool
    next_sync: float | None
    """Time of the next sync, if nothing else causes an earlier one."""
    is_finished: bool
    """True if the pod is being deleted and nothing of it runs any more."""
    events: list[PodEvent] = field(default_factory=list)
    records: dict[str, ContainerRecord] = field(default_factory=dict)
    """The kubelet's records of containers, by container name."""
    pulled: list[str] = field(default_factory=list)
    """Full names of images that the sync has made present on the node."""

    @property
    def is_settled(self) -> bool:
        """True if all containers run and nothing changes without an outside cause."""
        statuses = all_statuses(self.status)
        return (
            self.next_sync is None
            and not any(each.is_active for each in self.records.values())
            and not self.is_finished
            and self.status.phase == "Running"
            and all(each.state.running is not None for each in statuses)
        )


def takes_long(pod: Pod) -> bool:
    """Return True if a sync of a pod may take more than a few milliseconds, as each command may have to be
    rehearsed.
    """
    containers = (*(pod.spec.containers or ()), *pod.spec.init_containers)
    return (
        len(containers) + len(pod.spec.ephemeral_containers) > _FEW_CONTAINERS
        or len(pod.metadata.annotations) > _FEW
        or sum(len(each.env) + len(each.command) + len(each.args) for each in containers) > _FEW
        or any(map(has_long_texts, (*containers, *pod.spec.ephemeral_containers)))
    )


def sync_pod(pod: Pod, context: PodContext, now: float) -> PodSyncResult:
    """Return the result of a sync, at the time `now`, of a pod that is bound to a node."""
    deleting = pod.metadata.deletion_timestamp is not None
    if is_terminal(pod):
        return PodSyncResult(pod.status, changed=False, next_sync=None, is_finished=deleting)
    if is_undisturbed(pod, context, now):
        return PodSyncResult(pod.status, changed=False, next_sync=None, is_finished=False)
    return compute_status(pod, context, now)


def compute_status(pod: Pod, context: PodContext, now: float) -> PodSyncResult:
    """Return the result of a sync of a pod that has not ended, after looking at each of its containers."""
    deleting = pod.metadata.deletion_timestamp is not None
    return _PodLife(pod, context, now, deleting=deleting).run()


def _goes_on_as_before(pod: Pod, status: PodStatus) -> bool:
    """Return True if only details differ in the status of a pod that another kubelet has run.

    Kubelets of other releases report other details: to write them for all pods at once would keep controllers busy.
    """
    before = pod.status
    return (
        any(is_of_other_kubelet(pod, each) for each in before.container_statuses)
        and (before.phase, before.reason, before.pod_ip) == (status.phase, status.reason, status.pod_ip)
        and list(all_statuses(before)) == list(all_statuses(status))
        and {each.type: each.status for each in before.conditions}.items()
        >= {each.type: each.status for each in status.conditions}.items()
    )


class _PodLife:
    """One sync of a pod that is not terminal."""

    def __init__(self, pod: Pod, context: PodContext, now: float, *, deleting: bool) -> None:
        self._pod = pod
        self._name_error = name_error(pod) if context.mounted and pod.spec.set_hostname_as_fqdn else ""
        if self._name_error:
            context = replace(context, mounted=False)
        self._context = context
        self._now = now
        self._deleting = deleting
        self._status = deep_copy(pod.status)
        self._sync = PodSync(pod, self._status, context, now)

    def run(self) -> PodSyncResult:
        pod, status, sync = self._pod, self._status, self._sync
        if not status.start_time:
            status.start_time = status_time(self._now)
        self._put_addresses()
        if self._name_error:
            text = f"Failed to create pod sandbox: {self._name_error}"
            sync.events.append(PodEvent("Warning", "FailedCreatePodSandBox", text))
            sync.resync_at(self._now + _RETRY)
        past_deadline = self._is_past_deadline()
        evicted = self._context.eviction_message
        stopping = self._deleting or past_deadline or bool(evicted)
        initialized = self._advance_init_containers(stopping)
        self._advance_containers(initialized, stopping)
        if self._context.mounted:
            self._advance_ephemeral_containers(stopping)
        restarting = not stopping and restart_all.is_restart_due(pod, status)
        if restarting:
            for each in all_statuses(status):
                if each.state.running is not None:
                    self._end_container(each.container_id)
            sync.events += [PodEvent("Normal", "Killing", "killing") for _ in restart_all.reset(pod, status)]
            sync.resync_at(self._now)
        elif not stopping:
            self._resize()
        if self._main_containers_are_over() or (stopping and self._all_are_over()):
            self._end_sidecars()
        phase = phase_of(pod, status, terminal=self._all_are_over() and (stopping or self._main_containers_are_over()))
        if past_deadline and self._all_are_over():
            phase = "Failed"
            status.reason = "DeadlineExceeded"
            status.message = "Pod was active on the node longer than the specified deadline"
        elif evicted and self._all_are_over():
            phase, status.reason, status.message = "Failed", "Evicted", evicted
        status.phase = phase
        status.observed_generation = pod.metadata.generation
        put_pod_resources(pod, status)
        put_conditions(pod, status, status_time(self._now), restarting=restarting)
        if status.reason == "Evicted":
            put_disruption(pod, status, evicted, status_time(self._now))
        over = self._deleting and self._all_are_over()
        changed = status != pod.status and not _goes_on_as_before(pod, status)
        return PodSyncResult(
            status if changed else pod.status, changed, sync.next_sync, over, sync.events, sync.records, sync.pulled
        )

    def _put_addresses(self) -> None:
        status, context = self._status, self._context
        status.host_ip = context.host_ips[0]
        status.host_ips = [HostIP(ip=ip) for ip in context.host_ips]
        if not context.mounted or status.pod_ip == context.pod_ips[0]:
            return
        if not status.pod_ip and self._pod.spec.dns_config is not None:
            warnings = resolving_of(self._pod).warnings
            self._sync.events += [PodEvent("Warning", REASON, each) for each in warnings]
        status.pod_ip = context.pod_ips[0]
        status.pod_ips = [PodIP(ip=ip) for ip in context.pod_ips]

    def _is_past_deadline(self) -> bool:
        seconds = self._pod.spec.active_deadline_seconds
        if seconds is None or not self._status.start_time:
            return False
        due = times.unix(self._status.start_time) + seconds
        if self._now < due:
            self._sync.resync_at(due)
        return self._now >= due

    # Containers

    def _advance_init_containers(self, stopping: bool) -> bool:
        """Advance the init containers one after the other. Return True if the other containers may start."""
        statuses = aligned(self._pod.spec.init_containers, self._status.init_container_statuses)
        self._status.init_container_statuses = statuses
        begun = not all(map(never_started, self._status.container_statuses))
        initialized = self._context.mounted
        for container, status in zip(self._pod.spec.init_containers, statuses, strict=True):
            if initialized or is_sidecar(container):
                path = f"spec.initContainers{{{container.name}}}"
                life.advance(
                    ContainerSync(self._sync, container, status, path), stopping=stopping, may_start=initialized
                )
            else:
                wait(status, "PodInitializing")
            if is_sidecar(container):
                initialized = initialized and bool(status.started)
            else:
                terminated = status.state.terminated
                status.ready = terminated is not None and terminated.exit_code == 0
                initialized = initialized and status.ready
        return initialized or begun  # restarting sidecars do not hold up the other containers

    def _advance_containers(self, initialized: bool, stopping: bool) -> None:
        containers = self._pod.spec.containers or []
        statuses = self._status.container_statuses = aligned(containers, self._status.container_statuses)
        reason = "PodInitializing" if self._pod.spec.init_containers else "ContainerCreating"
        for container, status in zip(containers, statuses, strict=True):
            if not initialized and never_started(status):
                wait(status, reason)
            else:
                path = f"spec.containers{{{container.name}}}"
                life.advance(
                    ContainerSync(self._sync, container, status, path), stopping=stopping, may_start=initialized
                )

    def _advance_ephemeral_containers(self, stopping: bool) -> None:
        containers = self._pod.spec.ephemeral_containers
        statuses = aligned(containers, self._status.ephemeral_container_statuses)
        self._status.ephemeral_container_statuses = statuses
        for container, status in zip(containers, statuses, strict=True):
            one = ContainerSync(self._sync, container, status, f"spec.ephemeralContainers{{{container.name}}}")
            life.advance(one, stopping=stopping, may_start=True)
            status.started, status.ready = None, False

    def _resize(self) -> None:
        """Apply changed resources of containers."""
        done = resize(self._pod, self._status, self._context.capacity, status_time(self._now))
        if done.event is not None:
            self._sync.events.append(PodEvent(*done.event))
        if done.retry_after is not None:
            self._sync.resync_at(self._now + done.retry_after)
        for where, containers, statuses in (
            ("spec.initContainers", self._pod.spec.init_containers, self._status.init_container_statuses),
            ("spec.containers", self._pod.spec.containers or (), self._status.container_statuses),
        ):
            for container, status in zip(containers, statuses, strict=True):
                if container.name in done.restart:
                    life.restart_for_resize(
                        ContainerSync(self._sync, container, status, f"{where}{{{container.name}}}")
                    )

    # The whole pod

    def _main_containers_are_over(self) -> bool:
        """Return True if the main containers, beside which sidecars run, have ended for good."""
        statuses = self._status.container_statuses
        pairs = zip(self._pod.spec.containers or [], statuses, strict=True)
        return bool(statuses) and all(
            status.state.terminated is not None and not is_restarted(self._pod, container, status)
            for container, status in pairs
        )

    def _end_sidecars(self) -> None:
        pairs = zip(self._pod.spec.init_containers, self._status.init_container_statuses, strict=True)
        for container, status in pairs:
            running = status.state.running
            if is_sidecar(container) and running is not None:
                status.state = ContainerState(
                    terminated=ContainerStateTerminated(
                        exit_code=0,
                        reason="Completed",
                        started_at=running.started_at,
                        finished_at=status_time(self._now),
                        container_id=status.container_id,
                    )
                )
                status.ready = status.started = False
                self._end_container(status.container_id)

    def _end_container(self, container_id: str) -> None:
        """Stop following the command of a container that ends without a termination."""
        if self._context.shared is not None:
            self._context.shared.end_container(container_id, self._now)

    def _all_are_over(self) -> bool:
        """Return True if no container runs."""
        return all(status.state.running is None for status in all_statuses(self._status))
