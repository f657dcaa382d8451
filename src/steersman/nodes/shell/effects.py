"""Effects: what a running script requests from its runner, and the simulated machine (`World`) that it runs on.

Scripts are generators of effects. So one script can run in real time for `exec`, and at once to find out what a
container has printed so far.

A program works for a few milliseconds at most between two effects. Its work is counted in steps of about ten
microseconds (a command, a KiB of text, some lines), and a `Wait` of zero seconds lets other tasks run.
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
"""Bytes in the pipe between two commands, or in the output that becomes a variable."""
MOST_FILE_BYTES: Final = 1 << 20
"""Bytes of all files that are written in a container, with their names and the overhead of each."""
PIECE: Final = 32 << 10
"""Bytes of standard input that a program gets at once, and of text that it processes between two effects."""
MOST_PATH: Final = 4096
"""Characters of a path in Linux."""
TERMINATED: Final = 143
"""Exit code of a process that SIGTERM has ended."""
_FILE_ITSELF: Final = 128
"""Overhead of a file in bytes."""
_MOST_LINKS: Final = 8
"""Symbolic links that are followed in one path."""
_MOST_LEVELS: Final = 64
"""Levels of a path in which symbolic links are resolved."""
_STEP_LEVELS: Final = 64
_STEP_CHARACTERS: Final = 1024
_STEP_LINES: Final = 32
_STEP_FILES: Final = 256
_GIVES_WAY: Final = 32
"""Steps after which others have the event loop."""
_MOST_VARIABLES: Final = 1 << 20
"""Characters of all variables that scripts set, with the overhead of each."""
_VARIABLE_ITSELF: Final = 64
"""Overhead of a variable in characters."""


class Write(NamedTuple):
    """Write bytes to standard output (1) or standard error (2)."""

    stream: int
    data: bytes


def line(text: str) -> Write:
    """Return the effect that writes a line to standard output."""
    return Write(1, f"{text}\n".encode(errors="surrogateescape"))


class Wait(NamedTuple):
    """Let some seconds pass; `inf` waits for ever."""

    seconds: float


class ReadLine(NamedTuple):
    """Read a line of standard input. The answer is the line, None at the end."""


class Read(NamedTuple):
    """Read some of standard input. The answer is PIECE bytes at most, None at the end."""


class Repeated(NamedTuple):
    """Report that a loop repeats the same iteration after `period` seconds.

    The answer is the number of iterations to skip.
    """

    period: float


class Missing(NamedTuple):
    """Run a program that is not simulated. The answer is its exit code, or None if it is not found."""

    name: str
    is_first: bool = False
    """True if it is the whole command, and not one of a script."""


class Resolve(NamedTuple):
    """Resolve a host name. The answer is its full name and addresses, separated by spaces; None if it is unknown."""

    name: str


class Unread(NamedTuple):
    """Report a script that cannot be parsed: a syntax error, or unsupported syntax. The script then fails."""

    why: str


class Kill(NamedTuple):
    """Send a signal to the container's first process."""

    signal: int


Effect = Write | Wait | ReadLine | Read | Repeated | Missing | Resolve | Unread | Kill
Answer = bytes | int | None
T = TypeVar("T")
E = TypeVar("E")
A = TypeVar("A")
Work = Generator[Effect, Answer, T]
"""Part of a command, with a result."""
Execution = Work[int]
"""Running command, whose result is its exit code."""


class Identity(NamedTuple):
    """User and groups that a container's programs run as."""

    user: int = 0
    group: int = 0
    groups: tuple[int, ...] = ()
    """Supplemental groups."""


ROOT: Final = Identity()


class NoSpace(Exception):
    """The file system has no space left for a write."""


class FileSystems(MutableMapping[str, bytes]):
    """Files of several file systems by absolute path, each of which has its own limit of bytes."""

    @abstractmethod
    def free_bytes(self, path: str) -> int:
        """Return the bytes that are left on the file system of `path`."""

    @property
    @abstractmethod
    def file_count_bound(self) -> int:
        """Upper bound of the number of files, without iterating over them."""

    @abstractmethod
    def report_full(self, path: str) -> None:
        """Report a write to `path` for which no space was left."""


class Process(NamedTuple):
    """Process in a container, as `ps` shows it."""

    number: int
    command: str
    user: int = 0


class Link(bytes):
    """Symbolic link among files; its bytes are the path that it points to."""


class OutOfMemory(Exception):
    """A script buffers more than its memory budget allows, and ends."""


class Memory(Protocol):
    """Memory budget that programs running at the same time share."""

    def reserve(self, size: int) -> bool:
        """Reserve `size` bytes. Return False if fewer are left."""
        ...

    def release(self, size: int) -> None:
        """Give back reserved bytes."""
        ...


class UnboundedMemory:
    """Memory budget of a program that runs alone, for which the bound of each buffer is enough."""

    def reserve(self, size: int) -> bool:
        """Return True, as there is no budget."""
        return True

    def release(self, size: int) -> None:
        """Do nothing."""


class World(Struct):
    """Simulated machine of a command: variables, files, time, and the remaining bounds of its work."""

    hostname: str
    environment: dict[str, str]
    now: Callable[[], float]
    """Returns the time in seconds since 1970."""
    files: MutableMapping[str, bytes] = field(default_factory=dict)
    """Files by absolute path; a created folder is an empty file whose path ends with a slash."""
    folders: frozenset[str] = frozenset(
        {"/", "/bin", "/dev", "/etc", "/home", "/proc", "/root", "/tmp", "/usr", "/var"}
    )
    folder: str = "/"
    modes: MutableMapping[str, int] = field(default_factory=dict)
    """Permission bits by absolute path, of files whose mode is not 0644 and folders whose mode is not 0755."""
    file_systems: dict[str, str] = field(default_factory=dict)
    """Types of file systems by mount folder."""
    identity: Identity = ROOT
    unread: tuple[str, ...] = ()
    """Folders and files whose content was not read; every file in them is assumed to exist and to be empty."""
    mounts: frozenset[str] = frozenset()
    """Folders where volumes are mounted."""
    has_image: bool = False
    """True if files that nobody has written, outside of volumes, are assumed to exist in the image."""
    processes: tuple[Process, ...] = ()
    """Processes in the container before this command; empty if unknown."""
    memory: Memory = field(default_factory=UnboundedMemory)
    most_steps: int = 10_000
    """Commands in a row that take no time, after which a script counts as an endless loop."""
    steps: int = 0
    """Commands of all shells since time has last passed."""
    most_work: int | None = None
    """Steps of work after which a script counts as running for ever; None for no bound."""
    work: int = 0
    """Steps of work so far."""
    interactive: bool = False
    """True if the shell prompts for each line, as a person types."""
    _parts: int = 0
    """Characters that do not make up a whole step yet."""
    _gave_way: int = 0
    """Value of `work` at the last yield to other tasks."""
    _set: int = 0
    """Characters of variables that scripts have set."""
    _undo: list[dict[str, str | None]] = field(default_factory=list)
    """Previous values of variables that have changed in each of the enclosing loops and subshells."""

    def copy(self, **changes: Any) -> World:
        """Return a world for another command, with the given changes and unused bounds. All other fields are shared."""
        return replace(self, **changes, steps=0, work=0, _parts=0, _gave_way=0, _set=0, _undo=[])

    # Work

    def spend(self, characters: int = 0, *, lines: int = 0, files: int = 0, steps: int = 0) -> Work[None]:
        """Count work, and let other tasks run after much of it. Waits for ever if a bound is exceeded.

        Fractions of a step accumulate, so that much work in small amounts counts, too.
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
        """Set variables. Return False, and set none, if they exceed the bound."""
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

    def count_characters(self, size: int) -> bool:
        """Count characters of a shell's functions and traps; a negative size gives them back.

        Returns False, and counts nothing, if they exceed the bound.
        """
        if size > 0 and self._set + size > _MOST_VARIABLES:
            return False
        self._set += size
        return True

    def unset(self, name: str) -> None:
        """Remove a variable if it is set."""
        if name in self.environment:
            self._note(name)
            self._set -= len(name) + len(self.environment.pop(name)) + _VARIABLE_ITSELF

    def _note(self, name: str) -> None:
        for changes in self._undo:
            changes.setdefault(name, self.environment.get(name))

    def watch_variables(self) -> dict[str, str | None]:
        """Start to record previous values of variables that change, into the returned dict. `stop_watching` ends it."""
        changes: dict[str, str | None] = {}
        self._undo.append(changes)
        return changes

    def stop_watching(self, changes: dict[str, str | None], *, undo: bool = False) -> None:
        """Stop recording into `changes`. With `undo`, restore the previous values."""
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
        """Return the content of a file, following links; None if there is none."""
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
        """Return an absolute path with its symbolic links resolved; without `last`, its last part is not resolved.

        A path with too many links stays unresolved at one of them.
        """
        links, at = 0, 1
        for _ in range(_MOST_LEVELS):
            end = path.find("/", at)
            if end < 0:
                if not last:
                    break
                end = len(path)
            self._parts += _STEP_CHARACTERS // _STEP_LEVELS
            file = self.files.get(path[:end])
            if isinstance(file, Link):
                links += 1
                if links > _MOST_LINKS:
                    return path[:end]
                target = posixpath.join(posixpath.dirname(path[:end]), file.decode(errors="surrogateescape"))
                path, at = "/" + posixpath.normpath(target + path[end:]).lstrip("/"), 1
            elif end == len(path):
                break
            else:
                at = end + 1
            if len(path) > MOST_PATH:
                break
        return path

    def is_link(self, path: str) -> bool:
        """Return True for a symbolic link, even if its target does not exist."""
        return isinstance(self.files.get(path), Link)

    @property
    def many_files(self) -> int:
        """Number of files that a search for a folder goes through."""
        return self.files.file_count_bound if isinstance(self.files, FileSystems) else len(self.files)

    def is_folder(self, path: str) -> bool:
        """Return True for a folder of every container, a created folder, a folder with files, or a link to a folder."""
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
        """Return the mode of a file or folder, with its type bits, following links; None if it does not exist."""
        path = self.resolved(path)
        if self.read(path) is not None and path not in self.folders:
            return stat.S_IFREG | self.modes.get(path, 0o644)
        if self.is_folder(path):
            return stat.S_IFDIR | self.modes.get(path, 0o755)
        return None

    def file_system_of(self, path: str) -> str:
        """Return the type of the file system of a path."""
        around = [each for each in self.file_systems if path == each or path.startswith(f"{each.rstrip('/')}/")]
        return self.file_systems[max(around, key=len)] if around else "overlay"

    def put(self, path: str, data: bytes) -> bool:
        """Write a file, following a link. Return False if no space is left."""
        if self.is_link(path):
            path = self.resolved(path)
            if self.is_link(path):
                return False
        return self.put_entry(path, data)

    def put_entry(self, path: str, data: bytes) -> bool:
        """Write a file or a link, replacing a link. Return False if no space is left."""
        if len(path) > MOST_PATH or bytes_of_file(path, data) - bytes_of_file(
            path, self.files.get(path)
        ) > self.free_bytes(path):
            if isinstance(self.files, FileSystems):
                self.files.report_full(path)
            return False
        self.files[path] = data
        return True

    def free_bytes(self, path: str = "/") -> int:
        """Return the bytes that are left on the file system of `path`."""
        if isinstance(self.files, FileSystems):
            return self.files.free_bytes(path)
        return MOST_FILE_BYTES - sum(bytes_of_file(path, data) for path, data in self.files.items())


def bytes_of_file(path: str, data: bytes | None) -> int:
    """Return the bytes that a file takes with its name and overhead; 0 for a file that does not exist."""
    return 0 if data is None else len(path) + len(data) + _FILE_ITSELF


def answer_effects(execution: Generator[E, A | None, T], answer_to: Callable[[E], Work[A | None]]) -> Work[T]:
    """Run a command whose effects are answered, or passed on, by `answer_to`."""
    answer: A | None = None
    while True:
        try:
            effect = execution.send(answer)
        except StopIteration as done:
            value: T = done.value
            return value
        answer = yield from answer_to(effect)


class Buffer:
    """Captured output of a command. Output beyond MOST_BUFFERED bytes is lost."""

    __slots__ = ("_memory", "data")

    def __init__(self, memory: Memory) -> None:
        self.data = bytearray()
        self._memory = memory

    def add(self, data: bytes) -> None:
        """Append data. Raises OutOfMemory if the shared memory budget is exhausted."""
        more = data[: MOST_BUFFERED - len(self.data)]
        if not self._memory.reserve(len(more)):
            raise OutOfMemory
        self.data += more

    def __del__(self) -> None:
        self._memory.release(len(self.data))


def capture_output(execution: Work[T], taken: Buffer, stream: int = 1) -> Work[T]:
    """Run a command whose output on `stream` goes into `taken`."""

    def take(effect: Effect) -> Work[Answer]:
        if not (isinstance(effect, Write) and effect.stream == stream):
            return (yield effect)
        taken.add(effect.data)
        return None

    return answer_effects(execution, take)


def with_input(execution: Work[T], data: bytes) -> Work[T]:
    """Run a command whose standard input is `data`."""
    source = InputBuffer()
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

    return answer_effects(execution, feed)


class InputBuffer:
    """Buffer that is filled in pieces and read by lines or by pieces."""

    __slots__ = ("_data", "_searched")

    def __init__(self) -> None:
        self._data = bytearray()
        self._searched = 0
        """Bytes at the start that are known to hold no end of a line."""

    @property
    def size(self) -> int:
        """Unread bytes."""
        return len(self._data)

    def add(self, data: bytes) -> None:
        """Append data."""
        self._data += data

    def piece(self, most: int = PIECE) -> bytes | None:
        """Remove and return up to `most` bytes; None if there are none."""
        return self._taken(most) if self._data else None

    def line(self) -> bytes | None:
        """Remove and return the next line with its end; None if no line is complete."""
        end = self._data.find(b"\n", self._searched)
        if end < 0:
            self._searched = len(self._data)
            return None
        return self._taken(end + 1)

    def rest(self) -> bytes | None:
        """Remove and return everything; None if there is nothing."""
        return self._taken(len(self._data)) if self._data else None

    def _taken(self, size: int) -> bytes:
        taken = bytes(self._data[:size])
        del self._data[:size]
        self._searched = 0
        return taken
