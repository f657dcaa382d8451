"""Faults of published operators, in small: `steersman stress` finds each, and its plan passes with the repair."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from steersman.stress.point import read_plan
from tests.e2e.go_programs import build
from tests.stress.searches import ROOT, found, stress

IN_GO = ROOT / "tests" / "e2e" / "client_go"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "kind", "at", "failure"),
    [
        ("requests", "lost", "create configmaps default/web-*", "the test failed with exit code 1"),
        (
            "heads",
            "stale",
            "ADDED configmaps default/rays-head-*",
            "the end state differs: ConfigMap default/rays-head-*: there are 2, not 1",
        ),
        (
            "members",
            "expired",
            "DELETED configmaps default/a",
            'the end state differs: ConfigMap default/register: data.a: extra: "member"',
        ),
    ],
)
def test_a_fault_of_a_published_operator_is_found_and_not_in_the_repaired_one(
    name: str, kind: str, at: str, failure: str, tmp_path: Path
) -> None:
    in_go = IN_GO / name
    program = build(in_go, tmp_path / name) if in_go.exists() else f"{sys.executable} -m tests.stress.{name}_operator"
    operator = f"exec {program}"
    test = f"exec {sys.executable} -m tests.stress.workloads {name}"
    common = ("--test", test, "--settle", "500ms", "--patience", "2s", "-o", "json")
    done = stress("--operator", operator, "--kinds", kind, *common, folder=tmp_path)
    (group,) = found(done)["findings"]
    assert group[0]["failure"].startswith(failure)
    (plan,) = (tmp_path / "plans").iterdir()
    (fault,) = read_plan(plan).faults
    assert (str(fault.kind), str(fault.at)) == (kind, at)
    done = stress("--operator", f"{operator} --fixed", "--kinds", kind, *common, folder=tmp_path)
    result = found(done)
    assert (done.returncode, result["findings"], result["once"]) == (0, [], []), done.stdout
    assert result["kinds"][kind]["tried"] > result["kinds"][kind]["missed"]
