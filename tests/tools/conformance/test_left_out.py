"""Tests of the list of skipped conformance tests, and of the counts in a report."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tools.conformance.left_out import SIMULATED, TOLD, counted, pattern
from tools.conformance.report import table

DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "compatibility-comparison.md"
DNS = "[sig-network] DNS should provide DNS for services [Conformance]"
LIFECYCLE = "[sig-apps] Deployment should run the lifecycle of a Deployment [Conformance]"
ENVIRONMENT = "[sig-node] Secrets should be consumable via the environment [NodeConformance] [Conformance]"


@pytest.mark.parametrize(
    ("name", "simulated", "told"), [(DNS, False, False), (LIFECYCLE, True, True), (ENVIRONMENT, True, False)]
)
def test_which_tests_are_run(name: str, simulated: bool, told: bool) -> None:
    assert (re.search(pattern(SIMULATED), name) is None) is simulated
    assert (re.search(pattern(TOLD), name) is None) is told


def test_a_test_counts_for_one_reason() -> None:
    found = counted(TOLD, [DNS, LIFECYCLE, ENVIRONMENT])
    assert sum(found.values()) == 2


def test_the_documents_tell_each_reason() -> None:
    document = DOCUMENT.read_text()
    assert [each.why for each in SIMULATED if f"| {each.why} |" not in document] == []


def test_a_report_is_counted(tmp_path: Path) -> None:
    def spec(name: str, state: str, kind: str = "It") -> dict[str, object]:
        group, _, rest = name.partition("] ")
        return {"LeafNodeType": kind, "State": state, "ContainerHierarchyTexts": [f"{group}]"], "LeafNodeText": rest}

    report = tmp_path / "report.json"
    specs = [
        spec(DNS, "skipped"),
        spec(LIFECYCLE, "passed"),
        spec(ENVIRONMENT, "timedout"),
        spec("", "passed", "ReportAfterSuite"),
    ]
    report.write_text(json.dumps([{"SpecReports": specs}]))
    assert table(report, SIMULATED).splitlines() == [
        "sig-apps: 1 of 1 passed",
        "sig-node: 0 of 1 passed",
        "all: 1 of 2 passed",
        f"left out: 1: {SIMULATED[0].why}",
        f"timedout: {ENVIRONMENT}",
    ]
    assert table(tmp_path / "none", SIMULATED) == "there is no report"
