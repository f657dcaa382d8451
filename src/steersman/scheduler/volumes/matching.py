"""Matching of volumes with claims and nodes (component-helpers storage/volume)."""

from __future__ import annotations

from collections.abc import Iterable, Set

from steersman.api.core.v1 import Node, PersistentVolume, PersistentVolumeClaim
from steersman.api.storage.v1 import StorageClass
from steersman.machinery.built_in.classes import storage_class_of
from steersman.machinery.built_in.volumes import allows, attributes_class_of, is_bound_to, mode_of, storage_of
from steersman.machinery.selectors.labels import SelectorError, from_label_selector
from steersman.machinery.values.quantity import parse


def allows_provisioning(storage_class: StorageClass, node: Node) -> bool:
    """Return True if volumes of a class can be provisioned for a node (MatchTopologySelectorTerms)."""
    terms = storage_class.allowed_topologies
    labels = node.metadata.labels
    return not terms or any(
        bool(term.match_label_expressions)
        and all(labels.get(each.key) in (each.values or ()) for each in term.match_label_expressions)
        for term in terms
    )


def matching_volume(
    claim: PersistentVolumeClaim, volumes: Iterable[PersistentVolume], node: Node, taken: Set[str]
) -> PersistentVolume | None:
    """Return the volume that is pre-bound to a claim, or else the smallest matching one on a node; None if there is
    none.
    """
    try:
        selector = None if claim.spec.selector is None else from_label_selector(claim.spec.selector)
    except SelectorError:
        return None
    wanted = parse(storage_of(claim.spec.resources.requests))
    smallest: PersistentVolume | None = None
    least = None
    for volume in volumes:
        spec = volume.spec
        if volume.metadata.name in taken or (spec.claim_ref is not None and not is_bound_to(volume, claim)):
            continue
        capacity = parse(storage_of(spec.capacity))
        if capacity < wanted or volume.metadata.deletion_timestamp or not _are_alike(claim, volume):
            continue
        if is_bound_to(volume, claim):
            return volume if allows(volume, node.metadata.name, node.metadata.labels) else None
        if (
            volume.status.phase == "Available"
            and (selector is None or selector.matches(volume.metadata.labels))
            and storage_class_of(volume) == storage_class_of(claim)
            and set(claim.spec.access_modes) <= set(spec.access_modes)
            and (least is None or capacity < least)
            and allows(volume, node.metadata.name, node.metadata.labels)
        ):
            smallest, least = volume, capacity
    return smallest


def _are_alike(claim: PersistentVolumeClaim, volume: PersistentVolume) -> bool:
    """Return True if volume mode and attributes class are equal."""
    return mode_of(claim) == mode_of(volume) and attributes_class_of(claim) == attributes_class_of(volume)
