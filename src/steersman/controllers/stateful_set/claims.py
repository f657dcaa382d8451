"""Owner references of the claims of a StatefulSet's pods, by its retention policy (stateful_set_utils.go)."""

from __future__ import annotations

from typing import Any

from steersman.api.apps.v1 import StatefulSet
from steersman.api.core.v1 import PersistentVolumeClaim, Pod
from steersman.api.meta.v1 import OwnerReference
from steersman.client.api_resource import APIResource, Object
from steersman.client.resources import PODS, STATEFUL_SETS
from steersman.controllers.stateful_set.identity import ordinal_of, ordinals
from steersman.controllers.workloads.controller_ref import new_controller_ref


def policy_of(stateful_set: StatefulSet) -> tuple[bool, bool]:
    """Return True if claims are deleted with the set, and True if they are deleted with pods that are scaled away."""
    policy = stateful_set.spec.persistent_volume_claim_retention_policy
    return (policy.when_deleted == "Delete", policy.when_scaled == "Delete") if policy else (False, False)


def _desired_owners(stateful_set: StatefulSet, pod: Pod) -> tuple[bool, bool]:
    """Return True if the set should own the claims of a pod, and True if the pod itself should."""
    with_set, with_scaled = policy_of(stateful_set)
    scaled_away = with_scaled and ordinal_of(pod) not in ordinals(stateful_set)
    return with_set and not scaled_away, scaled_away


def _refers_to(reference: OwnerReference, resource: APIResource[Any], obj: Object) -> bool:
    named = reference.api_version, reference.kind, reference.name
    return named == (resource.api_version, resource.kind, obj.metadata.name)


def is_stale(claim: PersistentVolumeClaim, resource: APIResource[Any], obj: Object) -> bool:
    """Return True if a claim is owned by a former object with the name of `obj`."""
    for each in claim.metadata.owner_references:
        if _refers_to(each, resource, obj):
            return each.uid != obj.metadata.uid
    return False


def has_unexpected_controller(claim: PersistentVolumeClaim, stateful_set: StatefulSet, pod: Pod) -> bool:
    """Return True if another controller owns a claim that the policy would delete."""
    if not any(policy_of(stateful_set)):
        return False
    for each in claim.metadata.owner_references:
        if _refers_to(each, STATEFUL_SETS, stateful_set):
            if each.uid != stateful_set.metadata.uid:
                return True
        elif _refers_to(each, PODS, pod):
            if each.uid != pod.metadata.uid:
                return True
        elif each.controller:
            return True
    return False


def is_owner_up_to_date(claim: PersistentVolumeClaim, stateful_set: StatefulSet, pod: Pod) -> bool:
    """Return True if a claim has the owners required by the policy. A claim with stale owners counts as up to date."""
    if is_stale(claim, STATEFUL_SETS, stateful_set) or is_stale(claim, PODS, pod):
        return True
    own = stateful_set.metadata.uid, pod.metadata.uid
    references = [each for each in claim.metadata.owner_references if each.uid in own]
    if has_unexpected_controller(claim, stateful_set, pod):
        return not references
    if any(not each.controller for each in references):
        return False
    uids = {each.uid for each in references}
    return (own[0] in uids, own[1] in uids) == _desired_owners(stateful_set, pod)


def put_owners(claim: PersistentVolumeClaim, stateful_set: StatefulSet, pod: Pod) -> None:
    """Set the owner references of a claim that the policy requires."""
    conflicting = has_unexpected_controller(claim, stateful_set, pod)
    references = [
        each
        for each in claim.metadata.owner_references
        if not (_refers_to(each, STATEFUL_SETS, stateful_set) or _refers_to(each, PODS, pod))
    ]
    if not conflicting:
        by_set, by_pod = _desired_owners(stateful_set, pod)
        if by_pod:
            references.append(new_controller_ref(PODS, pod))
        if by_set:
            references.append(new_controller_ref(STATEFUL_SETS, stateful_set))
    claim.metadata.owner_references = references
