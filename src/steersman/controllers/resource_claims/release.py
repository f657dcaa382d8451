"""Release of resource claims: predicates, and changed copies of claims."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from steersman.api.core.v1 import Pod
from steersman.api.resource.v1 import ResourceClaim, ResourceClaimConsumerReference
from steersman.machinery.built_in.pod_state import is_terminal
from steersman.machinery.built_in.resource_claims import DELETE_PROTECTION


def is_done(pod: Pod) -> bool:
    """Return True if a pod no longer uses its claims: it has ended, or is deleted before it got a node."""
    return is_terminal(pod) or (pod.metadata.deletion_timestamp is not None and not pod.spec.node_name)


def is_pod(consumer: ResourceClaimConsumerReference) -> bool:
    """Return True if the consumer is a pod. Other consumers keep their reservation."""
    return not consumer.api_group and consumer.resource == "pods"


def owner_of(claim: ResourceClaim) -> tuple[str, str]:
    """Return the name and uid of the pod that a claim was created for; ("", "") for other claims."""
    for each in claim.metadata.owner_references:
        if each.controller and each.api_version == "v1" and each.kind == "Pod":
            return each.name, each.uid
    return "", ""


def is_protected(claim: ResourceClaim) -> bool:
    """Return True if a claim has the finalizer that protects its allocation."""
    return DELETE_PROTECTION in claim.metadata.finalizers


def with_consumers(claim: ResourceClaim, consumers: Sequence[ResourceClaimConsumerReference]) -> ResourceClaim:
    """Return a copy of a claim that is reserved for these consumers."""
    return msgspec.structs.replace(claim, status=msgspec.structs.replace(claim.status, reserved_for=list(consumers)))


def deallocated(claim: ResourceClaim) -> ResourceClaim:
    """Return a copy of a claim without an allocation."""
    return msgspec.structs.replace(claim, status=msgspec.structs.replace(claim.status, allocation=None))


def without_protection(claim: ResourceClaim) -> ResourceClaim:
    """Return a copy of a claim without the finalizer that protects its allocation."""
    finalizers = [each for each in claim.metadata.finalizers if each != DELETE_PROTECTION]
    return msgspec.structs.replace(claim, metadata=msgspec.structs.replace(claim.metadata, finalizers=finalizers))
