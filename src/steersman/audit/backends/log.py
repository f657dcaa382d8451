"""Audit log: one line per event, written by a thread. Events of one event loop iteration are written together."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import threading
from collections.abc import Callable, Generator, Iterable, Sequence
from queue import SimpleQueue
from typing import Any, Final, Protocol

from steersman.audit.backends.backend import RecordResult, Records
from steersman.audit.errors import Errors
from steersman.audit.legacy import event_line

logger = logging.getLogger(__name__)

_HEAD: Final = b'{"kind":"Event","apiVersion":"audit.k8s.io/v1",'
_PLUGIN: Final = "log"

Render = Callable[[bytes], bytes]


def as_json(record: bytes) -> bytes:
    """Format an event as a line of JSON."""
    return _HEAD + record + b"\n"


def as_text(record: bytes) -> bytes:
    """Format an event as a line of text (format `legacy`)."""
    return event_line(record).encode() + b"\n"


class Lines(Protocol):
    """A destination of lines, used by a backend's thread."""

    def write(self, lines: Sequence[bytes]) -> Iterable[tuple[int, OSError]]:
        """Write lines. Yields (index, error) of lines that could not be written. Blocks."""
        ...

    def close(self) -> None:
        """Close the file."""
        ...


class StandardOutput:
    """The standard output of this process as a destination of lines."""

    def write(self, lines: Sequence[bytes]) -> Iterable[tuple[int, OSError]]:
        """Write lines, see Lines."""
        for number, line in enumerate(lines):
            try:
                rest = memoryview(line)
                while rest:
                    rest = rest[os.write(1, rest) :]
            except OSError as error:
                yield number, error

    def close(self) -> None:
        """Do nothing: the standard output stays open."""


class LogBackend:
    """Backend that writes events to `lines` in their order."""

    deferred = False

    def __init__(self, lines: Lines, render: Render, errors: Errors) -> None:
        self._lines: Final = lines
        self._render: Final = render
        self._errors: Final = errors
        self._loop: Final = asyncio.get_running_loop()
        self._batch = _Batch(self._loop)
        self.bytes = 0
        """Bytes of events that are not written yet."""
        self._busy = False
        self._idle: Final = asyncio.Event()
        self._jobs: Final[SimpleQueue[_Batch | None]] = SimpleQueue()
        self._thread: Final = threading.Thread(target=self._work, name="audit-log", daemon=True)
        self._thread.start()

    def process(self, records: Records) -> RecordResult:
        """Accept events; the result is True once they are in the file. See Backend."""
        batch = self._batch
        first = len(batch.records)
        batch.records += records
        self.bytes += sum(map(len, records))
        if not self._busy:
            self._busy = True
            self._loop.call_soon(self._hand_over)
        return _RecordResult(batch, range(first, len(batch.records)))

    @property
    def waiting(self) -> int:
        """Number of events that were not passed to the thread yet."""
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
        batch.set_result(failed)
        if self._batch.records:
            self._hand_over()
        else:
            self._busy = False
            self._idle.set()

    def _work(self) -> None:
        while (batch := self._jobs.get()) is not None:
            failed = self._write(batch.records)
            with contextlib.suppress(RuntimeError):  # the event loop is closed, so nobody waits
                self._loop.call_soon_threadsafe(self._written, batch, failed)

    def _write(self, records: Sequence[bytes]) -> dict[int, OSError]:
        """Write events, and return the errors by index."""
        try:
            return dict(self._lines.write(list(map(self._render, records))))
        except Exception as error:  # requests wait for this thread, so it must not end
            logger.exception("writing audit events failed")
            return dict.fromkeys(range(len(records)), OSError(str(error)))


class _Batch:
    """Events that are written together, and the callbacks that wait for the result."""

    __slots__ = ("_loop", "_waiting", "failed", "records")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop: Final = loop
        self._waiting: list[Callable[[], None]] = []
        self.records: list[bytes] = []
        self.failed: dict[int, OSError] | None = None
        """Errors by index of the event; None until the write attempt has ended."""

    def add_done_callback(self, callback: Callable[[], None]) -> None:
        """Call `callback` after the write attempt, or at once if it has ended."""
        if self.failed is None:
            self._waiting.append(callback)
        else:
            callback()

    async def wait(self) -> None:
        """Wait until the write attempt has ended."""
        if self.failed is None:
            future: asyncio.Future[None] = self._loop.create_future()
            self._waiting.append(lambda: None if future.done() else future.set_result(None))
            await future

    def set_result(self, failed: dict[int, OSError]) -> None:
        """Set the result, and call the callbacks."""
        self.failed = failed
        # breaks a reference cycle: callbacks refer to requests, which refer to this batch
        waiting, self._waiting = self._waiting, []
        for callback in waiting:
            try:
                callback()
            except Exception:  # a response that cannot be sent must not delay the others
                logger.exception("sending a response after writing its audit event failed")


class _RecordResult(RecordResult):
    """Result of some events of a batch, see RecordResult. Creates no future unless it is awaited."""

    __slots__ = ("_batch", "_numbers")

    def __init__(self, batch: _Batch, numbers: range) -> None:
        self._batch = batch
        self._numbers = numbers

    def __await__(self) -> Generator[Any, None, bool]:
        batch = self._batch
        yield from batch.wait().__await__()
        assert batch.failed is not None
        return batch.failed.keys().isdisjoint(self._numbers)

    def add_done_callback(self, callback: Callable[[], None]) -> None:
        """See RecordResult."""
        self._batch.add_done_callback(callback)
