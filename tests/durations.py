"""Seconds that tests took in earlier runs. The longest file is started first, so that no process ends with it alone.

The record is a hint only. A file without a record is started before all others, and a wrong figure costs only time.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

from tests import ROOT

RECORD = ROOT / ".ci" / "durations.json"
SLOW = "slow"
FAST = "fast"

Seconds = dict[str, dict[str, float]]
"""Seconds by pace (FAST or SLOW) and by file of tests, as a path from the root of the project."""


def read(record: Path = RECORD) -> Seconds:
    """Return the recorded seconds; empty ones if there is no record."""
    seconds: Seconds = {FAST: {}, SLOW: {}}
    if record.exists():
        seconds |= json.loads(record.read_text())
    return seconds


def write(seconds: Seconds, record: Path) -> None:
    """Write a record, one file of tests a line, so that two versions of it can be compared and merged."""
    record.write_text(json.dumps(seconds, indent=0, sort_keys=True) + "\n")


def updated(known: Seconds, measured: Mapping[str, Mapping[str, float]], root: Path = ROOT) -> Seconds:
    """Return `known` with what was measured, to a tenth of a second, and without files that are gone."""
    return {
        pace: {
            file: round(seconds, 1)
            for file, seconds in {**known[pace], **measured.get(pace, {})}.items()
            if (root / file).exists()
        }
        for pace in (FAST, SLOW)
    }


def pace_of(item: pytest.Item) -> str:
    """Return SLOW for a test marked as slow, otherwise FAST."""
    return SLOW if item.get_closest_marker("slow") else FAST


def file_of(nodeid: str) -> str:
    """Return the file of a test."""
    return nodeid.partition("::")[0]


def longest_first(items: Iterable[pytest.Item], seconds: Seconds) -> list[pytest.Item]:
    """Return the tests with the longest file first. Tests of a file, and files of equal length, keep their order."""
    by_file: dict[str, list[pytest.Item]] = {}
    for item in items:
        by_file.setdefault(file_of(item.nodeid), []).append(item)

    def length(file: str) -> float:
        paces = {pace_of(item) for item in by_file[file]}
        known = [seconds[pace][file] for pace in paces if file in seconds[pace]]
        return sum(known) if known else float("inf")

    return [item for file in sorted(by_file, key=length, reverse=True) for item in by_file[file]]


class Recorder:
    """Plugin that adds up the seconds of each file of tests and writes them at the end of the run."""

    def __init__(self, record: Path) -> None:
        self._record = record
        self._seconds: defaultdict[str, defaultdict[str, float]] = defaultdict(lambda: defaultdict(float))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count a phase of a test, in whichever process it ran."""
        pace = SLOW if SLOW in report.keywords else FAST
        self._seconds[pace][file_of(report.nodeid)] += report.duration

    def pytest_sessionfinish(self) -> None:
        """Write the record."""
        write(updated(read(self._record), self._seconds), self._record)
