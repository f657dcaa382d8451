"""Verdicts of a search, with runs whose results are given."""

from __future__ import annotations

import asyncio
import errno
import json
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from steersman.stress import outputs
from steersman.stress.campaign import Campaign, Result, Verdict
from steersman.stress.point import Kind, Plan, PlannedFault, Point, read_plan
from steersman.stress.run import Run
from steersman.stress.state import Expectation, ObjectName, State
from steersman.stress.tap import Seen

NAME = ObjectName("ConfigMap", "default", "a")
POINTS = [Point("c", "create", "configmaps", "default", name) for name in ("a", "b", "c")]


def state(value: object) -> State:
    return {NAME: [{"data": value}]}


class Scripted:
    """Runner whose runs end in states that a function of the fault and of the number of the run decides."""

    def __init__(self, end: Callable[[PlannedFault | None, int], object]) -> None:
        self._end = end
        self.runs: list[PlannedFault | None] = []
        self.delays: list[float] = []

    async def run(
        self,
        faults: list[PlannedFault],
        expected: Expectation | None,
        *,
        delay: float = 0.0,
        is_patient: bool = False,
    ) -> Run:
        fault = faults[0] if faults else None
        number = self.runs.count(fault)
        self.runs.append(fault)
        self.delays.append(delay)
        end = self._end(fault, number)
        if isinstance(end, Run):
            return end
        run = Run([Seen(each, 201) for each in POINTS], list(faults), state=state(end))
        run.differences = [] if expected is None else expected.differences(run.state)
        return run


async def searched(end: Callable[[PlannedFault | None, int], object], seconds: float = 60.0) -> tuple[Result, Scripted]:
    runner = Scripted(end)
    return await Campaign([runner], seconds=seconds, kinds=[Kind.LOST]).search(), runner


async def test_a_fault_after_which_the_state_differs_twice_is_found() -> None:
    result, runner = await searched(lambda fault, _: 2 if fault is not None and fault.at.name == "b" else 1)
    (found,) = result.findings
    assert str(found.plan) == "lost at create configmaps default/b"
    assert (found.failed, found.runs, found.how_often) == (2, 2, "always")
    assert found.run.failure == "the end state differs: ConfigMap default/a: data: 2, was 1"
    assert [each.verdict for each in result.tried] == [Verdict.PASSED, Verdict.FAILED, Verdict.PASSED]
    assert runner.delays[0] == 0.0 < runner.delays[1]  # the second run is slowed down


async def test_a_failure_that_does_not_come_again_is_no_finding() -> None:
    result, _ = await searched(lambda fault, number: 2 if fault is not None and number == 0 else 1)
    assert result.findings == []
    assert {each.verdict for each in result.tried} == {Verdict.ONCE}
    assert any(line.startswith("failed once, and not again: lost at") for line in outputs.text_lines(result, {}))


async def test_a_difference_that_a_later_run_without_faults_has_too_does_not_count() -> None:
    result, _ = await searched(lambda fault, number: 2 if fault is not None or number > 1 else 1)
    assert result.findings == []
    assert result.unstable == ["ConfigMap default/a: data"]


async def test_findings_with_the_same_consequence_are_one_and_are_not_repeated() -> None:
    result, runner = await searched(lambda fault, _: 1 if fault is None else 2)
    assert [len(each) for each in result.groups] == [3]
    assert [runner.runs.count(each.plan.faults[0]) for each in result.tried] == [2, 1, 1]


async def test_a_search_ends_if_a_run_without_faults_fails() -> None:
    result, runner = await searched(lambda *_: Run(exit_code=3, output="no cluster"))
    assert result.broken == "the test failed with exit code 3"
    assert len(runner.runs) == 1
    assert list(outputs.text_lines(result, {})) == [
        "without any fault: the test failed with exit code 3",
        "   | no cluster",
    ]


async def test_a_point_that_is_not_reached_counts_as_missed() -> None:
    def end(fault: PlannedFault | None, _: int) -> object:
        return 1 if fault is None else Run(state=state(1))

    result, _ = await searched(end)
    assert {each.verdict for each in result.tried} == {Verdict.MISSED}
    assert result.reason_without_verdict == "no fault was reached, as each run has other requests"


async def test_a_failure_before_the_fault_is_no_success() -> None:
    def end(fault: PlannedFault | None, _: int) -> object:
        is_early = fault is not None and fault.at.name == "b"
        return Run([Seen(each, 201) for each in POINTS], exit_code=1) if is_early else 1

    result, _ = await searched(end)
    assert result.findings == []
    expected = "a run without faults failed, too: the test failed with exit code 1"
    assert result.reason_without_verdict == expected
    assert list(outputs.text_lines(result, {}))[-1] == f"no verdict: {expected}"


async def test_no_run_begins_after_the_time() -> None:
    result, runner = await searched(lambda *_: 1, seconds=0.0)
    assert result.tried == []
    assert result.total == 3
    assert runner.runs == [None, None]
    assert result.reason_without_verdict == "the time was up before the first fault, see --time"


async def test_a_search_that_says_nothing_is_no_success() -> None:
    passed, _ = await searched(lambda *_: 1)
    assert passed.reason_without_verdict == ""
    unseen, _ = await searched(lambda *_: Run())
    assert unseen.reason_without_verdict.startswith("no requests were seen")
    unfit, _ = await searched(lambda *_: Run([Seen(Point("c", "get", "pods"))]))
    assert unfit.reason_without_verdict == "no point for these faults; the requests came from c"
    old, new = (Plan([PlannedFault(Kind.LOST, point)]) for point in POINTS[:2])
    runner = Scripted(lambda fault, _: Run(state=state(1)) if fault == old.faults[0] else 1)
    missed = await Campaign([runner], seconds=60.0).search([old, new])
    assert [each.verdict for each in missed.tried] == [Verdict.MISSED, Verdict.PASSED]
    expected = f"a given plan was not reached, as the operator sends other requests: {old}"
    assert missed.reason_without_verdict == expected
    for each in (unseen, unfit, missed):
        (failure,) = ElementTree.fromstring(outputs.as_junit(each)).iter("failure")
        assert failure.get("message") == each.reason_without_verdict


class Stopping(Scripted):
    """Runner whose last run does not end."""

    def __init__(self) -> None:
        super().__init__(lambda fault, _: 1 if fault is None else 2)
        self.is_last = asyncio.Event()

    async def run(
        self,
        faults: list[PlannedFault],
        expected: Expectation | None,
        *,
        delay: float = 0.0,
        is_patient: bool = False,
    ) -> Run:
        if faults and faults[0].at == POINTS[-1]:
            self.is_last.set()
            await asyncio.Event().wait()
        return await super().run(faults, expected, delay=delay, is_patient=is_patient)


async def test_what_was_found_before_an_interrupt_is_reported() -> None:
    result, runner = Result(), Stopping()
    search = asyncio.create_task(Campaign([runner], seconds=60.0, kinds=[Kind.LOST], result=result).search())
    await runner.is_last.wait()
    search.cancel()
    with pytest.raises(asyncio.CancelledError):
        await search
    result.interruption = "the search was interrupted"
    assert len(result.findings) == 2
    *_, summary, verdict = outputs.text_lines(result, {})
    assert summary.endswith("1 left when the search ended early")
    assert verdict == "no verdict: the search was interrupted"


class Failing(Scripted):
    """Runner that has no space for the first run with a fault."""

    async def run(
        self,
        faults: list[PlannedFault],
        expected: Expectation | None,
        *,
        delay: float = 0.0,
        is_patient: bool = False,
    ) -> Run:
        if faults:
            raise OSError(errno.ENOSPC, "No space left on device")
        return await super().run(faults, expected, delay=delay, is_patient=is_patient)


async def test_a_run_that_cannot_be_made_ends_the_search_with_its_error() -> None:
    runners = [Failing(lambda *_: 1), Failing(lambda *_: 1)]
    with pytest.raises(OSError, match="No space left on device"):
        await Campaign(runners, seconds=60.0, kinds=[Kind.LOST]).search()


async def test_texts_of_objects_stay_in_their_place_in_all_outputs(tmp_path: Path) -> None:
    hostile = "a\r\n\x85faults: []\x00\ufffe<failure/>\x1b[2J"
    result, _ = await searched(lambda fault, _: Run(problem=hostile, hits=[fault]) if fault is not None else 1)
    assert len(result.findings) == 3
    root = ElementTree.fromstring(outputs.as_junit(result))
    assert len(list(root.iter("failure"))) == 3
    files: dict[int, Path] = {}
    outputs.write_plans(result, tmp_path, files)
    assert read_plan(files[0]) == result.groups[0][0].plan
    assert len(files[0].read_text().split("\n")) == len(result.groups[0][0].plan.encoded().decode().split("\n")) + 1


@pytest.mark.parametrize(
    ("run", "failure"),
    [
        (Run(), ""),
        (Run(exit_code=None), "the test did not end in time"),
        (Run(problem="the operator sends no requests"), "the operator sends no requests"),
        (Run(restless=["pods/a", "pods/b"]), "it never came to rest: pods/a, pods/b written again and again"),
    ],
)
def test_a_failure_has_one_line(run: Run, failure: str) -> None:
    assert run.failure == failure


async def test_outputs_for_programs_have_the_findings() -> None:
    result, _ = await searched(lambda fault, _: 2 if fault is not None and fault.at.name == "b" else 1)
    plain = json.loads(outputs.as_json(result))
    assert plain["kinds"] == {"lost": {"tried": 3, "failed": 1, "missed": 0}}
    assert plain["findings"][0][0]["plan"]["faults"][0]["at"]["name"] == "b"
    root = ElementTree.fromstring(outputs.as_junit(result))
    assert (root.get("tests"), root.get("failures")) == ("4", "1")
    (failure,) = root.iter("failure")
    assert failure.get("message") == "the end state differs: ConfigMap default/a: data: 2, was 1"
    assert "kind: lost" in (failure.text or "")
