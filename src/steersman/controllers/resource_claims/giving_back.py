"""When claims are given back, and what they are then."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from steersman.api.core.v1 import Pod
from steersman.api.resource.v1 import ResourceClaim, ResourceClaimConsumerReference
from steersman.machinery.built_in.pod_state import is_terminal
from steersman.machinery.built_in.resource_claims import DELETE_PROTECTION


def is_done(pod: Pod) -> bool:
    """Whether a pod will not use its claims any more: it has ended, or goes before it had a node."""
    return is_terminal(pod) or (pod.metadata.deletion_timestamp is not None and not pod.spec.node_name)


def is_pod(consumer: ResourceClaimConsumerReference) -> bool:
    """Whether it is a pod for which a claim is reserved; what else there may be stays."""
    return not consumer.api_group and consumer.resource == "pods"


def owner_of(claim: ResourceClaim) -> tuple[str, str]:
    """Name and uid of the pod that a claim was made for; "" for others."""
    for each in claim.metadata.owner_references:
        if each.controller and each.api_version == "v1" and each.kind == "Pod":
            return each.name, each.uid
    return "", ""


def is_held(claim: ResourceClaim) -> bool:
    """Whether a claim is kept because it has devices."""
    return DELETE_PROTECTION in claim.metadata.finalizers


def with_consumers(claim: ResourceClaim, consumers: Sequence[ResourceClaimConsumerReference]) -> ResourceClaim:
    """A claim that is reserved for these."""
    return msgspec.structs.replace(claim, status=msgspec.structs.replace(claim.status, reserved_for=list(consumers)))


def deallocated(claim: ResourceClaim) -> ResourceClaim:
    """A claim that has no devices any more."""
    return msgspec.structs.replace(claim, status=msgspec.structs.replace(claim.status, allocation=None))


def without_protection(claim: ResourceClaim) -> ResourceClaim:
    """A claim that may go."""
    finalizers = [each for each in claim.metadata.finalizers if each != DELETE_PROTECTION]
    return msgspec.structs.replace(claim, metadata=msgspec.structs.replace(claim.metadata, finalizers=finalizers))
