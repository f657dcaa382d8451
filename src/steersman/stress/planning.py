"""Order of the faults that are tried: those first that tell most."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from steersman.stress.point import ERRORS, Kind, PlannedFault, Point, may_happen
from steersman.stress.tap import Seen

_Subject = tuple[str, str, str]
"""Verb, resource and event of points."""


def planned(runs: Sequence[Sequence[Seen]], kinds: Iterable[Kind], clients: Sequence[str] = ()) -> list[PlannedFault]:
    """Return the faults at points of the first run, ordered.

    Points that all runs have come first. Then each combination of kind, verb and resource comes once before any comes
    again. Among these, deletions come first, as nothing is left that tells how far an operator was, and then requests
    and events that a run has once: a write that each reconcile repeats makes up for a fault. `clients` names the clients
    that faults happen to, all if empty.
    """
    wanted = set(kinds)
    shared = set.intersection(*({each.point for each in run} for run in runs)) if runs else set()
    points = _distinct(runs[0] if runs else (), clients)
    totals = Counter(map(_subject, points))
    rounds: Counter[tuple[Kind, _Subject]] = Counter()
    ranked: list[tuple[tuple[bool, int, int, bool, bool, int], PlannedFault]] = []
    order = list(Kind)
    for index, (point, seen) in enumerate(points.items()):
        subject = _subject(point)
        for kind in order:
            if kind in wanted and fits(kind, seen):
                nth = rounds[kind, subject]
                rounds[kind, subject] += 1
                rank = (point not in shared, nth, order.index(kind), not _deletes(point), totals[subject] > 1, index)
                ranked.append((rank, PlannedFault(kind, point)))
    ranked.sort(key=lambda each: each[0])
    return [fault for _, fault in ranked]


def _distinct(run: Sequence[Seen], clients: Sequence[str]) -> dict[Point, Seen]:
    """Return the first pass of each point of a run, in their order."""
    found: dict[Point, Seen] = {}
    for seen in run:
        if not clients or seen.point.client in clients:
            found.setdefault(seen.point, seen)
    return found


def _subject(point: Point) -> _Subject:
    return point.verb, point.resource, point.event


def _deletes(point: Point) -> bool:
    return point.verb in ("delete", "deletecollection") or point.event == "DELETED"


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
