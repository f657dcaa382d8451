"""PersistentVolumeClaims that are not bound, and PersistentVolumes that cannot be used."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

from steersman.api.core.v1 import PersistentVolume, PersistentVolumeClaim
from steersman.api.storage.v1 import StorageClass
from steersman.client.api_resource import APIResource
from steersman.client.resources import (
    CSI_DRIVERS,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    STORAGE_CLASSES,
)
from steersman.controllers.volumes.binder.matching import unsuitable
from steersman.explain.commands import patch, why
from steersman.explain.explainer import Explainer
from steersman.explain.finding import Finding, Suggestion, at_event, at_field, error, note, reference, warning
from steersman.explain.warnings import uid_of
from steersman.explain.world import World
from steersman.machinery.built_in.classes import DEFAULT_STORAGE_CLASS, is_default, storage_class_of
from steersman.machinery.built_in.volumes import NO_PROVISIONER, WAIT_FOR_FIRST_CONSUMER, claim_names, storage_of
from steersman.machinery.selectors.labels import SelectorError, from_label_selector
from steersman.machinery.suggestions import did_you_mean

_SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
_PROVISIONERS: Final = (
    "volume.kubernetes.io/storage-provisioner",
    "volume.beta.kubernetes.io/storage-provisioner",
)
_MOST_VOLUMES: Final = 10
"""Most volumes whose mismatch is reported one by one."""


def _summarize(claim: PersistentVolumeClaim) -> str:
    status, requested = claim.status, storage_of(claim.spec.resources.requests)
    of_class = storage_class_of(claim)
    parts = [status.phase or "no phase", f"{requested} {','.join(claim.spec.access_modes)}"]
    parts.append(f"class {of_class}" if of_class else "no class")
    return ", ".join(parts) + (f", volume {claim.spec.volume_name}" if claim.spec.volume_name else "")


def claim_fault(claim: PersistentVolumeClaim) -> str:
    """Return the reason why a claim is unhealthy, "" if it is not."""
    return "" if claim.status.phase == "Bound" else f"{claim.status.phase or 'no phase'}, not bound to a volume"


async def _check_lost(world: World, resource: APIResource[Any], claim: PersistentVolumeClaim) -> AsyncIterator[Finding]:
    if claim.status.phase == "Lost":
        subject = reference(resource, claim)
        text = f"the volume {claim.spec.volume_name} that it was bound to is gone"
        yield error("VolumeLost", text, at_field(subject, ".spec.volumeName", claim.spec.volume_name))


async def _check_class(
    world: World, resource: APIResource[Any], claim: PersistentVolumeClaim
) -> AsyncIterator[Finding]:
    """Yield findings about the class: missing, none where a default is expected, waiting for a pod, provisioner."""
    if claim.status.phase in ("Bound", "Lost") or claim.spec.volume_name:
        return
    subject, name = reference(resource, claim), storage_class_of(claim)
    classes = await world.list(STORAGE_CLASSES)
    if not name:
        if claim.spec.storage_class_name is None:
            field = at_field(subject, ".spec.storageClassName", None)
            defaults = [each.metadata.name for each in classes if is_default(each, DEFAULT_STORAGE_CLASS)]
            known = ", ".join(each.metadata.name for each in classes[:5]) or "none"
            if not defaults:
                text = f"it names no StorageClass and none is the default (there are: {known}): only a PV without class fits"
                yield warning("NoDefaultClass", text, field)
        return
    field = at_field(subject, ".spec.storageClassName", name)
    storage_class = next((each for each in classes if each.metadata.name == name), None)
    if storage_class is None:
        known_names = [each.metadata.name for each in classes]
        text = f"StorageClass {name} does not exist{did_you_mean(name, known_names)}"
        yield error("StorageClassMissing", text, field)
        return
    for each in await _class_findings(world, claim, storage_class):
        yield each


async def _class_findings(world: World, claim: PersistentVolumeClaim, found: StorageClass) -> list[Finding]:
    of_class, name = reference(STORAGE_CLASSES, found), found.metadata.name
    subject = reference(PERSISTENT_VOLUME_CLAIMS, claim)
    if found.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER and _SELECTED_NODE not in claim.metadata.annotations:
        mode = at_field(of_class, ".volumeBindingMode", found.volume_binding_mode)
        pods = [
            each
            for each in await world.list(PODS, claim.metadata.namespace)
            if claim.metadata.name in claim_names(each)
        ]
        if not pods:
            text = f"StorageClass {name} binds a claim once a pod uses it (WaitForFirstConsumer), and no pod does"
            return [error("NoConsumer", text, mode)]
        pod = reference(PODS, pods[0])
        text = f"StorageClass {name} binds it once the scheduler has a node for pod {pods[0].metadata.name}"
        look = Suggestion("look at the pod", why(pod))
        return [error("WaitsForScheduler", text, mode, at_field(pod, ".spec.nodeName", None), suggestions=(look,))]
    provisioner = at_field(of_class, ".provisioner", found.provisioner)
    if found.provisioner == NO_PROVISIONER:
        text = f"StorageClass {name} creates no volumes (provisioner {NO_PROVISIONER}): a PV must be made by hand"
        return [note("NoProvisioner", text, provisioner)]
    asked = next((each for each in _PROVISIONERS if each in claim.metadata.annotations), "")
    drivers = {each.metadata.name for each in await world.list(CSI_DRIVERS)}
    if not asked:
        return []
    at_annotation = at_field(subject, f'.metadata.annotations["{asked}"]', claim.metadata.annotations[asked])
    if "/" not in found.provisioner and found.provisioner not in drivers:
        text = f"it waits for the provisioner {found.provisioner}, of which no CSIDriver is installed"
        return [error("ProvisionerAbsent", text, provisioner, at_annotation)]
    text = f"it waits for the provisioner {found.provisioner} to create a volume"
    return [warning("WaitsForProvisioner", text, provisioner, at_annotation)]


async def _check_volumes(
    world: World, resource: APIResource[Any], claim: PersistentVolumeClaim
) -> AsyncIterator[Finding]:
    """Yield the reason why each volume does not match."""
    if claim.status.phase in ("Bound", "Lost"):
        return
    subject = reference(resource, claim)
    volumes = await world.list(PERSISTENT_VOLUMES)
    if claim.spec.volume_name:
        volume = next((each for each in volumes if each.metadata.name == claim.spec.volume_name), None)
        field = at_field(subject, ".spec.volumeName", claim.spec.volume_name)
        if volume is None:
            yield error("VolumeMissing", f"it names volume {claim.spec.volume_name}, which does not exist", field)
        elif why_not := mismatch(volume, claim):
            yield error("VolumeMismatch", f"it names volume {volume.metadata.name}: {why_not[0]}", field, why_not[1])
        return
    reasons: dict[str, list[tuple[PersistentVolume, Any]]] = {}
    for volume in volumes:
        why_not = mismatch(volume, claim)
        if why_not is None:
            text = f"volume {volume.metadata.name} matches and will be bound"
            of_volume = reference(PERSISTENT_VOLUMES, volume)
            yield note("VolumeMatches", text, at_field(of_volume, ".status.phase", volume.status.phase))
            return
        reasons.setdefault(why_not[0], []).append((volume, why_not[1]))
    if not volumes:
        requests = at_field(subject, ".spec.resources.requests", claim.spec.resources.requests)
        yield note("NoVolumes", "there is no PersistentVolume", requests)
    elif reasons:
        ordered = sorted(reasons.items(), key=lambda each: len(each[1]), reverse=True)[:_MOST_VOLUMES]
        parts = [f"{_names([volume for volume, _ in group])}: {reason}" for reason, group in ordered]
        evidence = [group[0][1] for _, group in ordered]
        yield error("NoMatchingVolume", f"no PersistentVolume matches: {'; '.join(parts)}", *evidence)


def _names(volumes: Sequence[PersistentVolume]) -> str:
    shown = ", ".join(each.metadata.name for each in volumes[:3])
    return shown if len(volumes) <= 3 else f"{len(volumes)} volumes ({shown}, ...)"


def mismatch(volume: PersistentVolume, claim: PersistentVolumeClaim) -> tuple[str, Any] | None:
    """Return the reason why a volume cannot be bound to a claim, and the evidence; None if it can."""
    subject, ref = reference(PERSISTENT_VOLUMES, volume), volume.spec.claim_ref
    if ref is not None:
        mine = (ref.namespace, ref.name) == (claim.metadata.namespace, claim.metadata.name)
        if not mine:
            return "is bound to another claim", at_field(subject, ".spec.claimRef", f"{ref.namespace}/{ref.name}")
        if ref.uid and ref.uid != claim.metadata.uid:
            return "was bound to an earlier claim of this name", at_field(subject, ".spec.claimRef.uid", ref.uid)
    elif volume.status.phase != "Available" and volume.status.phase:
        return f"is {volume.status.phase}", at_field(subject, ".status.phase", volume.status.phase)
    problem = unsuitable(volume, claim)
    if problem:
        return _in_numbers(volume, claim, problem)
    if claim.spec.selector is not None:
        try:
            selected = from_label_selector(claim.spec.selector).matches(volume.metadata.labels)
        except SelectorError as invalid:
            return f"the selector is invalid: {invalid}", at_field(subject, ".metadata.labels", volume.metadata.labels)
        if not selected:
            return "its labels do not match the selector", at_field(subject, ".metadata.labels", volume.metadata.labels)
    return None


def _in_numbers(volume: PersistentVolume, claim: PersistentVolumeClaim, problem: str) -> tuple[str, Any]:
    """Return a mismatch with the two values that do not fit, and its evidence."""
    subject = reference(PERSISTENT_VOLUMES, volume)
    if problem == "requested PV is too small":
        has, requested = storage_of(volume.spec.capacity), storage_of(claim.spec.resources.requests)
        return f"too small ({has}, requested {requested})", at_field(subject, ".spec.capacity.storage", has)
    if problem == "storageClassName does not match":
        text = f"class {storage_class_of(volume) or 'none'} instead of {storage_class_of(claim) or 'none'}"
        return text, at_field(subject, ".spec.storageClassName", volume.spec.storage_class_name)
    if problem == "incompatible accessMode":
        lacking = ",".join(each for each in claim.spec.access_modes if each not in volume.spec.access_modes)
        return f"does not offer access mode {lacking}", at_field(subject, ".spec.accessModes", volume.spec.access_modes)
    if problem == "incompatible volumeMode":
        return "another volumeMode", at_field(subject, ".spec.volumeMode", volume.spec.volume_mode)
    return problem, at_field(subject, ".metadata.name", volume.metadata.name)


async def _check_resize(
    world: World, resource: APIResource[Any], claim: PersistentVolumeClaim
) -> AsyncIterator[Finding]:
    """Yield a finding if a bound claim asks for more than its volume has."""
    has, requested = claim.status.capacity.get("storage", ""), storage_of(claim.spec.resources.requests)
    if claim.status.phase != "Bound" or not has or has == requested:
        return
    subject = reference(resource, claim)
    evidence = [
        at_field(subject, ".status.capacity.storage", has),
        at_field(subject, ".spec.resources.requests.storage", requested),
    ]
    name = storage_class_of(claim)
    storage_class = next((each for each in await world.list(STORAGE_CLASSES) if each.metadata.name == name), None)
    text = f"it asks for {requested} and has {has}"
    if storage_class is not None and not storage_class.allow_volume_expansion:
        evidence.append(
            at_field(
                reference(STORAGE_CLASSES, storage_class), ".allowVolumeExpansion", storage_class.allow_volume_expansion
            )
        )
        text += f": StorageClass {storage_class.metadata.name} does not allow expansion"
    for condition in claim.status.conditions:
        text += f"; {condition.type}: {condition.message or condition.reason or condition.status}"
    yield warning("Resizing", text, *evidence)


async def _check_provisioning(
    world: World, resource: APIResource[Any], claim: PersistentVolumeClaim
) -> AsyncIterator[Finding]:
    """Yield the last failure of a provisioner, such as an exhausted quota of the cloud."""
    if claim.status.phase in ("Bound", "Lost"):
        return
    events = await world.events(reference(resource, claim), uid_of(claim))
    failed = [each for each in events if each.reason == "ProvisioningFailed"]
    classes = {each.metadata.name for each in await world.list(STORAGE_CLASSES)}
    if failed and storage_class_of(claim) in classes:
        yield error("ProvisioningFailed", f"the provisioner failed: {failed[-1].message}", at_event(failed[-1]))


VOLUME_CLAIM: Final = Explainer(
    PERSISTENT_VOLUME_CLAIMS,
    _summarize,
    (_check_lost, _check_class, _check_provisioning, _check_volumes, _check_resize),
    claim_fault,
)


def _summarize_volume(volume: PersistentVolume) -> str:
    ref = volume.spec.claim_ref
    bound = f", claim {ref.namespace}/{ref.name}" if ref is not None else ""
    return f"{volume.status.phase or 'no phase'}, {storage_of(volume.spec.capacity)}{bound}"


def volume_fault(volume: PersistentVolume) -> str:
    """Return the reason why a volume is unhealthy, "" if it is not."""
    if volume.status.phase == "Failed":
        return f"Failed: {volume.status.message or volume.status.reason}"
    return "Released: its claim is gone, and no new claim can use it" if volume.status.phase == "Released" else ""


async def _check_volume(_: World, resource: APIResource[Any], volume: PersistentVolume) -> AsyncIterator[Finding]:
    subject, ref = reference(resource, volume), volume.spec.claim_ref
    phase = at_field(subject, ".status.phase", volume.status.phase)
    policy = at_field(subject, ".spec.persistentVolumeReclaimPolicy", volume.spec.persistent_volume_reclaim_policy)
    if volume.status.phase == "Failed":
        yield error(
            "VolumeFailed", f"its reclamation failed: {volume.status.message or volume.status.reason}", phase, policy
        )
    elif volume.status.phase == "Released" and ref is not None:
        text = f"claim {ref.namespace}/{ref.name} is gone and the volume is kept: no new claim can use it"
        free = patch("make it available again, with its data", subject, {"spec": {"claimRef": None}})
        yield warning("VolumeReleased", text, phase, policy, suggestions=(free,))


VOLUME: Final = Explainer(PERSISTENT_VOLUMES, _summarize_volume, (_check_volume,), volume_fault)
