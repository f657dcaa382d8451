"""Explainers: the checks of one kind of object, and running them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from steersman.client.api_resource import APIResource
from steersman.explain.finding import Finding, Severity
from steersman.explain.world import Unreadable, World

T = TypeVar("T")

Check = Callable[[World, APIResource[Any], T], AsyncIterator[Finding]]
"""Yields findings about an object; `Unreadable` ends the check with a finding about that."""


@dataclass(frozen=True)
class Explainer(Generic[T]):
    """Checks of one kind of object."""

    resource: APIResource[T]
    summarize: Callable[[T], str]
    """Returns the object's state in one line, without its name."""
    checks: tuple[Check[T], ...]
    fault: Callable[[T], str] | None = None
    """Returns the reason why an object is unhealthy as far as the object alone shows it, "" if it is healthy."""


async def run_check(world: World, resource: APIResource[Any], obj: T, check: Check[T]) -> list[Finding]:
    """Return the findings of a check. Raises Unreachable."""
    findings: list[Finding] = []
    try:
        async for each in check(world, resource, obj):
            findings.append(each)
    except Unreadable as error:
        findings.append(Finding(Severity.UNKNOWN, "Unreadable", str(error)))
    return findings
