"""Namespaces that are being deleted and do not go."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from typing import Any, Final

from steersman.api.core.v1 import Namespace
from steersman.client.api_resource import APIResource
from steersman.client.discovery import DiscoveredResource
from steersman.client.resources import API_SERVICES, NAMESPACES
from steersman.explain.api_services import unavailable_groups
from steersman.explain.commands import kubectl, why
from steersman.explain.explainer import Explainer
from steersman.explain.finding import (
    Finding,
    Reference,
    Severity,
    Suggestion,
    at_condition,
    at_field,
    error,
    note,
    reference,
)
from steersman.explain.world import Unreadable, World

_FAULTS: Final = (
    "NamespaceDeletionDiscoveryFailure",
    "NamespaceDeletionGroupVersionParsingFailure",
    "NamespaceDeletionContentFailure",
)
"""Conditions that report errors of the namespace controller."""
_SKIPPED: Final = frozenset({"events", "bindings", "localsubjectaccessreviews"})
_MOST_FINALIZERS: Final = 5


def _summarize(namespace: Namespace) -> str:
    return namespace.status.phase or "no phase"


def namespace_fault(namespace: Namespace) -> str:
    """Return the reason why a namespace is unhealthy, "" if it is not."""
    if not namespace.metadata.deletion_timestamp:
        return ""
    faults = [each.message for each in namespace.status.conditions if each.status == "True" and each.message]
    return f"is being deleted since {namespace.metadata.deletion_timestamp}: {'; '.join(faults) or 'no condition yet'}"


async def _check_conditions(_: World, resource: APIResource[Any], namespace: Namespace) -> AsyncIterator[Finding]:
    subject = reference(resource, namespace)
    for each in namespace.status.conditions:
        if each.type in _FAULTS and each.status == "True":
            yield error(
                each.reason or each.type, f"the namespace controller: {each.message}", at_condition(subject, each)
            )


async def _check_api_services(world: World, resource: APIResource[Any], namespace: Namespace) -> AsyncIterator[Finding]:
    """Yield a finding for each APIService that is down, since discovery must succeed before a namespace goes."""
    if namespace.metadata.deletion_timestamp:
        for each in await unavailable_groups(world):
            of_service = reference(API_SERVICES, each[0])
            text = f"APIService {each[0].metadata.name} is not available, so the objects of its group cannot be found"
            look = Suggestion("look at the APIService", why(of_service))
            yield error("APIServiceUnavailable", text, at_condition(of_service, each[1]), suggestions=(look,))


async def _check_content(world: World, resource: APIResource[Any], namespace: Namespace) -> AsyncIterator[Finding]:
    """Yield a finding for each kind of which objects are left."""
    if not namespace.metadata.deletion_timestamp:
        return
    subject = reference(resource, namespace)
    left = 0
    for each in (await world.resources()).served:
        if not is_listable(each):
            continue
        try:
            objects = await world.list(each.resource, namespace.metadata.name)
        except Unreadable as problem:
            yield Finding(Severity.UNKNOWN, "Unreadable", str(problem))
            continue
        if objects:
            left += len(objects)
            yield _left(each.resource, subject, objects)
    if not left:
        finalizers = list(namespace.spec.finalizers)
        evidence = at_field(subject, ".spec.finalizers", finalizers)
        if finalizers:
            text = f"nothing is left in it; {', '.join(finalizers)} must still be removed from spec.finalizers"
            yield error("NamespaceFinalizers", text, evidence)
        else:
            yield note("NamespaceEmpty", "nothing is left in it", evidence)


def is_listable(each: DiscoveredResource) -> bool:
    """Return True if a resource has objects in namespaces that can be listed and hold a namespace up."""
    return each.resource.namespaced and "list" in each.verbs and each.resource.plural not in _SKIPPED


def _left(resource: APIResource[Any], subject: Reference, objects: Any) -> Finding:
    """Return the finding about objects of one kind that are left, with the finalizers that hold them."""
    finalizers: Counter[str] = Counter(name for each in objects for name in each.metadata.finalizers)
    first = objects[0]
    name = resource.plural if not resource.group else f"{resource.plural}.{resource.group}"
    text = f"{len(objects)} {name} left, such as {first.metadata.name}"
    suggestions = [Suggestion("list them", kubectl("get", name, namespace=subject.name))]
    if finalizers:
        shown = ", ".join(f"{each} ({count})" for each, count in finalizers.most_common(_MOST_FINALIZERS))
        text += f"; held by finalizers {shown}"
        held = next(each for each in objects if each.metadata.finalizers)
        of_held = reference(resource, held)
        evidence = at_field(of_held, ".metadata.finalizers", list(held.metadata.finalizers))
        suggestions = [Suggestion("look at it", why(of_held))]
    else:
        evidence = at_field(
            reference(resource, first), ".metadata.deletionTimestamp", first.metadata.deletion_timestamp
        )
    return error("ContentRemaining", text, evidence, suggestions=tuple(suggestions))


NAMESPACE: Final = Explainer(
    NAMESPACES, _summarize, (_check_conditions, _check_api_services, _check_content), namespace_fault
)
