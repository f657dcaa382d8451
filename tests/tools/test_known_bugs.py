"""The table of known bugs: workloads that exist, points that are written as `steersman stress` prints them."""

from __future__ import annotations

import pytest

from steersman.stress.point import Kind, plan_of
from tests.stress.workloads import WORKLOADS
from tools.known_bugs.cases import CASES, Case
from tools.known_bugs.command import outcome_of
from tools.known_bugs.programs import HERE, SmallOperator


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_case_has_its_workload_and_other_versions_before_and_after(case: Case) -> None:
    assert case.point.split(" at ")[0] in {each.value for each in Kind}
    assert case.before.version != case.after.version
    if isinstance(case.before, SmallOperator):
        assert case.before.command() != case.after.command()
        assert case.name in WORKLOADS
    else:
        assert (HERE / case.name / "test.sh").is_file()
    assert all(each.is_file() for each in case.manifests)


def test_an_outcome_names_its_plans_as_points_are_printed() -> None:
    fault = {"kind": "lost", "at": {"client": "a", "verb": "create", "resource": "pods", "name": "b-*", "nth": 2}}
    found = [[{"plan": {"faults": [fault]}, "after": 1.5}]]
    outcome = outcome_of({"findings": found, "tried": 3, "left": 1, "seconds": 2.5, "broken": ""})
    assert outcome.found == {str(plan_of({"faults": [fault]}, "test")): 1.5} == {"lost at create pods b-* (2nd)": 1.5}
    assert (outcome.tried, outcome.left, outcome.seconds) == (3, 1, 2.5)
