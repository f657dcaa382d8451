"""One look at the containers of a pod: what is known before, what comes of it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from msgspec.structs import replace

from steersman.api.core.v1 import ContainerStateTerminated, ContainerStatus, Pod, PodStatus
from steersman.machinery.built_in.pod_resources import AnyContainer
from steersman.machinery.values import times
from steersman.nodes.behaviour import Behaviour
from steersman.nodes.place import NOTHING, Happened, Memory, Place, Ran


class Look:
    """What comes of it is in the pod's status, and in `again`, `happened`, `memory` and `pulled`. Times are seconds
    since 1970."""

    def __init__(self, pod: Pod, status: PodStatus, place: Place, now: float) -> None:
        """`status` is what the pod's status becomes."""
        self.pod = pod
        self.pod_status = status
        self.place = place
        self.now = now
        self.again: float | None = None
        """When to look the next time."""
        self.happened: list[Happened] = []
        self.memory: dict[str, Memory] = {}
        """What is to be remembered of containers, by name."""
        self.pulled: list[str] = []
        """The full names of images that the node has by now."""
        self.ended_for_probes: set[str] = set()
        """Containers that have been ended for their probes just now."""

    def again_at(self, at: float) -> None:
        """Has the pod looked at again then, or before; `inf` for never."""
        if at == float("inf"):
            return
        self.again = at if self.again is None else min(self.again, at)

    def has_passed(self, due: float) -> bool:
        """Whether a time has come; else it is looked at again then."""
        if due > self.now:
            self.again_at(due)
            return False
        return True


class ContainerLook:
    """One container in a look at its pod. `path` is where it is in the pod, as events name it."""

    __slots__ = ("behaves", "container", "look", "path", "status")

    def __init__(self, look: Look, container: AnyContainer, status: ContainerStatus, path: str) -> None:
        """`status` is what the container's status becomes."""
        self.look = look
        self.container = container
        self.status = status
        self.path = path
        self.behaves = Behaviour()
        """What it does this time."""

    @property
    def last_end(self) -> ContainerStateTerminated | None:
        """How it has ended last."""
        return self.status.state.terminated or self.status.last_state.terminated

    @property
    def memory(self) -> Memory:
        """What is known of it beside its status."""
        return self.look.memory.get(self.container.name, NOTHING)

    def remember(self, **changes: Any) -> None:
        """Changes that."""
        found = replace(self.memory, **changes)
        if found == NOTHING:
            self.look.memory.pop(self.container.name, None)
        else:
            self.look.memory[self.container.name] = found

    def ran(self, kind: str, container_id: str) -> Ran | None:
        """What came of a command that was run for this look."""
        found = self.look.place.ran.get((self.container.name, kind))
        return found if found is not None and found.container_id == container_id else None

    def tell(self, type_: str, reason: str, message: str) -> None:
        """Tells an event about it."""
        self.look.happened.append(Happened(type_, reason, message, self.path))


def time_of(seconds: float) -> str:
    """As statuses have it, to the second."""
    return times.format_time(datetime.fromtimestamp(int(seconds), UTC))


def exact(seconds: float) -> float | None:
    """A moment that is to be remembered, as `time_of` leaves something of it out."""
    return None if seconds == int(seconds) else seconds


def full_name(pod: Pod) -> str:
    """A pod as a kubelet names it in texts."""
    metadata = pod.metadata
    return f"{metadata.name}_{metadata.namespace}({metadata.uid})"
