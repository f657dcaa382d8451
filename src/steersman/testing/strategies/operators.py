"""Checks of operators: plans are drawn and carried out until one shows a fault, which is then made as small as possible."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.strategies import SearchStrategy

from steersman.testing.threaded_environment import BlockingClock, ThreadedEnvironment
from steersman.testing.users import ADMIN

from .convergence import MACHINE, Expectations, NotConverged, Run
from .plans import FAULTS, Body, Plan, plans

_SHRINKING: Final = 15.0
"""Seconds after the first failure in which a smaller plan is looked for."""
_DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_DRAWN: Final = 4
"""Plans that are drawn for each that is carried out, as hypothesis draws small ones again and again."""
_LEAST_PATIENCE: Final = 1.0
"""Seconds to wait for rest at least while a smaller plan is looked for."""


class _Memory:
    """Results of plans: a plan is carried out once, a failure ends all longer plans, and number and time are limited."""

    def __init__(self, examples: int, limit: float) -> None:
        self._examples = examples
        self._limit = limit
        self._results: dict[str, str] = {}
        self._failed_at: float | None = None
        self.patience: float | None = None
        """Seconds to wait for rest after the first failure: plans that fail wait that long."""

    def run(self, plan: Plan, run: Run) -> None:
        """Carry out a plan, or do as before. Raises NotConverged."""
        failure = self._known(plan)
        if failure is None:
            if self._failed_at is None:
                if len(self._results) >= self._examples:
                    return
            elif time.monotonic() > self._failed_at + self._limit:
                return
            failure = self._carry_out(plan, run)
        if failure:
            self._failed_at = self._failed_at or time.monotonic()
            raise NotConverged(failure)  # the only such line, as hypothesis tells failures apart by their lines

    def _known(self, plan: Plan) -> str | None:
        """Return the failure of a plan or of its beginning, "" for none, None if it is not known yet."""
        for length in range(1, len(plan)):
            if failure := self._results.get(_key(plan[:length], complete=False)):
                return failure
        return self._results.get(_key(plan, complete=True), self._results.get(_key(plan, complete=False)))

    def _carry_out(self, plan: Plan, run: Run) -> str:
        try:
            run.carry_out(plan)
        except NotConverged as error:
            at_end = run.steps == len(plan)
            self._results[_key(plan if at_end else plan[: run.steps + 1], complete=at_end)] = str(error)
            self.patience = min(run.expected.timeout, max(_LEAST_PATIENCE, 5 * run.longest_wait))
            return str(error)
        self._results[_key(plan, complete=True)] = ""
        return ""


def _definitions(environment: ThreadedEnvironment) -> list[Body]:
    """Return the CustomResourceDefinitions of a server."""
    with environment.client(MACHINE) as client:
        _, found = client.json("GET", _DEFINITIONS)
    return list(found["items"])


def _key(plan: Plan, *, complete: bool) -> str:
    """Return the key of a plan, or of the beginning of plans."""
    return f"{complete}{plan!r}"


def check_operator(
    environment: ThreadedEnvironment,
    objects: SearchStrategy[Body],
    *,
    examples: int = 15,
    steps: int = 6,
    faults: Sequence[dict[str, Any]] = FAULTS,
    restart: Callable[[], None] | None = None,
    clock: BlockingClock | None = None,
    until: Callable[[Body], bool] | None = None,
    ignored: Sequence[str] = (),
    quiet: float = 0.2,
    timeout: float = 10.0,
    operator: str = ADMIN.name,
    same_outcome: bool = True,
    shrinking: float = _SHRINKING,
) -> None:
    """Carry out `examples` different plans of writes, deletions and faults against a running operator.

    `objects` draws the objects, such as `custom_resources("crds/widgets.yaml")`. After each step the operator has to
    come to rest: no write for `quiet` seconds, within `timeout`; `status.observedGeneration`, where there is one, is
    the generation; `until`, a function of an object, is true. A second apply changes nothing. At the end of a plan the
    state is that of objects which were created as they are, apart from fields in `ignored` (not with `same_outcome`
    False); deletions end, and nothing is left behind.

    `faults` are arguments of `environment.faults.add`, for requests of the user `operator`. `restart` is a function that
    ends the operator and starts it again, `clock` the clock of the environment; without them these steps are left out.

    Raises NotConverged, whose text has the smallest plan that was found in `shrinking` seconds.
    """
    __tracebackhide__ = True  # so that pytest shows the test's own line
    expected = Expectations(quiet, timeout, until, tuple(ignored), operator, same_outcome)
    memory = _Memory(examples, shrinking)
    drawn = plans(
        objects,
        steps=steps,
        faults=faults,
        restarts=restart is not None,
        advances=clock is not None,
        definitions=_definitions(environment),
    )

    @settings(
        max_examples=_DRAWN * examples,
        deadline=None,
        database=None,
        report_multiple_bugs=False,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    @given(drawn)
    def carry_out_plans(plan: Plan) -> None:
        patient = expected if memory.patience is None else replace(expected, timeout=memory.patience)
        memory.run(plan, Run(environment, patient, clock, restart))

    with warnings.catch_warnings():
        # hypothesis takes random numbers that other threads need for some of a strategy's
        warnings.filterwarnings("ignore", message="Do not use the `random` module inside strategies")
        try:
            carry_out_plans()
        except NotConverged as error:
            raise NotConverged(str(error)) from None  # without the frames of hypothesis
