"""Tests of the reports that a process of tests sends."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests import reports


class Told:
    """Hooks of an item that record their calls."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str]] = []

    def pytest_runtest_logstart(self, nodeid: str, location: object) -> None:
        self.calls.append(("start", nodeid))

    def pytest_runtest_logfinish(self, nodeid: str, location: object) -> None:
        self.calls.append(("finish", nodeid))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.calls.append((str(report.when), report.outcome))


def report(when: Any, outcome: Any) -> pytest.TestReport:
    return pytest.TestReport("t", ("t.py", 1, "t"), {}, outcome, None, when)


@pytest.mark.parametrize(
    ("outcomes", "told"),
    [
        ({"setup": "passed", "call": "passed", "teardown": "passed"}, [("call", "passed")]),
        (
            {"setup": "passed", "call": "failed", "teardown": "failed"},
            [("call", "failed"), ("teardown", "failed")],
        ),
        ({"setup": "skipped", "teardown": "passed"}, [("setup", "skipped")]),
        ({"setup": "failed", "teardown": "passed"}, [("setup", "failed")]),
    ],
)
def test_a_phase_is_reported_if_it_says_how_the_test_came_out(
    outcomes: dict[str, str], told: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = [report(when, outcome) for when, outcome in outcomes.items()]
    monkeypatch.setattr(reports, "runtestprotocol", lambda item, log, nextitem: made)
    hook = Told()
    item: Any = SimpleNamespace(ihook=hook, nodeid="t", location=("t.py", 1, "t"))
    assert reports.OfResults().pytest_runtest_protocol(item, None)
    assert hook.calls == [("start", "t"), *told, ("finish", "t")]
