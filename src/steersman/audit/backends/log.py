"""Events in a file, a line each. A thread writes; what comes in one turn of the loop is written at once."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections.abc import Awaitable, Callable, Generator, Iterable, Sequence
from queue import SimpleQueue
from typing import Any, Final, Protocol

from steersman.audit.backends.backend import Records
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


class LogBackend:
    """Writes events to `lines`, in the order in which they come."""

    deferred = False

    def __init__(self, lines: Lines, render: Render, errors: Errors) -> None:
        self._lines: Final = lines
        self._render: Final = render
        self._errors: Final = errors
        self._loop: Final = asyncio.get_running_loop()
        self._batch = _Batch(self._loop)
        self._busy = False
        self._idle: Final = asyncio.Event()
        self._jobs: Final[SimpleQueue[_Batch | None]] = SimpleQueue()
        self._thread: Final = threading.Thread(target=self._work, name="audit-log", daemon=True)
        self._thread.start()

    def process(self, records: Records) -> Awaitable[bool]:
        """See Backend: true once they are in the file."""
        batch = self._batch
        first = len(batch.records)
        batch.records += records
        if not self._busy:
            self._busy = True
            self._loop.call_soon(self._hand_over)
        return _Written(batch, range(first, len(batch.records)))

    @property
    def waiting(self) -> int:
        """How many events are not given to the thread yet."""
        return len(self._batch.records)

    async def close(self) -> None:
        """See Backend."""
        while self._busy:
            self._idle.clear()
            await self._idle.wait()
        self._jobs.put(None)
        await self._loop.run_in_executor(None, self._thread.join)
        self._lines.close()

    def _hand_over(self) -> None:
        batch, self._batch = self._batch, _Batch(self._loop)
        self._jobs.put(batch)

    def _written(self, batch: _Batch, failed: dict[int, OSError]) -> None:
        batch.end(failed)
        for number, error in failed.items():
            self._errors.lost(_PLUGIN, error, (batch.records[number],))
        if self._batch.records:
            self._hand_over()
        else:
            self._busy = False
            self._idle.set()

    def _work(self) -> None:
        while (batch := self._jobs.get()) is not None:
            failed = dict(self._lines.write(list(map(self._render, batch.records))))
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
                self._loop.call_soon_threadsafe(self._written, batch, failed)


class _Batch:
    """Events that are written together, and who waits for that."""

    __slots__ = ("_loop", "_waiting", "failed", "records")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop: Final = loop
        self._waiting: list[asyncio.Future[None]] = []
        self.records: list[bytes] = []
        self.failed: dict[int, OSError] | None = None
        """The numbers of those that could not be written; None until that was tried."""

    def waiting(self) -> asyncio.Future[None]:
        """What is done once that was tried."""
        future = self._loop.create_future()
        self._waiting.append(future)
        return future

    def end(self, failed: dict[int, OSError]) -> None:
        """That was tried."""
        self.failed = failed
        for future in self._waiting:
            if not future.done():
                future.set_result(None)


class _Written:
    """Whether some events of a batch are in the file, once that is known: nothing waits unless this is waited for."""

    __slots__ = ("_batch", "_numbers")

    def __init__(self, batch: _Batch, numbers: range) -> None:
        self._batch = batch
        self._numbers = numbers

    def __await__(self) -> Generator[Any, None, bool]:
        batch = self._batch
        if batch.failed is None:
            yield from batch.waiting().__await__()
        assert batch.failed is not None
        return batch.failed.keys().isdisjoint(self._numbers)
