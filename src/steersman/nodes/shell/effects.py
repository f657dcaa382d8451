"""What a script that runs asks of whoever runs it. Scripts are generators of these, so that the same one can be run in
real time for `exec` and in no time to know what a container has printed by now."""

from __future__ import annotations

import stat
from abc import abstractmethod
from collections.abc import Callable, Generator, MutableMapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

MOST_BUFFERED: Final = 1 << 20
"""Bytes that go from one command to the next, or into a variable."""
MOST_FILE_BYTES: Final = 1 << 20
"""Of all files that are written in a container, with their names and what each takes itself."""
_FILE_ITSELF: Final = 128
_STEP: Final = 1024
"""Characters that are handled in one step."""
_LINES_AT_ONCE: Final = 4096
"""Read between two of which others have their turn."""


class Write(NamedTuple):
    """Bytes for standard output (1) or standard error (2)."""

    stream: int
    data: bytes


def line(text: str) -> Write:
    """A line of standard output."""
    return Write(1, f"{text}\n".encode(errors="surrogateescape"))


class Wait(NamedTuple):
    """Some seconds pass; `inf` for ever."""

    seconds: float


class ReadLine(NamedTuple):
    """A line of standard input is wanted: the answer is the line, None at the end."""


class Repeated(NamedTuple):
    """A loop begins again as it did before, `period` seconds later: the answer is how many times may be left out."""

    period: float


class Missing(NamedTuple):
    """A program that is not known here is to be run: it is not found, unless whoever runs this stops."""

    name: str


class Unread(NamedTuple):
    """A script that cannot be read, as it is none or of more than is known here; then it fails."""

    why: str


class Kill(NamedTuple):
    """The container's first process is sent a signal."""

    signal: int


Effect = Write | Wait | ReadLine | Repeated | Missing | Unread | Kill
Answer = bytes | int | None
Course = Generator[Effect, Answer, int]
"""Runs a command; its value is the exit code."""


class Identity(NamedTuple):
    """As whom a container's programs run."""

    user: int = 0
    group: int = 0
    groups: tuple[int, ...] = ()
    """Beside its own."""


ROOT: Final = Identity()


class NoSpace(Exception):
    """The file system is full that a file is written on."""


class FileSystems(MutableMapping[str, bytes]):
    """Files of several file systems by absolute path, each of which has room of its own."""

    @abstractmethod
    def room(self, path: str) -> int:
        """Return the bytes that are left for files on the file system of `path`."""

    @abstractmethod
    def refused(self, path: str) -> None:
        """Tell of a write for which there was no room."""


@dataclass(slots=True)
class World:
    """What a command finds around it."""

    hostname: str
    environment: dict[str, str]
    now: Callable[[], float]
    """Seconds since 1970."""
    files: MutableMapping[str, bytes] = field(default_factory=dict)
    """By absolute path."""
    folders: frozenset[str] = frozenset({"/", "/bin", "/etc", "/home", "/proc", "/root", "/tmp", "/usr", "/var"})
    folder: str = "/"
    modes: dict[str, int] = field(default_factory=dict)
    """Permission bits by absolute path, of files that have not 0644 and folders that have not 0755."""
    file_systems: dict[str, str] = field(default_factory=dict)
    """Types of file systems, by the folders where they are mounted."""
    identity: Identity = ROOT
    unread: tuple[str, ...] = ()
    """Folders, and single files, whose contents nobody has looked up: each file in them is taken to be there, empty."""
    most_steps: int = 10_000
    """Commands in a row that take no time, after which a script counts as one that spins for ever."""
    steps: int = 0
    """Of all its shells, since time has passed: a command is one, and so is each KiB of text that it handles."""
    steps_are_forgotten: bool = True
    """When time passes."""
    gave_way: int = 0
    """The steps at which others had their turn."""
    interactive: bool = False
    """Somebody types: a shell asks for each line."""

    def read(self, path: str) -> bytes | None:
        """What is in a file, None if there is none."""
        data = self.files.get(path)
        if data is None and any(path == each or path.startswith(f"{each}/") for each in self.unread):
            return b""
        return data

    def mode_of(self, path: str) -> int | None:
        """The mode of a file or folder, its kind included; None if there is none."""
        if self.read(path) is not None and path not in self.folders:
            return stat.S_IFREG | self.modes.get(path, 0o644)
        if path in self.folders or any(each.startswith(f"{path}/") for each in self.files):
            return stat.S_IFDIR | self.modes.get(path, 0o755)
        return None

    def file_system_of(self, path: str) -> str:
        """The type of the file system that a file or folder is on."""
        around = [each for each in self.file_systems if path == each or path.startswith(f"{each.rstrip('/')}/")]
        return self.file_systems[max(around, key=len)] if around else "overlay"

    def put(self, path: str, data: bytes) -> bool:
        """Writes a file; False where there is no room for it."""
        if taken_by(path, data) - taken_by(path, self.files.get(path)) > self.room(path):
            if isinstance(self.files, FileSystems):
                self.files.refused(path)
            return False
        self.files[path] = data
        return True

    def handled(self, characters: int) -> None:
        """Counts the steps of handling some text."""
        self.steps += characters // _STEP

    def room(self, path: str = "/") -> int:
        """Bytes that are left for files on the file system of a path."""
        if isinstance(self.files, FileSystems):
            return self.files.room(path)
        return MOST_FILE_BYTES - sum(taken_by(path, data) for path, data in self.files.items())


def taken_by(path: str, data: bytes | None) -> int:
    """The bytes that a file takes, 0 for one that is not there."""
    return 0 if data is None else len(path) + len(data) + _FILE_ITSELF


def between(course: Course, answer_to: Callable[[Effect], Generator[Effect, Answer, Answer]]) -> Course:
    """Runs a command whose effects are answered, or passed on, by `answer_to`."""
    answer: Answer = None
    while True:
        try:
            effect = course.send(answer)
        except StopIteration as done:
            return int(done.value)
        answer = yield from answer_to(effect)


def captured(course: Course, taken: bytearray, stream: int = 1) -> Course:
    """Runs a command whose output goes into `taken`."""

    def take(effect: Effect) -> Generator[Effect, Answer, Answer]:
        nonlocal taken
        if not (isinstance(effect, Write) and effect.stream == stream):
            return (yield effect)
        taken += effect.data[: MOST_BUFFERED - len(taken)]
        return None

    return between(course, take)


def fed(course: Course, data: bytes) -> Course:
    """Runs a command that reads `data`."""
    lines = data.splitlines(keepends=True)
    lines.reverse()

    def feed(effect: Effect) -> Generator[Effect, Answer, Answer]:
        if not isinstance(effect, ReadLine):
            return (yield effect)
        if lines and len(lines) % _LINES_AT_ONCE == 0:
            yield Wait(0)
        return lines.pop() if lines else None

    return between(course, feed)
