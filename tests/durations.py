"""Seconds that tests took in earlier runs, by which the files are divided into parts for several processes.

The record is a hint only: a wrong figure costs only time.
"""

from __future__ import annotations

import json
import os
from collections import Counter, defaultdict
from collections.abc import Container, Generator, Iterable, Mapping, Sequence
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

import pytest

from tests import ROOT

RECORD = ROOT / ".ci" / "durations.json"
SLOW = "slow"
FAST = "fast"
SHORT = "short"
"""Fast tests but those of `tests.longer`."""
_OF_A_FILE = 0.05
"""Seconds that the collection of a file takes."""

Seconds = dict[str, dict[str, float]]
"""Seconds by pace (FAST, SLOW or SHORT) and by file of tests, as a path from the root of the project."""


class Measured(NamedTuple):
    """Seconds that processes of tests measured."""

    files: Mapping[str, Mapping[str, float]]
    """Seconds by pace (FAST or SLOW) and by file, with all that happens around its tests."""
    functions: Mapping[str, float]
    """Seconds by function of fast tests, FILE::NAME, without fixtures that several tests share."""


def read(record: Path = RECORD) -> Seconds:
    """Return the recorded seconds; empty ones if there is no record."""
    seconds: Seconds = {FAST: {}, SLOW: {}, SHORT: {}}
    if record.exists():
        seconds |= json.loads(record.read_text())
    return seconds


def write(seconds: Seconds, record: Path) -> None:
    """Write a record, one file of tests a line, so that two versions of it can be compared and merged."""
    record.write_text(json.dumps(seconds, indent=0, sort_keys=True) + "\n")


def updated(known: Seconds, measured: Measured, longer: Container[str], root: Path = ROOT) -> Seconds:
    """Return `known` with what was measured, to a tenth of a second, and without files that are gone.

    A file's seconds of SHORT are those of FAST without those of its functions that are in `longer`.
    """
    short = dict(measured.files[FAST])
    for name, seconds in measured.functions.items():
        if name in longer:
            short[file_of(name)] -= seconds
    return {
        pace: {
            file: round(max(seconds, 0.0), 1)
            for file, seconds in {**known[pace], **new}.items()
            if (root / file).exists()
        }
        for pace, new in {**measured.files, SHORT: short}.items()
    }


def file_of(nodeid: str) -> str:
    """Return the file of a test."""
    return nodeid.partition("::")[0]


def function_of(nodeid: str) -> str:
    """Return the function of a test: its name without the parameters."""
    return nodeid.partition("[")[0]


def parts(files: Sequence[str], number: int, seconds: Seconds, pace: str | None) -> list[list[str]]:
    """Return the files in at most `number` parts that take equally long, of tests of one pace or of SLOW and FAST.

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
    """Plugin that adds up the seconds of each file and function of tests, and writes them to a folder at the end."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: defaultdict[str, defaultdict[str, float]] = defaultdict(lambda: defaultdict(float))
        self._functions: defaultdict[str, float] = defaultdict(float)
        self._in_shared = False
        self._shared = 0.0
        """Seconds of the current test for fixtures that it shares with others."""

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[object]) -> Generator[None, object, object]:
        """Measure a fixture that tests share, with those that it starts itself."""
        if self._in_shared or fixturedef.scope == "function":
            return (yield)
        self._in_shared = True
        began = perf_counter()
        try:
            return (yield)
        finally:
            self._in_shared = False
            self._shared += perf_counter() - began

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count a phase of a test."""
        pace = SLOW if SLOW in report.keywords else FAST
        self._files[pace][file_of(report.nodeid)] += report.duration
        # the end of a test is mostly that of fixtures of its file
        if pace == FAST and report.when != "teardown":
            self._functions[function_of(report.nodeid)] += max(report.duration - self._shared, 0.0)
        self._shared = 0.0

    def pytest_sessionfinish(self) -> None:
        """Write what this process measured."""
        (self._folder / f"{os.getpid()}.json").write_text(json.dumps([self._files, self._functions]))


def merged(measured: Iterable[Path]) -> Measured:
    """Return what several processes measured, added up."""
    files: dict[str, Counter[str]] = {FAST: Counter(), SLOW: Counter()}
    functions: Counter[str] = Counter()
    for each in measured:
        by_pace, by_function = json.loads(each.read_text())
        for pace, by_file in by_pace.items():
            files[pace].update(by_file)
        functions.update(by_function)
    return Measured(files, functions)
