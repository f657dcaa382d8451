"""Volumes and claims: who is bound to whom, and what becomes of volumes whose claims are gone."""

from __future__ import annotations

from typing import Any

from tools.controllers.world import World

RESYNC = 16.0
"""Seconds after which kube-controller-manager has looked at everything again."""
_MINE: dict[str, Any] = {"accessModes": ["ReadWriteOnce"]}


def volume(world: World, name: str, size: str = "1Gi", **spec: Any) -> str:
    """Makes a volume of a local path, unless the spec says another source; its name."""
    sources = {"hostPath", "nfs", "csi", "local"}
    source = {} if sources & spec.keys() else {"hostPath": {"path": "/data"}}
    fields = {"persistentVolumeReclaimPolicy": "Retain", **_MINE, "capacity": {"storage": size}, **source}
    labels = spec.pop("labels", {})
    metadata = {"name": f"{world.name}-{name}", "labels": labels, "annotations": spec.pop("annotations", {})}
    world.create({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": metadata, "spec": {**fields, **spec}})
    return str(metadata["name"])


def claim(world: World, name: str = "a", size: str = "1Gi", **spec: Any) -> None:
    """Makes a claim without a class, unless the spec names one."""
    annotations = spec.pop("annotations", {})
    fields = {"storageClassName": "", **_MINE, "resources": {"requests": {"storage": size}}, **spec}
    if fields["storageClassName"] is None:
        del fields["storageClassName"]
    world.create_from("v1", "PersistentVolumeClaim", name, fields, annotations=annotations)


def storage_class(world: World, provisioner: str = "example.com/p", **more: Any) -> str:
    """Makes a storage class; its name."""
    metadata = {"name": f"{world.name}-class", "annotations": more.pop("annotations", {})}
    given = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": metadata}
    world.create({**given, "provisioner": provisioner, **more})
    return str(metadata["name"])


def bound(world: World) -> None:
    volume(world, "a")
    world.snapshot("available")
    claim(world)
    world.snapshot("bound")
    world.delete("PersistentVolumeClaim", "a")
    world.snapshot("released")


def smallest(world: World) -> None:
    for name, size in (("small", "1Gi"), ("large", "5Gi"), ("middle", "3Gi")):
        volume(world, name, size)
    world.settle()
    claim(world, "a", "2Gi")
    world.snapshot("a")
    claim(world, "b", "2Gi")
    world.snapshot("b")
    claim(world, "c", "2Gi")
    world.snapshot("c")


def suitable(world: World) -> None:
    volume(world, "block", volumeMode="Block")
    volume(world, "many", accessModes=["ReadWriteOnce", "ReadWriteMany"])
    volume(world, "labelled", labels={"a": "b"})
    volume(world, "classed", storageClassName="other")
    world.settle()
    claim(world, "block", volumeMode="Block")
    claim(world, "many", accessModes=["ReadWriteMany"])
    claim(world, "labelled", selector={"matchLabels": {"a": "b"}})
    claim(world, "classed", storageClassName="other")
    claim(world, "none", selector={"matchLabels": {"a": "c"}})
    world.snapshot("bound")


def meant_for_claim(world: World) -> None:
    ref = {"namespace": world.name, "name": "a"}
    volume(world, "a", "5Gi", claimRef=ref, storageClassName="other")
    volume(world, "b")
    world.snapshot("available")
    claim(world)
    world.snapshot("bound")
    world.delete("PersistentVolumeClaim", "a")
    world.snapshot("released")


def meant_for_other_mode(world: World) -> None:
    volume(world, "a", claimRef={"namespace": world.name, "name": "a"}, volumeMode="Block")
    world.settle()
    claim(world)
    world.snapshot("mismatch")


def named_by_claim(world: World) -> None:
    claim(world, volumeName=f"{world.name}-a")
    world.snapshot("waiting")
    volume(world, "a", "2Gi")
    world.wait(RESYNC)
    world.snapshot("bound")


def named_but_unsuitable(world: World) -> None:
    volume(world, "small")
    volume(world, "classed", storageClassName="other")
    volume(world, "block", volumeMode="Block")
    volume(world, "once")
    world.settle()
    claim(world, "small", "2Gi", volumeName=f"{world.name}-small")
    claim(world, "classed", volumeName=f"{world.name}-classed")
    claim(world, "block", volumeName=f"{world.name}-block")
    claim(world, "once", volumeName=f"{world.name}-once", accessModes=["ReadWriteMany"])
    world.snapshot("unsuitable")


def named_but_taken(world: World) -> None:
    volume(world, "a")
    world.settle()
    claim(world, "a", volumeName=f"{world.name}-a")
    world.settle()
    claim(world, "b", volumeName=f"{world.name}-a")
    world.snapshot("taken")
    world.delete("PersistentVolumeClaim", "a")
    world.snapshot("released")


def lost(world: World) -> None:
    name = volume(world, "a")
    world.settle()
    claim(world)
    world.settle()
    world.delete("PersistentVolume", name)
    world.snapshot("protected")
    world.patch("PersistentVolume", name, {"metadata": {"finalizers": None}})
    world.snapshot("lost")


def made_again(world: World) -> None:
    volume(world, "a")
    world.settle()
    claim(world)
    world.settle()
    world.delete("PersistentVolumeClaim", "a")
    world.settle()
    claim(world)
    world.snapshot("another claim")
    world.patch("PersistentVolume", f"{world.name}-a", {"spec": {"claimRef": None}})
    world.wait(RESYNC)
    world.snapshot("for whoever comes")


def deleted(world: World) -> None:
    policy = {"persistentVolumeReclaimPolicy": "Delete"}
    volume(world, "deletable", hostPath={"path": "/tmp/steersman-volume"}, **policy)
    volume(world, "fixed", hostPath={"path": "/data"}, **policy)
    volume(world, "nfs", nfs={"server": "s", "path": "/"}, **policy)
    volume(world, "local", local={"path": "/"}, nodeAffinity=_affinity(), **policy)
    volume(world, "csi", csi={"driver": "d.example.com", "volumeHandle": world.name}, **policy)
    world.settle()
    for name in ("deletable", "fixed", "nfs", "local", "csi"):
        claim(world, name, volumeName=f"{world.name}-{name}")
    world.snapshot("bound")
    for name in ("deletable", "fixed", "nfs", "local", "csi"):
        world.delete("PersistentVolumeClaim", name)
    world.snapshot("released")


def _affinity() -> Any:
    expression = {"key": "kubernetes.io/hostname", "operator": "In", "values": ["a"]}
    return {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}


def not_recycled(world: World) -> None:
    policy = {"persistentVolumeReclaimPolicy": "Recycle"}
    volume(world, "csi", csi={"driver": "d.example.com", "volumeHandle": world.name}, **policy)
    world.settle()
    claim(world)
    world.settle()
    world.delete("PersistentVolumeClaim", "a")
    world.snapshot("failed")


def without_class(world: World) -> None:
    claim(world)
    claim(world, "b", storageClassName=None)
    world.snapshot("waiting")
    storage_class(world, annotations={"storageclass.kubernetes.io/is-default-class": "true"})
    world.wait(RESYNC)
    world.snapshot("given the default")


def provisioned_elsewhere(world: World) -> None:
    name = storage_class(world)
    claim(world, storageClassName=name)
    world.snapshot("asked for")


def provisioned_nowhere(world: World) -> None:
    claim(world, storageClassName="missing")
    name = storage_class(world, "kubernetes.io/no-such")
    claim(world, "b", storageClassName=name)
    world.snapshot("failed")


def provisioned_by_nobody(world: World) -> None:
    name = storage_class(world, "kubernetes.io/no-provisioner")
    claim(world, storageClassName=name)
    world.snapshot("failed")


def provisioned_by_nfs(world: World) -> None:
    name = storage_class(world, "kubernetes.io/nfs")
    claim(world, storageClassName=name)
    world.snapshot("failed")


def provisioned_by_host_path(world: World) -> None:
    name = storage_class(world, "kubernetes.io/host-path")
    claim(world, storageClassName=name)
    world.snapshot("failed")


def provisioned_by_migrated_plugin(world: World) -> None:
    name = storage_class(world, "kubernetes.io/gce-pd")
    claim(world, storageClassName=name)
    world.snapshot("asked for")


def delayed(world: World) -> None:
    name = storage_class(world, volumeBindingMode="WaitForFirstConsumer")
    volume(world, "a", storageClassName=name)
    claim(world, storageClassName=name)
    world.snapshot("waiting")
    world.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": pod_spec("b")})
    claim(world, "b", storageClassName=name)
    world.snapshot("waiting for a pod")
    world.patch(
        "PersistentVolumeClaim", "a", {"metadata": {"annotations": {"volume.kubernetes.io/selected-node": "n"}}}
    )
    world.snapshot("asked for")
    ref = {"kind": "PersistentVolumeClaim", "apiVersion": "v1", "namespace": world.name, "name": "b"}
    uid = world.get("PersistentVolumeClaim", "b")["metadata"]["uid"]
    world.patch("PersistentVolume", f"{world.name}-a", {"spec": {"claimRef": {**ref, "uid": uid}}})
    world.snapshot("bound by the scheduler")


def pod_spec(claim_name: str = "", **spec: Any) -> Any:
    """A pod that uses a claim."""
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": claim_name}}] if claim_name else []
    return {"containers": [{"name": "c", "image": "i"}], "volumes": volumes, **spec}


def provisioned(world: World) -> None:
    """Bind a volume that an external provisioner has made for the claim."""
    name = storage_class(world)
    claim(world, storageClassName=name)
    world.settle()
    made = world.get("PersistentVolumeClaim", "a")["metadata"]
    ref = {
        "kind": "PersistentVolumeClaim",
        "apiVersion": "v1",
        "namespace": world.name,
        "name": "a",
        "uid": made["uid"],
    }
    volume(
        world,
        "made",
        claimRef=ref,
        storageClassName=name,
        persistentVolumeReclaimPolicy="Delete",
        csi={"driver": "d.example.com", "volumeHandle": world.name},
        annotations={"pv.kubernetes.io/provisioned-by": "example.com/p"},
    )
    world.snapshot("bound")
    world.delete("PersistentVolumeClaim", "a")
    world.snapshot("released")


def provisioned_in_vain(world: World) -> None:
    """A volume is made for a claim that has got another one."""
    name = storage_class(world)
    volume(world, "ready", storageClassName=name)
    world.settle()
    claim(world, storageClassName=name)
    world.settle()
    made = world.get("PersistentVolumeClaim", "a")["metadata"]
    ref = {
        "kind": "PersistentVolumeClaim",
        "apiVersion": "v1",
        "namespace": world.name,
        "name": "a",
        "uid": made["uid"],
    }
    annotations = {"pv.kubernetes.io/provisioned-by": "example.com/p", "pv.kubernetes.io/bound-by-controller": "yes"}
    volume(
        world,
        "late",
        claimRef=ref,
        storageClassName=name,
        persistentVolumeReclaimPolicy="Delete",
        csi={"driver": "d.example.com", "volumeHandle": world.name},
        annotations=annotations,
    )
    volume(world, "other", claimRef=ref, storageClassName=name)
    world.snapshot("released")


def larger(world: World) -> None:
    name = storage_class(world, allowVolumeExpansion=True)
    volume(world, "a", storageClassName=name, csi={"driver": "d.example.com", "volumeHandle": world.name})
    world.settle()
    claim(world, storageClassName=name)
    world.settle()
    world.patch("PersistentVolumeClaim", "a", {"spec": {"resources": {"requests": {"storage": "2Gi"}}}})
    world.snapshot("asked for")


def ephemeral(world: World) -> None:
    template = {
        "metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}},
        "spec": {"storageClassName": "", **_MINE, "resources": {"requests": {"storage": "1Gi"}}},
    }
    volumes = [{"name": "v", "ephemeral": {"volumeClaimTemplate": template}}]
    spec = {"containers": [{"name": "c", "image": "i"}], "volumes": volumes}
    volume(world, "a")
    world.settle()
    world.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec})
    world.snapshot("made")
    claim(world, "q-v")
    world.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "q"}, "spec": spec})
    world.snapshot("taken")


SCENARIOS = {
    f"volume_{each.__name__}": each
    for each in (
        bound,
        smallest,
        suitable,
        meant_for_claim,
        meant_for_other_mode,
        named_by_claim,
        named_but_unsuitable,
        named_but_taken,
        lost,
        made_again,
        deleted,
        not_recycled,
        without_class,
        provisioned_elsewhere,
        provisioned_nowhere,
        provisioned_by_nobody,
        provisioned_by_nfs,
        provisioned_by_host_path,
        provisioned_by_migrated_plugin,
        delayed,
        provisioned,
        provisioned_in_vain,
        larger,
        ephemeral,
    )
}
