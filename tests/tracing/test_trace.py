"""Steps of a trace: nesting, bounds, and what is not recorded."""

from __future__ import annotations

import asyncio

import pytest

from steersman.machinery.errors.status import bad_request
from steersman.tracing.documents import document
from steersman.tracing.readers import Readers
from steersman.tracing.trace import (
    COMPONENT,
    MAX_EVENTS,
    MAX_STEPS,
    MAX_TEXT,
    Trace,
    add_event,
    current_step,
    in_step,
    span,
    step,
    within,
)


class Kept:
    """A reader that keeps the traces it wants."""

    least_seconds = 0.0
    reads_filters = True

    def __init__(self, *, wanting: bool = True) -> None:
        self.traces: list[Trace] = []
        self._wanting = wanting

    def wants(self, trace: Trace) -> bool:
        return self._wanting

    def ended(self, trace: Trace) -> None:
        self.traces.append(trace)


def begun(name: str = "GET") -> Trace:
    readers = Readers()
    readers.add(Kept())
    trace = readers.begin(name, {})
    assert trace is not None
    return trace


def names(steps: list[dict[str, object]]) -> list[object]:
    return [(each["name"], names(each["steps"])) if "steps" in each else each["name"] for each in steps]  # type: ignore[arg-type]


def test_without_a_trace_nothing_is_recorded() -> None:
    with step("a", size=1) as opened:
        add_event("an event", size=2)
        assert opened is None
        assert current_step() is None


def test_steps_nest_as_they_are_opened() -> None:
    trace = begun()
    with trace.root:
        with step("a"):
            with span("b", size=3) as inner:
                add_event("read", size=3)
            with step("c"):
                pass
        with step("d"):
            pass
    trace.end()
    found = document(trace)
    assert names(found["steps"]) == [("a", ["b", "c"]), "d"]
    assert inner is not None
    assert inner.scope == COMPONENT
    assert found["steps"][0]["steps"][0]["attributes"] == {"size": 3}
    (event,) = found["steps"][0]["steps"][0]["events"]
    assert (event["name"], event["attributes"]) == ("read", {"size": 3})
    assert current_step() is None


def test_what_a_filter_has_passed_on_to_is_beside_it_and_not_in_its_duration() -> None:
    trace = begun()
    with trace.root, step("filter") as outer:
        assert outer is not None
        outer.passed_on = outer.began
        with step("handler"):
            pass
    trace.end()
    found = document(trace)
    assert names(found["steps"]) == ["filter", "handler"]
    assert found["steps"][0]["milliseconds"] == 0


async def test_steps_of_concurrent_tasks_are_below_the_step_that_started_them() -> None:
    async def call(name: str) -> None:
        with step(name):
            await asyncio.sleep(0)
            with step(f"{name} inner"):
                await asyncio.sleep(0)

    trace = begun()
    with trace.root, step("both"):
        await asyncio.gather(call("x"), call("y"))
    trace.end()
    assert names(document(trace)["steps"]) == [("both", [("x", ["x inner"]), ("y", ["y inner"])])]


async def test_awaited_work_runs_in_its_step() -> None:
    async def work() -> str:
        add_event("at work")
        return "done"

    assert await in_step("untraced", work()) == "done"
    trace = begun()
    with trace.root:
        assert await in_step("own", work()) == "done"
        assert await within(work(), "theirs", key="k") == "done"
    found = document(trace)["steps"]
    assert [(each["name"], each["events"][0]["name"]) for each in found] == [("own", "at work"), ("theirs", "at work")]


def test_an_error_is_noted_at_the_innermost_step_without_its_text() -> None:
    trace = begun()
    with pytest.raises(Exception, match="secret"), trace.root, step("outer"), step("inner"):
        raise bad_request("a secret")
    outer, inner = trace.steps[1:]
    assert inner.attributes == {"error": "BadRequest"}
    assert outer.attributes == {}


def test_steps_events_and_texts_are_bounded() -> None:
    trace = begun()
    with trace.root:
        for _ in range(MAX_STEPS + 5):
            with step("a"):
                pass
        for _ in range(MAX_EVENTS + 7):
            add_event("an event")
        trace.root.set("long", "x" * 10_000)
    assert len(trace.steps) == MAX_STEPS
    assert len(trace.root.events or ()) == MAX_EVENTS
    assert trace.dropped == 6 + 7
    assert len(str(trace.root.attributes["long"])) == MAX_TEXT + 3


def test_a_trace_is_made_only_if_a_reader_wants_it() -> None:
    readers = Readers()
    assert readers.begin("GET", {}) is None
    readers.add(Kept(wanting=False))
    assert readers.begin("GET", {}) is None
    wanting = Kept()
    remove = readers.add(wanting)
    trace = readers.begin("GET", {})
    assert trace is not None
    readers.end(trace)
    assert wanting.traces == [trace]
    remove()
    remove()
    assert readers.begin("GET", {}) is None


def test_the_failure_of_a_reader_reaches_no_other_reader(caplog: pytest.LogCaptureFixture) -> None:
    class Failing(Kept):
        def ended(self, trace: Trace) -> None:
            raise ValueError("broken")

    readers, kept = Readers(), Kept()
    readers.add(Failing())
    readers.add(kept)
    trace = readers.begin("GET", {})
    assert trace is not None
    readers.end(trace)
    assert kept.traces == [trace]
    assert "a reader of traces failed" in caplog.text


def test_the_trace_context_of_a_client_is_kept_without_readers_and_without_steps() -> None:
    trace = Readers().begin("GET", {"traceparent": f"00-{5:032x}-{6:016x}-01"})
    assert trace is not None
    with trace.root, step("a") as opened:
        assert opened is None
        assert current_step() is trace.root
    assert trace.propagated is not None
    assert (trace.propagated.trace_id, trace.propagated.span_id) == (5, 6)
