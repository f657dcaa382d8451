"""Order of the faults that are tried: those first that tell most."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from steersman.stress.point import ERRORS, Kind, PlannedFault, Point, may_happen
from steersman.stress.tap import Seen


def planned(runs: Sequence[Sequence[Seen]], kinds: Iterable[Kind], clients: Sequence[str] = ()) -> list[PlannedFault]:
    """Return the faults at points of the first run, ordered.

    Points that all runs have come first. Then each combination of kind, verb and resource comes once before any comes
    again. `clients` names the clients that faults happen to, all if empty.
    """
    wanted = set(kinds)
    shared = set.intersection(*({each.point for each in run} for run in runs)) if runs else set()
    rounds: Counter[tuple[Kind, str, str, str]] = Counter()
    ranked: list[tuple[bool, int, int, int, PlannedFault]] = []
    order = list(Kind)
    passed: set[Point] = set()
    for index, seen in enumerate(runs[0] if runs else ()):
        point = seen.point
        if point in passed or (clients and point.client not in clients):
            continue
        passed.add(point)
        for kind in order:
            if kind in wanted and fits(kind, seen):
                key = (kind, point.verb, point.resource, point.event)
                ranked.append((point not in shared, rounds[key], order.index(kind), index, PlannedFault(kind, point)))
                rounds[key] += 1
    ranked.sort(key=lambda each: each[:4])
    return [each[-1] for each in ranked]


def fits(kind: Kind, seen: Seen) -> bool:
    """Return True if a fault can happen at a point, as a real server could let it happen."""
    point = seen.point
    if not may_happen(kind, point):
        return False
    if point.event or kind in ERRORS:
        return True
    if not 200 <= seen.code < 300:
        return False
    if kind is Kind.CONFLICT:
        is_update = point.verb in ("update", "patch") and seen.has_version
        return is_update or (point.verb == "create" and bool(point.namespace) and "/" not in point.resource)
    return True
