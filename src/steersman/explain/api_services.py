"""APIServices that are not available, and CustomResourceDefinitions that are not established."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Final

from steersman.api.apiextensions.v1 import CustomResourceDefinition
from steersman.api.apiregistration.v1 import APIService, APIServiceCondition
from steersman.client.api_resource import APIResource
from steersman.client.resources import API_SERVICES, CUSTOM_RESOURCE_DEFINITIONS
from steersman.explain.certificates import bundle_problem
from steersman.explain.explainer import Explainer
from steersman.explain.finding import Finding, Suggestion, at_condition, at_field, error, note, reference, warning
from steersman.explain.services import backend_finding
from steersman.explain.world import World
from steersman.machinery.values.conditions import find_condition

_CRD_FAULTS: Final = {
    "NamesAccepted": "False",
    "Established": "False",
    "NonStructuralSchema": "True",
    "KubernetesAPIApprovalPolicyConformant": "False",
}
"""Conditions of definitions that report a fault, and their status then."""


def _summarize(service: APIService) -> str:
    available = find_condition(service.status.conditions, "Available")
    where = "served locally"
    if service.spec.service is not None:
        where = f"served by {service.spec.service.namespace}/{service.spec.service.name}"
    state = "no condition" if available is None else f"Available is {available.status} ({available.reason})"
    return f"{service.spec.group or 'core'}/{service.spec.version}, {where}, {state}"


def api_service_fault(service: APIService) -> str:
    """Return the reason why an APIService is unhealthy, "" if it is not."""
    available = find_condition(service.status.conditions, "Available")
    if available is None or available.status == "True":
        return ""
    return f"not available: {available.reason}: {available.message}"


async def unavailable_groups(world: World) -> list[tuple[APIService, APIServiceCondition]]:
    """Return the APIServices that are not available, with the condition that says so. Raises Unreadable."""
    unavailable = []
    for each in await world.list(API_SERVICES):
        available = find_condition(each.status.conditions, "Available")
        if available is not None and available.status != "True":
            unavailable.append((each, available))
    return unavailable


async def _check_available(world: World, resource: APIResource[Any], service: APIService) -> AsyncIterator[Finding]:
    subject = reference(resource, service)
    available = find_condition(service.status.conditions, "Available")
    if available is not None and available.status == "True":
        return
    group = f"{service.spec.group}/{service.spec.version}"
    blocked = f"requests for {group} fail, discovery is incomplete, and no namespace can be deleted"
    if available is None:
        text = f"its availability is not known: {blocked} until it is"
        yield warning("NoCondition", text, at_field(subject, ".status.conditions", None))
    else:
        text = f"not available ({available.reason}): {available.message}; {blocked}"
        yield error(available.reason or "Unavailable", text, at_condition(subject, available))


async def _check_backend(world: World, resource: APIResource[Any], service: APIService) -> AsyncIterator[Finding]:
    behind, subject = service.spec.service, reference(resource, service)
    if behind is None:
        return
    evidence = at_field(subject, ".spec.service", behind)
    finding = await backend_finding(world, behind.namespace, behind.name, behind.port or 443, evidence)
    if finding is not None:
        yield finding
    if not service.spec.insecure_skip_tls_verify:
        problem = bundle_problem(service.spec.ca_bundle, world.now)
        if problem:
            yield error("CABundle", f"caBundle: {problem}", at_field(subject, ".spec.caBundle", problem))


API_SERVICE: Final = Explainer(API_SERVICES, _summarize, (_check_available, _check_backend), api_service_fault)


def _summarize_definition(definition: CustomResourceDefinition) -> str:
    established = find_condition(definition.status.conditions or (), "Established")
    state = "Established" if established is not None and established.status == "True" else "not Established"
    served = [each.name for each in definition.spec.versions or () if each.served]
    return f"{definition.spec.names.kind}.{definition.spec.group}, versions {', '.join(served) or 'none'}, {state}"


def definition_fault(definition: CustomResourceDefinition) -> str:
    """Return the reason why a definition is unhealthy, "" if it is not."""
    for each in definition.status.conditions or ():
        if _CRD_FAULTS.get(each.type) == each.status:
            return f"{each.type} is {each.status}: {each.message}"
    return ""


async def _check_definition(
    world: World, resource: APIResource[Any], definition: CustomResourceDefinition
) -> AsyncIterator[Finding]:
    subject = reference(resource, definition)
    for each in definition.status.conditions or ():
        if _CRD_FAULTS.get(each.type) == each.status:
            text = f"{each.type} is {each.status} ({each.reason}): {each.message}"
            yield error(each.reason or each.type, text, at_condition(subject, each))
    if not definition.status.conditions:
        text = "it has no conditions: the API server has not processed it"
        yield warning("NoCondition", text, at_field(subject, ".status.conditions", None))
    names = find_condition(definition.status.conditions or (), "NamesAccepted")
    if names is not None and names.status == "False":
        for other in await world.list(CUSTOM_RESOURCE_DEFINITIONS):
            if shared := _shared_names(definition, other):
                text = (
                    f"CustomResourceDefinition {other.metadata.name} has the names {', '.join(sorted(shared))} already"
                )
                field = at_field(reference(CUSTOM_RESOURCE_DEFINITIONS, other), ".spec.names", other.spec.names)
                yield error("NamesConflict", text, field)


def _shared_names(one: CustomResourceDefinition, other: CustomResourceDefinition) -> set[str]:
    """Return the names that two definitions of a group both have, none for the same definition."""
    if one.metadata.name == other.metadata.name or one.spec.group != other.spec.group:
        return set()
    mine, theirs = (
        {names.plural, names.singular, names.kind, names.list_kind, *names.short_names} - {""}
        for names in (one.spec.names, other.spec.names)
    )
    return mine & theirs


async def _check_conversion(
    world: World, resource: APIResource[Any], definition: CustomResourceDefinition
) -> AsyncIterator[Finding]:
    conversion = definition.spec.conversion
    webhook = conversion.webhook if conversion is not None and conversion.strategy == "Webhook" else None
    behind = webhook.client_config.service if webhook is not None and webhook.client_config is not None else None
    if behind is None:
        return
    evidence = at_field(reference(resource, definition), ".spec.conversion.webhook.clientConfig.service", behind)
    finding = await backend_finding(world, behind.namespace, behind.name, behind.port or 443, evidence)
    if finding is not None:
        text = "objects of other versions than the stored one cannot be read or written: the conversion webhook fails"
        yield error("ConversionWebhookFails", text, evidence, because=(finding,))


async def _check_stored_versions(
    _: World, resource: APIResource[Any], definition: CustomResourceDefinition
) -> AsyncIterator[Finding]:
    known = {each.name for each in definition.spec.versions or ()}
    gone = [each for each in definition.status.stored_versions or () if each not in known]
    if gone:
        text = f"objects may be stored in version {', '.join(gone)}, which the definition does not have any more"
        field = at_field(reference(resource, definition), ".status.storedVersions", definition.status.stored_versions)
        yield error("StoredVersionGone", text, field, suggestions=(Suggestion("add the version again, unserved"),))


async def _check_objects(
    world: World, resource: APIResource[Any], definition: CustomResourceDefinition
) -> AsyncIterator[Finding]:
    """Yield the number of custom objects that hold the deletion of a definition up."""
    if not definition.metadata.deletion_timestamp or not definition.spec.versions:
        return
    spec = definition.spec
    version = next((each.name for each in spec.versions or () if each.storage), "")
    objects = APIResource(
        spec.group, version, spec.names.plural, spec.names.kind, dict, namespaced=spec.scope == "Namespaced"
    )
    left = await world.list(objects)
    held = [each for each in left if (each.get("metadata") or {}).get("finalizers")]
    subject = reference(resource, definition)
    text = f"{len(left)} custom objects are left, {len(held)} of them with finalizers"
    of_first = reference(objects, held[0] if held else left[0]) if left else subject
    finalizers = held[0]["metadata"]["finalizers"] if held else None
    make = error if left else note
    yield make("CustomObjectsRemaining", text, at_field(of_first, ".metadata.finalizers", finalizers))


DEFINITION: Final = Explainer(
    CUSTOM_RESOURCE_DEFINITIONS,
    _summarize_definition,
    (_check_definition, _check_conversion, _check_stored_versions, _check_objects),
    definition_fault,
)
