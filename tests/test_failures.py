"""Tests that names of failed tests are reported at once."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.failures import Teller


class Reporter:
    """Terminal reporter that keeps its lines."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def write_line(self, line: str) -> None:
        self.lines.append(line)


@pytest.mark.parametrize(
    ("outcome", "lines"),
    [("failed", ["\nFAILED tests/test_a.py::test_b (setup): AssertionError: no"]), ("passed", []), ("skipped", [])],
)
def test_a_failure_is_told_when_it_is_known(outcome: Any, lines: list[str]) -> None:
    reporter = Reporter()
    config: Any = SimpleNamespace(pluginmanager=SimpleNamespace(get_plugin={"terminalreporter": reporter}.get))
    place = ("tests/test_a.py", 1, "test_b")
    report = pytest.TestReport(
        "tests/test_a.py::test_b",
        place,
        {},
        outcome,
        "def test_b():\nE  AssertionError: no\n\ntests/test_a.py:1: AssertionError\n",
        "setup",
    )
    Teller(config).pytest_runtest_logreport(report)
    assert reporter.lines == lines
