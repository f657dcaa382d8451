"""Steps of an ended trace, made from its marks when somebody reads it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from steersman.tracing.trace import (
    ANSWERED,
    END,
    FAILED,
    MARK,
    SERVER,
    SET,
    WRITTEN,
    Attribute,
    Branch,
    OuterEvent,
    Recorder,
    StepKind,
    Trace,
    Value,
    cut,
    new_span_id,
)

Event = tuple[str, float, Mapping[str, Value]]
"""A moment within a step: its name, time and attributes."""
_ROOT: Final = StepKind("")


class Step:
    """A timed operation of a trace.

    `passed_on` is the moment at which a filter passed the request on, None for other steps: the filter's own duration
    ends then, although the step encloses all that follows. `id` is the span id.
    """

    __slots__ = ("attributes", "began", "ended", "events", "failed", "id", "kind", "parent", "passed_on", "trace")

    def __init__(
        self, trace: Trace, parent: Step | None, kind: StepKind, began: float, attributes: Mapping[str, Any]
    ) -> None:
        self.trace = trace
        self.parent = parent
        self.kind = kind
        self.began = began
        self.ended = 0.0
        self.passed_on: float | None = None
        self.attributes: dict[str, Any] = {**kind.attributes, **attributes}
        self.events: list[Event] = []
        self.failed = False
        self.id = new_span_id()

    @property
    def seconds(self) -> float:
        """The duration; of a filter its own part, without what it passed the request on to."""
        return (self.passed_on or self.ended) - self.began

    @property
    def name(self) -> str:
        """The name of the step."""
        return self.kind.name

    @property
    def scope(self) -> str:
        """The instrumentation scope."""
        return self.kind.scope

    def add_event(self, name: str, at: float, attributes: Mapping[str, Value] | None = None) -> None:
        """Add an event."""
        self.events.append((name, at, attributes or {}))


def steps_of(trace: Trace) -> list[Step]:
    """Return the steps of an ended trace in the order of their starts: the first one is the root, which has no name."""
    root = Step(trace, None, _ROOT, trace.began, {})
    root.ended = trace.ended
    found = [root]
    _read(trace, trace, root, found)
    if trace.answered is not None:
        for step in found:
            if step.kind.is_filter:
                step.attributes = {**trace.answered.of_filter(step.name), **step.attributes}
    found.sort(key=lambda each: each.began)
    return found


def _read(trace: Trace, recorder: Recorder, top: Step, found: list[Step]) -> None:
    """Append the steps of a recorder, which are below `top`, to `found`."""
    marks, opened = recorder.marks, [top]
    for operation, at, value in zip(marks[::MARK], marks[1::MARK], marks[2::MARK], strict=True):
        step = opened[-1]
        if isinstance(operation, StepKind):
            opened.append(_begun(trace, step, operation, at, value or {}))
            found.append(opened[-1])
        elif operation is END:
            if len(opened) > 1:
                _end(opened.pop(), at)
        elif isinstance(operation, Branch):
            branched = Step(trace, step, operation.kind, operation.began, operation.attributes)
            branched.id, branched.ended = operation.id, operation.ended or trace.ended
            found.append(branched)
            _read(trace, operation, branched, found)
        elif operation is ANSWERED:
            while len(opened) > 1:
                _end(opened.pop(), at)
        elif operation is SET:
            step.attributes[at] = cut(value)
        elif operation is FAILED:
            step.failed = True
            if value:
                step.attributes.setdefault("error", value)
        else:
            _note(opened, operation, at, value)
    for step in opened[1:]:
        step.ended = top.ended


def _note(opened: list[Step], operation: Any, at: float, value: Any) -> None:
    """Add the event or the attribute of a mark."""
    step = opened[-1]
    if operation is WRITTEN:
        for name in ("About to start writing response", "Write call succeeded"):
            step.add_event(name, at, {"size": value})
    elif isinstance(operation, Attribute):
        if step.name == operation.step:
            step.attributes.setdefault(operation.name, cut(value))  # the innermost union notes first
    elif isinstance(operation, OuterEvent):
        outer = (each for each in reversed(opened) if each.name == operation.step)
        next(outer, step).add_event(operation.name, at)
    else:
        step.add_event(operation, at, value)


def _begun(trace: Trace, parent: Step, kind: StepKind, at: float, attributes: Mapping[str, Any]) -> Step:
    """Return a new step, and note its start at the step around it."""
    step = Step(trace, parent, kind, at, attributes)
    if kind.stays_open and parent.kind.is_filter:
        parent.passed_on = at
    if kind.scope is SERVER:
        step.id = trace.span_id
    for name, fact in kind.derived:
        step.attributes[name] = cut(trace.facts.get(fact, ""))
    for event in kind.before:
        parent.add_event(event, at)
    return step


def _end(step: Step, at: float) -> None:
    step.ended = at
    if step.parent is not None and (step.kind.after_failure or not step.failed):
        for event in step.kind.after:
            step.parent.add_event(event, at)
