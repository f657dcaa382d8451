"""Faults of a small operator are found, with a plan that is as small as it can be."""

from __future__ import annotations

import pytest

from steersman.testing import ThreadedEnvironment
from steersman.testing.strategies import NotConverged, check_operator, custom_resources
from tests.testing.strategies.widgets import DEFINITION, Operator

pytestmark = pytest.mark.slow

FOUND = {
    "stale": ("the end state depends on the way there", 2),
    "orphan": ("left behind after all objects were deleted: ConfigMap default/a", 1),
    "busy": ("there is no rest after 1 s: still written is Widget default/a", 1),
    "finalizer": ("Widget a is not gone 1 s after its deletion; finalizers: ['example.com/keep']", 1),
    "generation": ("status.observedGeneration is 1, metadata.generation 2", 2),
}
"""The message, and the steps of the smallest plan, by fault."""


@pytest.mark.parametrize("fault", FOUND)
def test_a_fault_is_found_with_a_small_plan(widgets: ThreadedEnvironment, fault: str) -> None:
    text, steps = FOUND[fault]
    with Operator(widgets, fault).running(), pytest.raises(NotConverged) as caught:
        # many examples, as a fault that is seen ends them
        check_operator(
            widgets, custom_resources(DEFINITION), examples=100, quiet=0.1, timeout=1, shrinking=20, faults=()
        )
    assert text in str(caught.value)
    _, _, plan = str(caught.value).partition("the plan:\n")
    assert len([line for line in plan.splitlines() if "(end" not in line]) <= steps + 2, plan


def test_an_operator_without_a_fault_passes(widgets: ThreadedEnvironment) -> None:
    with Operator(widgets).running():
        check_operator(widgets, custom_resources(DEFINITION), examples=4, quiet=0.1)
