"""Input and results of one sync of a pod: its node, the kubelet's records, the events.

The kubelet's record of a container (`ContainerRecord`) is what a real kubelet knows beyond the status and loses at a restart,
such as the failures of a probe in a row. Times are seconds since 1970.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final, NamedTuple, Protocol

from msgspec import Struct, field
from msgspec.structs import replace

from steersman.machinery.built_in.pod_resources import AnyContainer
from steersman.machinery.values import times
from steersman.nodes.images import Pulls
from steersman.nodes.rehearsal import Unknown
from steersman.nodes.resize import NodeCapacity

STARTUP: Final = "Startup"
LIVENESS: Final = "Liveness"
READINESS: Final = "Readiness"
POST_START: Final = "PostStart"
PRE_STOP: Final = "PreStop"


class ContainerExit(NamedTuple):
    """End of a container from inside, such as by `kill`, before its behaviour makes it end."""

    container_id: str
    exit_code: int
    at: float
    """Seconds since 1970."""
    reason: str = ""
    """Reason in the status; empty if the exit code implies it."""


class CommandResult(NamedTuple):
    """Result of a command that a kubelet has run in a container for a probe or hook."""

    container_id: str
    number: int
    """Number of the probe's attempt; 0 for hooks."""
    seconds: float
    """Simulated duration."""
    exit_code: int
    output: str = ""
    """Printed text, of both streams; `errors` has the part that went to stderr."""
    errors: str = ""


class ProbeState(NamedTuple):
    """State of a probe in one run of a container: attempts so far, and their results."""

    container_id: str
    number: int
    """Number of the last attempt; the first is 0."""
    succeeded: bool
    """Effective result: the last one that came as often in a row as its threshold asks for."""
    last: bool
    """Result of the last attempt."""
    run: int
    """Attempts in a row with the last result."""


class PendingStart(NamedTuple):
    """A container that is created and counts as waiting until its postStart hook has ended."""

    container_id: str
    at: float
    hook: CommandResult | None = None


class Termination(NamedTuple):
    """Termination of a running container that is under way."""

    container_id: str
    at: float
    grace: float
    """Grace period in seconds."""
    by_probe: bool = False
    hook: CommandResult | None = None
    """Result of the preStop hook; None before it was run."""
    hook_event_recorded: bool = False
    """True once the failure of the hook was recorded as an event."""


class ContainerRecord(Struct, frozen=True):
    """The kubelet's record of one container, beyond its status."""

    pulls: Pulls | None = None
    """Failed attempts to pull its image."""
    pulling_since: float | None = None
    """Start of the pull that is under way."""
    tried_at: float | None = None
    """Time of the last start that failed in a way that is retried."""
    pending_start: PendingStart | None = None
    termination: Termination | None = None
    probe_states: Mapping[str, ProbeState] = field(default_factory=dict)
    """States of probes, by kind."""
    started_at: float | None = None
    """Exact time of the last start, of which the status has whole seconds."""
    ended_at: float | None = None
    """Exact time of the last termination."""

    @property
    def is_active(self) -> bool:
        """Return True if a start, a termination, a pull or probes of the container are under way."""
        return replace(self, started_at=None, ended_at=None) != EMPTY_RECORD


EMPTY_RECORD: Final = ContainerRecord()


def exact_time(second: str | None, known: float | None) -> float:
    """Return the exact moment of a time in a status: `known` if it is in that second, otherwise the start of the
    second.
    """
    whole = float(times.unix(second or times.now()))
    return known if known is not None and whole <= known < whole + 1 else whole


def _no_error(_: AnyContainer) -> str:
    return ""


class PodContext(Struct, frozen=True):
    """Node, addresses and kubelet state that a sync of one pod depends on."""

    host_ips: Sequence[str]
    pod_ips: Sequence[str]
    mounted: bool = True
    """True if the pod's volumes are ready; no container starts before."""
    exits: Mapping[str, ContainerExit] = field(default_factory=dict)
    """Ends of containers from inside, by container name."""
    records: Mapping[str, ContainerRecord] = field(default_factory=dict)
    """The kubelet's records of containers, by container name."""
    start_delay: float = 0.0
    """Seconds from the pod's start until its containers begin."""
    capacity: NodeCapacity | None = None
    """Capacity of the node; None for unlimited."""
    missing_images: Sequence[str] = ()
    """Patterns of full names of images that no registry has."""
    images: Collection[str] = ()
    """Full names of images that are on the node."""
    eviction_message: str = ""
    """Reason for which the node evicts the pod; empty if it does not."""
    work_errors: Mapping[str, str] = field(default_factory=dict)
    """Errors of containers whose work in the API the kubelet has done for them, by name; "" for success."""
    unknown_programs: Unknown | None = None
    """Treatment of programs that are not simulated; None for the default of each container."""
    config_error: Callable[[AnyContainer], str] = _no_error
    """Returns the error in a container's configuration; "" for none."""
    shared: SharedFiles | None = None
    """Files in volumes that containers share; None if there are none."""
    results: Mapping[tuple[str, str], CommandResult] = field(default_factory=dict)
    """Results of commands that were run for this sync, by container name and kind of probe or hook."""


class StartSnapshot(NamedTuple):
    """Snapshot of the shared files and the variables that a container had at its start."""

    name: str
    """Name of the container."""
    files: Mapping[str, bytes]
    """Files in volumes that it shares with other containers, by absolute path."""
    variables: Mapping[str, str]
    """Environment variables that are read from files (`fileKeyRef`)."""
    size: int = 0
    """Bytes of the files with their names."""


class CommandProgress(NamedTuple):
    """Progress of a followed command of a container."""

    next: float | None
    """Time of its next step; None at its end, or if it is not known."""
    ended_at: float | None
    """Time of its end; None if it has not ended."""
    exit_code: int | None


class SharedFiles(Protocol):
    """Files in volumes that the containers of one pod share."""

    def start_of(self, container: AnyContainer, container_id: str) -> StartSnapshot:
        """Return the snapshot from the start of a running container."""
        ...

    def start_container(self, container: AnyContainer, container_id: str, at: float) -> None:
        """Take the snapshot of a container that starts at the time `at`, and follow its command if it changes files."""
        ...

    def progress(self, container_id: str, now: float) -> CommandProgress | None:
        """Return the progress of a command at `now`; None if the command is not followed."""
        ...

    def end_container(self, container_id: str, at: float) -> None:
        """Run the command of a container up to its end at the time `at`, and no further."""
        ...

    def config_error(self, container: AnyContainer) -> str:
        """Return the error in a container's variables that are read from files; "" for none."""
        ...


class PodEvent(NamedTuple):
    """Event about a container of the pod, or about the pod if it has no field path."""

    type: str
    reason: str
    message: str
    field_path: str = ""
