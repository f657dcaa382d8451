"""Objects that are being deleted and do not go: finalizers, and the parts that hold them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Final

from steersman.client.api_resource import APIResource
from steersman.explain.finding import Finding, Severity, at_field, reference
from steersman.explain.warnings import age_of
from steersman.explain.world import World
from steersman.machinery.values.times import human_duration

_FOREGROUND: Final = "foregroundDeletion"
_HOLDERS: Final = {
    _FOREGROUND: "the garbage collector removes it once all dependents with blockOwnerDeletion are gone",
    "orphan": "the garbage collector removes it once the dependents no longer refer to the object",
    "kubernetes": "the namespace controller removes it once the namespace is empty",
    "kubernetes.io/pvc-protection": "the PVC protection controller removes it once no pod uses the claim",
    "kubernetes.io/pv-protection": "the PV protection controller removes it once the volume is not bound",
    "kubernetes.io/vac-protection": "its controller removes it once no volume or claim uses the class",
    "batch.kubernetes.io/job-tracking": "the job controller removes it once the pod is counted in its job",
    "service.kubernetes.io/load-balancer-cleanup": "the cloud's service controller removes it with the load balancer",
    "customresourcecleanup.apiextensions.k8s.io": "the API server removes it once all custom objects are gone",
    "external-provisioner.volume.kubernetes.io/finalizer": "the CSI driver's provisioner removes it with the volume",
    "resource.kubernetes.io/delete-protection": "the resource claim controller removes it once no pod uses the claim",
}
"""Known finalizers, and the parts that remove them."""


async def check_deletion(world: World, resource: APIResource[Any], obj: Any) -> AsyncIterator[Finding]:
    """Yield a finding for each finalizer of an object that is being deleted."""
    metadata = obj.get("metadata") or {} if isinstance(obj, dict) else obj.metadata
    since = metadata.get("deletionTimestamp") if isinstance(metadata, dict) else metadata.deletion_timestamp
    finalizers = (metadata.get("finalizers") if isinstance(metadata, dict) else metadata.finalizers) or ()
    if not since:
        return
    subject = reference(resource, obj)
    seconds = age_of(world, since)
    ago = "" if seconds is None else f" for {human_duration(max(seconds, 0))}"
    for each in map(str, finalizers):
        holder = _HOLDERS.get(each, f"the controller that owns {each.partition('/')[0]} must remove it")
        yield Finding(
            Severity.ERROR,
            "Finalizer",
            f"has been waiting to be deleted{ago}: finalizer {each}: {holder}",
            (at_field(subject, ".metadata.finalizers", each), at_field(subject, ".metadata.deletionTimestamp", since)),
        )
