"""What a look at a pod is given and what it tells: where the pod runs, what its kubelet remembers, what has happened.

What a kubelet remembers (`Memory`) is what a real one knows of containers by itself and begins anew after a restart:
how often a probe has failed in a row, since when it tries something. Times are seconds since 1970.
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
from steersman.nodes.resize import Room

STARTUP: Final = "Startup"
LIVENESS: Final = "Liveness"
READINESS: Final = "Readiness"
POST_START: Final = "PostStart"
PRE_STOP: Final = "PreStop"


class Ended(NamedTuple):
    """A container has ended by itself, before it was due."""

    container_id: str
    exit_code: int
    at: float
    """Seconds since 1970."""
    reason: str = ""
    """Where it is not said by the exit code."""


class Ran(NamedTuple):
    """What came of a command that a kubelet has run in a container for a purpose of its own."""

    container_id: str
    number: int
    """Of the look that a probe takes, 0 for hooks."""
    seconds: float
    """How long it takes."""
    exit_code: int
    output: str = ""
    """What it has printed, and of that (`errors`) what was no output."""
    errors: str = ""


class Ticks(NamedTuple):
    """A probe of a running container: how often it has been looked at, and what for the last results were."""

    container_id: str
    number: int
    """Of the last look; the first is 0."""
    good: bool
    """What counts: the last result that came as often as its threshold asks for."""
    last: bool
    run: int
    """How often the last result came in a row."""


class Begun(NamedTuple):
    """A container that was created and counts as waiting until its hook has come to its end."""

    container_id: str
    at: float
    hook: Ran | None = None


class Stop(NamedTuple):
    """A running container is told to end."""

    container_id: str
    at: float
    grace: float
    """Seconds until it is killed."""
    by_probe: bool = False
    hook: Ran | None = None
    hook_told: bool = False
    """Whether a hook that failed was told of."""


class Memory(Struct, frozen=True):
    """Of one container."""

    pulls: Pulls | None = None
    """How often its image was tried in vain."""
    pulling_since: float | None = None
    tried_at: float | None = None
    """When its start failed for something that is looked at again after a while."""
    begun: Begun | None = None
    stop: Stop | None = None
    ticks: Mapping[str, Ticks] = field(default_factory=dict)
    """By the kind of probe."""
    began: float | None = None
    """The moment of its last start, of which its status has the second."""
    ended: float | None = None
    """The moment of its last end."""

    @property
    def is_active(self) -> bool:
        """Return True if something is under way that is remembered here."""
        return replace(self, began=None, ended=None) != NOTHING


NOTHING: Final = Memory()


def moment_of(second: str | None, known: float | None) -> float:
    """Return the moment of a time in a status: `known` if that is in the same second, the second's beginning else."""
    whole = float(times.unix(second or times.now()))
    return known if known is not None and whole <= known < whole + 1 else whole


def _is_configured(_: AnyContainer) -> str:
    return ""


class Place(Struct, frozen=True):
    """Where a pod runs."""

    host_ips: Sequence[str]
    pod_ips: Sequence[str]
    mounted: bool = True
    """Whether the pod's volumes are there; it starts nothing before."""
    ended: Mapping[str, Ended] = field(default_factory=dict)
    """Containers that have ended from inside, by name."""
    memory: Mapping[str, Memory] = field(default_factory=dict)
    """Of containers, by name."""
    start_delay: float = 0.0
    """Seconds from the pod's start until its containers begin."""
    room: Room | None = None
    """What the node has; None for enough of everything."""
    missing_images: Sequence[str] = ()
    """Patterns of the full names of images that nobody has."""
    images: Collection[str] = ()
    """The full names of images that the node has already."""
    evicted: str = ""
    """Why the pod has to go, as its node says it."""
    made: Mapping[str, str] = field(default_factory=dict)
    """Containers that do something to the API and end, with what went wrong, by name; "" for nothing."""
    unknown_programs: Unknown | None = None
    """Fate of programs that are not simulated; None for the one that suits each container."""
    wrong_with: Callable[[AnyContainer], str] = _is_configured
    """Why a container cannot be made as its pod wants it, "" if it can."""
    shared: SharedFiles | None = None
    """Files that containers share; None where there are none."""
    ran: Mapping[tuple[str, str], Ran] = field(default_factory=dict)
    """Commands of probes and hooks that were run for this look, by container and kind."""


class Start(NamedTuple):
    """What a container has found when it began."""

    name: str
    """Of the container."""
    files: Mapping[str, bytes]
    """In volumes that it shares with others, by absolute path."""
    variables: Mapping[str, str]
    """Those that are in files."""
    size: int = 0
    """Bytes of the files, with their names."""


class Progress(NamedTuple):
    """How far the command of a container has come."""

    next: float | None
    """When it goes on; None where that is not known, or at its end."""
    ended: float | None
    exit_code: int | None


class SharedFiles(Protocol):
    """Files of a pod that its containers share."""

    def start_of(self, container: AnyContainer, container_id: str) -> Start:
        """Return what a running container found when it began."""
        ...

    def begin(self, container: AnyContainer, container_id: str, at: float) -> None:
        """Have a container begin."""
        ...

    def progress(self, container_id: str, now: float) -> Progress | None:
        """Return how far a command has come by now; None for one that is not followed."""
        ...

    def has_ended(self, container_id: str, at: float) -> None:
        """Have a container do what it does before its end, and nothing more."""
        ...

    def wrong_with(self, container: AnyContainer) -> str:
        """Return why the variables of a container cannot be made of files; "" if they can."""
        ...


class Happened(NamedTuple):
    """An event about a container of the pod, or about the pod (no field path)."""

    type: str
    reason: str
    message: str
    field_path: str = ""
