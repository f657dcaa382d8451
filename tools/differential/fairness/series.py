"""Metrics of priority and fairness, as a server reports them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from tools.differential.case import NAME
from tools.differential.server import Answer

PREFIX: Final = "apiserver_flowcontrol_"
_LINE: Final = re.compile(r"^(\w+)(?:\{([^}]*)\})? (\S+)$", re.MULTILINE)
_LABEL: Final = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_LIMITS: Final = ("nominal_limit_seats", "lower_limit_seats", "upper_limit_seats")
_ESTIMATES: Final = ("work_estimated_seats_sum", "work_estimated_seats_count", "watch_count_samples_count")
"""Upstream watches what it stores over HTTP: how many watches there are is another number."""

METRICS: Final = f"/metrics?{NAME}"
"""Path of the metrics, with the name of the case."""

Sample = tuple[str, dict[str, str], float]


def samples(text: str) -> Iterator[Sample]:
    """The series of priority and fairness: name without the prefix, labels, value."""
    for name, labels, value in _LINE.findall(text):
        if name.startswith(PREFIX):
            yield name.removeprefix(PREFIX), dict(_LABEL.findall(labels)), float(value)


def limits_alone(answer: Answer) -> Answer:
    """The limits of the levels that are always there and of those of the case: upstream tells them of levels that are
    gone too."""
    return Answer(
        answer.code,
        {
            f"{name} {level}": value
            for name, level, value in _found(answer, _LIMITS, "priority_level")
            if not level.startswith("case-") or level.startswith(_case(answer))
        },
    )


def limits_of_others(answer: Answer) -> Answer:
    """The limits of the levels that are always there."""
    found = _found(answer, _LIMITS, "priority_level")
    return Answer(
        answer.code, {f"{name} {level}": value for name, level, value in found if not level.startswith("case-")}
    )


def estimates_alone(answer: Answer) -> Answer:
    """Return the estimates for the requests of the case."""
    found = _found(answer, _ESTIMATES, "flow_schema")
    own = {f"{name} {schema}": value for name, schema, value in found if schema.startswith(_case(answer))}
    return Answer(answer.code, {key: value for key, value in own.items() if value})


def _case(answer: Answer) -> str:
    """Return the prefix of the case's names, which is in the query."""
    return answer.asked.partition("?")[2] + "-"


def _found(answer: Answer, wanted: tuple[str, ...], label: str) -> Iterator[tuple[str, str, float]]:
    for name, labels, value in samples(answer.body if isinstance(answer.body, str) else ""):
        if name in wanted:
            yield name, labels.get(label, ""), value
