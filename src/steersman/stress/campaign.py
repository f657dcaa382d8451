"""Search: runs without faults, then runs with the faults of a plan until the time is up, and what they found."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from steersman.machinery.values.times import monotonic
from steersman.stress.planning import planned
from steersman.stress.point import Kind, Plan, PlannedFault
from steersman.stress.run import Run, Runner
from steersman.stress.state import Expectation

BASELINES: Final = 2
"""Runs without faults before the first one with a fault."""
_MOST_BASELINES: Final = 6
_SLOW: Final = 0.02
"""Seconds that each request of the operator waits in the second run without faults, so that timing shows."""
_REPEATS: Final = 2
"""Times that a plan that fails is run again, until it fails again."""


class Verdict(Enum):
    """Outcome of a plan."""

    PASSED = "passed"
    FAILED = "failed"
    ONCE = "once"
    """It failed, and never again."""
    MISSED = "missed"
    """Its point was not reached."""


@dataclass(slots=True)
class Tried:
    """A plan that was run."""

    plan: Plan
    verdict: Verdict
    run: Run
    """Run that counts: the first one that failed, if one has."""
    failed: int = 0
    runs: int = 1
    after: float = 0.0
    """Seconds from the start of the search until the verdict."""

    @property
    def how_often(self) -> str:
        """Share of the runs that failed, for people."""
        return "always" if self.failed == self.runs else f"in {self.failed} of {self.runs} runs"


@dataclass(slots=True)
class Result:
    """Result of a search."""

    baselines: list[Run] = field(default_factory=list)
    broken: str = ""
    """Reason why a run without faults failed, so that nothing was tried."""
    output: str = ""
    tried: list[Tried] = field(default_factory=list)
    total: int = 0
    """Faults that could have been tried."""
    unstable: list[str] = field(default_factory=list)
    """Places in the end state that differ between runs without faults."""
    flaky: str = ""
    """Reason why a later run without faults failed."""
    seconds: float = 0.0
    is_of_plans: bool = False
    """True if the user has given the plans."""
    interruption: str = ""
    """Reason why the search was ended before its time."""

    @property
    def clients(self) -> list[str]:
        """Programs that have sent requests in the first run."""
        return sorted({each.point.client for run in self.baselines[:1] for each in run.seen})

    @property
    def findings(self) -> list[Tried]:
        """Plans that failed more than once."""
        return [each for each in self.tried if each.verdict is Verdict.FAILED]

    @property
    def reason_without_verdict(self) -> str:
        """Reason why the result says nothing about the operator, so that nothing found is no success; "" if it says
        something.
        """
        if self.broken:
            return f"without any fault: {self.broken}"
        if self.interruption:
            return self.interruption
        if self.tried:
            return "" if self.findings else self._reason_against_success
        if self.total:
            return "the time was up before the first fault, see --time"
        if not self.clients:
            return "no requests were seen: does the command use KUBECONFIG, or the programs in KUBEBUILDER_ASSETS?"
        return f"no point for these faults; the requests came from {', '.join(self.clients)}"

    @property
    def _reason_against_success(self) -> str:
        """Reason why no finding is no success, "" if it is one."""
        if self.flaky:
            return f"a run without faults failed, too: {self.flaky}"
        missed = [each for each in self.tried if each.verdict is Verdict.MISSED]
        if missed and self.is_of_plans:
            return f"a given plan was not reached, as the operator sends other requests: {missed[0].plan}"
        return "no fault was reached, as each run has other requests" if len(missed) == len(self.tried) else ""

    @property
    def groups(self) -> list[list[Tried]]:
        """Findings that have the same consequence, each group with the plan first that was found first."""
        groups: dict[str, list[Tried]] = {}
        for each in self.findings:
            groups.setdefault(consequence(each.run), []).append(each)
        return list(groups.values())


def consequence(run: Run) -> str:
    """Return a text that is equal for runs that failed in the same way."""
    if run.problem or run.exit_code != 0:
        return run.failure
    return "\n".join(map(str, run.differences)) or run.failure


class Campaign:
    """Search for faults, by several runners at once.

    `report` is called after each plan with the result so far.
    """

    def __init__(
        self,
        runners: Sequence[Runner],
        *,
        seconds: float,
        kinds: Sequence[Kind] = tuple(Kind),
        clients: Sequence[str] = (),
        ignored: Sequence[str] = (),
        report: Callable[[Result], None] = lambda _: None,
        result: Result | None = None,
    ) -> None:
        """`clients` names the programs that faults happen to, all if empty. `result` is filled during the search."""
        self._runners = runners
        self._seconds = seconds
        self._kinds = kinds
        self._clients = clients
        self._expected = Expectation(ignored)
        self._report = report
        self._began = monotonic()
        self._left: deque[Plan] = deque()
        self._consequences: set[str] = set()
        """Consequences of plans that failed more than once: a further plan with one of them needs no second run."""
        self.result = Result() if result is None else result

    async def search(self, plans: Sequence[Plan] = ()) -> Result:
        """Run the plans, by default one for each fault at each point, until the time is up. Raises OSError."""
        self._began = monotonic()
        self.result.is_of_plans = bool(plans)
        try:
            if await self._run_baselines():
                await self._run_plans(plans or [Plan([each]) for each in self._faults()])
        finally:
            self._conclude()
        return self.result

    async def _run_baselines(self) -> bool:
        """Make the first runs without faults. Return True if they succeeded."""
        for number in range(BASELINES):
            if not await self._run_baseline(self._runners[0], _SLOW if number % 2 else 0.0):
                last = self.result.baselines[-1]
                self.result.broken, self.result.output = last.failure, last.output
                return False
        return True

    async def _run_plans(self, plans: Sequence[Plan]) -> None:
        self._left.extend(plans)
        self.result.total = len(plans)
        self._report(self.result)
        try:
            async with asyncio.TaskGroup() as group:
                for each in self._runners:
                    group.create_task(self._work(each))
        except ExceptionGroup as several:
            raise several.exceptions[0] from None

    def _conclude(self) -> None:
        """Complete the result, also if the search was ended before its time."""
        for tried in self.result.tried:
            self._reconsider(tried)
        self.result.unstable = self._expected.unstable
        self.result.seconds = monotonic() - self._began

    def _faults(self) -> list[PlannedFault]:
        return planned([each.seen for each in self.result.baselines], self._kinds, self._clients)

    async def _run_baseline(self, runner: Runner, delay: float = 0.0) -> bool:
        """Make a run without faults. Return True if it succeeded."""
        run = await runner.run([], None, delay=delay)
        self.result.baselines.append(run)
        if run.failure:
            return False
        self._expected.add(run.state)
        return True

    async def _work(self, runner: Runner) -> None:
        while self._left and monotonic() - self._began < self._seconds:
            plan = self._left.popleft()
            tried = await self._try(runner, plan)
            tried.after = monotonic() - self._began
            self.result.tried.append(tried)
            self._report(self.result)

    async def _try(self, runner: Runner, plan: Plan) -> Tried:
        """Run a plan, and again if it fails, with a run without faults between."""
        run = await runner.run(plan.faults, self._expected)
        if len(run.hits) < len(plan.faults) and not run.failure:
            return Tried(plan, Verdict.MISSED, run)
        if not run.failure:
            return Tried(plan, Verdict.PASSED, run)
        if not run.hits:
            self.result.flaky = run.failure
            return Tried(plan, Verdict.MISSED, run)
        if consequence(run) in self._consequences:
            return Tried(plan, Verdict.FAILED, run, 1, 1)
        if len(self.result.baselines) < _MOST_BASELINES and not await self._run_baseline(runner):
            self.result.flaky = self.result.baselines[-1].failure
        run.differences = self._expected.differences(run.state)
        tried = Tried(plan, Verdict.ONCE, run, bool(run.failure))
        for _ in range(_REPEATS):
            again = await runner.run(plan.faults, self._expected, is_patient=True)
            tried.runs += 1
            if again.failure and again.hits:
                tried.failed += 1
                tried.run, tried.verdict = again, Verdict.FAILED
                self._consequences |= {consequence(run), consequence(again)}
                break
        if not tried.failed:
            tried.verdict = Verdict.PASSED
        return tried

    def _reconsider(self, tried: Tried) -> None:
        """Drop a failure of which nothing is left, as later runs without faults have shown the same differences."""
        run = tried.run
        if tried.verdict in (Verdict.FAILED, Verdict.ONCE) and run.differences:
            run.differences = self._expected.differences(run.state)
            if not run.failure:
                tried.verdict = Verdict.PASSED
