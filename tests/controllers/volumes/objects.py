"""Volumes, claims, classes and pods for tests."""

from __future__ import annotations

from typing import Any

from steersman.api.core.v1 import (
    Container,
    HostPathVolumeSource,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeClaimVolumeSource,
    PersistentVolumeSpec,
    Pod,
    PodSpec,
    Volume,
    VolumeResourceRequirements,
)
from steersman.api.meta.v1 import ObjectMeta
from steersman.api.storage.v1 import StorageClass


def claim(name: str = "a", size: str = "1Gi", storage_class: str | None = "", **spec: Any) -> PersistentVolumeClaim:
    """Return a claim in the namespace `default`."""
    resources = VolumeResourceRequirements(requests={"storage": size})
    spec.setdefault("access_modes", ["ReadWriteOnce"])
    return PersistentVolumeClaim(
        metadata=ObjectMeta(name=name, namespace="default"),
        spec=PersistentVolumeClaimSpec(resources=resources, storage_class_name=storage_class, **spec),
    )


def volume(name: str, size: str = "1Gi", **spec: Any) -> PersistentVolume:
    """Return a volume, with a hostPath source unless the spec has another one."""
    spec.setdefault("access_modes", ["ReadWriteOnce"])
    if spec.get("csi") is None:
        spec.setdefault("host_path", HostPathVolumeSource(path="/data"))
    return PersistentVolume(
        metadata=ObjectMeta(name=name), spec=PersistentVolumeSpec(capacity={"storage": size}, **spec)
    )


def storage_class(name: str, provisioner: str = "example.com/p", **more: Any) -> StorageClass:
    """Return a storage class."""
    return StorageClass(metadata=ObjectMeta(name=name), provisioner=provisioner, **more)


def pod(name: str, claim_name: str, node: str = "") -> Pod:
    """Return a pod that uses a claim."""
    source = Volume(name="v", persistent_volume_claim=PersistentVolumeClaimVolumeSource(claim_name=claim_name))
    spec = PodSpec(node_name=node, containers=[Container(name="c", image="i")], volumes=[source])
    return Pod(metadata=ObjectMeta(name=name, namespace="default"), spec=spec)
