"""Logs of containers from files, as Logs and Attach objects name them: CRI's format, Docker's, or plain lines."""

from __future__ import annotations

import asyncio
import os
import re
import stat
from collections import deque
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Final

import msgspec

from steersman.machinery.values import times
from steersman.nodes.rehearsal import Printed
from steersman.work.offloading import offload_if
from steersman.work.patterns import late_pattern

_MOST_BYTES: Final = 16 << 20
"""Bytes at the end of a file that are read; earlier ones count as rotated away."""
_MOST_LINES: Final = 50_000
_AGAIN: Final = 1.0
"""Seconds between two looks at a followed file."""
_CRI: Final = late_pattern(rb"([0-9T:.+Z-]{20,40}) (stdout|stderr) ([FP](?::[FP])*) ?(.*)", re.DOTALL)
_STREAMS: Final = {"stdout": 1, "stderr": 2}


class NoFile(Exception):
    """The file cannot be read. The text is for the client."""


class _DockerLine(msgspec.Struct):
    log: str = ""
    stream: str = "stdout"
    time: str = ""


def printed_of(line: bytes, at: float) -> Printed:
    """Return the output of a line of a file; `at` is the time of a line without one."""
    found = _CRI.fullmatch(line)
    if found is not None:
        end = b"" if found[3] == b"P" else b"\n"
        return Printed(_seconds(found[1].decode(), at), _STREAMS[found[2].decode()], found[4] + end)
    if line.startswith(b"{"):
        try:
            docker = msgspec.json.decode(line, type=_DockerLine)
        except msgspec.MsgspecError:
            return Printed(at, 1, line + b"\n")
        if docker.log and docker.time:
            return Printed(_seconds(docker.time, at), _STREAMS.get(docker.stream, 1), docker.log.encode())
    return Printed(at, 1, line + b"\n")


def _seconds(text: str, otherwise: float) -> float:
    try:
        return times.parse(text).timestamp()
    except times.TimeError:
        return otherwise


class _File:
    """File that is read from time to time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._place = 0
        self._rest = b""

    def lines(self, *, only_new: bool) -> list[Printed]:
        """Return the complete lines that were not read yet; with `only_new` skip what is there. Raises NoFile."""
        try:
            file = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            raise NoFile(f'failed to open log file "{self._path.name}": {error.strerror}') from None
        with open(file, "rb") as opened:
            known = os.fstat(file)
            if not stat.S_ISREG(known.st_mode):
                raise NoFile(f'failed to open log file "{self._path.name}": it is no regular file')
            if known.st_size < self._place:
                self._place, self._rest = 0, b""  # it was truncated
            if only_new:
                self._place = known.st_size
                return []
            self._place = max(self._place, known.st_size - _MOST_BYTES)
            opened.seek(self._place)
            data = self._rest + opened.read(_MOST_BYTES)
            self._place = opened.tell()
        *lines, self._rest = data.split(b"\n")
        return [printed_of(each, times.unix_now()) for each in lines[-_MOST_LINES:]]


async def lines_of_file(
    path: Path,
    *,
    since: float | None,
    tail: int | None,
    follow: bool,
    only_new: bool = False,
    goes_on: Callable[[], bool],
) -> AsyncGenerator[Printed, None]:
    """Yield the lines of a file: those that are there, and with `follow` those that come while `goes_on` is true.

    Raises NoFile.
    """
    file = _File(path)
    found = await offload_if(True, file.lines, only_new=only_new)
    kept = deque((each for each in found if since is None or each.at >= since), tail)
    while kept:
        yield kept.popleft()
    while follow and goes_on():
        await asyncio.sleep(_AGAIN)
        for each in await offload_if(True, file.lines, only_new=False):
            yield each
