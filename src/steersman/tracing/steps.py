"""Steps of an ended trace, made from its marks when somebody reads it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from steersman.tracing.trace import (
    END,
    FAILED,
    MARK,
    SERVER,
    SET,
    Branch,
    Chosen,
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
_HANDLER: Final = StepKind("handler", stays_open=True)


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
    root.ended = trace.answered_at or trace.ended
    steps = [root]
    _read(trace, trace, root, steps, _waiting(trace))
    steps.sort(key=lambda each: each.began)
    root.ended = trace.ended
    return steps


def _waiting(trace: Trace) -> list[tuple[float, StepKind]]:
    """Return the starts of the filters and the handler, the last one first."""
    if not trace.filters:
        return []
    handler = _HANDLER if trace.answered is None else trace.answered.handler
    waiting: list[tuple[float, StepKind]] = []
    for kinds, at in zip((*trace.filters, (handler,)), trace.entered, strict=False):
        if kinds[0].name == "audit" and trace.span is not None:
            waiting.append((at, trace.span))
        waiting += [(at, kind) for kind in kinds]
    return waiting[::-1]


def _read(
    trace: Trace, recorder: Recorder, top: Step, found: list[Step], waiting: list[tuple[float, StepKind]]
) -> None:
    """Append the steps of a recorder, which are below `top`, to `found`."""
    marks, opened = recorder.marks, [top]

    def open_until(at: float) -> None:
        while waiting and waiting[-1][0] <= at:
            began, kind = waiting.pop()
            opened.append(_begun(trace, opened[-1], kind, began, {}))
            found.append(opened[-1])

    for operation, at, value in zip(marks[::MARK], marks[1::MARK], marks[2::MARK], strict=True):
        if waiting and isinstance(at, float):
            open_until(at)
        step = opened[-1]
        if isinstance(operation, StepKind):
            if operation.follows:
                _end(opened.pop(), at)
            attributes = {operation.argument: value} if operation.argument else value or {}
            opened.append(_begun(trace, opened[-1], operation, at, attributes))
            found.append(opened[-1])
        elif operation is END:
            if not step.kind.stays_open and step is not top:
                _end(opened.pop(), at)
        elif isinstance(operation, Branch):
            branched = Step(trace, step, operation.kind, operation.began, operation.attributes)
            branched.id, branched.ended = operation.id, operation.ended or trace.ended
            found.append(branched)
            _read(trace, operation, branched, found, [])
        elif operation is SET:
            step.attributes[at] = cut(value)
        elif operation is FAILED:
            step.failed = True
            if value:
                step.attributes.setdefault("error", value)
        elif isinstance(operation, Chosen):
            for began, kind in waiting:  # the mark has no time, and belongs to a filter that no other mark has opened
                if kind.name == operation.step:
                    open_until(began)
                    break
            step = opened[-1]
            if step.name == operation.step:  # the innermost union notes first
                step.attributes.setdefault(operation.attribute, getattr(at, "name", type(at).__name__))
        elif isinstance(operation, OuterEvent):
            outer = (each for each in reversed(opened) if each.name == operation.step)
            next(outer, step).add_event(operation.name, at)
        else:
            step.add_event(operation, at, value)
    open_until(top.ended)
    while len(opened) > 1:
        _end(opened.pop(), top.ended)


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
    for event in kind.first:
        step.add_event(event, at)
    return step


def _end(step: Step, at: float) -> None:
    kind = step.kind
    step.ended = at
    if kind.is_filter and step.trace.answered is not None:
        step.attributes = {**step.trace.answered.of_filter(step.trace, kind.name), **step.attributes}
    if kind.encodes and not step.failed and step.trace.answered is not None and not step.trace.answered_at:
        for event in ("About to start writing response", "Write call succeeded"):
            step.add_event(event, at, {"size": step.trace.answered.size or 0})
    if step.parent is not None and (kind.after_failure or not step.failed):
        for event in kind.after:
            step.parent.add_event(event, at)
