"""Explanations as text for people."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from steersman.cli.placement_tables import REASONS, decision_lines, placement_lines
from steersman.cli.terminal_text import coloured, printable, wrapped
from steersman.cli.up.screen import GREEN, RED, YELLOW
from steersman.explain.finding import Evidence, Explanation, Finding, Reference, Severity, Suggestion
from steersman.explain.overview import Overview
from steersman.explain.pods.decisions import LAST_DECISIONS

_COLOURS: Final = {Severity.ERROR: RED, Severity.WARNING: YELLOW, Severity.UNKNOWN: YELLOW, Severity.NOTE: ""}
_FEW: Final = 2
"""Pieces of evidence that are shown without `-o wide`."""
_MOST_FINDINGS: Final = 50
"""Findings that are shown without `-o wide`."""
_MOST_CAUSES: Final = 10
"""Causes of a finding that are shown without `-o wide`."""
_TITLE: Final = 9
"""Columns of the titles of lines."""
_LONGEST_VALUE: Final = 300
_LONGEST_COMMAND: Final = 4_000
_MOST_LINES: Final = 40
"""Lines of an overview without `-o wide`."""
_WIDEST_NAME: Final = 50


def explanation_lines(found: Explanation, *, wide: bool = False) -> Iterator[str]:
    """Yield the lines of an explanation; with `wide` all evidence, and the paths of fields."""
    subject = found.subject
    namespace = f" in {printable(subject.namespace)}" if subject.namespace else ""
    if subject.kind == "SubjectAccessReview":
        yield printable(found.summary)
    else:
        yield f"{printable(subject)}{namespace}: {printable(found.summary)}"
    if not found.findings:
        yield coloured("nothing is wrong with it as far as the API shows", GREEN)
    shown = found.findings if wide else found.findings[:_MOST_FINDINGS]
    for each in shown:
        yield ""
        yield from _finding_lines(each, "", wide=wide)
    if len(shown) < len(found.findings):
        yield ""
        yield f"and {len(found.findings) - len(shown)} more findings (-o wide)"


def overview_lines(found: Overview, *, wide: bool = False) -> Iterator[str]:
    """Yield one line for each unhealthy object, up to a number of lines unless `wide`."""
    shown = found.items if wide else found.items[:_MOST_LINES]
    names = [_place(each.subject) for each in shown]
    width = min(max(map(len, names), default=0), _WIDEST_NAME)
    for each, name in zip(shown, names, strict=True):
        severity = coloured(f"{each.severity.value:<{_TITLE}}", _COLOURS[each.severity])
        yield f"{severity}{name:<{width}}  {printable(each.message, _LONGEST_VALUE)}"
    if len(shown) < len(found.items):
        yield f"and {len(found.items) - len(shown)} more (-o wide)"
    if shown:
        yield f"look closer: {printable(shown[0].command, _LONGEST_COMMAND)}"
    elif not found.unread:
        yield coloured("nothing is unhealthy as far as the API shows", GREEN)
    for problem in found.unread:
        yield f"{'unknown':<{_TITLE}}{printable(problem)}"


def _place(subject: Reference) -> str:
    namespace = f" -n {printable(subject.namespace)}" if subject.namespace else ""
    return f"{printable(subject)}{namespace}"


def _finding_lines(found: Finding, indent: str, *, wide: bool) -> Iterator[str]:
    lines = wrapped(printable(found.message), f"{indent}{found.severity.value:<{_TITLE}}", indent + " " * _TITLE)
    yield lines[0].replace(found.severity.value, coloured(found.severity.value, _COLOURS[found.severity]), 1)
    yield from lines[1:]
    inner = indent + " " * _TITLE
    shown = found.evidence if wide else found.evidence[:_FEW]
    for evidence in shown:
        yield from wrapped(_evidence_text(evidence), f"{inner}see   ", f"{inner}      ")
    if len(shown) < len(found.evidence):
        yield f"{inner}      and {len(found.evidence) - len(shown)} more (-o wide)"
    if found.reason in REASONS and found.details and (wide or found.reason == "Placed"):
        yield from placement_lines(found.details, inner)
    if found.reason == LAST_DECISIONS:
        yield from decision_lines(found.details["decisions"], inner)
    for suggestion in found.suggestions:
        yield from _suggestion_lines(suggestion, inner)
    causes = found.because if wide else found.because[:_MOST_CAUSES]
    for each in causes:
        yield from _finding_lines(each, inner, wide=wide)
    if len(causes) < len(found.because):
        yield f"{inner}and {len(found.because) - len(causes)} more causes (-o wide)"


def _suggestion_lines(found: Suggestion, indent: str) -> Iterator[str]:
    yield from wrapped(
        printable(found.text) + (" (verified)" if found.verified else ""), f"{indent}try   ", f"{indent}      "
    )
    if found.command:
        yield f"{indent}      {printable(found.command, _LONGEST_COMMAND)}"
    for line in found.manifest.removesuffix("\n").split("\n") if found.manifest else ():
        text = line.lstrip(" ")
        yield f"{indent}      {line[: len(line) - len(text)]}{printable(text)}"


def _evidence_text(found: Evidence) -> str:
    namespace = f"{found.object.namespace}/" if found.object.namespace else ""
    where = f"{found.object.kind} {namespace}{found.object.name}"
    if found.event:
        count = f" x{found.count}" if found.count > 1 else ""
        return printable(f"{where}: event {found.event}{count}: {found.message}")
    return printable(f"{where}: {found.field}: {_value_text(found.value)}")


def _value_text(value: Any) -> str:
    if value is None:
        return "not set"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}..."
