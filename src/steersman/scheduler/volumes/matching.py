"""Which volume is for which claim, and which nodes it allows (component-helpers storage/volume)."""

from __future__ import annotations

from collections.abc import Iterable, Set

from steersman.api.core.v1 import Node, PersistentVolume, PersistentVolumeClaim
from steersman.api.storage.v1 import StorageClass
from steersman.machinery.built_in.node_affinity import node_selector
from steersman.machinery.selectors.labels import SelectorError, from_label_selector
from steersman.machinery.values.quantity import parse
from steersman.scheduler.volumes.store import class_of_claim, class_of_volume


def allows(volume: PersistentVolume, node: Node) -> bool:
    """Whether a volume can be used on a node."""
    affinity = volume.spec.node_affinity
    if affinity is None or affinity.required is None:
        return True
    return node_selector(affinity.required)(node.metadata.name, node.metadata.labels)


def allows_provisioning(storage_class: StorageClass, node: Node) -> bool:
    """Whether volumes of a class can be made for a node (MatchTopologySelectorTerms)."""
    terms = storage_class.allowed_topologies
    labels = node.metadata.labels
    return not terms or any(
        bool(term.match_label_expressions)
        and all(labels.get(each.key) in (each.values or ()) for each in term.match_label_expressions)
        for term in terms
    )


def is_bound_to(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether a volume is meant for a claim, by whoever said so."""
    ref = volume.spec.claim_ref
    if ref is None or (ref.namespace, ref.name) != (claim.metadata.namespace, claim.metadata.name):
        return False
    return not ref.uid or ref.uid == claim.metadata.uid


def matching_volume(
    claim: PersistentVolumeClaim, volumes: Iterable[PersistentVolume], node: Node, taken: Set[str]
) -> PersistentVolume | None:
    """The volume that is meant for a claim, else the smallest that will do on a node."""
    try:
        selector = None if claim.spec.selector is None else from_label_selector(claim.spec.selector)
    except SelectorError:
        return None
    wanted = parse(claim.spec.resources.requests.get("storage", "0"))
    smallest: PersistentVolume | None = None
    least = None
    for volume in volumes:
        spec = volume.spec
        if volume.metadata.name in taken or (spec.claim_ref is not None and not is_bound_to(volume, claim)):
            continue
        capacity = parse(spec.capacity.get("storage", "0"))
        if capacity < wanted or volume.metadata.deletion_timestamp or not _are_alike(claim, volume):
            continue
        if is_bound_to(volume, claim):
            return volume if allows(volume, node) else None
        if (
            volume.status.phase == "Available"
            and (selector is None or selector.matches(volume.metadata.labels))
            and class_of_volume(volume) == class_of_claim(claim)
            and set(claim.spec.access_modes) <= set(spec.access_modes)
            and (least is None or capacity < least)
            and allows(volume, node)
        ):
            smallest, least = volume, capacity
    return smallest


def _are_alike(claim: PersistentVolumeClaim, volume: PersistentVolume) -> bool:
    """Whether mode and attributes are the same."""
    of_claim, of_volume = claim.spec, volume.spec
    mode = of_claim.volume_mode or "Filesystem"
    return mode == (of_volume.volume_mode or "Filesystem") and (
        (of_claim.volume_attributes_class_name or "") == (of_volume.volume_attributes_class_name or "")
    )
