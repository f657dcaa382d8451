"""Traces as plain data: one line about a request, and the tree of its steps."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from steersman.tracing.steps import Step, steps_of
from steersman.tracing.trace import SERVER, Trace, Value

_DIGITS: Final = 3
_MILLION: Final = 1_000_000


class _Second:
    """The text of the last printed second, as lines of the same second follow each other."""

    __slots__ = ("_second", "_text")

    def __init__(self) -> None:
        self._second = -1
        self._text = ""

    def print(self, unix: float) -> str:
        """Return a time (seconds since 1970) by RFC 3339, with microseconds."""
        second, microseconds = divmod(round(unix * _MILLION), _MILLION)
        if second != self._second:
            self._second, self._text = second, datetime.fromtimestamp(second, UTC).isoformat()[:19]
        return f"{self._text}.{microseconds:06d}Z"


_second: Final = _Second()


def summary(trace: Trace, *, is_open: bool = False) -> dict[str, Any]:
    """Return the facts about a request with its id, time (RFC 3339) and duration in milliseconds.

    With `is_open` it is about a watch that has just begun.
    """
    answered = trace.answered
    found: dict[str, Any] = {
        "id": "" if answered is None else answered.id,
        "time": _second.print(trace.unix),
        "milliseconds": round(max(trace.ended - trace.began, 0.0) * 1000, _DIGITS),
    }
    if answered is not None:
        found.update(answered.line(trace))
    if is_open:
        found.update(milliseconds=0.0, open=True)
    return found


def document(trace: Trace) -> dict[str, Any]:
    """Return a summary with the tree of steps.

    A step has `name`, `start` and `milliseconds` (both in milliseconds, the start since that of the request), and where
    present `attributes`, `events` and `steps`. Attributes that repeat the facts are left out. The steps within a
    filter's are beside it, as the filter has passed the request on. `dropped` is the number of steps and events that
    were not recorded.
    """
    return {**summary(trace), "dropped": trace.dropped, "steps": _children(trace)}


def _children(trace: Trace) -> list[dict[str, Any]]:
    shown: dict[Step, dict[str, Any]] = {}
    top: list[dict[str, Any]] = []
    root, *steps = steps_of(trace)
    for step in steps:
        if step.scope is SERVER:
            continue
        above = step.parent
        while above is not None and (
            above.scope is SERVER or (above.passed_on is not None and above.passed_on <= step.began)
        ):
            above = above.parent
        found = shown[step] = _shown(trace, step)
        if above is None or above is root:
            top.append(found)
        else:
            shown[above].setdefault("steps", []).append(found)
    return top


def _shown(trace: Trace, step: Step) -> dict[str, Any]:
    found: dict[str, Any] = {
        "name": step.name,
        "start": _milliseconds(step.began - trace.began),
        "milliseconds": _milliseconds(step.seconds),
    }
    if step.attributes:
        found["attributes"] = plain(step.attributes)
    if step.events:
        found["events"] = [
            {"name": name, "at": _milliseconds(at - trace.began), **_attributes(attributes)}
            for name, at, attributes in step.events
        ]
    return found


def plain(attributes: Mapping[str, Any]) -> dict[str, Value]:
    """Return attributes as plain values; other values are printed."""
    return {name: each if isinstance(each, str | int | float) else str(each) for name, each in attributes.items()}


def _attributes(attributes: Mapping[str, Any]) -> dict[str, Any]:
    return {"attributes": dict(attributes)} if attributes else {}


def _milliseconds(seconds: float) -> float:
    return round(seconds * 1000, _DIGITS)
