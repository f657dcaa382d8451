"""Faults of a small operator are found, with a plan that is as small as it can be."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from steersman.testing import ThreadedEnvironment
from steersman.testing.definitions import establish
from steersman.testing.strategies import FAULTS, NotConverged, check_operator, custom_resources
from tests.testing.strategies.widgets import DEFINITION, Keeper, Operator

pytestmark = pytest.mark.slow

FOUND = {
    "stale": ("the end state depends on the way there", 2, 10),
    "orphan": ("left behind after all objects were deleted: ConfigMap default/a", 1, 10),
    "busy": ("there is no rest after 1 s: still written is Widget default/a", 1, 1),
    "finalizer": ("Widget a is not gone 1 s after its deletion; finalizers: ['example.com/keep']", 1, 1),
    "generation": ("status.observedGeneration is 1, metadata.generation 2", 2, 1),
}
"""The message, the steps of the smallest plan, and the patience in seconds, by fault."""


@pytest.mark.parametrize("fault", FOUND)
def test_a_fault_is_found_with_a_small_plan(widgets: ThreadedEnvironment, fault: str) -> None:
    text, steps, timeout = FOUND[fault]
    with Operator(widgets, fault).running(), pytest.raises(NotConverged) as caught:
        # many examples, as a fault that is seen ends them
        check_operator(
            widgets, custom_resources(DEFINITION), examples=100, quiet=0.1, timeout=timeout, shrinking=90, faults=()
        )
    assert text in str(caught.value)
    _, _, plan = str(caught.value).partition("the plan:\n")
    assert len([line for line in plan.splitlines() if "(end" not in line]) <= steps + 2, plan


def test_an_operator_without_a_fault_passes(widgets: ThreadedEnvironment) -> None:
    with Operator(widgets).running():
        check_operator(widgets, custom_resources(DEFINITION), examples=4, quiet=0.1, until=has_observed)


def has_observed(widget: dict[str, Any]) -> bool:
    """Return True if the operator has seen a Widget as it is."""
    seen: bool = widget.get("status", {}).get("observedGeneration") == widget["metadata"]["generation"]
    return seen


@pytest.fixture
def moved_widgets() -> Iterator[ThreadedEnvironment]:
    """A server that has the definition of Widgets, and whose time can be moved."""
    with ThreadedEnvironment(clock=True) as environment:
        with environment.client() as client:
            establish(client, [DEFINITION])
        yield environment


def checked(environment: ThreadedEnvironment, fault: str, examples: int, *kinds: str) -> None:
    """Check a Keeper with some kinds of steps: `restart`, `advance`, and `lost` answers or `all` faults."""
    clock = environment.environment.clock
    keeper = Keeper(environment, fault, lambda: time.time() + clock.moved)
    lost = [each for each in FAULTS if "lose_answer" in each]
    with keeper.running():
        check_operator(
            environment,
            custom_resources(DEFINITION),
            examples=examples,
            steps=4,
            quiet=0.05,
            shrinking=1,
            until=keeper.is_kept,
            faults=FAULTS if "all" in kinds else lost if "lost" in kinds else (),
            restart=keeper.restart if "restart" in kinds else None,
            clock=environment.clock if "advance" in kinds else None,
        )


STEPS = {"restart": "restart the operator", "lost": "lose_answer=True", "advance": "advance time by "}


@pytest.mark.parametrize("kind", STEPS)
def test_a_fault_that_only_one_kind_of_step_shows_is_found_with_it(
    moved_widgets: ThreadedEnvironment, kind: str
) -> None:
    with pytest.raises(NotConverged) as caught:
        checked(moved_widgets, kind, 100, kind)
    assert "the end state depends on the way there" in str(caught.value)
    assert STEPS[kind] in str(caught.value)


@pytest.mark.parametrize("kind", STEPS)
def test_it_is_not_found_without_these_steps(moved_widgets: ThreadedEnvironment, kind: str) -> None:
    checked(moved_widgets, kind, 3, *(each for each in STEPS if each != kind))


def test_an_operator_without_a_fault_withstands_all_kinds_of_steps(moved_widgets: ThreadedEnvironment) -> None:
    checked(moved_widgets, "", 6, "restart", "advance", "all")
