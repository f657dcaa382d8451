"""The endpoint `GET /containerLogs/NAMESPACE/POD/CONTAINER`: the log of a container.

The log is computed from the container's command (`rehearsal`), the annotations of its pod, and its start time. No log
is stored.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Final, NamedTuple

from msgspec import Struct

from steersman.api.core.v1 import ContainerState, ContainerStatus, Pod
from steersman.machinery.values import times
from steersman.net.ascii import is_digits
from steersman.net.message import Response
from steersman.nodes.behaviour import annotation_of, duration_or_none, unknown_programs
from steersman.nodes.container_status import MOST_IMAGE
from steersman.nodes.context import EMPTY_RECORD
from steersman.nodes.initial_world import initial_world, offloaded_command_of
from steersman.nodes.kwok.pod_objects import Refused
from steersman.nodes.processes import processes_of
from steersman.nodes.rehearsal import Printed, rehearsed
from steersman.nodes.server.kubelet import ContainerRequest, Query, text
from steersman.nodes.server.log_files import NoFile, lines_of_file
from steersman.nodes.shares import Slices
from steersman.nodes.shell.effects import InputBuffer, Memory

MOST_LINES: Final = 50_000
"""Lines that are kept for one request; earlier ones count as rotated away."""
_MOST_BYTES: Final = 16 << 20
"""Bytes that are kept for one request; earlier ones count as rotated away."""
_LINE_ITSELF: Final = 128
"""Overhead of a line in bytes."""
_MOST_LINE: Final = 1 << 14
"""Bytes after which an unfinished line is taken as a line."""
_LINES_AT_ONCE: Final = 256
"""Lines after which others may have the event loop."""
_KEPT_LINES: Final = 1000
"""Repetitions of an annotation's lines before now that are shown."""
_GIVES_WAY: Final = 64
"""Lines of an annotation after which others may have the event loop."""
_MOST_A_SECOND: Final = 10_000
"""Lines of an annotation in a second at most."""
_MAX_INT64: Final = 2**63 - 1
_DIGITS: Final = 19
_CHECK_INTERVAL: Final = 1.0
"""Seconds between two checks whether the container of a followed log still runs."""


class NoLogs(Exception):
    """There is no log to show. The text is the kubelet's."""


class LogOptions(Struct, frozen=True):
    """Options of a log request. `since` is in seconds since 1970."""

    follow: bool = False
    previous: bool = False
    timestamps: bool = False
    tail: int | None = None
    since: float | None = None
    limit: int | None = None

    @classmethod
    def parse(cls, query: Query, now: float) -> LogOptions:
        """Parse the query of a request. Raises ValueError or TimeError for an invalid parameter."""

        def number(name: str) -> int | None:
            value = query.get(name, ("",))[0]
            if not value:
                return None
            if not is_digits(value) or len(value) > _DIGITS or (number := int(value)) > _MAX_INT64:
                raise ValueError(f"{name} is no number")
            return number

        def flag(name: str) -> bool:
            return query.get(name, ("",))[0] in ("1", "true")

        seconds, since = number("sinceSeconds"), query.get("sinceTime", ("",))[0]
        begins = None if seconds is None else now - _duration(seconds)
        if since:
            begins = times.parse(since).timestamp()
        return cls(
            flag("follow"), flag("previous"), flag("timestamps"), number("tailLines"), begins, number("limitBytes")
        )


def _duration(seconds: int) -> float:
    """Return the seconds of a Go Duration of `seconds`, whose 64 bits of nanoseconds overflow after 292 years."""
    return ((seconds * 10**9 + 2**63) % 2**64 - 2**63) / 10**9


class ContainerRun(NamedTuple):
    """One run of a container: its start, and its end if it has ended, in seconds since 1970."""

    container_id: str
    started_at: float
    ended_at: float | None


def run_of(pod: Pod, name: str, status: ContainerStatus | None, *, previous: bool) -> ContainerRun:
    """Return the run whose log is requested. Raises NoLogs."""
    where = f'container "{name}" in pod "{pod.metadata.name}"'
    if status is None:
        raise NoLogs(f"{where} is not available")
    last = status.last_state
    if previous:
        if last.terminated is None or not last.terminated.container_id:
            raise NoLogs(f"previous terminated {where} not found")
        return _run(last, "")
    state = status.state
    if state.running is not None or (state.terminated is not None and state.terminated.container_id):
        return _run(state, status.container_id)
    if last.terminated is not None and last.terminated.container_id:
        return _run(last, "")
    if state.terminated is not None or last.terminated is not None:
        raise NoLogs(f"{where} is terminated")
    if state.waiting is None:
        raise NoLogs(f"{where} is waiting to start - no logs yet")
    why = {"ErrImagePull": "image can't be pulled", "ImagePullBackOff": "trying and failing to pull image"}
    raise NoLogs(f"{where} is waiting to start: {why.get(state.waiting.reason, state.waiting.reason)}")


def _run(state: ContainerState, container_id: str) -> ContainerRun:
    if state.running is not None:
        return ContainerRun(container_id, float(times.unix(state.running.started_at or times.now())), None)
    ended_at = state.terminated
    assert ended_at is not None
    started_at = times.unix(ended_at.started_at or ended_at.finished_at or times.now())
    return ContainerRun(
        ended_at.container_id, float(started_at), float(times.unix(ended_at.finished_at or times.now()))
    )


async def container_logs(target: ContainerRequest) -> Response:
    """Return the log of a container; with the option `follow`, the response goes on."""
    try:
        options = LogOptions.parse(target.query, times.unix_now())
    except (ValueError, times.TimeError):
        return text(400, '{"message": "Unable to decode query."}')
    try:
        lines = await _of_file(target, options) or follow(target, options)
    except (NoLogs, NoFile, Refused) as error:
        return text(400, str(error))
    return Response(200, [("content-type", "text/plain")], _limited(lines, options))


async def _of_file(target: ContainerRequest, options: LogOptions) -> AsyncGenerator[Printed, None] | None:
    """Return the lines of the file that a Logs object names; None without one. Raises NoLogs, NoFile, Refused."""
    objects = target.kubelet.containers.objects
    if objects is None:
        return None
    path = await objects.log_file(target.pod, target.container.name, previous=options.previous)
    if path is None:
        return None
    run = run_of(target.pod, target.container.name, target.status, previous=False)
    found = lines_of_file(
        path,
        since=options.since,
        tail=options.tail,
        follow=options.follow and run.ended_at is None,
        goes_on=lambda: target.status is not None and target.status.state.running is not None,
    )
    return await _with_first(found)


async def _with_first(found: AsyncGenerator[Printed, None]) -> AsyncGenerator[Printed, None]:
    """Return the same lines once the first one is there, so that an error becomes the response. Raises NoFile."""
    first = await anext(found, None)

    async def lines() -> AsyncGenerator[Printed, None]:
        if first is not None:
            yield first
        async with aclosing(found):
            async for each in found:
                yield each

    return lines()


def follow(target: ContainerRequest, options: LogOptions) -> AsyncGenerator[Printed, None]:
    """Yield the log line by line, and go on if `options.follow` is set. Raises NoLogs."""
    run = run_of(target.pod, target.container.name, target.status, previous=options.previous)
    known = target.kubelet.containers.records(target.pod.metadata.uid).get(target.container.name, EMPTY_RECORD)
    if (
        run.ended_at is None
        and known.started_at is not None
        and run.started_at <= known.started_at < run.started_at + 1
    ):
        run = run._replace(started_at=known.started_at)
    return _requested_lines(target, run, options)


async def _limited(found: AsyncGenerator[Printed, None], options: LogOptions) -> AsyncIterator[bytes]:
    left = options.limit
    async with aclosing(found) as lines:
        async for line in lines:
            data = line.data
            if options.timestamps:
                data = f"{_nano_time(line.at)} ".encode() + data
            if left is not None:
                data = data[:left]
                left -= len(data)
            yield data
            if left == 0:
                return


def _nano_time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f000Z")


async def _requested_lines(
    target: ContainerRequest, run: ContainerRun, options: LogOptions
) -> AsyncGenerator[Printed, None]:
    """Yield the requested lines: those up to now, then new ones if the log is followed."""
    now = times.unix_now()
    lines = _lines(await _all_printed(target, run, now))
    share = target.kubelet.containers.shares.for_namespace(target.pod.metadata.namespace)
    slices = Slices(share)
    kept = _LastLines(min(options.tail, MOST_LINES) if options.tail is not None else MOST_LINES, share)
    following: Printed | float | None = None
    try:
        while (line := await _next(slices, lines)) is not None:
            at = line if isinstance(line, float) else line.at
            if run.ended_at is not None and at >= run.ended_at + 1:  # the end is known to the second
                break
            if at > now:
                following = line
                break
            if not isinstance(line, float) and (options.since is None or line.at >= options.since):
                kept.add(line)
        while kept.lines:
            yield kept.take()
    finally:
        kept.close()
    if not options.follow or run.ended_at is not None:
        return
    while following is not None:
        if not await _still_runs(target, run, following if isinstance(following, float) else following.at):
            return
        if not isinstance(following, float):
            yield following
        slices.end_slice()
        following = await _next(slices, lines)
    while await _still_runs(target, run, None):
        pass


async def _next(slices: Slices, lines: Iterator[Printed | float]) -> Printed | float | None:
    """Return the next line or time in a time slice of the namespace; None at the end."""
    await slices.begin()
    try:
        return next(lines, None)
    finally:
        slices.end()


class _LastLines:
    """Last lines of a log, within the memory that is left to its namespace."""

    def __init__(self, most: int, memory: Memory) -> None:
        self.lines: deque[Printed] = deque()
        self._most = most
        self._memory = memory
        self._bytes = 0

    def add(self, line: Printed) -> None:
        """Add a line, and drop the oldest ones beyond the bounds. Drops the line if there is no memory even so."""
        size = _size(line)
        while self.lines and (len(self.lines) >= self._most or self._bytes + size > _MOST_BYTES):
            self.take()
        while not self._memory.reserve(size):
            if not self.lines:
                return
            self.take()
        self._bytes += size
        self.lines.append(line)
        if len(self.lines) > self._most:
            self.take()

    def take(self) -> Printed:
        """Remove and return the first line."""
        line = self.lines.popleft()
        self._bytes -= _size(line)
        self._memory.release(_size(line))
        return line

    def close(self) -> None:
        """Drop all lines and release their memory."""
        self._memory.release(self._bytes)
        self._bytes = 0
        self.lines.clear()


def _size(line: Printed) -> int:
    return len(line.data) + _LINE_ITSELF


async def _still_runs(target: ContainerRequest, run: ContainerRun, until: float | None) -> bool:
    """Wait until the time `until`, or for a while if it is None. Return True if the container still runs then."""
    while True:
        status = target.status
        if status is None or status.state.running is None or status.container_id != run.container_id:
            return False
        if target.kubelet.pods.get(target.pod.metadata.namespace, target.pod.metadata.name) is None:
            return False
        left = _CHECK_INTERVAL if until is None else until - times.unix_now()
        if left <= 0:
            return True
        await asyncio.sleep(min(left, _CHECK_INTERVAL))
        if until is None:
            return True


async def _all_printed(target: ContainerRequest, run: ContainerRun, now: float) -> Iterator[Printed | float]:
    pod, container = target.pod, target.container
    shared = target.kubelet.containers.contents.get(pod)
    start = None if shared is None else shared.known_start(run.container_id)
    world = await initial_world(
        target.kubelet.client,
        pod,
        container,
        allocatable=target.kubelet.node.template.allocatable,
        file_variables={} if start is None else start.variables,
        tokens=False,
    )
    if start is not None:
        world.files.update(start.files)
    world.processes = processes_of(pod, container)
    words = await offloaded_command_of(container, world.environment)
    said = annotation_of(pod, container.name, "logs")
    every = _seconds(annotation_of(pod, container.name, "log-every"))
    if said:
        return annotated(said, every, run.started_at, now)
    if shared is not None and (followed := shared.log_of(run.container_id)) is not None:
        return followed
    if not words:
        line = f"{container.image[:MOST_IMAGE]} is simulated: container {container.name} has started\n"
        return iter([Printed(run.started_at, 1, line.encode())])
    unknown = unknown_programs(pod, container, target.kubelet.node.template.unknown_programs)
    return rehearsed(words, world, run.started_at, now, unknown)


def annotated(said: str, every: float, started_at: float, now: float) -> Iterator[Printed | float]:
    """Yield the lines of an annotation, once or every `every` seconds, and now and then a time."""
    lines = [each for each in said.encode().split(b"\n") if each]
    at = started_at
    if every > 0:
        every = max(every, len(lines) / _MOST_A_SECOND)
        kept = min(_KEPT_LINES, MOST_LINES // max(len(lines), 1) + 1)
        at += max(0, int((now - started_at) / every) - kept) * every
    while True:
        for number, each in enumerate(lines, start=1):
            yield Printed(at, 1, each + b"\n")
            if not number % _GIVES_WAY:
                yield at
        if every <= 0:
            return
        at += every
        yield at


def _seconds(said: str) -> float:
    seconds = duration_or_none(said)
    return 0.0 if seconds is None else max(0.1, seconds)


def _lines(printed: Iterator[Printed | float]) -> Iterator[Printed | float]:
    """Yield printed data line by line, per stream; an unfinished line waits for its rest.

    After many lines a time is yielded, at which others may have the event loop.
    """
    rest: dict[int, InputBuffer] = {}
    last = 0.0
    for each in printed:
        if isinstance(each, float):
            yield each
            continue
        last = each.at
        source = rest.setdefault(each.stream, InputBuffer())
        source.add(each.data)
        number = 0
        while (line := source.line() or (source.rest() if source.size > _MOST_LINE else None)) is not None:
            yield Printed(last, each.stream, line)
            number += 1
            if not number % _LINES_AT_ONCE:
                yield last
    for stream, source in rest.items():
        if (line := source.rest()) is not None:
            yield Printed(last, stream, line + b"\n")
