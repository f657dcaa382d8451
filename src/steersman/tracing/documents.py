"""Traces as plain data: one line about a request, and the tree of its steps."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from steersman.tracing.trace import SERVER, Step, Trace, Value

_DIGITS: Final = 3
_NOT_SHOWN: Final = frozenset({"accept", "host", "metricsVerb", "pathName", "scheme", "scope", "sourcePort", "target"})
"""Facts that only spans need."""


def summary(trace: Trace) -> dict[str, Any]:
    """Return the facts about a request with its id, time (RFC 3339) and duration in milliseconds."""
    return {
        "id": trace.id,
        "time": datetime.fromtimestamp(trace.unix, UTC).isoformat(timespec="microseconds")[:26] + "Z",
        "milliseconds": _milliseconds(trace.seconds),
        **{name: fact for name, fact in trace.facts.items() if name not in _NOT_SHOWN},
    }


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
    for step in trace.steps[1:]:
        if step.scope is SERVER:
            continue
        above = step.parent
        while above is not None and (
            above.scope is SERVER or (above.passed_on is not None and above.passed_on <= step.began)
        ):
            above = above.parent
        found = shown[step] = _shown(trace, step)
        if above is None or above is trace.root:
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
