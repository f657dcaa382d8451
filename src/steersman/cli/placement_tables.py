"""Tables of a pod's placement: groups of nodes with their reasons, and scores by plugin."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from steersman.cli.terminal_text import printable, wrapped

REASONS: Final = frozenset({"Unschedulable", "SchedulingGated", "NotDecided", "Placed"})
"""Reasons of findings whose details are tables of a placement."""
_MOST_NODES: Final = 6
_SHORT: Final = {
    "NodeResourcesFit": "RESOURCES",
    "NodeResourcesBalancedAllocation": "BALANCE",
    "ImageLocality": "IMAGES",
    "TaintToleration": "TAINTS",
    "NodeAffinity": "AFFINITY",
    "PodTopologySpread": "SPREAD",
    "InterPodAffinity": "PODS",
}


def placement_lines(details: Mapping[str, Any], indent: str) -> Iterator[str]:
    """Yield the tables of the details of a finding about a placement."""
    rows = [row for group in details.get("groups", ()) for row in _rows_of_group(group)]
    if rows:
        yield from table(("NODES", "NAMES", "PLUGIN", "REASON"), rows, indent)
    scores = details.get("scores", ())
    if scores:
        plugins = [each for each in _SHORT if any(score["byPlugin"].get(each) is not None for score in scores)]
        heads = ("NODE", "SCORE", *(_SHORT[each] for each in plugins))
        lines = [
            (score["node"], str(score["total"]), *(str(score["byPlugin"].get(each, 0)) for each in plugins))
            for score in scores
        ]
        yield from table(heads, lines, indent)
    if details.get("message"):
        yield from wrapped(printable(details["message"]), f"{indent}scheduler: ", f"{indent}  ")


def _rows_of_group(group: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    names = group["nodes"]
    more = ", ..." if group["count"] > _MOST_NODES else ""
    first = str(group["count"]), ", ".join(names[:_MOST_NODES]) + more
    for number, reason in enumerate(group["reasons"]):
        amounts = ""
        if reason.get("shortBy"):
            most = f" to {reason['shortByMost']}" if reason.get("shortByMost") else ""
            amounts = f" (short by {reason['shortBy']}{most})"
        some = ", ".join((*reason.get("notes", ())[:2], *(f"pod {each}" for each in reason.get("pods", ())[:2])))
        text = f"{reason['text']}{amounts}" + (f" ({some})" if some else "")
        yield (*(first if number == 0 else ("", "")), reason["plugin"], text)


def table(heads: Sequence[str], rows: Sequence[Sequence[str]], indent: str = "") -> Iterator[str]:
    """Yield the lines of an aligned table."""
    shown = [tuple(printable(each) for each in row) for row in rows]
    widths = [max(len(row[column]) for row in (heads, *shown)) for column in range(len(heads))]
    for row in (heads, *shown):
        yield indent + "  ".join(f"{text:<{width}}" for text, width in zip(row, widths, strict=True)).rstrip(" ")
