"""One sync of the containers of a pod: its input and its results."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from msgspec.structs import replace

from steersman.api.core.v1 import ContainerStateTerminated, ContainerStatus, Pod, PodStatus
from steersman.machinery.built_in.pod_resources import AnyContainer
from steersman.machinery.values import times
from steersman.nodes.behaviour import Behaviour
from steersman.nodes.context import EMPTY_RECORD, CommandResult, ContainerRecord, PodContext, PodEvent


class PodSync:
    """Input and results of one sync of a pod.

    The results are in the pod's status and in `next_sync`, `events`, `records` and `pulled`. Times are seconds since 1970.
    """

    def __init__(self, pod: Pod, status: PodStatus, context: PodContext, now: float) -> None:
        """Start with `status`, a copy of the pod's status that the sync changes."""
        self.pod = pod
        self.pod_status = status
        self.context = context
        self.now = now
        self.next_sync: float | None = None
        """Time of the next sync, if nothing else causes an earlier one."""
        self.events: list[PodEvent] = []
        """Events to record."""
        self.records: dict[str, ContainerRecord] = {}
        """Records of containers after this sync, by container name."""
        self.pulled: list[str] = []
        """Full names of images that this sync has made present on the node."""
        self.ended_for_probes: set[str] = set()
        """Containers that this sync has ended because of their probes."""

    def resync_at(self, at: float) -> None:
        """Schedule another sync of the pod at the time `at` at the latest; `inf` schedules none."""
        if at == float("inf"):
            return
        self.next_sync = at if self.next_sync is None else min(self.next_sync, at)

    def is_due(self, due: float) -> bool:
        """Return True if the time `due` has come; otherwise schedule a sync for it."""
        if due > self.now:
            self.resync_at(due)
            return False
        return True


class ContainerSync:
    """One container in a sync of its pod. `path` is its field path, as events name it."""

    __slots__ = ("behaves", "container", "path", "status", "sync")

    def __init__(self, sync: PodSync, container: AnyContainer, status: ContainerStatus, path: str) -> None:
        """Start with `status`, the container's status within the copy that the sync changes."""
        self.sync = sync
        self.container = container
        self.status = status
        self.path = path
        self.behaves = Behaviour()
        """Behaviour of the container in its current run."""

    @property
    def last_end(self) -> ContainerStateTerminated | None:
        """Last termination of the container, or None."""
        return self.status.state.terminated or self.status.last_state.terminated

    @property
    def record(self) -> ContainerRecord:
        """The kubelet's record of the container."""
        return self.sync.records.get(self.container.name, EMPTY_RECORD)

    def update_record(self, **changes: Any) -> None:
        """Change fields of the kubelet's record of the container."""
        record = replace(self.record, **changes)
        if record == EMPTY_RECORD:
            self.sync.records.pop(self.container.name, None)
        else:
            self.sync.records[self.container.name] = record

    def result_of(self, kind: str, container_id: str) -> CommandResult | None:
        """Return the result of a command of the given kind that was run for this sync in this run of the container, or
        None.
        """
        result = self.sync.context.results.get((self.container.name, kind))
        return result if result is not None and result.container_id == container_id else None

    def record_event(self, type_: str, reason: str, message: str) -> None:
        """Record an event about the container."""
        self.sync.events.append(PodEvent(type_, reason, message, self.path))


def status_time(seconds: float) -> str:
    """Return a time as statuses show it, with whole seconds."""
    return times.format_time(datetime.fromtimestamp(int(seconds), UTC))


def fractional(seconds: float) -> float | None:
    """Return `seconds` if it has a fraction, which `status_time` drops and the record must keep; otherwise None."""
    return None if seconds == int(seconds) else seconds


def full_name(pod: Pod) -> str:
    """Return a pod's name as a kubelet writes it in messages: NAME_NAMESPACE(UID)."""
    metadata = pod.metadata
    return f"{metadata.name}_{metadata.namespace}({metadata.uid})"
