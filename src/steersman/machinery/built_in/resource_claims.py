"""Claims of devices, as pods name them (k8s.io/dynamic-resource-allocation `resourceclaim`)."""

from __future__ import annotations

from typing import Final

from steersman.api.core.v1 import Pod, PodResourceClaim
from steersman.api.resource.v1 import ResourceClaim

OF_POD_CLAIM: Final = "resource.kubernetes.io/pod-claim-name"
"""The annotation of claims that were made for a pod: which of the pod's claims it is."""
DELETE_PROTECTION: Final = "resource.kubernetes.io/delete-protection"
"""Keeps claims that have devices."""


class ClaimNotMade(Exception):
    """The claim is to be made of a template, and has not been."""


def name_of(pod: Pod, given: PodResourceClaim) -> str | None:
    """The name of the claim that a pod means; None if there is none to be. Raises ClaimNotMade."""
    if given.resource_claim_name is not None:
        return given.resource_claim_name
    if given.resource_claim_template_name is None:
        return None
    for each in pod.status.resource_claim_statuses:
        if each.name == given.name:
            return each.resource_claim_name
    raise ClaimNotMade(f'pod "{pod.metadata.namespace}/{pod.metadata.name}": ResourceClaim not created yet')


def is_of_template(given: PodResourceClaim) -> bool:
    """Whether a claim is made for the pod alone, which must own it."""
    return given.resource_claim_name is None


def is_owned_by(claim: ResourceClaim, pod: Pod) -> bool:
    """Whether a claim was made for a pod."""
    return any(each.controller and each.uid == pod.metadata.uid for each in claim.metadata.owner_references)


def why_foreign(claim: ResourceClaim, pod: Pod) -> str:
    """What is said of a claim that was made for another pod."""
    mine, of_pod = claim.metadata, pod.metadata
    whose = f"{of_pod.namespace}/{of_pod.name}"
    return f"ResourceClaim {mine.namespace}/{mine.name} was not created for Pod {whose} (Pod is not owner)"


def is_reserved_for(claim: ResourceClaim, pod: Pod) -> bool:
    """Whether a pod may use a claim."""
    return any(each.uid == pod.metadata.uid for each in claim.status.reserved_for)
