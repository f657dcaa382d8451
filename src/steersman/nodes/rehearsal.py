"""Rehearsal of a container's command: it runs at once, with simulated waits, to find out what it prints and how it
ends.
"""

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
"""Programs that scripts often use in passing. They are taken to succeed; any other unknown program runs for ever."""
_KEPT_REPETITIONS: Final = 1000
"""Repetitions of a loop before the moment of interest that are run; output from before counts as rotated away."""
_MOST_REPETITIONS: Final = 40
"""Repetitions after which a loop counts as endless."""
_MOST_EFFECTS: Final = 300
"""Effects of a command that are followed to find its outcome."""
_MOST_WORK: Final = 500
"""Steps that are run to find an outcome: some milliseconds of work."""
_MOST_WORK_BEFORE: Final = 200_000
"""Steps before the moment of interest; the output of a script that needs more is lost."""
LONGEST: Final = 1 << 12
"""Characters of a command with its variables that is rehearsed; parsing a longer one takes too long."""
MOST_FILES: Final = 1 << 12
"""Bytes of files in volumes, with their names, that a rehearsed command finds."""
_GIVES_WAY: Final = 32
"""Effects after which the caller may yield to the event loop."""
_MOST_MESSAGE: Final = 4096
"""Bytes of a termination message that is read from a file."""
_MOST_PRINTED_MESSAGE: Final = 2048
"""Bytes of a termination message that is the end of the output."""
_MOST_MESSAGE_LINES: Final = 80
"""Lines of a termination message that is the end of the output."""
_MOST_NAME: Final = 100
"""Characters of the name of a missing program in messages."""
_CANNOT_START: Final = 128
"""Exit code of a container whose command is not found."""
_MOST_PRINTED: Final = 10 << 10
"""Bytes that are kept of each output stream of an `attempt`."""


class Unknown(Enum):
    """Treatment of programs that are not simulated."""

    RUN = "run"
    """A container that uses an unknown program runs until it is stopped."""
    SUCCEED = "succeed"
    """An unknown program exits with 0 at once."""
    FAIL = "fail"
    """An unknown program is not found, as if the image did not have it."""


class Printed(NamedTuple):
    """Data written to a stream (1 or 2) at a time in seconds since 1970."""

    at: float
    stream: int
    data: bytes


def rehearsed(
    words: Sequence[str], world: World, start: float, now: float, unknown: Unknown = Unknown.RUN
) -> Generator[Printed | float, None, int | None]:
    """Yield the output of a command that began at `start`, in order, and now and then the simulated time.

    Callers may yield to the event loop whenever a time is yielded. Of endless loops, only the output near `now` is
    yielded. Times go on beyond `now`, for ever if the command does. Ends with the command and returns its exit code, or
    None if it is not known how the command goes on.
    """
    at = start
    world.now = lambda: at
    world.has_image = unknown is not Unknown.FAIL
    execution = Shell(world).run(words)
    answer: Answer = None
    effects = 0
    while True:
        try:
            effect = execution.send(answer)
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
    """Return True for a program that scripts use in passing, unless missing programs fail."""
    return unknown is not Unknown.FAIL and name.rpartition("/")[2] in ASSUMED


def _answer(name: str, unknown: Unknown) -> int | None:
    """Return the exit code of a program that is not simulated; None if it is not found."""
    return None if unknown is Unknown.FAIL else 0


class Attempt(NamedTuple):
    """Result of a command that was run at once, with simulated waits."""

    seconds: float
    """Simulated duration; `inf` if it does not end."""
    exit_code: int
    output: str
    """Printed text, with stderr at the end."""
    errors: str
    signal: int | None
    """Signal that it sent to the container's first process, or None."""


def attempt(words: Sequence[str], world: World) -> Attempt:
    """Run a command on the files of `world` and return its result.

    Missing programs count as successful, and so does a script that cannot be followed to its end.
    """
    world.most_work = _MOST_WORK
    world.has_image = True
    execution = Shell(world).run(words)
    answer: Answer = None
    seconds, signal, printed = 0.0, None, {1: bytearray(), 2: bytearray()}

    def done(code: int, after: float) -> Attempt:
        errors = printed[2].decode(errors="replace")
        return Attempt(after, code, printed[1].decode(errors="replace") + errors, errors, signal)

    for _ in range(_MOST_EFFECTS):
        try:
            effect = execution.send(answer)
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
    """Outcome of a container's command."""

    seconds: float | None
    """Seconds until it ends; None if it does not."""
    exit_code: int = 0
    is_known: bool = True
    """False if the command uses something that is not simulated, so that it might do anything."""
    message: str = ""
    """Termination message: the file for it, or the end of the output."""
    missing: str = ""
    """First program that the command uses and that is not simulated."""
    cannot_start: bool = False
    """True if the missing program is the command itself."""
    stops_after: float = 0.0
    """Seconds that a trap in its script takes to end it after SIGTERM."""
    stop_code: int = TERMINATED
    """Exit code after SIGTERM."""


class Setting(NamedTuple):
    """Part of a command's environment that its pod alone determines, before any object is read."""

    variables: tuple[tuple[str, str], ...] = ()
    unread: tuple[str, ...] = ()
    """Folders whose files are not read; any file in them is assumed to exist."""
    mounts: tuple[str, ...] = ()
    """Folders where volumes are mounted."""
    identity: Identity = ROOT
    message_path: str = ""
    """File with the termination message."""
    prints_message: bool = False
    """True if the end of the output is the message of a command that fails without such a file."""
    files: tuple[tuple[str, bytes], ...] = ()
    """Files in its volumes by absolute path, MOST_FILES bytes at most."""
    stdin: bool = False
    """True if it waits for input; otherwise its input is empty."""
    unknown: Unknown = Unknown.RUN

    @property
    def length(self) -> int:
        """Approximate number of characters."""
        return sum(map(len, (*self.unread, *self.mounts))) + sum(
            len(name) + len(value) for name, value in self.variables
        )


def outcome(words: tuple[str, ...], setting: Setting) -> Outcome:
    """Return the outcome of a command, as far as a bounded rehearsal finds it."""
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
    execution = shell.run(words)
    answer: Answer = None
    repetitions = 0
    printed = b""
    missing = ""
    for _ in range(_MOST_EFFECTS):
        try:
            effect = execution.send(answer)
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
    """Return the outcome of a command that does not end by itself."""
    seconds, code = _stopped(world, shell)
    return Outcome(None, is_known=is_known, missing=missing, stops_after=seconds, stop_code=code)


def _stopped(world: World, shell: Shell) -> tuple[float, int]:
    """Return the seconds that a running script takes to end after SIGTERM, and its exit code.

    A script ends at once if it has no trap for SIGTERM, if its trap does not end it, or if its trap cannot be followed.
    """
    at_once = 0.0, TERMINATED
    if shell.inner is None or "TERM" not in shell.inner.process_traps:
        return at_once
    taken, answer = 0.0, None
    world.steps, world.most_work = 0, world.work + _MOST_WORK
    execution = shell.inner.run_termination_trap()
    for _ in range(_MOST_EFFECTS):
        try:
            effect = execution.send(answer)
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
    """Return the termination message of a container, bounded as by a kubelet (pkg/kubelet/kuberuntime)."""
    data = (world.read(setting.message_path) or b"")[:_MOST_MESSAGE]
    if not data and setting.prints_message and code:
        data = b"".join(printed.splitlines(keepends=True)[-_MOST_MESSAGE_LINES:])
    return data.decode(errors="replace")
