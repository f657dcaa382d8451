"""Simulation of agnhost, the image that Kubernetes' documents and tests use as server, client and test program.

Commands that report something and end are simulated; servers run until they are stopped. The output is that of
test/images/agnhost of Kubernetes.
"""

from __future__ import annotations

import json
import stat
from collections import deque
from datetime import UTC, datetime
from typing import Final

from steersman.machinery.values.durations import DurationError, parse_duration
from steersman.net.ascii import is_digits
from steersman.nodes.shell.effects import Execution, Missing, Wait, World, Write, line

_ASKERS: Final = frozenset(
    {
        "audit-proxy",
        "connect",
        "dns-server-list",
        "dns-suffix",
        "inclusterclient",
        "mtlsclient",
        "nonewprivs",
        "openidmetadata",
        "resource-consumer-controller",
    }
)
"""Commands that depend on something that is not simulated: other servers, the kernel."""
_NEW: Final = b"mount-tester new file\n"
_NEW_FILES: Final = (0o644, 0o666, 0o660, 0o777)
_CHECK_INTERVAL: Final = 2.0
"""Seconds between two reads of a file in a loop."""
_RETRIES_FOR: Final = 180
"""Seconds for which a file is read in a loop, by default."""
_TMPFS: Final = "tmpfs"
_OTHER_FILE_SYSTEM: Final = "61267"
"""Number of ext4; only tmpfs is reported by name."""
_MOST_LINES: Final = 10_000


def agnhost(world: World, words: list[str], *, name: str = "/agnhost") -> Execution:
    """`agnhost COMMAND [--flag=VALUE ...]`; without a command, and as a server, it waits for ever."""
    command = words[0] if words else "pause"
    if command == "entrypoint-tester":
        return (yield from _entrypoint_tester([name, *words]))
    if command == "mounttest":
        return (yield from _mounttest(world, _flags(words[1:])))
    if command == "logs-generator":
        return (yield from _logs_generator(world, _flags(words[1:])))
    if command == "etc-hosts":
        yield Write(1, world.read("/etc/hosts") or b"")
        return 0
    if command == "pause":
        yield line("Paused")
    if command in _ASKERS:
        answer = yield Missing(f"agnhost {command}")
        return answer if isinstance(answer, int) else 127
    yield Wait(float("inf"))
    return 0


def _flags(words: list[str]) -> dict[str, str]:
    """Parse `--name=value` and `--name value`; a flag alone is "true"."""
    flags: dict[str, str] = {}
    rest = deque(words)
    while rest:
        name, equals, value = rest.popleft().lstrip("-").partition("=")
        if not equals:
            value = rest.popleft() if rest and not rest[0].startswith("-") else "true"
        flags[name] = value
    return flags


def _quoted(path: str) -> str:
    return json.dumps(path, ensure_ascii=False)


def _entrypoint_tester(words: list[str]) -> Execution:
    """Print the arguments that it was called with."""
    yield line(f"[{' '.join(words)}]")
    return 0


# Files


def _mounttest(world: World, flags: dict[str, str]) -> Execution:
    """Print the properties of files that flags ask for, in a fixed order; exit code 1 if a file does not exist."""
    failed = 0
    if path := flags.get("fs_type"):
        file_system = world.file_system_of(path)
        told = _TMPFS if file_system == _TMPFS else _OTHER_FILE_SYSTEM
        yield line(f"mount type of {_quoted(path)}: {told}")
    for mode in _NEW_FILES:
        if path := flags.get(f"new_file_{mode:04o}"):
            failed |= int(not world.put(path, _NEW))
            world.modes.setdefault(path, mode)
            failed |= yield from _content(world, path)
    for flag, what in (("file_mode", "mode"), ("file_perm", "perms")):
        if path := flags.get(flag):
            mode_of = world.mode_of(path)
            if mode_of is None:
                yield line(f"error from Stat({_quoted(path)}): stat {path}: no such file or directory")
                failed = 1
            else:
                shown = stat.filemode(mode_of)
                yield line(f"{what} of file {_quoted(path)}: {shown if what == 'mode' else '-' + shown[1:]}")
    if path := flags.get("file_content"):
        failed |= yield from _content(world, path)
    if path := flags.get("file_content_in_loop"):
        failed |= yield from _content_in_loop(world, path, flags)
    return failed


def _content(world: World, path: str) -> Execution:
    """Print the content of a file; exit code 1 if it does not exist."""
    data = world.read(path)
    if data is None:
        yield line(f"error reading file content for {_quoted(path)}: open {path}: no such file or directory")
        return 1
    yield _content_line(path, data)
    return 0


def _content_line(path: str, data: bytes) -> Write:
    return Write(1, f"content of file {_quoted(path)}: ".encode(errors="surrogateescape") + data + b"\n")


def _content_in_loop(world: World, path: str, flags: dict[str, str]) -> Execution:
    """Print the content of a file every two seconds, until it is as expected or the time is over."""
    said = flags.get("retry_time", "")
    left = float(said[:6]) if is_digits(said) else _RETRIES_FOR
    breaks = flags.get("break_on_expected_content", "true") == "true"
    failed = 0
    while left > 0:
        data = world.read(path)
        failed = int(data is None)
        if data is None:
            yield line(f"Error reading file {path}: open {path}: no such file or directory, retrying")
        else:
            yield _content_line(path, data)
            if breaks and data == _NEW:
                return 0
            if breaks:
                yield line(f"Unexpected content. Expected: {_NEW.decode()}. Retrying")
        yield Wait(_CHECK_INTERVAL)
        left -= _CHECK_INTERVAL
    return failed


# Logs


def _logs_generator(world: World, flags: dict[str, str]) -> Execution:
    """Print the requested number of lines, spread evenly over the given duration; each looks like a request to an API
    server.
    """
    total = flags.get("log-lines-total", flags.get("t", ""))
    lines = min(int(total[:6]), _MOST_LINES) if is_digits(total) else 0
    try:
        seconds = parse_duration(flags.get("run-duration", flags.get("d", "0s"))) / 1e9
    except DurationError:
        seconds = 0.0
    if not lines or seconds <= 0:
        yield Write(2, b"Invalid total number of lines or duration\n")
        return 255
    for number in range(lines):
        at = datetime.fromtimestamp(world.now(), UTC)
        verb, namespace = ("GET", "PUT", "POST")[number % 3], ("ns", "default", "kube-system")[number % 3]
        yield line(
            f"I{at:%m%d %H:%M:%S}.{at.microsecond:06d}       1 logs_generator.go:76] {number} {verb} "
            f"/api/v1/namespaces/{namespace}/pods/{number * 7919 % 46656:04x} {200 + number * 37 % 400}"
        )
        yield Wait(seconds / lines)
    return 0
