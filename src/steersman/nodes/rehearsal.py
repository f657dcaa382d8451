"""What a container prints and when, and how it ends, found out in no time: its command is run with waits that only
count."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from enum import Enum
from functools import lru_cache
from typing import Final, NamedTuple

from steersman.nodes.shell.effects import (
    ROOT,
    TERMINATED,
    Answer,
    Identity,
    Kill,
    Missing,
    Read,
    ReadLine,
    Repeated,
    Unread,
    Wait,
    World,
    Write,
)
from steersman.nodes.shell.shell import Shell

ASSUMED: Final = frozenset(
    {"apk", "apt-get", "awk", "curl", "dig", "find", "getent", "nc", "nslookup", "ping", "sed", "timeout", "wget"}
)
"""Programs that scripts use on their way, which a rehearsal takes to have ended well; any other runs for ever."""
_KEPT_REPETITIONS: Final = 1000
"""Of a loop, before the moment of interest: what came before counts as rotated away."""
_MOST_REPETITIONS: Final = 40
"""Of a loop, after which it counts as one that goes on for ever."""
_MOST_EFFECTS: Final = 300
_MOST_WORK: Final = 500
"""Steps of what is found out at once: some milliseconds of work."""
_MOST_WORK_BEFORE: Final = 200_000
"""Steps before the moment of interest; a script that does more until then has its output lost."""
LONGEST: Final = 1 << 12
"""Characters of a command, and its variables, that is tried: reading a longer one takes too long already."""
MOST_FILES: Final = 1 << 12
"""Bytes of files in volumes that a command finds, with their names."""
_GIVES_WAY: Final = 32
_MOST_MESSAGE: Final = 4096
"""Bytes that a container leaves behind."""
_MOST_PRINTED_MESSAGE: Final = 2048
_MOST_MESSAGE_LINES: Final = 80
"""Of what it has printed, where that is its message."""
_MOST_NAME: Final = 100
"""Characters of a program's name that are told."""
_CANNOT_START: Final = 128
"""The exit code of a container whose command is not there."""
_MOST_PRINTED: Final = 10 << 10
"""Bytes of a stream that are kept of a command that is run at once."""


class Unknown(Enum):
    """Treatment of programs that are not simulated."""

    RUN = "run"
    """A container that uses one runs until it is stopped."""
    SUCCEED = "succeed"
    """They end with 0 at once."""
    FAIL = "fail"
    """They are not found, as if the image did not have them."""


class Printed(NamedTuple):
    """What was written to a stream (1 or 2), at a time in seconds since 1970."""

    at: float
    stream: int
    data: bytes


def rehearsed(
    words: Sequence[str], world: World, start: float, now: float, unknown: Unknown = Unknown.RUN
) -> Generator[Printed | float, None, int | None]:
    """What a command that began at `start` prints, in its order; every so often the time that has come, where a caller
    may give way.

    Of loops that repeat themselves only what is near `now` comes. Times go on beyond `now`, for ever if the command
    does. Ends where the command does, with its exit code, and where it is not known what follows, with None.
    """
    at = start
    world.now = lambda: at
    world.has_image = unknown is not Unknown.FAIL
    course = Shell(world).run(words)
    answer: Answer = None
    effects = 0
    while True:
        try:
            effect = course.send(answer)
        except StopIteration as end:
            return int(end.value) & 255
        answer = None
        effects += 1
        if not effects % _GIVES_WAY:
            yield at
        if effects + world.work > _MOST_WORK_BEFORE and at < now:
            return None
        match effect:
            case Write(stream, data):
                yield Printed(at, stream, data)
            case Wait(seconds):
                if seconds == float("inf"):
                    return None
                at += seconds
                yield at
            case Repeated(period):
                behind = int((now - at) / period) - _KEPT_REPETITIONS
                if behind > 0:
                    answer = behind
                    at += behind * period
            case Missing(name, is_first):
                if not _is_known(name, unknown) and (unknown is Unknown.RUN or is_first):
                    return None
                answer = _answer(name, unknown)
            case Unread():
                return None


def _is_known(name: str, unknown: Unknown) -> bool:
    """Return True for a program that scripts use on their way, unless programs that are not there fail."""
    return unknown is not Unknown.FAIL and name.rpartition("/")[2] in ASSUMED


def _answer(name: str, unknown: Unknown) -> int | None:
    """The exit code of a program that is not simulated, None where it is not found."""
    return None if unknown is Unknown.FAIL else 0


class Attempt(NamedTuple):
    """What a command does that was run at once, its waits only counted."""

    seconds: float
    """That it takes; `inf` for ever."""
    exit_code: int
    output: str
    """What it prints, its errors at the end."""
    errors: str
    signal: int | None
    """Which the container's first process was sent."""


def attempt(words: Sequence[str], world: World) -> Attempt:
    """Runs a command on the files of a world. Programs that there are not count as done well, and so does a script that
    cannot be followed to its end."""
    world.most_work = _MOST_WORK
    world.has_image = True
    course = Shell(world).run(words)
    answer: Answer = None
    seconds, signal, printed = 0.0, None, {1: bytearray(), 2: bytearray()}

    def done(code: int, after: float) -> Attempt:
        errors = printed[2].decode(errors="replace")
        return Attempt(after, code, printed[1].decode(errors="replace") + errors, errors, signal)

    for _ in range(_MOST_EFFECTS):
        try:
            effect = course.send(answer)
        except StopIteration as end:
            return done(int(end.value) & 255, seconds)
        answer = None
        match effect:
            case Write(stream, data):
                printed[stream] += data[: _MOST_PRINTED - len(printed[stream])]
            case Wait(passed):
                if passed == float("inf"):
                    return done(0, passed)
                seconds += passed
            case Kill(number):
                signal = number
            case Missing():
                answer = 0
            case Unread():
                break
    return done(0, seconds)


class Outcome(NamedTuple):
    """How a command ends."""

    seconds: float | None
    """After which it ends; None for never."""
    exit_code: int = 0
    is_known: bool = True
    """False where the command uses what there is not: it might do anything."""
    message: str = ""
    """What it leaves behind: the file that is read for that, or the end of what it printed."""
    missing: str = ""
    """The first program that it uses and that is not simulated."""
    cannot_start: bool = False
    """Whether that is the command itself, and is not found."""
    stops_after: float = 0.0
    """Seconds that it takes to end when it is told to, by a trap of its script."""
    stop_code: int = TERMINATED
    """The exit code then."""


class Setting(NamedTuple):
    """What a pod says that a command finds, before anything is looked up."""

    variables: tuple[tuple[str, str], ...] = ()
    unread: tuple[str, ...] = ()
    """Folders that have files: what is in them is taken to be there."""
    mounts: tuple[str, ...] = ()
    """Folders where volumes are, with files or without."""
    identity: Identity = ROOT
    message_path: str = ""
    """The file whose content it leaves behind."""
    prints_message: bool = False
    """Whether that is the end of what it printed, where it fails and has written no such file."""
    files: tuple[tuple[str, bytes], ...] = ()
    """What is in its volumes, by absolute path: MOST_FILES at most."""
    stdin: bool = False
    """Whether it waits for what it is to read; else there is nothing to read."""
    unknown: Unknown = Unknown.RUN

    @property
    def length(self) -> int:
        """Characters, about."""
        return sum(map(len, (*self.unread, *self.mounts))) + sum(
            len(name) + len(value) for name, value in self.variables
        )


def outcome(words: tuple[str, ...], setting: Setting) -> Outcome:
    """How long a command runs and its exit code, as far as a bounded rehearsal finds out."""
    if sum(map(len, words)) + setting.length > LONGEST:
        return Outcome(None, is_known=False)
    return _run(words, setting)


@lru_cache(1024)
def _run(words: tuple[str, ...], setting: Setting) -> Outcome:
    at = 0.0
    world = World(
        "localhost",
        dict(setting.variables),
        lambda: at,
        unread=setting.unread,
        identity=setting.identity,
        most_work=_MOST_WORK,
        mounts=frozenset(setting.mounts),
        has_image=setting.unknown is not Unknown.FAIL,
    )
    world.folders |= frozenset(setting.mounts)
    world.files.update(setting.files)
    shell = Shell(world)
    course = shell.run(words)
    answer: Answer = None
    repetitions = 0
    printed = b""
    missing = ""
    for _ in range(_MOST_EFFECTS):
        try:
            effect = course.send(answer)
        except StopIteration as done:
            code = int(done.value) & 255
            message = _message(world, setting, code, printed)
            return Outcome(at, code, message=message, missing=missing)
        answer = None
        match effect:
            case Write(_, data):
                printed = (printed + data)[-_MOST_PRINTED_MESSAGE:]
            case Wait(seconds):
                if seconds == float("inf"):
                    break
                at += seconds
            case Repeated():
                repetitions += 1
                if repetitions > _MOST_REPETITIONS:
                    break
            case Missing(name, is_first):
                if not _is_known(name, setting.unknown):
                    missing = missing or name[:_MOST_NAME]
                    if setting.unknown is Unknown.RUN:
                        return _going_on(world, shell, missing, is_known=False)
                    if setting.unknown is Unknown.FAIL and is_first:
                        return Outcome(at, _CANNOT_START, missing=missing, cannot_start=True)
                answer = _answer(name, setting.unknown)
            case Unread():
                return Outcome(None, is_known=False, missing=missing)
            case ReadLine() | Read():
                if setting.stdin:
                    break
    return _going_on(world, shell, missing)


def _going_on(world: World, shell: Shell, missing: str, *, is_known: bool = True) -> Outcome:
    """The outcome of a command that does not end by itself."""
    seconds, code = _stopped(world, shell)
    return Outcome(None, is_known=is_known, missing=missing, stops_after=seconds, stop_code=code)


def _stopped(world: World, shell: Shell) -> tuple[float, int]:
    """The seconds that a script which goes on takes to end when it gets SIGTERM, and its exit code then.

    A script without a trap for that, or whose trap does not end it, ends at once. So does one whose trap cannot be
    followed.
    """
    at_once = 0.0, TERMINATED
    if shell.inner is None or "TERM" not in shell.inner.traps:
        return at_once
    taken, answer = 0.0, None
    world.steps, world.most_work = 0, world.work + _MOST_WORK
    course = shell.inner.terminated()
    for _ in range(_MOST_EFFECTS):
        try:
            effect = course.send(answer)
        except StopIteration as done:
            return at_once if done.value is None else (taken, int(done.value) & 255)
        answer = None
        match effect:
            case Wait(seconds):
                taken += seconds
                if seconds == float("inf"):
                    return taken, TERMINATED
            case Missing():
                answer = 0
            case Unread():
                break
    return at_once


def _message(world: World, setting: Setting, code: int, printed: bytes) -> str:
    """The message of a container that has ended, bounded as a kubelet bounds it (pkg/kubelet/kuberuntime)."""
    data = (world.read(setting.message_path) or b"")[:_MOST_MESSAGE]
    if not data and setting.prints_message and code:
        data = b"".join(printed.splitlines(keepends=True)[-_MOST_MESSAGE_LINES:])
    return data.decode(errors="replace")
