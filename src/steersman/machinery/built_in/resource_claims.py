"""Resource claims of pods (k8s.io/dynamic-resource-allocation `resourceclaim`)."""

from __future__ import annotations

from typing import Final

from steersman.api.core.v1 import Pod, PodResourceClaim
from steersman.api.resource.v1 import ResourceClaim

OF_POD_CLAIM: Final = "resource.kubernetes.io/pod-claim-name"
"""The annotation of a generated claim: the name of the pod's claim entry."""
DELETE_PROTECTION: Final = "resource.kubernetes.io/delete-protection"
"""The finalizer of claims with allocated devices."""


class ClaimNotCreated(Exception):
    """The error for a claim that will be created from a template and does not exist yet."""


def name_of(pod: Pod, given: PodResourceClaim) -> str | None:
    """Return the name of the claim of a pod's entry; None if the entry needs none. Raises ClaimNotMade."""
    if given.resource_claim_name is not None:
        return given.resource_claim_name
    if given.resource_claim_template_name is None:
        return None
    for each in pod.status.resource_claim_statuses:
        if each.name == given.name:
            return each.resource_claim_name
    raise ClaimNotCreated(f'pod "{pod.metadata.namespace}/{pod.metadata.name}": ResourceClaim not created yet')


def is_generated(given: PodResourceClaim) -> bool:
    """Return True if the claim of an entry is created for the pod alone, which must own it."""
    return given.resource_claim_name is None


def is_owned_by(claim: ResourceClaim, pod: Pod) -> bool:
    """Return True if a claim was created for a pod."""
    return any(each.controller and each.uid == pod.metadata.uid for each in claim.metadata.owner_references)


def foreign_claim_message(claim: ResourceClaim, pod: Pod) -> str:
    """Return the message about a claim that was created for another pod."""
    mine, of_pod = claim.metadata, pod.metadata
    whose = f"{of_pod.namespace}/{of_pod.name}"
    return f"ResourceClaim {mine.namespace}/{mine.name} was not created for Pod {whose} (Pod is not owner)"


def is_reserved_for(claim: ResourceClaim, pod: Pod) -> bool:
    """Return True if a pod may use a claim."""
    return any(each.uid == pod.metadata.uid for each in claim.status.reserved_for)
