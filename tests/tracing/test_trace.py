"""Steps of a trace: nesting, bounds, and what is not recorded."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from steersman.machinery.errors.status import bad_request
from steersman.tracing.documents import document
from steersman.tracing.readers import Readers
from steersman.tracing.steps import Step, steps_of
from steersman.tracing.trace import (
    COMPONENT,
    MAX_BRANCHES,
    MAX_MARKS,
    MAX_TEXT,
    OuterEvent,
    StepKind,
    Trace,
    add_event,
    branch,
    current_recorder,
    in_step,
    record,
    step,
    stop_recording,
)
from tests.tracing.answers import Answer


class Kept:
    """A reader that keeps the traces it wants."""

    least_seconds = 0.0
    wants_all = False
    reads_spans = False
    reads_changes = False

    def __init__(self, *, wanting: bool = True) -> None:
        self.traces: list[Trace] = []
        self._wanting = wanting

    def wants(self, trace: Trace) -> bool:
        return self._wanting

    def opened(self, trace: Trace) -> None:
        """Read nothing."""

    def ended(self, trace: Trace) -> None:
        self.traces.append(trace)


def begun() -> Trace:
    readers = Readers()
    readers.add(Kept())
    trace = readers.begin({})
    assert trace is not None
    return trace


@contextmanager
def recorded() -> Iterator[Trace]:
    """Record a trace, and end it."""
    trace = begun()
    token = record(trace)
    try:
        yield trace
    finally:
        stop_recording(token)
        trace.ended = time.monotonic()


def named(trace: Trace, name: str) -> Step:
    """Return the first step of this name."""
    return next(each for each in steps_of(trace) if each.name == name)


def names(steps: list[dict[str, object]]) -> list[object]:
    return [(each["name"], names(each["steps"])) if "steps" in each else each["name"] for each in steps]  # type: ignore[arg-type]


def test_without_a_trace_nothing_is_recorded() -> None:
    with step("a", size=1) as opened:
        add_event("an event", size=2)
        assert opened is None
        assert current_recorder() is None


def test_steps_nest_as_they_are_opened() -> None:
    with recorded() as trace:
        with trace.begin(StepKind("a")):
            with trace.begin(StepKind("b", COMPONENT), {"size": 3}):
                add_event("read", size=3)
            with step("c"):
                pass
        with step("d"):
            pass
    found = document(trace)
    assert names(found["steps"]) == [("a", ["b", "c"]), "d"]
    assert named(trace, "b").scope == COMPONENT
    assert found["steps"][0]["steps"][0]["attributes"] == {"size": 3}
    (event,) = found["steps"][0]["steps"][0]["events"]
    assert (event["name"], event["attributes"]) == ("read", {"size": 3})
    assert current_recorder() is None


def test_what_a_filter_has_passed_on_to_is_beside_it_and_not_in_its_duration() -> None:
    kinds = [StepKind(name, stays_open=True, is_filter=True) for name in ("first", "second", "not reached")]
    with recorded() as trace:
        trace.filters = tuple((each,) for each in kinds)
        trace.answered = Answer({})
        trace.entered.append(time.monotonic())
        with trace.begin(StepKind("inner")):
            pass
    found = document(trace)["steps"]
    assert names(found) == ["first", ("second", ["inner"])]
    assert found[0]["attributes"] == {"filter": "first"}
    first, second = named(trace, "first"), named(trace, "second")
    assert first.seconds == second.began - first.began
    assert first.ended == second.ended <= trace.ended


async def test_steps_of_concurrent_tasks_are_below_the_step_that_started_them() -> None:
    async def call(name: str) -> None:
        with step(name):
            await asyncio.sleep(0)
            recorder = current_recorder()
            assert recorder is not None
            with recorder.begin(StepKind(f"{name} inner")):
                await asyncio.sleep(0)

    with recorded() as trace, trace.begin(StepKind("both")):
        await asyncio.gather(call("x"), call("y"))
    assert names(document(trace)["steps"]) == [("both", [("x", ["x inner"]), ("y", ["y inner"])])]


async def test_awaited_work_runs_in_its_step() -> None:
    async def work() -> str:
        add_event("at work")
        return "done"

    assert await in_step(StepKind("untraced"), work()) == "done"
    with recorded() as trace:
        assert await in_step(StepKind("own"), work()) == "done"
        with branch(StepKind("theirs"), {"key": "k"}):
            assert await work() == "done"
    found = document(trace)["steps"]
    assert [(each["name"], each["events"][0]["name"]) for each in found] == [("own", "at work"), ("theirs", "at work")]


def test_events_next_to_a_step_belong_to_the_step_around_it() -> None:
    told = StepKind("told", before=("before",), after=("after",))
    always = StepKind("always", after=("ended",), after_failure=True)
    with recorded() as trace, trace.begin(StepKind("outer")):
        with trace.begin(told):
            trace.add_outer_event(OuterEvent("from within", "outer"))
        for kind in (told, always):
            with contextlib.suppress(ValueError), trace.begin(kind):
                raise ValueError
    assert [each[0] for each in named(trace, "outer").events] == ["before", "from within", "after", "before", "ended"]


def test_an_error_is_noted_at_the_innermost_step_without_its_text() -> None:
    with (
        pytest.raises(Exception, match="secret"),
        recorded() as trace,
        trace.begin(StepKind("outer")),
        step("inner"),
    ):
        raise bad_request("a secret")
    assert named(trace, "inner").attributes == {"error": "BadRequest"}
    assert named(trace, "outer").attributes == {}
    assert named(trace, "outer").failed


def test_marks_branches_and_texts_are_bounded() -> None:
    with recorded() as trace, trace.begin(StepKind("all")):
        trace.set("long", "x" * 10_000)
        for _ in range(MAX_BRANCHES + 5):
            with step("a"):
                pass
        for _ in range(MAX_MARKS):
            with trace.begin(StepKind("b")):
                pass
    assert trace.size <= MAX_MARKS
    found = steps_of(trace)
    assert sum(each.name == "a" for each in found) == MAX_BRANCHES
    assert trace.dropped == 5 + MAX_MARKS - sum(each.name == "b" for each in found)
    assert len(str(named(trace, "all").attributes["long"])) == MAX_TEXT + 3
    assert all(trace.began <= each.began <= each.ended <= trace.ended for each in found)


def test_a_trace_is_made_only_if_a_reader_wants_it() -> None:
    readers = Readers()
    assert readers.begin({}) is None
    readers.add(Kept(wanting=False))
    assert readers.begin({}) is None
    wanting = Kept()
    remove = readers.add(wanting)
    trace = readers.begin({})
    assert trace is not None
    trace.ended = time.monotonic()
    readers.end(trace)
    assert wanting.traces == [trace]
    remove()
    remove()
    assert readers.begin({}) is None


def test_the_failure_of_a_reader_reaches_no_other_reader(caplog: pytest.LogCaptureFixture) -> None:
    class Failing(Kept):
        def ended(self, trace: Trace) -> None:
            raise ValueError("broken")

    readers, kept = Readers(), Kept()
    readers.add(Failing())
    readers.add(kept)
    trace = readers.begin({})
    assert trace is not None
    trace.ended = time.monotonic()
    readers.end(trace)
    assert kept.traces == [trace]
    assert "a reader of traces failed" in caplog.text


def test_the_trace_context_of_a_client_is_kept_without_readers() -> None:
    trace = Readers().begin({"traceparent": f"00-{5:032x}-{6:016x}-01"})
    assert trace is not None
    assert trace.propagated is not None
    assert (trace.propagated.trace_id, trace.propagated.span_id) == (5, 6)
