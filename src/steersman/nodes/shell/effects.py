"""Requests of a running script to its runner. Scripts are generators of effects, so that the same script can be run in
real time for `exec` and in no time to know what a container has printed by now.

A program works for a few milliseconds at most between two effects: what it does is counted in steps of some ten
microseconds (a command, a KiB of text, some lines), and a `Wait` of no time lets others have their turn.
"""

from __future__ import annotations

import posixpath
import stat
from abc import abstractmethod
from collections.abc import Callable, Generator, Mapping, MutableMapping
from typing import Any, Final, NamedTuple, Protocol, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

MOST_BUFFERED: Final = 1 << 20
"""Bytes that go from one command to the next, or into a variable."""
MOST_FILE_BYTES: Final = 1 << 20
"""Of all files that are written in a container, with their names and what each takes itself."""
PIECE: Final = 32 << 10
"""Bytes of standard input that a program is given at once, and of a text that it works on between two effects."""
MOST_PATH: Final = 4096
"""Characters of a path, as Linux has it."""
TERMINATED: Final = 143
"""Exit code of what SIGTERM has ended."""
_FILE_ITSELF: Final = 128
_MOST_LINKS: Final = 8
"""That a path leads through."""
_MOST_LEVELS: Final = 64
"""Of a path, that links are looked for in."""
_STEP_LEVELS: Final = 64
_STEP_CHARACTERS: Final = 1024
_STEP_LINES: Final = 32
_STEP_FILES: Final = 256
_GIVES_WAY: Final = 32
"""Steps after which others have their turn."""
_MOST_VARIABLES: Final = 1 << 20
"""Characters of all variables that scripts set, with what each takes itself."""
_VARIABLE_ITSELF: Final = 64


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


class Read(NamedTuple):
    """Some of standard input is wanted: the answer is PIECE bytes at most, None at the end."""


class Repeated(NamedTuple):
    """A loop begins again as it did before, `period` seconds later: the answer is how many times may be left out."""

    period: float


class Missing(NamedTuple):
    """A program that is not known here is to be run: it is not found, unless the runner answers its exit code."""

    name: str
    is_first: bool = False
    """Whether it is the command that was to be run, and not one of a script."""


class Resolve(NamedTuple):
    """The addresses of a name are wanted: the answer is these with spaces between, None where there are none."""

    name: str


class Unread(NamedTuple):
    """A script that cannot be read, as it is none or of more than is known here; then it fails."""

    why: str


class Kill(NamedTuple):
    """The container's first process is sent a signal."""

    signal: int


Effect = Write | Wait | ReadLine | Read | Repeated | Missing | Resolve | Unread | Kill
Answer = bytes | int | None
T = TypeVar("T")
E = TypeVar("E")
A = TypeVar("A")
Work = Generator[Effect, Answer, T]
"""A part of a command, with its result."""
Course = Work[int]
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

    @property
    @abstractmethod
    def about(self) -> int:
        """The number of files at most, as far as that can be said without looking at them."""

    @abstractmethod
    def refused(self, path: str) -> None:
        """Tell of a write for which there was no room."""


class Process(NamedTuple):
    """A process in a container, as `ps` shows it."""

    number: int
    command: str
    user: int = 0


class Link(bytes):
    """A symbolic link among files: the path that it leads to."""


class OutOfMemory(Exception):
    """A script buffers more than it may; it ends with that."""


class Memory(Protocol):
    """Bytes that programs which run at the same time share."""

    def take(self, size: int) -> bool:
        """Return False where so many bytes are not left."""
        ...

    def give(self, size: int) -> None:
        """Give back bytes that were taken."""
        ...


class Unshared:
    """Memory of a program that runs alone: what bounds each buffer is enough."""

    def take(self, size: int) -> bool:
        return True

    def give(self, size: int) -> None:
        pass


class World(Struct):
    """Surroundings of a command: variables, files, time, and what is left of its bounds."""

    hostname: str
    environment: dict[str, str]
    now: Callable[[], float]
    """Seconds since 1970."""
    files: MutableMapping[str, bytes] = field(default_factory=dict)
    """By absolute path; a folder that was made is an empty one whose path ends with a slash."""
    folders: frozenset[str] = frozenset(
        {"/", "/bin", "/dev", "/etc", "/home", "/proc", "/root", "/tmp", "/usr", "/var"}
    )
    folder: str = "/"
    modes: MutableMapping[str, int] = field(default_factory=dict)
    """Permission bits by absolute path, of files that have not 0644 and folders that have not 0755."""
    file_systems: dict[str, str] = field(default_factory=dict)
    """Types of file systems, by the folders where they are mounted."""
    identity: Identity = ROOT
    unread: tuple[str, ...] = ()
    """Folders, and single files, whose contents nobody has looked up: each file in them is taken to be there, empty."""
    mounts: frozenset[str] = frozenset()
    """Folders where volumes are."""
    has_image: bool = False
    """Files that nobody has written, and that are in no volume, are taken to be those of the image."""
    processes: tuple[Process, ...] = ()
    """Processes in the container before this command; none where nobody has said."""
    memory: Memory = field(default_factory=Unshared)
    most_steps: int = 10_000
    """Commands in a row that take no time, after which a script counts as one that spins for ever."""
    steps: int = 0
    """Commands of all its shells, since time has passed."""
    most_work: int | None = None
    """Steps in all, after which a script counts as one that goes on for ever; None for no bound."""
    work: int = 0
    """Steps in all."""
    interactive: bool = False
    """Somebody types: a shell asks for each line."""
    _parts: int = 0
    """Of a step, in characters."""
    _gave_way: int = 0
    """The work after which others had their turn."""
    _set: int = 0
    """Characters of variables that scripts have set."""
    _undo: list[dict[str, str | None]] = field(default_factory=list)
    """Variables as they were when each of the enclosing loops and subshells began, as far as they have changed."""

    def copy(self, **changes: Any) -> World:
        """Return a world for another command: of its own are the fields that change, and what is left of its bounds."""
        return replace(self, **changes, steps=0, work=0, _parts=0, _gave_way=0, _set=0, _undo=[])

    # Work

    def spend(self, characters: int = 0, *, lines: int = 0, files: int = 0, steps: int = 0) -> Work[None]:
        """Count some work; others have their turn after much of it. Waits for ever where a bound is passed.

        Parts of a step are kept: much of what is little each time comes to steps, too.
        """
        self._parts += characters + files * (_STEP_CHARACTERS // _STEP_FILES)
        whole, self._parts = divmod(self._parts, _STEP_CHARACTERS)
        self.work += steps + whole + (lines + _STEP_LINES - 1) // _STEP_LINES
        if self.steps > self.most_steps or (self.most_work is not None and self.work > self.most_work):
            yield Wait(float("inf"))
        elif self.work - self._gave_way >= _GIVES_WAY:
            self._gave_way = self.work
            yield Wait(0)

    # Variables

    def assign(self, values: Mapping[str, str]) -> bool:
        """Set variables; False, and none is set, where there is no room for them."""
        variables = self.environment
        more = sum(
            len(value) - (len(variables[name]) if name in variables else -len(name) - _VARIABLE_ITSELF)
            for name, value in values.items()
        )
        if more > 0 and self._set + more > _MOST_VARIABLES:
            return False
        self._set += more
        for name, value in values.items():
            self._note(name)
            variables[name] = value
        return True

    def keep(self, size: int) -> bool:
        """Count characters that a shell keeps for itself, of functions and traps; less than 0 gives them back. False
        where there is no room for them."""
        if size > 0 and self._set + size > _MOST_VARIABLES:
            return False
        self._set += size
        return True

    def unset(self, name: str) -> None:
        """Take a variable away, if it is there."""
        if name in self.environment:
            self._note(name)
            self._set -= len(name) + len(self.environment.pop(name)) + _VARIABLE_ITSELF

    def _note(self, name: str) -> None:
        for changes in self._undo:
            changes.setdefault(name, self.environment.get(name))

    def watch_variables(self) -> dict[str, str | None]:
        """Begin to keep what variables were before they change. To be followed by `watched`."""
        changes: dict[str, str | None] = {}
        self._undo.append(changes)
        return changes

    def watched(self, changes: dict[str, str | None], *, undo: bool = False) -> None:
        """End that; with `undo` variables become what they were."""
        self._undo = [each for each in self._undo if each is not changes]
        if undo:
            for name, value in changes.items():
                if value is None:
                    self.unset(name)
                else:
                    self._note(name)
                    self._set += len(value) - len(self.environment.get(name, ""))
                    self.environment[name] = value

    # Files

    def read(self, path: str) -> bytes | None:
        """Return the contents of a file, None if there is none."""
        data = self.files.get(path)
        if data is None or isinstance(data, Link):
            path = self.resolved(path)
            data = self.files.get(path)
        if isinstance(data, Link):
            return None
        if data is None and any(path == each or path.startswith(f"{each}/") for each in self.unread):
            return b""
        return data

    def resolved(self, path: str, *, last: bool = True) -> str:
        """Return an absolute path with the symbolic links in it replaced by what they lead to, but its `last` part
        where that is False. A path that leads through too many links ends with one of them."""
        links, at = 0, 1
        for _ in range(_MOST_LEVELS):
            end = path.find("/", at)
            if end < 0:
                if not last:
                    break
                end = len(path)
            self._parts += _STEP_CHARACTERS // _STEP_LEVELS
            found = self.files.get(path[:end])
            if isinstance(found, Link):
                links += 1
                if links > _MOST_LINKS:
                    return path[:end]
                target = posixpath.join(posixpath.dirname(path[:end]), found.decode(errors="surrogateescape"))
                path, at = "/" + posixpath.normpath(target + path[end:]).lstrip("/"), 1
            elif end == len(path):
                break
            else:
                at = end + 1
            if len(path) > MOST_PATH:
                break
        return path

    def is_link(self, path: str) -> bool:
        """Return True for a symbolic link, whatever it leads to."""
        return isinstance(self.files.get(path), Link)

    @property
    def many_files(self) -> int:
        """The number of files that are looked through for a folder."""
        return self.files.about if isinstance(self.files, FileSystems) else len(self.files)

    def is_folder(self, path: str) -> bool:
        """Return True for a folder of every container, one that was made, one that files are in, and a link to one."""
        return self._is_folder(path) or ((place := self.resolved(path)) != path and self._is_folder(place))

    def _is_folder(self, path: str) -> bool:
        below = path.rstrip("/") + "/"
        return (
            path in self.folders
            or below in self.files
            or any(each.startswith(below) for each in self.folders)
            or any(each.startswith(below) for each in self.files)
        )

    def mode_of(self, path: str) -> int | None:
        """Return the mode of a file or folder, its kind included, or of what a link leads to; None if there is none."""
        path = self.resolved(path)
        if self.read(path) is not None and path not in self.folders:
            return stat.S_IFREG | self.modes.get(path, 0o644)
        if self.is_folder(path):
            return stat.S_IFDIR | self.modes.get(path, 0o755)
        return None

    def file_system_of(self, path: str) -> str:
        """Return the type of the file system that a file or folder is on."""
        around = [each for each in self.file_systems if path == each or path.startswith(f"{each.rstrip('/')}/")]
        return self.file_systems[max(around, key=len)] if around else "overlay"

    def put(self, path: str, data: bytes) -> bool:
        """Write a file, or what a link to one leads to; False where there is no room for it."""
        if self.is_link(path):
            path = self.resolved(path)
            if self.is_link(path):
                return False
        return self.place(path, data)

    def place(self, path: str, data: bytes) -> bool:
        """Write a file or a link, in place of a link too; False where there is no room for it."""
        if len(path) > MOST_PATH or taken_by(path, data) - taken_by(path, self.files.get(path)) > self.room(path):
            if isinstance(self.files, FileSystems):
                self.files.refused(path)
            return False
        self.files[path] = data
        return True

    def room(self, path: str = "/") -> int:
        """Return the bytes that are left for files on the file system of a path."""
        if isinstance(self.files, FileSystems):
            return self.files.room(path)
        return MOST_FILE_BYTES - sum(taken_by(path, data) for path, data in self.files.items())


def taken_by(path: str, data: bytes | None) -> int:
    """Return the bytes that a file takes, 0 for one that is not there."""
    return 0 if data is None else len(path) + len(data) + _FILE_ITSELF


def between(course: Generator[E, A | None, T], answer_to: Callable[[E], Work[A | None]]) -> Work[T]:
    """Run a command whose effects are answered, or passed on, by `answer_to`."""
    answer: A | None = None
    while True:
        try:
            effect = course.send(answer)
        except StopIteration as done:
            value: T = done.value
            return value
        answer = yield from answer_to(effect)


class Buffer:
    """Output of a command that is kept; what is beyond MOST_BUFFERED is lost."""

    __slots__ = ("_memory", "data")

    def __init__(self, memory: Memory) -> None:
        self.data = bytearray()
        self._memory = memory

    def add(self, data: bytes) -> None:
        """Raises OutOfMemory where the programs that run have no more between them."""
        more = data[: MOST_BUFFERED - len(self.data)]
        if not self._memory.take(len(more)):
            raise OutOfMemory
        self.data += more

    def __del__(self) -> None:
        self._memory.give(len(self.data))


def captured(course: Work[T], taken: Buffer, stream: int = 1) -> Work[T]:
    """Run a command whose output goes into `taken`."""

    def take(effect: Effect) -> Work[Answer]:
        if not (isinstance(effect, Write) and effect.stream == stream):
            return (yield effect)
        taken.add(effect.data)
        return None

    return between(course, take)


def fed(course: Work[T], data: bytes) -> Work[T]:
    """Run a command that reads `data`."""
    source = Source()
    is_added = False

    def feed(effect: Effect) -> Work[Answer]:
        nonlocal is_added
        if not is_added and isinstance(effect, Read | ReadLine):
            is_added = True
            source.add(data)
        if isinstance(effect, Read):
            return source.piece()
        if isinstance(effect, ReadLine):
            return source.line() or source.rest()
        return (yield effect)

    return between(course, feed)


class Source:
    """Bytes that come in pieces and are read by lines or by pieces."""

    __slots__ = ("_data", "_searched")

    def __init__(self) -> None:
        self._data = bytearray()
        self._searched = 0
        """Bytes in which no line ends."""

    @property
    def size(self) -> int:
        """Bytes that have not been read."""
        return len(self._data)

    def add(self, data: bytes) -> None:
        """Append bytes."""
        self._data += data

    def piece(self, most: int = PIECE) -> bytes | None:
        """Return some bytes, None where there are none."""
        return self._taken(most) if self._data else None

    def line(self) -> bytes | None:
        """Return the next line with its end, None where none has ended yet."""
        end = self._data.find(b"\n", self._searched)
        if end < 0:
            self._searched = len(self._data)
            return None
        return self._taken(end + 1)

    def rest(self) -> bytes | None:
        """Return all that is left, None where nothing is."""
        return self._taken(len(self._data)) if self._data else None

    def _taken(self, size: int) -> bytes:
        taken = bytes(self._data[:size])
        del self._data[:size]
        self._searched = 0
        return taken
