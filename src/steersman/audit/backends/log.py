"""Events in a file, a line each. A thread writes; what comes in one turn of the loop is written at once."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections.abc import Awaitable, Callable, Iterable, Sequence
from queue import SimpleQueue
from typing import Final, Protocol

from steersman.audit.backends.backend import Records, together
from steersman.audit.errors import Errors
from steersman.audit.legacy import event_line

_HEAD: Final = b'{"kind":"Event","apiVersion":"audit.k8s.io/v1",'
_PLUGIN: Final = "log"

Render = Callable[[bytes], bytes]


def as_json(record: bytes) -> bytes:
    """An event as a line of JSON."""
    return _HEAD + record + b"\n"


def as_text(record: bytes) -> bytes:
    """An event as a line of text (`legacy`)."""
    return event_line(record).encode() + b"\n"


class Lines(Protocol):
    """What lines are written to, by the thread of a backend."""

    def write(self, lines: Sequence[bytes]) -> Iterable[tuple[int, OSError]]:
        """Writes lines, which takes its time; the numbers of those that could not be written, and why."""
        ...

    def close(self) -> None:
        """Lets go of the file."""
        ...


class StandardOutput:
    """Lines for the standard output of this process."""

    def write(self, lines: Sequence[bytes]) -> Iterable[tuple[int, OSError]]:
        """See Lines."""
        for number, line in enumerate(lines):
            try:
                rest = memoryview(line)
                while rest:
                    rest = rest[os.write(1, rest) :]
            except OSError as error:
                yield number, error

    def close(self) -> None:
        """It stays open."""


Waiting = tuple[bytes, "asyncio.Future[bool]"]


class LogBackend:
    """Writes events to `lines`, in the order in which they come."""

    in_order = True

    def __init__(self, lines: Lines, render: Render, errors: Errors) -> None:
        self._lines: Final = lines
        self._render: Final = render
        self._errors: Final = errors
        self._loop: Final = asyncio.get_running_loop()
        self._waiting: list[Waiting] = []
        self._busy = False
        self._idle: asyncio.Event = asyncio.Event()
        self._jobs: Final[SimpleQueue[list[Waiting] | None]] = SimpleQueue()
        self._thread: Final = threading.Thread(target=self._work, name="audit-log", daemon=True)
        self._thread.start()

    def process(self, records: Records) -> Awaitable[bool] | None:
        """See Backend: true once they are in the file."""
        futures = []
        for record in records:
            future: asyncio.Future[bool] = self._loop.create_future()
            self._waiting.append((record, future))
            futures.append(future)
        if not self._busy and self._waiting:
            self._busy = True
            self._loop.call_soon(self._hand_over)
        return together(futures)

    async def close(self) -> None:
        """See Backend."""
        while self._busy:
            self._idle.clear()
            await self._idle.wait()
        self._jobs.put(None)
        await self._loop.run_in_executor(None, self._thread.join)
        self._lines.close()

    def _hand_over(self) -> None:
        waiting, self._waiting = self._waiting, []
        self._jobs.put(waiting)

    def _written(self, waiting: list[Waiting], failed: dict[int, OSError]) -> None:
        for number, (record, future) in enumerate(waiting):
            if not future.done():
                future.set_result(number not in failed)
            if number in failed:
                self._errors.lost(_PLUGIN, failed[number], (record,))
        if self._waiting:
            self._hand_over()
        else:
            self._busy = False
            self._idle.set()

    def _work(self) -> None:
        while (waiting := self._jobs.get()) is not None:
            failed = dict(self._lines.write([self._render(record) for record, _ in waiting]))
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
                self._loop.call_soon_threadsafe(self._written, waiting, failed)
