"""Objects that are being deleted and do not go: finalizers, and the parts that hold them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Final

from steersman.api.core.v1 import PersistentVolume
from steersman.api.meta.v1 import ObjectMeta
from steersman.client.api_resource import APIResource
from steersman.client.resources import PODS
from steersman.explain.commands import why
from steersman.explain.finding import Finding, Reference, Severity, Suggestion, at_field, error, reference
from steersman.explain.warnings import age_of, uid_of
from steersman.explain.world import Unreadable, World
from steersman.machinery.built_in.pod_state import is_terminal
from steersman.machinery.built_in.volumes import claim_names
from steersman.machinery.values.times import human_duration

_FOREGROUND: Final = "foregroundDeletion"
_CLAIM_PROTECTION: Final = "kubernetes.io/pvc-protection"
_VOLUME_PROTECTION: Final = "kubernetes.io/pv-protection"
_MOST: Final = 5
"""Most objects of a kind that are named one by one."""
_HOLDERS: Final = {
    _FOREGROUND: "the garbage collector removes it once all dependents with blockOwnerDeletion are gone",
    "orphan": "the garbage collector removes it once the dependents no longer refer to the object",
    "kubernetes": "the namespace controller removes it once the namespace is empty",
    _CLAIM_PROTECTION: "the PVC protection controller removes it once no pod uses the claim",
    _VOLUME_PROTECTION: "the PV protection controller removes it once the volume is not bound",
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
    at_time = at_field(subject, ".metadata.deletionTimestamp", since)
    for each in map(str, finalizers):
        holder = _HOLDERS.get(each, f"the controller that owns {each.partition('/')[0]} must remove it")
        text = f"has been waiting to be deleted{ago}: finalizer {each}: {holder}"
        because = tuple(await _holders(world, resource, obj, each))
        yield error("Finalizer", text, at_field(subject, ".metadata.finalizers", each), at_time, because=because)


async def _holders(world: World, resource: APIResource[Any], obj: Any, finalizer: str) -> list[Finding]:
    """Return findings about the objects for which a finalizer waits. Raises Unreadable."""
    subject = reference(resource, obj)
    if finalizer == _FOREGROUND:
        return await _dependents(world, resource, uid_of(obj), subject.namespace)
    if finalizer == _CLAIM_PROTECTION:
        pods = [
            each
            for each in await world.list(PODS, subject.namespace)
            if subject.name in claim_names(each) and not is_terminal(each)
        ]
        return [
            _used_by(reference(PODS, each), ".spec.volumes[*].persistentVolumeClaim.claimName", subject)
            for each in pods[:_MOST]
        ]
    if finalizer == _VOLUME_PROTECTION and isinstance(obj, PersistentVolume) and obj.spec.claim_ref is not None:
        ref = obj.spec.claim_ref
        of_claim = Reference("v1", "PersistentVolumeClaim", ref.namespace, ref.name)
        return [_used_by(of_claim, ".spec.volumeName", subject)]
    return []


def _used_by(user: Reference, field: str, used: Reference) -> Finding:
    look = Suggestion("look at it", why(user))
    text = f"{user} uses it"
    return error("InUse", text, at_field(user, field, used.name), suggestions=(look,))


async def _dependents(world: World, resource: APIResource[Any], uid: str, namespace: str) -> list[Finding]:
    """Return a finding for each kind of dependent that blocks the deletion of its owner."""
    findings: list[Finding] = []
    for each in (await world.resources()).served:
        if "list" not in each.verbs or (resource.namespaced and not each.resource.namespaced):
            continue
        if each.resource.plural == "events":
            continue
        try:
            objects = await world.list(each.resource, namespace if each.resource.namespaced else "")
        except Unreadable as problem:
            findings.append(Finding(Severity.UNKNOWN, "Unreadable", str(problem)))
            continue
        blocking = [one for one in objects if _blocks(one.metadata, uid)]
        if blocking:
            first = reference(each.resource, blocking[0])
            text = f"{len(blocking)} dependent {each.resource.plural} are left, such as {first.name}"
            held = [one.metadata.finalizers for one in blocking if one.metadata.finalizers]
            if held:
                text += f"; {len(held)} of them have finalizers ({', '.join(held[0][:3])})"
            field = at_field(first, ".metadata.ownerReferences", blocking[0].metadata.owner_references)
            findings.append(
                error("DependentsRemaining", text, field, suggestions=(Suggestion("look at it", why(first)),))
            )
    return findings


def _blocks(metadata: ObjectMeta, uid: str) -> bool:
    return any(each.uid == uid and each.block_owner_deletion for each in metadata.owner_references)
