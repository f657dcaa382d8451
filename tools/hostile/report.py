"""Report: a table with the worst results first, the causes by the function that held the event loop, and JSON."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from .measuring import Result

_SHOWN_CODES = 3


def table(results: Sequence[Result], count: int) -> Iterator[str]:
    """Offenders, worst first, one line each; times in milliseconds."""
    worst = sorted((each for each in results if each.offends), key=lambda each: -each.badness)
    if not worst:
        return
    yield "  over    held    wait   other    ours     ref  ratio    bytes  codes        case (where)"
    for each in worst[:count]:
        reference = "" if each.reference is None else _ms(each.reference.cpu)
        ratio = "" if each.ratio is None else f"{each.ratio:.1f}"
        where = f" ({each.hold.where})" if each.hold else ""
        yield (
            f"{each.badness:>6.1f} {_ms(each.held):>7} {_ms(each.ours.wait):>7} {_others(each):>7} "
            f"{_ms(each.ours.cpu):>7} {reference:>7} "
            f"{ratio:>6} {each.size:>8}  {codes(each):<12} {each.name}{where}"
        )
    if len(worst) > count:
        yield f"... and {len(worst) - count} more"


def causes(results: Sequence[Result]) -> Iterator[str]:
    """Yield a line for each function that held the event loop: the longest hold, the number of cases, the worst case."""
    found: dict[str, list[Result]] = defaultdict(list)
    for each in results:
        if each.offends:
            found[_cause(each)].append(each)
    for where, those in sorted(found.items(), key=lambda pair: -max(each.held for each in pair[1])):
        worst = max(those, key=lambda each: each.badness)
        cases = len({each.name for each in those})
        longest = _ms(max(each.held for each in those))
        yield f"{longest:>7} ms in {cases:>4} cases  {where}  e.g. {worst.name} {worst.size}"
        if worst.hold is not None:
            yield f"{'':>12}{worst.hold.stack}"


def _cause(result: Result) -> str:
    bounds = result.bounds
    if result.held <= bounds.held and (result.ours.turned_away or result.ours.other > bounds.other):
        return "another user waits"
    if result.hold is not None:
        return result.hold.where
    return "no answer" if result.ours.broken else "processor time alone"


def as_json(result: Result) -> dict[str, Any]:
    """A result for programs; times in seconds."""
    return {
        "case": result.name,
        "bytes": result.size,
        "offends": result.offends,
        "over": round(result.badness, 2),
        "held": round(result.held, 4),
        "wait": round(result.ours.wait, 4),
        "other": round(result.ours.other, 4),
        "turned_away": result.ours.turned_away,
        "cpu": round(result.ours.cpu, 3),
        "reference_cpu": None if result.reference is None else round(result.reference.cpu, 3),
        "reference_wait": None if result.reference is None else round(result.reference.wait, 4),
        "reference_other": None if result.reference is None else round(result.reference.other, 4),
        "ratio": None if result.ratio is None else round(result.ratio, 2),
        "codes": _counted(result.ours.codes),
        "late": result.ours.late,
        "died": result.ours.died,
        "reference_codes": None if result.reference is None else _counted(result.reference.codes),
        "holds": [
            {"seconds": each.seconds, "cpu": each.cpu, "where": each.where, "stack": each.stack}
            for each in sorted(result.ours.holds, key=lambda each: -each.cpu)[:3]
        ],
    }


def _others(result: Result) -> str:
    """The longest wait of another user; how many requests of this one were turned away, if any were."""
    return f"{result.ours.turned_away} lost" if result.ours.turned_away else _ms(result.ours.other)


def codes(result: Result) -> str:
    """Ours, and the reference's behind a slash."""
    ours = "late" if result.ours.late else "died" if result.ours.died else _short(result.ours.codes)
    return ours if result.reference is None else f"{ours}/{_short(result.reference.codes)}"


def _short(found: Sequence[int]) -> str:
    parts = [f"{code}x{count}" if count > 1 else str(code) for code, count in _counted(found).items()]
    return "+".join(parts[:_SHOWN_CODES]) or "none"


def _counted(found: Sequence[int]) -> dict[int, int]:
    counts: dict[int, int] = defaultdict(int)
    for each in found:
        counts[each] += 1
    return dict(counts)


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.0f}"
