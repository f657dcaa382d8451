"""`exec`, `attach` and `run`: commands in containers, in real time."""

from __future__ import annotations

import asyncio
from collections import deque
from functools import partial
from typing import Final

from steersman.machinery.values import times
from steersman.net.message import Request, Response
from steersman.nodes.inside import world_in
from steersman.nodes.server.kubelet import Asked, text
from steersman.nodes.server.logs import LogOptions, NoLogs, follow
from steersman.nodes.server.streams import STDOUT, Finished, Streams, Wanted, command_streams
from steersman.nodes.server.terminal import Interrupted, Terminal, shown
from steersman.nodes.shell.effects import Answer, Course, Kill, Missing, ReadLine, Wait, Write
from steersman.nodes.shell.shell import SHELLS, Shell
from steersman.nodes.surroundings import command_of

_KILLED: Final = 137
_INTERRUPTED: Final = 130
_LOOKS_EVERY: Final = 1.0
_MOST_LINE: Final = 1 << 20
_MOST_OUTPUT: Final = 16 << 20
"""Bytes of the answer to `run`."""


class _NotFound(Exception):
    """There is no such program in the container."""


def exec_in(asked: Asked, request: Request) -> Response:
    """Runs a command beside what runs in the container, and connects its streams to the client."""
    if (refusal := _refusal(asked)) is not None:
        return refusal
    return command_streams(request, asked.query, partial(_execute, asked, list(asked.query.get("command", ()))))


def attach_to(asked: Asked, request: Request) -> Response:
    """Connects the client to what runs in the container."""
    if (refusal := _refusal(asked)) is not None:
        return refusal
    return command_streams(request, asked.query, partial(_attach, asked))


async def run_in(asked: Asked, request: Request) -> Response:
    """Runs a command; the answer is what it prints."""
    if (refusal := _not_running(asked)) is not None:
        return refusal
    words = " ".join(asked.query.get("cmd", ())).split(" ")
    collected = _Collected()
    finished = await _execute(asked, words, collected, Wanted(stdin=False, stdout=True, stderr=True, tty=False))
    if finished.error or finished.exit_code:
        why = finished.error or f"command '{' '.join(words)}' exited with {finished.exit_code}: "
        return text(500, why + collected.taken.decode(errors="replace"))
    return Response(200, [("content-type", "text/plain")], bytes(collected.taken))


def _refusal(asked: Asked) -> Response | None:
    try:
        Wanted.of(asked.query)
    except ValueError as error:
        return text(400, str(error))
    return _not_running(asked)


def _not_running(asked: Asked) -> Response | None:
    status = asked.status
    if status is None or status.state.running is None:
        return text(500, f'container not found ("{asked.container.name}")')
    return None


class _Collected:
    """Streams without a client: what is written is kept."""

    def __init__(self) -> None:
        self.taken = bytearray()

    async def read(self) -> bytes:
        return b""

    async def write(self, stream: int, data: bytes) -> None:
        self.taken += data[: _MOST_OUTPUT - len(self.taken)]


async def _execute(asked: Asked, words: list[str], streams: Streams, wanted: Wanted) -> Finished:
    try:
        return Finished(await _run(asked, words, streams, wanted))
    except _NotFound as error:
        name = asked.status.container_id.rpartition("/")[2] if asked.status is not None else ""
        return Finished(error=(
            f'error executing command in container: failed to exec in container: failed to start exec "{name}": '
            "OCI runtime exec failed: exec failed: unable to start container process: "
            f'exec: "{error}": executable file not found in $PATH: unknown'
        ))  # fmt: skip


async def _attach(asked: Asked, streams: Streams, wanted: Wanted) -> Finished:
    """What stands before the container's standard input is run when somebody comes; else its output is shown."""
    container, status = asked.container, asked.status
    if not (container.stdin and wanted.stdin) or status is None:
        try:
            lines = follow(asked, LogOptions(follow=True, since=times.moment()))
        except NoLogs:
            return Finished()
        async for line in lines:
            await streams.write(line.stream, shown(line.data) if wanted.tty else line.data)
        return Finished()
    words = command_of(container, {}) or ["sh"]
    try:
        code = await _run(asked, words, streams, Wanted(wanted.stdin, wanted.stdout, wanted.stderr, container.tty))
    except _NotFound:
        await _until_ended(asked, status.container_id)
        return Finished()
    asked.kubelet.containers.end(asked.pod, status, code, times.moment())
    return Finished()


async def _run(asked: Asked, words: list[str], streams: Streams, wanted: Wanted) -> int:
    """The exit code. Raises ClientGone, _NotFound."""
    status = asked.status
    assert status is not None
    kubelet = asked.kubelet
    world = await world_in(
        kubelet.client, kubelet.containers, asked.pod, asked.container, status,
        allocatable=kubelet.node.template.allocatable,
    )  # fmt: skip
    name = words[0].rpartition("/")[2] if words else ""
    world.interactive = wanted.tty and name in SHELLS
    reader = _Lines(streams, wanted)
    running = asyncio.create_task(_Command(asked, reader).run(Shell(world).run(words)))
    ending = asyncio.create_task(_until_ended(asked, status.container_id))
    try:
        await asyncio.wait([running, ending], return_when=asyncio.FIRST_COMPLETED)
        if not running.done():
            return _KILLED
        return running.result()
    finally:
        for task in (running, ending):
            task.cancel()
        await asyncio.gather(running, ending, return_exceptions=True)


async def _until_ended(asked: Asked, container_id: str) -> None:
    """Returns when the container has ended."""
    while True:
        status = asked.status
        if status is None or status.state.running is None or status.container_id != container_id:
            return
        await asyncio.sleep(_LOOKS_EVERY)


class _Command:
    """Does what a command asks for, as time goes by."""

    def __init__(self, asked: Asked, reader: _Lines) -> None:
        self._asked = asked
        self._reader = reader
        self._begun = False

    async def run(self, course: Course) -> int:
        """The exit code. Raises ClientGone, _NotFound."""
        answer: Answer = None
        while True:
            try:
                effect = course.send(answer)
            except StopIteration as done:
                return int(done.value) & 255
            answer = None
            match effect:
                case Write(stream, data):
                    await self._reader.write(stream, data)
                case Wait(seconds):
                    try:
                        await self._reader.wait(seconds)
                    except Interrupted:
                        return _INTERRUPTED
                case ReadLine():
                    try:
                        answer = await self._reader.line()
                    except Interrupted:
                        answer = b"\n"
                case Missing(name):
                    if not self._begun:
                        raise _NotFound(name)
                case Kill(signal):
                    status = self._asked.status
                    if status is not None:
                        kubelet = self._asked.kubelet
                        kubelet.containers.end(self._asked.pod, status, 128 + signal, times.moment())
            self._begun = True


class _Lines:
    """Standard input by lines, and output; with a terminal in between if there is one."""

    def __init__(self, streams: Streams, wanted: Wanted) -> None:
        self._streams = streams
        self._terminal = Terminal() if wanted.tty else None
        self._has_input = wanted.stdin
        self._rest = b""
        self._lines: deque[bytes] = deque()
        self._over = False

    async def write(self, stream: int, data: bytes) -> None:
        """Raises ClientGone."""
        if self._terminal is not None:
            stream, data = STDOUT, shown(data)
        await self._streams.write(stream, data)

    async def line(self) -> bytes | None:
        """The next line, None at the end. Raises ClientGone, Interrupted."""
        while not self._lines:
            if self._over or not self._has_input:
                return None
            await self._more()
        line = self._lines.popleft()
        if not line:  # the end, as it was typed
            return None
        return line

    async def wait(self, seconds: float) -> None:
        """Lets time pass; what is typed meanwhile waits for who reads it. Raises ClientGone, Interrupted."""
        if self._terminal is None or not self._has_input:
            await asyncio.sleep(seconds if seconds != float("inf") else 1e9)
            return
        try:
            async with asyncio.timeout(None if seconds == float("inf") else seconds):
                while not self._over:
                    await self._more()
                await asyncio.Event().wait()
        except TimeoutError:
            return

    async def _more(self) -> None:
        data = await self._streams.read()
        if not data:
            self._over = True
            if self._rest:
                self._lines.append(self._rest)
                self._rest = b""
            return
        if self._terminal is not None:
            await self._streams.write(STDOUT, self._terminal.typed(data))
            self._lines.extend(self._terminal.lines)
            self._terminal.lines.clear()
            if self._terminal.interrupted:
                self._terminal.interrupted = False
                raise Interrupted
            return
        *lines, self._rest = (self._rest + data).split(b"\n")
        self._lines.extend(line + b"\n" for line in lines)
        if len(self._rest) > _MOST_LINE:
            self._lines.append(self._rest)
            self._rest = b""
