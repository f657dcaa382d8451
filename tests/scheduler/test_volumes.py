"""Pods with volume claims: the nodes they fit on, and what the scheduler writes for them."""

from __future__ import annotations

from typing import Any

from steersman.api.core.v1 import PersistentVolume, PersistentVolumeClaim
from steersman.api.storage.v1 import CSINode, StorageClass
from steersman.client.resources import (
    CSI_NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    STORAGE_CLASSES,
)
from steersman.machinery.codec.serializer import from_plain
from tests.scheduler.scene import Scene, wait_for


async def make_class(scene: Scene, name: str, **more: Any) -> None:
    plain = {"metadata": {"name": name}, "provisioner": "disk.example.com", **more}
    await scene.client.create(STORAGE_CLASSES, from_plain(StorageClass, plain))


async def make_volume(scene: Scene, name: str, node: str = "", **more: Any) -> None:
    spec: dict[str, Any] = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "slow",
        "hostPath": {"path": "/x"},
        **more,
    }
    if node:
        term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]}
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [term]}}
    made = await scene.client.create(
        PERSISTENT_VOLUMES, from_plain(PersistentVolume, {"metadata": {"name": name}, "spec": spec})
    )
    made.status.phase = "Available"
    await scene.client.update_status(PERSISTENT_VOLUMES, made)


async def make_claim(scene: Scene, name: str, *, volume: str = "", **more: Any) -> None:
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "slow",
        "volumeName": volume,
        "resources": {"requests": {"storage": "1Gi"}},
        **more,
    }
    annotations = {"pv.kubernetes.io/bind-completed": "yes"} if volume else {}
    metadata = {"name": name, "namespace": "default", "annotations": annotations}
    plain = {"metadata": metadata, "spec": spec}
    await scene.client.create(PERSISTENT_VOLUME_CLAIMS, from_plain(PersistentVolumeClaim, plain))


def mounting(*claims: str) -> dict[str, Any]:
    return {"volumes": [{"name": each, "persistentVolumeClaim": {"claimName": each}} for each in claims]}


async def test_a_missing_claim_is_reported_and_waited_for(scene: Scene) -> None:
    await scene.node("a")
    await scene.node("b")
    await scene.pod("p", **mounting("data"))
    message = (await scene.wait_for_refusal("p")).message
    assert message == '0/2 nodes are available: persistentvolumeclaim "data" not found. not found'
    await make_volume(scene, "v", "b")
    await make_claim(scene, "data", volume="v")
    assert await scene.wait_for_node("p") == "b"


async def test_a_claim_that_is_not_bound_keeps_the_pod_waiting(scene: Scene) -> None:
    await scene.node("a")
    await make_class(scene, "slow")
    await make_claim(scene, "data")
    await scene.pod("p", **mounting("data"))
    message = (await scene.wait_for_refusal("p")).message
    assert message == "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found"


async def test_the_volume_says_on_which_node(scene: Scene) -> None:
    await scene.node("a")
    await scene.node("b", allocatable={"cpu": "100m"})
    await make_volume(scene, "v", "b")
    await make_claim(scene, "data", volume="v")
    await scene.pod("p", cpu="1", **mounting("data"))
    assert (await scene.wait_for_refusal("p")).message.startswith(
        "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) didn't match PersistentVolume's node affinity."
    )


async def test_a_claim_that_waits_for_its_consumer_gets_the_selected_node(scene: Scene) -> None:
    await scene.node("a")
    await make_class(scene, "slow", volumeBindingMode="WaitForFirstConsumer")
    await make_claim(scene, "data")
    await scene.pod("p", **mounting("data"))

    async def selected() -> str:
        claim = await scene.client.get(PERSISTENT_VOLUME_CLAIMS, "data", "default")
        return claim.metadata.annotations.get("volume.kubernetes.io/selected-node", "")

    assert await wait_for(selected) == "a"
    assert await scene.wait_for_nomination("p") == "a"
    assert (await scene.get("p")).spec.node_name == ""
    await make_volume(scene, "made", "a")
    change = {"metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}, "spec": {"volumeName": "made"}}
    await scene.client.patch(PERSISTENT_VOLUME_CLAIMS, "data", "default", change)
    assert await scene.wait_for_node("p") == "a"


async def test_a_volume_that_is_there_is_bound_to_a_waiting_claim(scene: Scene) -> None:
    await scene.node("a")
    await scene.node("b")
    await make_class(
        scene, "slow", volumeBindingMode="WaitForFirstConsumer", provisioner="kubernetes.io/no-provisioner"
    )
    await make_volume(scene, "v", "b")
    await make_claim(scene, "data")
    await scene.pod("p", **mounting("data"))

    async def claimed() -> str:
        volume = await scene.client.get(PERSISTENT_VOLUMES, "v")
        return "" if volume.spec.claim_ref is None else volume.spec.claim_ref.name

    assert await wait_for(claimed) == "data"
    assert await scene.wait_for_nomination("p") == "b"
    await make_claim(scene, "other")
    await scene.pod("q", **mounting("other"))
    assert (await scene.wait_for_refusal("q")).message.startswith(
        "0/2 nodes are available: 2 node(s) didn't find available persistent volumes to bind."
    )


async def test_drivers_limit_the_volumes_of_a_node(scene: Scene) -> None:
    await scene.node("a")
    drivers = [{"name": "disk.example.com", "nodeID": "a", "topologyKeys": None, "allocatable": {"count": 1}}]
    await scene.client.create(CSI_NODES, from_plain(CSINode, {"metadata": {"name": "a"}, "spec": {"drivers": drivers}}))
    for number in (1, 2):
        csi = {"driver": "disk.example.com", "volumeHandle": f"handle-{number}"}
        await make_volume(scene, f"v{number}", hostPath=None, csi=csi)
        await make_claim(scene, f"data{number}", volume=f"v{number}")
    await scene.pod("p", **mounting("data1"))
    assert await scene.wait_for_node("p") == "a"
    await scene.pod("q", **mounting("data2"))
    assert "1 node(s) exceed max volume count" in (await scene.wait_for_refusal("q")).message
    await scene.delete("p")
    assert await scene.wait_for_node("q") == "a"


async def test_a_claim_of_one_pod_only_is_not_shared(scene: Scene) -> None:
    await scene.node("a")
    await make_volume(scene, "v", accessModes=["ReadWriteOncePod"])
    await make_claim(scene, "data", volume="v", accessModes=["ReadWriteOncePod"])
    await scene.pod("p", **mounting("data"))
    assert await scene.wait_for_node("p") == "a"
    await scene.pod("q", **mounting("data"))
    assert "ReadWriteOncePod access mode already in-use" in (await scene.wait_for_refusal("q")).message


async def test_zones_of_volumes_are_kept(scene: Scene) -> None:
    await scene.node("a", labels={"topology.kubernetes.io/zone": "z1"})
    await make_volume(scene, "v")
    await scene.client.patch(
        PERSISTENT_VOLUMES, "v", "", {"metadata": {"labels": {"topology.kubernetes.io/zone": "z2"}}}
    )
    await make_claim(scene, "data", volume="v")
    await scene.pod("p", **mounting("data"))
    assert "1 node(s) had no available volume zone" in (await scene.wait_for_refusal("p")).message
