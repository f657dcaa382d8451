"""Events in a file, a line each. A thread writes; what comes in one turn of the loop is written at once."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import threading
from collections.abc import Callable, Generator, Iterable, Sequence
from queue import SimpleQueue
from typing import Any, Final, Protocol

from steersman.audit.backends.backend import Records, Written
from steersman.audit.errors import Errors
from steersman.audit.legacy import event_line

logger = logging.getLogger(__name__)

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
        self.bytes = 0
        """Of events that are not written yet."""
        self._busy = False
        self._idle: Final = asyncio.Event()
        self._jobs: Final[SimpleQueue[_Batch | None]] = SimpleQueue()
        self._thread: Final = threading.Thread(target=self._work, name="audit-log", daemon=True)
        self._thread.start()

    def process(self, records: Records) -> Written:
        """See Backend: true once they are in the file."""
        batch = self._batch
        first = len(batch.records)
        batch.records += records
        self.bytes += sum(map(len, records))
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
        for number, error in failed.items():
            self._errors.lost(_PLUGIN, error, (batch.records[number],))
        self.bytes -= sum(map(len, batch.records))
        batch.records.clear()
        batch.end(failed)
        if self._batch.records:
            self._hand_over()
        else:
            self._busy = False
            self._idle.set()

    def _work(self) -> None:
        while (batch := self._jobs.get()) is not None:
            failed = self._tried(batch.records)
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
                self._loop.call_soon_threadsafe(self._written, batch, failed)

    def _tried(self, records: Sequence[bytes]) -> dict[int, OSError]:
        """Writes events; the numbers of those that could not be, and why."""
        try:
            return dict(self._lines.write(list(map(self._render, records))))
        except Exception as error:  # requests wait for this thread, which must not end
            logger.exception("events cannot be written")
            return dict.fromkeys(range(len(records)), OSError(str(error)))


class _Batch:
    """Events that are written together, and who waits for that."""

    __slots__ = ("_loop", "_waiting", "failed", "records")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop: Final = loop
        self._waiting: list[Callable[[], None]] = []
        self.records: list[bytes] = []
        self.failed: dict[int, OSError] | None = None
        """The numbers of those that could not be written; None until that was tried."""

    def then(self, callback: Callable[[], None]) -> None:
        """Calls back once that was tried."""
        if self.failed is None:
            self._waiting.append(callback)
        else:
            callback()

    async def tried(self) -> None:
        """Returns once that was tried."""
        if self.failed is None:
            future: asyncio.Future[None] = self._loop.create_future()
            self._waiting.append(lambda: None if future.done() else future.set_result(None))
            await future

    def end(self, failed: dict[int, OSError]) -> None:
        """That was tried."""
        self.failed = failed
        waiting, self._waiting = self._waiting, []  # they know requests, which know this
        for callback in waiting:
            try:
                callback()
            except Exception:  # one answer that cannot be sent does not keep the others back
                logger.exception("an answer that has waited for the log failed")


class _Written(Written):
    """Some events of a batch, see Written; nothing is made for who does not wait for them."""

    __slots__ = ("_batch", "_numbers")

    def __init__(self, batch: _Batch, numbers: range) -> None:
        self._batch = batch
        self._numbers = numbers

    def __await__(self) -> Generator[Any, None, bool]:
        batch = self._batch
        yield from batch.tried().__await__()
        assert batch.failed is not None
        return batch.failed.keys().isdisjoint(self._numbers)

    def then(self, callback: Callable[[], None]) -> None:
        """See Written."""
        self._batch.then(callback)
