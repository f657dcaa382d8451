"""Warning events about an object that no other finding cites."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import Any, Final

from steersman.api.core.v1 import Event
from steersman.client.api_resource import APIResource
from steersman.explain.explainer import Check
from steersman.explain.finding import Finding, Severity, at_event, last_seen, occurrences, reference
from steersman.explain.world import World
from steersman.machinery.values.times import human_duration, unix

_MOST: Final = 5
"""Most warnings that are reported, the latest first."""
_RECENT: Final = 3600.0
"""Seconds after which a warning is a note."""


def check_warnings(cited: Iterable[Finding]) -> Check[Any]:
    """Return a check for the latest warning events whose reason and message no finding in `cited` has."""
    known = {(each.event, each.message) for finding in _all(cited) for each in finding.evidence}

    async def check(world: World, resource: APIResource[Any], obj: Any) -> AsyncIterator[Finding]:
        newest: dict[tuple[str, str], Event] = {}
        for each in await world.events(reference(resource, obj), uid_of(obj)):
            if each.type == "Warning" and (each.reason, each.message) not in known:
                newest[each.reason, each.message] = each
        latest = sorted(newest.values(), key=last_seen, reverse=True)[:_MOST]
        for each in latest:
            seconds = age_of(world, last_seen(each))
            often = f" ({occurrences(each)} times)" if occurrences(each) > 1 else ""
            ago = "" if seconds is None else f", {human_duration(seconds)} ago"
            severity = Severity.NOTE if seconds is None or seconds > _RECENT else Severity.WARNING
            yield Finding(severity, "WarningEvent", f"{each.reason}: {each.message}{often}{ago}", (at_event(each),))

    return check


def uid_of(obj: Any) -> str:
    """Return the uid of an object, which is a Struct or plain data."""
    if isinstance(obj, dict):
        return str((obj.get("metadata") or {}).get("uid") or "")
    return str(obj.metadata.uid)


def age_of(world: World, moment: str | None) -> float | None:
    """Return the seconds since a moment, None if it is not a time."""
    try:
        return world.now - unix(moment) if moment else None
    except ValueError:
        return None


def _all(findings: Iterable[Finding]) -> Iterable[Finding]:
    for each in findings:
        yield each
        yield from _all(each.because)
