"""Tests of the parsing of reports of Ginkgo, and of Go tests beside Ginkgo."""

from __future__ import annotations

import json
from typing import Any

from tools.envtest_suites.report import Run, differences, read, table

OUTPUT = """\
=== RUN   TestOfPlainGo
=== RUN   TestOfPlainGo/a_part
--- FAIL: TestOfPlainGo (1.50s)
    --- PASS: TestOfPlainGo/a_part (0.50s)
=== RUN   TestSuite
Running Suite: Client Suite
--- FAIL: TestSuite (3.00s)
"""


def spec(state: str, text: str, *, node: str = "It", message: str = "") -> dict[str, Any]:
    failure = {"Message": message} if message else None
    names = ["Client", "Create"] if node == "It" else None
    return {
        "State": state,
        "LeafNodeType": node,
        "LeafNodeText": text,
        "ContainerHierarchyTexts": names,
        "Failure": failure,
    }


def report(*specs: dict[str, Any], succeeded: bool = True) -> str:
    return json.dumps(
        [
            {
                "RunTime": 2_000_000_000,
                "SuiteSucceeded": succeeded,
                "SpecReports": list(specs),
                "SpecialSuiteFailureReasons": None,
            }
        ]
    )


def test_specs_are_counted_and_failures_named() -> None:
    found = read(
        report(
            spec("passed", "", node="BeforeSuite"),
            spec("passed", "works"),
            spec("skipped", "waits"),
            spec("panicked", "breaks", message="Expected\n  <int>: 1\n"),
        )
    )
    assert found == Run(1, {"Client Create breaks": "Expected <int>: 1"}, 2.0)
    assert str(found) == "1 passed, 1 failed"


def test_a_suite_that_does_not_begin_has_failed() -> None:
    found = read(report(spec("failed", "", node="BeforeSuite", message="no etcd"), spec("skipped", "a")))
    assert found.failed == {"BeforeSuite": "no etcd"}
    assert read(report(succeeded=False)).failed == {"the suite": "no reason is given"}


def test_tests_of_plain_go_are_counted_beside_them_and_the_one_that_runs_ginkgo_is_not() -> None:
    assert read("[]", OUTPUT) == Run(1, {"TestOfPlainGo": "its output tells why"}, 1.5)


def test_two_runs_are_told_beside_each_other() -> None:
    ours, real = Run(1, {"a": "x", "b": "y"}, 1.0), Run(2, {"b": "z"}, 30.04)
    assert table([("pkg/client", [ours, real])], ["ours", "real"]).splitlines() == [
        "suite       ours                       real",
        "pkg/client  1 passed, 2 failed, 1.0 s  2 passed, 1 failed, 30.0 s",
    ]
    assert differences(ours, real) == {"a": "x"}
    assert differences(ours, None) == ours.failed
