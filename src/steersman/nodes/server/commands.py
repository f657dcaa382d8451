"""The endpoints `exec`, `attach` and `run`: commands in containers, in real time."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from functools import partial
from typing import Final

from steersman.machinery.values import times
from steersman.net.message import Request, Response
from steersman.nodes.current_world import current_world
from steersman.nodes.initial_world import offloaded_command_of
from steersman.nodes.names import resolve_name
from steersman.nodes.server.kubelet import ContainerRequest, text
from steersman.nodes.server.logs import LogOptions, NoLogs, follow
from steersman.nodes.server.streams import STDOUT, Finished, StreamOptions, Streams, command_streams
from steersman.nodes.server.terminal import Interrupted, Terminal, with_crlf
from steersman.nodes.shares import Slices
from steersman.nodes.shell.built_in import SHELLS
from steersman.nodes.shell.effects import (
    Answer,
    Effect,
    Execution,
    InputBuffer,
    Kill,
    Memory,
    Missing,
    OutOfMemory,
    Read,
    ReadLine,
    Resolve,
    Wait,
    Write,
)
from steersman.nodes.shell.shell import Shell
from steersman.work import simulated_time

_KILLED: Final = 137
_INTERRUPTED: Final = 130
CHECK_INTERVAL: Final = 1.0
"""Seconds between two checks whether the container still runs."""
_MOST_LINE: Final = 1 << 20
_KEYS_AT_ONCE: Final = 512
_MOST_OUTPUT: Final = 16 << 20
"""Bytes of the response to `run`."""


class _NotFound(Exception):
    """The container has no such program."""


def exec_in(target: ContainerRequest, request: Request) -> Response:
    """Run a command in a container, with its streams connected to the client."""
    if (refusal := _refusal(target)) is not None:
        return refusal
    return command_streams(request, target.query, partial(_execute, target, list(target.query.get("command", ()))))


def attach_to(target: ContainerRequest, request: Request) -> Response:
    """Connect the client to the container's own command."""
    if (refusal := _refusal(target)) is not None:
        return refusal
    return command_streams(request, target.query, partial(_attach, target))


async def run_in(target: ContainerRequest, request: Request) -> Response:
    """Run a command and return its output as the response."""
    if (refusal := _not_running(target)) is not None:
        return refusal
    words = " ".join(target.query.get("cmd", ())).split(" ")
    collected = _Collected()
    finished = await _execute(target, words, collected, StreamOptions(stdin=False, stdout=True, stderr=True, tty=False))
    if finished.error or finished.exit_code:
        why = finished.error or f"command '{' '.join(words)}' exited with {finished.exit_code}: "
        return text(500, why + collected.taken.decode(errors="replace"))
    return Response(200, [("content-type", "text/plain")], bytes(collected.taken))


def _refusal(target: ContainerRequest) -> Response | None:
    try:
        StreamOptions.parse(target.query)
    except ValueError as error:
        return text(400, str(error))
    return _not_running(target)


def _not_running(target: ContainerRequest) -> Response | None:
    status = target.status
    if status is None or status.state.running is None:
        return text(500, f'container not found ("{target.container.name}")')
    return None


class _Collected:
    """Streams without a client, which collect the output."""

    def __init__(self) -> None:
        self.taken = bytearray()

    async def read(self) -> bytes:
        return b""

    async def write(self, stream: int, data: bytes) -> None:
        self.taken += data[: _MOST_OUTPUT - len(self.taken)]


async def _execute(target: ContainerRequest, words: list[str], streams: Streams, options: StreamOptions) -> Finished:
    try:
        return Finished(await _run(target, words, streams, options))
    except _NotFound as error:
        name = target.status.container_id.rpartition("/")[2] if target.status is not None else ""
        return Finished(
            error=(
                f'error executing command in container: failed to exec in container: failed to start exec "{name}": '
                "OCI runtime exec failed: exec failed: unable to start container process: "
                f'exec: "{error}": executable file not found in $PATH: unknown'
            )
        )


async def _attach(target: ContainerRequest, streams: Streams, options: StreamOptions) -> Finished:
    """Run the command of a container that reads standard input for the client; show the output of any other
    container.
    """
    container, status = target.container, target.status
    if not (container.stdin and options.stdin) or status is None:
        try:
            found = follow(target, LogOptions(follow=True, since=times.unix_now()))
        except NoLogs:
            return Finished()
        async with aclosing(found) as lines:
            async for line in lines:
                await streams.write(line.stream, with_crlf(line.data) if options.tty else line.data)
        return Finished()
    words = await offloaded_command_of(container, {}) or ["sh"]
    try:
        code = await _run(
            target, words, streams, StreamOptions(options.stdin, options.stdout, options.stderr, container.tty)
        )
    except _NotFound:
        await _until_ended(target, status.container_id)
        return Finished()
    target.kubelet.containers.end(target.pod, status, code, times.unix_now())
    return Finished()


async def _run(target: ContainerRequest, words: list[str], streams: Streams, options: StreamOptions) -> int:
    """Run a command and return its exit code. Raises ClientGone, _NotFound."""
    status = target.status
    assert status is not None
    kubelet = target.kubelet
    world = await current_world(
        kubelet.client,
        kubelet.containers,
        target.pod,
        target.container,
        status,
        allocatable=kubelet.node.template.allocatable,
    )
    name = words[0].rpartition("/")[2] if words else ""
    world.interactive = options.tty and name in SHELLS
    share = kubelet.containers.shares.for_namespace(target.pod.metadata.namespace)
    slices = Slices(share)
    terminal = _Lines(streams, options, slices, share)
    command = _Command(target, terminal, slices)
    running = asyncio.create_task(command.run(Shell(world).run(words)))
    ending = asyncio.create_task(_until_ended(target, status.container_id))
    try:
        await asyncio.wait([running, ending], return_when=asyncio.FIRST_COMPLETED)
        if not running.done():
            return _KILLED
        return running.result()
    finally:
        for task in (running, ending):
            task.cancel()
        await asyncio.gather(running, ending, return_exceptions=True)
        terminal.close()
        kubelet.containers.count_written(target.pod, status.container_id)


async def _until_ended(target: ContainerRequest, container_id: str) -> None:
    """Wait until the container has ended."""
    while True:
        status = target.status
        if status is None or status.state.running is None or status.container_id != container_id:
            return
        await asyncio.sleep(CHECK_INTERVAL)


class _Command:
    """Runs a command in real time and performs its effects."""

    def __init__(self, target: ContainerRequest, terminal: _Lines, slices: Slices) -> None:
        self._target = target
        self._terminal = terminal
        self._slices = slices

    async def run(self, execution: Execution) -> int:
        """Run the command and return its exit code. Raises ClientGone, _NotFound."""
        answer: Answer = None
        while True:
            await self._slices.begin()
            try:
                effect = execution.send(answer)
            except StopIteration as done:
                return int(done.value) & 255
            finally:
                self._slices.end()
            answer = None
            if isinstance(effect, Wait) and effect.seconds == 0:
                continue
            try:
                answer = await self._answer(effect)
            except OutOfMemory:
                execution.close()
                return _KILLED
            except Interrupted:
                if not isinstance(effect, ReadLine | Read):
                    return _INTERRUPTED
                answer = b"\n"
            self._slices.end_slice()

    async def _answer(self, effect: Effect) -> Answer:
        """Perform an effect and return its answer. Raises ClientGone, Interrupted, _NotFound."""
        match effect:
            case Write(stream, data):
                await self._terminal.write(stream, data)
            case Wait(seconds):
                await self._terminal.wait(seconds)
            case ReadLine():
                return await self._terminal.line()
            case Read():
                return await self._terminal.piece()
            case Missing(name, is_first):
                if is_first:
                    raise _NotFound(name)
            case Resolve(name):
                address = await resolve_name(self._target.kubelet.client, self._target.pod.metadata.namespace, name)
                return address.encode() if address else None
            case Kill(signal):
                status = self._target.status
                if status is not None:
                    kubelet = self._target.kubelet
                    kubelet.containers.end(self._target.pod, status, 128 + signal, times.unix_now())
        return None


class _Lines:
    """Standard input by lines or pieces, and output, through a terminal if the client asked for one."""

    def __init__(self, streams: Streams, options: StreamOptions, slices: Slices, memory: Memory) -> None:
        self._streams = streams
        self._memory = memory
        self._held = 0
        """Reserved bytes for input that has arrived and is not read yet."""
        self._terminal = Terminal() if options.tty else None
        self._has_input = options.stdin
        self._slices = slices
        self._source = InputBuffer()
        self._over = False

    def close(self) -> None:
        """Release the memory, as nothing is read any more."""
        self._memory.release(self._held)
        self._held = 0

    def _add(self, data: bytes) -> None:
        """Buffer input. Raises OutOfMemory if programs of the namespace buffer too much."""
        self._over = not data
        more = self._source.size + len(data) - self._held
        if more > 0 and not self._memory.reserve(more):
            raise OutOfMemory
        if more < 0:
            self._memory.release(-more)
        self._held += more
        self._source.add(data)

    async def write(self, stream: int, data: bytes) -> None:
        """Write output. Raises ClientGone."""
        if self._terminal is not None:
            stream, data = STDOUT, with_crlf(data)
        await self._streams.write(stream, data)

    async def line(self) -> bytes | None:
        """Return the next line; None at the end. Raises ClientGone, Interrupted."""
        if self._terminal is not None:
            return await self._typed(self._terminal)
        while (line := self._source.line()) is None:
            if self._source.size > _MOST_LINE or self._is_over:
                return self._source.rest()
            await self._more()
        return line

    async def piece(self) -> bytes | None:
        """Return the next bytes; None at the end. Raises ClientGone, Interrupted."""
        if self._terminal is not None:
            return await self._typed(self._terminal)
        while not self._source.size:
            if self._is_over:
                return None
            await self._more()
        return self._source.piece()

    @property
    def _is_over(self) -> bool:
        return self._over or not self._has_input

    async def _more(self) -> None:
        self._add(await self._streams.read())

    # A terminal

    async def _typed(self, terminal: Terminal) -> bytes | None:
        """Return the next line typed at the terminal; None at the end."""
        while not terminal.lines:
            if self._is_over:
                return None
            await self._keys(terminal)
        line = terminal.lines.popleft()
        terminal.count_read(line)
        return line or None

    async def wait(self, seconds: float) -> None:
        """Wait, while keys typed at the terminal are buffered. Raises ClientGone, Interrupted."""
        if self._terminal is None or not self._has_input:
            await simulated_time.sleep(seconds if seconds != float("inf") else 1e9)
            return
        try:
            async with asyncio.timeout(None if seconds == float("inf") else seconds):
                while not self._over:
                    await self._keys(self._terminal)
                await asyncio.Event().wait()
        except TimeoutError:
            return

    async def _keys(self, terminal: Terminal) -> None:
        """Read keys from the client and echo them. Raises ClientGone, Interrupted."""
        if not self._source.size:
            self._slices.end_slice()
            self._add(await self._streams.read())
        while self._source.size:
            await self._slices.begin()
            try:
                echo = terminal.type_keys(self._source.piece(_KEYS_AT_ONCE) or b"")
            finally:
                self._slices.end()
            await self._streams.write(STDOUT, echo)
            if terminal.interrupted:
                terminal.interrupted = False
                raise Interrupted
