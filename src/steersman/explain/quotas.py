"""ResourceQuotas: the amounts that are used up, by whom, and the writes that they refuse."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Any, Final

from steersman.api.core.v1 import ResourceQuota
from steersman.client.api_resource import APIResource
from steersman.client.resources import PERSISTENT_VOLUME_CLAIMS, PODS, RESOURCE_QUOTAS, SERVICES
from steersman.controllers.workloads.controller_ref import controller_of
from steersman.explain.commands import patch
from steersman.explain.explainer import Explainer
from steersman.explain.finding import Evidence, Finding, Suggestion, at_field, error, note, reference, warning
from steersman.explain.world import Unreadable, World
from steersman.machinery.built_in.quota.measure import Measure, scopes_of
from steersman.machinery.built_in.quota.pods import PodMeasure
from steersman.machinery.built_in.quota.services import ServiceMeasure
from steersman.machinery.built_in.quota.volume_claims import VolumeClaimMeasure
from steersman.machinery.go.strings import to_lower
from steersman.machinery.selectors.labels import SelectorError
from steersman.machinery.values.quantity import Quantity
from steersman.work.patterns import late_pattern

_MOST_MEASURED: Final = 16
"""Resources of a quota whose users are counted."""
_REFUSED: Final = late_pattern(
    r"exceeded quota: (?P<name>[^,]{1,253}), requested: (?P<requested>\S+), used: (?P<used>\S+), limited: (?P<limited>\S+)",
    re.ASCII,
)
_AMOUNT: Final = late_pattern(r"([^,=\s]{1,300})=([^,=\s]{1,100})", re.ASCII)
_MOST_USERS: Final = 3
_NEARLY: Final = 0.9
"""Part of a quota from which it is reported as nearly used up."""


def _summarize(quota: ResourceQuota) -> str:
    full = [name for name, _, _ in exhausted(quota)]
    return f"used up: {', '.join(full)}" if full else "every amount has room"


def _amount(text: str) -> Quantity | None:
    try:
        return Quantity.of(text)
    except ValueError:
        return None


def exhausted(quota: ResourceQuota, part: float = 1.0) -> Iterator[tuple[str, str, str]]:
    """Yield name, used and hard amount of each resource of which at least `part` is used."""
    for name, hard in quota.status.hard.items():
        used = quota.status.used.get(name, "0")
        most, now = _amount(hard), _amount(used)
        if most is not None and now is not None and now.as_float() >= most.as_float() * part:
            yield name, used, hard


def fault_of(quota: ResourceQuota) -> str:
    """Return the resources of a quota that are used up, "" if none is."""
    return ", ".join(f"{name} {used} of {hard}" for name, used, hard in exhausted(quota))


async def _check_usage(world: World, resource: APIResource[Any], quota: ResourceQuota) -> AsyncIterator[Finding]:
    subject = reference(resource, quota)
    full = {name for name, _, _ in exhausted(quota)}
    for number, (name, used, hard) in enumerate(exhausted(quota, _NEARLY)):
        evidence = (at_field(subject, f".status.used.{name}", used), at_field(subject, f".status.hard.{name}", hard))
        users = await largest_users(world, quota, name) if number < _MOST_MEASURED else ""
        if name in full:
            text = f"{name} is used up: {used} of {hard}{users}; requests for more are refused"
            yield warning("QuotaUsedUp", text, *evidence)
        else:
            yield note("QuotaNearlyUsedUp", f"{name}: {used} of {hard} are used{users}", *evidence)
    differing = {name for name, hard in quota.spec.hard.items() if quota.status.hard.get(name) != hard}
    if differing:
        text = f"the quota controller has not measured {', '.join(sorted(differing))} yet"
        yield warning("QuotaNotMeasured", text, at_field(subject, ".status.hard", quota.status.hard))


async def largest_users(world: World, quota: ResourceQuota, name: str) -> str:
    """Return the largest users of a quota's resource as the end of a sentence, "" if they are not known."""
    measure, resource = _measure_of(name)
    if measure is None or resource is None:
        return ""
    totals: dict[str, Quantity] = {}
    scopes = scopes_of(quota)
    for obj in await world.list(resource, quota.metadata.namespace):
        amount = _share(measure, obj, scopes, name)
        if amount:
            owner = controller_of(obj)
            user = f"{to_lower(owner.kind)}/{owner.name}" if owner else f"{to_lower(resource.kind)}/{obj.metadata.name}"
            totals[user] = totals[user] + amount if user in totals else amount
    largest = sorted(totals.items(), key=lambda each: each[1].as_float(), reverse=True)
    if not largest:
        return ""
    shown = ", ".join(f"{user} {amount}" for user, amount in largest[:_MOST_USERS])
    return f" (by {shown}{', and others' if len(largest) > _MOST_USERS else ''})"


def _measure_of(name: str) -> tuple[Measure[Any] | None, APIResource[Any] | None]:
    pairs: tuple[tuple[Measure[Any], APIResource[Any]], ...] = (
        (PodMeasure(), PODS),
        (VolumeClaimMeasure(), PERSISTENT_VOLUME_CLAIMS),
        (ServiceMeasure(), SERVICES),
    )
    return next((pair for pair in pairs if pair[0].matching([name])), (None, None))


def _share(measure: Measure[Any], obj: Any, scopes: Iterable[Any], name: str) -> Quantity | None:
    """Return the amount of a resource that an object uses, None if the quota does not apply to it."""
    try:
        if all(measure.in_scope(each, obj) for each in scopes):
            return measure.usage(obj).get(name)
    except (SelectorError, ValueError):
        return None
    return None


async def quota_findings(world: World, namespace: str, message: str) -> list[Finding]:
    """Return findings about the quota that refused a write with this message. Raises Unreachable."""
    match = _REFUSED.search(message)
    if match is None:
        return []
    try:
        quota = await world.get(RESOURCE_QUOTAS, match["name"], namespace)
        users = "" if quota is None else await _users_of(world, quota, match["requested"])
    except Unreadable:
        return []
    if quota is None:
        return [note("QuotaGone", f"ResourceQuota {match['name']} does not exist any more")]
    subject = reference(RESOURCE_QUOTAS, quota)
    hard, needed = _needed(quota, match["requested"])
    evidence = [at_field(subject, f".status.used.{name}", quota.status.used.get(name, "0")) for name in hard]
    evidence += [at_field(subject, f".spec.hard.{name}", quota.spec.hard.get(name)) for name in hard]
    if not needed:
        text = f"ResourceQuota {match['name']} has room for it by now: the next attempt will succeed"
        return [note("QuotaHasRoom", text, *evidence)]
    return [_used_up(subject, quota, evidence, needed, users)]


def _used_up(
    subject: Any, quota: ResourceQuota, evidence: Iterable[Evidence], needed: dict[str, str], users: str
) -> Finding:
    parts = [f"{name} {quota.status.used.get(name, '0')} of {quota.spec.hard.get(name)} used" for name in needed]
    suggestion = patch("raise the quota to what one more needs", subject, {"spec": {"hard": needed}})
    text = f"ResourceQuota {quota.metadata.name}: {', '.join(parts)}{users}"
    return error(
        "QuotaUsedUp", text, *evidence, suggestions=(suggestion, Suggestion("or free what its users need least"))
    )


async def _users_of(world: World, quota: ResourceQuota, requested: str) -> str:
    first = _AMOUNT.search(requested)
    return "" if first is None else await largest_users(world, quota, first[1])


def _needed(quota: ResourceQuota, requested: str) -> tuple[list[str], dict[str, str]]:
    """Return the requested resources, and the hard amounts that would be needed for those that have no room."""
    names: list[str] = []
    needed: dict[str, str] = {}
    for name, amount in _AMOUNT.findall(requested):
        names.append(name)
        more, hard = _amount(amount), _amount(quota.spec.hard.get(name, ""))
        used = _amount(quota.status.used.get(name, "0"))
        if more is not None and hard is not None and used is not None and used + more > hard:
            needed[name] = str(used + more)
    return names, needed


RESOURCE_QUOTA: Final = Explainer(RESOURCE_QUOTAS, _summarize, (_check_usage,), fault_of)
