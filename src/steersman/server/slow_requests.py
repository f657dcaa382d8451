"""Log lines about slow requests, as k8s.io/utils/trace prints them: at level INFO, which is -v=2."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from random import getrandbits
from typing import Any, Final

from steersman.machinery.errors.field import quote
from steersman.machinery.values.durations import format_duration
from steersman.tracing.readers import Readers
from steersman.tracing.steps import Step, steps_of
from steersman.tracing.trace import COMPONENT, Trace

logger = logging.getLogger("steersman.trace")

THRESHOLD: Final = 0.5
"""Seconds from which a step is logged."""
_THRESHOLDS: Final = {"SerializeObject": 5.0}
_CONVERSION: Final = "Call conversion webhook"
_CONVERSION_SECONDS: Final = 0.05
_SECONDS_OF_OBJECT: Final = 0.008
"""Threshold of a conversion: a constant, and a part for each object."""
_OWN_ATTRIBUTES: Final = frozenset({"revision", "verdict", "changed", "error"})


class SlowRequests:
    """The reader of traces that logs slow requests. It is registered only while the log's level shows its lines."""

    least_seconds = _CONVERSION_SECONDS
    wants_all = True
    reads_spans = True
    reads_changes = False

    def __init__(self, readers: Readers) -> None:
        self._readers = readers
        self._remove: Callable[[], None] | None = None
        self.follow_level()

    def follow_level(self) -> None:
        """Register or remove the reader after a change of the log's level."""
        shows = logger.isEnabledFor(logging.INFO)
        if shows and self._remove is None:
            self._remove = self._readers.add(self)
        elif not shows and self._remove is not None:
            self._remove()
            self._remove = None

    def wants(self, trace: Trace) -> bool:
        """Return True: the duration is known only at the end."""
        return True

    def opened(self, trace: Trace) -> None:
        """Do nothing: a watch is not slow as it stays open."""

    def ended(self, trace: Trace) -> None:
        """Log the outermost slow steps of a request."""
        below: dict[Step, list[Step]] = {}
        root, *steps = steps_of(trace)
        for step in steps:
            if step.scope is COMPONENT:
                below.setdefault(_parent(step, root), []).append(step)
        for step in _outermost_slow(below, root):
            for line in _text(below, step).split("\n")[:-1]:
                logger.info("%s", line)


def _parent(step: Step, root: Step) -> Step:
    """Return the nearest enclosing step that is logged, else the root."""
    above = step.parent
    while above is not None and above.scope is not COMPONENT:
        above = above.parent
    return above or root


def _outermost_slow(below: Mapping[Step, list[Step]], step: Step) -> Iterator[Step]:
    for each in below.get(step, ()):
        if _is_slow(each):
            yield each
        else:
            yield from _outermost_slow(below, each)


def _is_slow(step: Step) -> bool:
    return step.seconds >= _threshold(step)


def _threshold(step: Step) -> float:
    if step.name == _CONVERSION:
        return _CONVERSION_SECONDS + _SECONDS_OF_OBJECT * int(step.attributes.get("object-count", 0))
    return _THRESHOLDS.get(step.name, THRESHOLD)


def _text(below: Mapping[Step, list[Step]], step: Step) -> str:
    """Return the lines of a step that is logged by itself (`Trace.logTrace`)."""
    number = getrandbits(31)
    total = format_duration(int(step.seconds * 1e9))
    began = _moment(step, step.began).strftime("%d-%b-%Y %H:%M:%S.%f")[:-3]
    head = f"Trace[{number}]: {quote(step.name)} {_fields(_attributes(step))}({began}) "
    lines = "".join(_rows(below, step, f"\nTrace[{number}]: ", _share(below, step)))
    return f"{head}(total time: {int(step.seconds * 1000)}ms):{lines}\nTrace[{number}]: [{total}] [{total}] END\n"


def _rows(below: Mapping[Step, list[Step]], step: Step, prefix: str, share: float) -> Iterator[str]:
    """Yield the lines of the events and steps within a step that took at least `share` seconds."""
    inside: list[tuple[float, Any]] = [(each.began, each) for each in below.get(step, ())]
    inside += [(at, (name, at, attributes)) for name, at, attributes in step.events]
    inside.sort(key=lambda each: each[0])
    last, shows_all = step.began, logger.isEnabledFor(logging.DEBUG)
    for _, each in inside:
        if isinstance(each, Step):
            yield from _nested(below, each, prefix, share)
            last = each.ended
            continue
        name, at, attributes = each
        if at - last >= share or shows_all:
            yield f"{prefix}---{_summary(step, name, attributes, at - last, at)}"
        last = at


def _nested(below: Mapping[Step, list[Step]], step: Step, prefix: str, share: float) -> Iterator[str]:
    if _is_slow(step) or logger.isEnabledFor(logging.DEBUG):
        yield f"{prefix}[{_summary(step, step.name, _attributes(step), step.seconds, step.began)}"
        yield from _rows(below, step, f"{prefix} ", _share(below, step))
        yield "]"
        return
    for each in below.get(step, ()):
        yield from _nested(below, each, prefix, share)


def _share(below: Mapping[Step, list[Step]], step: Step) -> float:
    """Return the seconds from which an event of a step is logged (`calculateStepThreshold`)."""
    threshold, nested = _threshold(step), below.get(step, ())
    count = len(nested) + len(step.events) + 1
    rest = threshold - sum(map(_threshold, nested))
    if rest < threshold / 4:
        return threshold / 4 / count
    return rest / (count - len(nested))


def _summary(step: Step, name: str, attributes: Mapping[str, Any], seconds: float, at: float) -> str:
    moment = _moment(step, at).strftime("%H:%M:%S.%f")[:-3]
    return f"{quote(name)} {_fields(attributes)}{int(seconds * 1000)}ms ({moment})"


def _attributes(step: Step) -> dict[str, Any]:
    """Return the attributes of a step as kube-apiserver has them."""
    facts = step.trace.facts
    own = {name: value for name, value in step.attributes.items() if name not in _OWN_ATTRIBUTES}
    return {**{name: facts.get(fact, "") for name, fact in step.kind.shared}, **own}


def _fields(attributes: Mapping[str, Any]) -> str:
    text = ",".join(f"{name}:{value}" for name, value in attributes.items())
    return f"{text} " if text else ""


def _moment(step: Step, at: float) -> datetime:
    return datetime.fromtimestamp(step.trace.unix + at - step.trace.began)
