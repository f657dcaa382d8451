"""Seconds that tests took in earlier runs, by which the files are divided into parts for several processes.

The record is a hint only: a wrong figure costs only time.
"""

from __future__ import annotations

import json
import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import pytest

from tests import ROOT

RECORD = ROOT / ".ci" / "durations.json"
SLOW = "slow"
FAST = "fast"
_OF_A_FILE = 0.05
"""Seconds that the collection of a file takes."""

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


def file_of(nodeid: str) -> str:
    """Return the file of a test."""
    return nodeid.partition("::")[0]


def parts(files: Sequence[str], number: int, seconds: Seconds, pace: str | None) -> list[list[str]]:
    """Return the files in at most `number` parts that take equally long, of tests of one pace or of both.

    The longest file is added first, each to the part that is the shortest by then. A file that has no record, with
    tests of any pace, takes as long as the average file. Names of tests, FILE::TEST, count as their file.
    """
    known = Counter(seconds[SLOW]) + Counter(seconds[FAST]) if pace is None else seconds[pace]
    average = sum(known.values()) / max(len(known), 1)

    def length(file: str) -> float:
        name = file_of(file)
        has_record = name in seconds[FAST] or name in seconds[SLOW]
        return _OF_A_FILE + (known.get(name, 0.0) if has_record else average)

    found: list[list[str]] = [[] for _ in range(min(number, max(len(files), 1)))]
    lengths = [0.0] * len(found)
    for file in sorted(files, key=length, reverse=True):
        shortest = lengths.index(min(lengths))
        found[shortest].append(file)
        lengths[shortest] += length(file)
    return found


class Recorder:
    """Plugin that adds up the seconds of each file of tests and writes them to a folder at the end of the run."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._seconds: defaultdict[str, defaultdict[str, float]] = defaultdict(lambda: defaultdict(float))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count a phase of a test."""
        pace = SLOW if SLOW in report.keywords else FAST
        self._seconds[pace][file_of(report.nodeid)] += report.duration

    def pytest_sessionfinish(self) -> None:
        """Write what this process measured."""
        (self._folder / f"{os.getpid()}.json").write_text(json.dumps(self._seconds))


def merge(measured: Iterable[Path], record: Path) -> None:
    """Write what several processes measured into a record."""
    seconds: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for each in measured:
        for pace, by_file in json.loads(each.read_text()).items():
            seconds[pace].update(by_file)
    write(updated(read(record), seconds), record)
