"""Objects of a controller, and failures to create them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar

from steersman.api.core.v1 import Event, Pod
from steersman.client.api_resource import APIResource, Object
from steersman.client.resources import PODS
from steersman.controllers.workloads.controller_ref import is_controlled_by
from steersman.explain.commands import why
from steersman.explain.finding import (
    Evidence,
    Finding,
    Reference,
    Suggestion,
    at_event,
    error,
    last_seen,
    occurrences,
    reference,
)
from steersman.explain.quotas import quota_findings
from steersman.explain.warnings import age_of, uid_of
from steersman.explain.world import World
from steersman.work.patterns import late_pattern

O = TypeVar("O", bound=Object)  # noqa: E741

_FAILED: Final = ("FailedCreate", "ReplicaSetCreateError", "FailedDaemonPod")
_RECENT: Final = 3600.0
_WEBHOOK: Final = late_pattern(r'failed calling webhook "([^"]{1,253})"')
_DENIED: Final = late_pattern(r'admission webhook "([^"]{1,253})" denied the request')
_POLICY: Final = late_pattern(r"ValidatingAdmissionPolicy '([^']{1,253})'")
_POD_SECURITY: Final = late_pattern(r'violates PodSecurity "([^"]{1,253})"')
_ACCOUNT: Final = late_pattern(
    r"error looking up service account ([^/\s]{1,253})/([^:\s]{1,253}): serviceaccount", re.ASCII
)
_PRIORITY_CLASS: Final = late_pattern(r"no PriorityClass with name (\S{1,253}) was found", re.ASCII)


def owned_by(owner: Object, objects: Iterable[O]) -> list[O]:
    """Return the objects whose controller is `owner`."""
    return [each for each in objects if is_controlled_by(each, owner)]


async def owned_pods(world: World, owner: Object) -> Sequence[Pod]:
    """Return the pods whose controller is `owner`. Raises Unreadable."""
    return owned_by(owner, await world.list(PODS, owner.metadata.namespace))


async def creation_failures(world: World, resource: APIResource[Any], owner: Object) -> list[Finding]:
    """Return a finding for the last refused creation of a pod of a controller. Raises Unreadable."""
    events = [
        each
        for each in await world.events(reference(resource, owner), uid_of(owner))
        if each.reason in _FAILED and (age_of(world, last_seen(each)) or 0) < _RECENT
    ]
    if not events:
        return []
    newest = max(events, key=last_seen)
    return [await refusal_finding(world, owner.metadata.namespace, newest.message, at_event(newest), _times(newest))]


def _times(event: Event) -> str:
    return f" ({occurrences(event)} times)" if occurrences(event) > 1 else ""


async def refusal_finding(world: World, namespace: str, message: str, evidence: Evidence, often: str = "") -> Finding:
    """Return the finding about a refused creation, with its cause: a quota, webhook, policy, or missing object."""
    because, suggestions, reason = await _cause(world, namespace, message)
    return error(
        reason, f"its pods cannot be created: {message}{often}", evidence, because=because, suggestions=suggestions
    )


async def _cause(world: World, namespace: str, message: str) -> tuple[tuple[Finding, ...], tuple[Suggestion, ...], str]:
    if "exceeded quota: " in message:
        return tuple(await quota_findings(world, namespace, message)), (), "QuotaExceeded"
    if match := _WEBHOOK.search(message):
        text = f"repair the server of webhook {match[1]}, or remove its configuration"
        return (), (Suggestion(text, "steersman why"),), "WebhookFails"
    if match := _DENIED.search(message):
        return (), (Suggestion(f"change the pod template to what webhook {match[1]} accepts"),), "WebhookDenied"
    if match := _POLICY.search(message):
        policy = Reference("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", "", match[1])
        return (
            (),
            (Suggestion(f"change the pod template to what policy {match[1]} accepts", why(policy)),),
            "PolicyDenied",
        )
    if match := _POD_SECURITY.search(message):
        text = f"change the security context of the pod template to what level {match[1]} accepts"
        return (), (Suggestion(text),), "PodSecurityDenied"
    if match := _ACCOUNT.search(message):
        line = _create("serviceaccount", match[2], match[1])
        return (), (Suggestion(f"create service account {match[2]}", line),), "ServiceAccountMissing"
    if match := _PRIORITY_CLASS.search(message):
        return (), (Suggestion(f"create PriorityClass {match[1]}"),), "PriorityClassMissing"
    return (), (), "CreateRefused"


def _create(kind: str, name: str, namespace: str) -> str:
    from steersman.explain.commands import kubectl

    return kubectl("create", kind, name, namespace=namespace)


def matches(selector: Mapping[str, str], labels: Mapping[str, str]) -> bool:
    """Return True if labels have every value of a selector."""
    return all(labels.get(key) == value for key, value in selector.items())
