"""Forms of the result of a search: text, JSON, JUnit, and files of plans."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree

import msgspec

from steersman.machinery.codec.xml_text import xml_text
from steersman.machinery.go.escaping import escaped
from steersman.machinery.go.printable import unprintable
from steersman.net.ascii import lower
from steersman.stress.campaign import Result, Tried, Verdict
from steersman.stress.point import Kind
from steersman.work.patterns import late_pattern

_MOST_SHOWN: Final = 10
_LONGEST: Final = 200
"""Characters of a failure in the first line of a plan."""
_NOT_IN_NAMES: Final = late_pattern(r"[^a-z0-9]+")


def text_lines(result: Result, files: dict[int, Path]) -> Iterator[str]:
    """Yield the lines of the text. `files` has the written plans by the number of their finding, from 0."""
    if result.broken:
        yield f"without any fault: {result.broken}"
        yield from _quoted(result.output)
        return
    for number, group in enumerate(result.groups):
        yield from _finding_lines(number, group, files.get(number))
    yield from _summary_lines(result)
    if reason := result.reason_without_verdict:
        yield f"no verdict: {reason}"


def _finding_lines(number: int, group: list[Tried], file: Path | None) -> Iterator[str]:
    first = group[0]
    yield f"{number + 1}. {first.plan}: {first.how_often}"
    run = first.run
    yield f"   {run.failure}"
    for each in run.differences[1:_MOST_SHOWN]:
        yield f"   {each}"
    if not run.differences or run.exit_code != 0:
        yield from _quoted(run.output)
    if len(group) > 1:
        others = [str(each.plan) for each in group[1:_MOST_SHOWN]]
        yield f"   so does: {'; '.join(others)}" + ("; ..." if len(group) > _MOST_SHOWN else "")
    if file is not None:
        yield f"   run it again: --plan {file}"
    yield ""


def _quoted(output: str) -> Iterator[str]:
    if not output:
        return
    for line in output.split("\n")[-_MOST_SHOWN:]:
        yield f"   | {line}"


def _summary_lines(result: Result) -> Iterator[str]:
    yield f"{'FAULT':<14}{'TRIED':>6}{'FAILED':>8}{'MISSED':>8}"
    for kind, counts in counts_by_kind(result).items():
        yield f"{kind:<14}{counts['tried']:>6}{counts['failed'] or '-':>8}{counts['missed'] or '-':>8}"
    for each in result.tried:
        if each.verdict is Verdict.ONCE:
            yield f"failed once, and not again: {each.plan}: {each.run.failure}"
    exits = [each for each in result.tried if each.run.operator_exits]
    if exits:
        yield f"the operator ended by itself, and was started again, in {len(exits)} runs, first at: {exits[0].plan}"
    if result.flaky and result.findings:
        yield f"a run without faults failed, too: {result.flaky}"
    if result.unstable:
        more = f" and {len(result.unstable) - _MOST_SHOWN} more" if len(result.unstable) > _MOST_SHOWN else ""
        yield f"not compared, as it differs without faults: {', '.join(result.unstable[:_MOST_SHOWN])}{more}"
    left = result.total - len(result.tried)
    rest = (
        f", {left} left when {'the search ended early' if result.interruption else 'the time was up'}" if left else ""
    )
    found = len(result.groups)
    yield f"{found or 'nothing'} found: {len(result.tried)} faults tried in {result.seconds:.0f}s{rest}"


def counts_by_kind(result: Result) -> dict[Kind, Counter[str]]:
    """Return the numbers of tried, failed and missed plans by kind of fault, in the order of the kinds."""
    counts: dict[Kind, Counter[str]] = {}
    for each in result.tried:
        for kind in {fault.kind for fault in each.plan.faults}:
            count = counts.setdefault(kind, Counter())
            count["tried"] += 1
            count["failed"] += each.verdict is Verdict.FAILED
            count["missed"] += each.verdict is Verdict.MISSED
    return {kind: counts[kind] for kind in Kind if kind in counts}


def as_json(result: Result) -> bytes:
    """Return the result as JSON."""
    plain = {
        "broken": result.broken,
        "withoutVerdict": result.reason_without_verdict,
        "seconds": round(result.seconds, 1),
        "baselines": len(result.baselines),
        "clients": result.clients,
        "tried": len(result.tried),
        "left": result.total - len(result.tried),
        "kinds": {kind: dict(counts) for kind, counts in counts_by_kind(result).items()},
        "unstable": result.unstable,
        "flaky": result.flaky,
        "findings": [[_plain(each) for each in group] for group in result.groups],
        "once": [_plain(each) for each in result.tried if each.verdict is Verdict.ONCE],
    }
    return msgspec.json.format(msgspec.json.encode(plain), indent=2) + b"\n"


def _plain(tried: Tried) -> dict[str, Any]:
    return {
        "plan": msgspec.to_builtins(tried.plan),
        "failure": tried.run.failure,
        "differences": [str(each) for each in tried.run.differences],
        "failed": tried.failed,
        "runs": tried.runs,
        "after": round(tried.after, 1),
        "exitCode": tried.run.exit_code,
        "output": tried.run.output,
    }


def as_junit(result: Result) -> bytes:
    """Return the result as JUnit XML: a test case for each plan, and one for the runs without faults."""
    cases = len(result.tried) + 1
    reason = result.reason_without_verdict
    failures = len(result.findings) + bool(reason)
    root = ElementTree.Element("testsuites", name="steersman stress", tests=str(cases), failures=str(failures))
    suite = ElementTree.SubElement(root, "testsuite", name="steersman stress", tests=str(cases), failures=str(failures))
    first = ElementTree.SubElement(suite, "testcase", classname="baseline", name="without faults")
    if reason:
        failure = ElementTree.SubElement(first, "failure", message=xml_text(reason))
        failure.text = xml_text(result.output)
    for each in result.tried:
        kind = each.plan.faults[0].kind
        case = ElementTree.SubElement(suite, "testcase", classname=kind, name=xml_text(str(each.plan)))
        case.set("time", f"{each.run.seconds:.3f}")
        if each.verdict is Verdict.FAILED:
            failure = ElementTree.SubElement(case, "failure", message=xml_text(each.run.failure))
            lines = [*map(str, each.run.differences), each.run.output, each.plan.encoded().decode()]
            failure.text = xml_text("\n".join(filter(None, lines)))
        elif each.verdict is Verdict.MISSED:
            ElementTree.SubElement(case, "skipped", message="the point was not reached")
    ElementTree.indent(root)
    text: str = ElementTree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'.encode()


def write_plans(result: Result, folder: Path, files: dict[int, Path]) -> None:
    """Write the smallest plan of each finding into a folder, and add the files by number to `files`. Raises OSError."""
    for number, group in enumerate(result.groups):
        folder.mkdir(parents=True, exist_ok=True)
        smallest = min(group, key=lambda each: (len(each.plan.faults), -each.failed))
        name = _NOT_IN_NAMES.sub("-", lower(str(smallest.plan)))[:80].strip("-")
        path = folder / f"{number + 1}-{name}.yaml"
        why = escaped(smallest.run.failure[:_LONGEST], unprintable(), _escape)
        path.write_bytes(f"# {why}\n".encode() + smallest.plan.encoded())
        files[number] = path


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
