"""The audit log: reported events are in the file, in order and in the selected format."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from steersman.audit.backends import buffered
from steersman.audit.backends.backend import IgnoringErrors
from steersman.audit.backends.buffered import QueuedLog
from steersman.audit.backends.log import LogBackend, as_json, as_text
from steersman.audit.backends.rotation import Limits, LogFile
from tests.audit.recorded import counted, record


class Broken:
    """A disk that accepts no line with an x."""

    def write(self, lines: Sequence[bytes]) -> Iterable[tuple[int, OSError]]:
        for number, line in enumerate(lines):
            if b"x" in line:
                yield number, OSError(28, "No space left on device")

    def close(self) -> None:
        """Do nothing: no file is open."""


def log_to(path: Path) -> LogBackend:
    return LogBackend(LogFile(path, Limits(), lambda work: work()), as_json, counted()[0])


async def test_an_event_is_in_the_file_once_that_is_said(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    backend = log_to(path)
    written = backend.process([record(1)])
    assert path.read_bytes() == b""
    assert await written
    assert json.loads(path.read_bytes()) == {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": "Metadata",
        "auditID": "1",
    }
    assert await written
    await backend.close()


async def test_callbacks_come_once_it_is_written_and_at_once_after_that(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    backend = log_to(path)
    found: list[bytes] = []
    written = backend.process([record(1)])
    written.add_done_callback(lambda: found.append(path.read_bytes()))
    assert found == []
    await written
    assert found == [path.read_bytes()]
    written.add_done_callback(lambda: found.append(b"again"))
    assert found[1:] == [b"again"]
    await backend.close()


async def test_events_stay_in_order_and_the_end_waits_for_all_of_them(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    backend = log_to(path)
    for number in range(1000):
        backend.process([record(number)])
        if not number % 100:
            await asyncio.sleep(0)
    await backend.close()
    assert [json.loads(line)["auditID"] for line in path.read_bytes().splitlines()] == list(map(str, range(1000)))


async def test_what_cannot_be_written_is_counted_and_told(caplog: pytest.LogCaptureFixture) -> None:
    errors, metrics = counted()
    backend = LogBackend(Broken(), as_json, errors)
    good, bad = backend.process([record(1)]), backend.process([record(2, requestURI="/x")])
    assert await good
    assert not await bad
    assert metrics.errors.value(("log",)) == 1
    assert "Error in audit plugin 'log' affecting 1 audit events: [Errno 28] No space left on device" in caplog.text
    assert 'uri="/x"' in caplog.text
    await backend.close()


async def test_in_mode_blocking_nobody_looks_at_errors() -> None:
    backend = IgnoringErrors(LogBackend(Broken(), as_json, counted()[0]), in_order=True)
    assert backend.deferred
    await backend.close()
    assert not QueuedLog(LogBackend(Broken(), as_json, counted()[0]), 1, counted()[0]).deferred


async def test_in_mode_batch_what_is_more_than_the_buffer_holds_is_lost(tmp_path: Path) -> None:
    errors, metrics = counted()
    backend = QueuedLog(log_to(tmp_path / "audit.log"), 2, errors)
    for number in range(5):
        backend.process([record(number)])
    assert metrics.errors.value(("buffered",)) == 3
    await backend.close()
    assert len((tmp_path / "audit.log").read_bytes().splitlines()) == 2


async def test_in_mode_batch_large_events_are_lost_before_they_fill_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    errors, metrics = counted()
    monkeypatch.setattr(buffered, "MOST_BYTES", 2 * len(record(1)))
    log = log_to(tmp_path / "audit.log")
    backend = QueuedLog(log, 100, errors)
    for number in range(5):
        backend.process([record(number)])
    assert metrics.errors.value(("buffered",)) == 3
    await backend.close()
    assert log.bytes == 0


def test_of_large_events_that_are_lost_few_are_told(caplog: pytest.LogCaptureFixture) -> None:
    errors, metrics = counted()
    errors.lost("log", "why", [record(number, requestURI="/" + "a" * 100_000) for number in range(50)])
    assert metrics.errors.value(("log",)) == 50
    assert caplog.text.count("AUDIT:") == 2
    assert "... and 48 more" in caplog.text


def test_the_legacy_format_is_a_line_of_text() -> None:
    line = as_text(record(1, stage="ResponseComplete"))
    assert b' AUDIT: id="1" stage="ResponseComplete" ' in line
    assert line.endswith(b'response="<deferred>"\n')


async def test_a_fault_in_writing_ends_neither_the_thread_nor_the_waiting() -> None:
    class Faulty:
        faulty = True

        def write(self, lines: Sequence[bytes]) -> Iterable[tuple[int, OSError]]:
            if self.faulty:
                raise RuntimeError("out of order")
            return ()

        def close(self) -> None:
            """Do nothing: no file is open."""

    lines = Faulty()
    backend = LogBackend(lines, as_json, counted()[0])
    assert not await backend.process([record(1), record(2)])
    lines.faulty = False
    assert await backend.process([record(3)])
    await backend.close()
