"""StorageClasses, VolumeAttributesClasses, VolumeAttachments, CSIDrivers and CSINodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from steersman.registry.storage.csidrivers import CSI_DRIVERS, TOKENS_IN_SECRETS
from steersman.registry.storage.csinodes import CSI_NODES
from steersman.registry.storage.csistoragecapacities import CSI_STORAGE_CAPACITIES
from steersman.registry.storage.storageclasses import STORAGE_CLASSES
from steersman.registry.storage.volumeattachments import VOLUME_ATTACHMENTS
from steersman.registry.storage.volumeattributesclasses import VOLUME_ATTRIBUTES_CLASSES

Cluster = Callable[..., Any]
GROUP = "storage.k8s.io"


async def test_volumes_go_with_their_claims_and_classes_are_fixed(cluster: Cluster) -> None:
    c = await cluster(STORAGE_CLASSES)
    made = await c.create("storageclasses", {"metadata": {"name": "s"}, "provisioner": "example.com/p"}, group=GROUP)
    assert (made["reclaimPolicy"], made["volumeBindingMode"]) == ("Delete", "Immediate")
    changed = {**made, "provisioner": "q", "reclaimPolicy": "Retain"}
    assert await c.faults(c.update("storageclasses", changed, group=GROUP)) == [
        'provisioner: Invalid value: "q": field is immutable',
        'reclaimPolicy: Invalid value: "Retain": field is immutable',
    ]


async def test_topologies_of_a_class_differ(cluster: Cluster) -> None:
    c = await cluster(STORAGE_CLASSES)
    term = {"matchLabelExpressions": [{"key": "beta.kubernetes.io/os", "values": ["a", "b"]}]}
    body = {"metadata": {"name": "s"}, "provisioner": "p", "allowedTopologies": [term]}
    warnings: list[str] = []
    await c.create("storageclasses", body, group=GROUP, warnings=warnings)
    assert warnings == [
        'allowedTopologies[0].matchLabelExpressions[0].key: deprecated since v1.14; use "kubernetes.io/os" instead'
    ]
    body["allowedTopologies"] = [term, term]
    assert await c.faults(c.create("storageclasses", body, group=GROUP)) == [
        'allowedTopologies[1].matchLabelExpressions: Duplicate value: ""'
    ]


async def test_an_attributes_class_says_something_and_keeps_saying_it(cluster: Cluster) -> None:
    c = await cluster(VOLUME_ATTRIBUTES_CLASSES)
    body = {"metadata": {"name": "v"}, "driverName": "example.com"}
    assert await c.faults(c.create("volumeattributesclasses", body, group=GROUP)) == [
        "parameters: Required value: must contain at least one key/value pair"
    ]
    made = await c.create("volumeattributesclasses", {**body, "parameters": {"a": "b"}}, group=GROUP)
    assert await c.faults(c.update("volumeattributesclasses", {**made, "parameters": {"a": "c"}}, group=GROUP)) == [
        "parameters: Forbidden: updates to parameters are forbidden."
    ]


async def test_an_attachment_has_one_source_and_a_status_of_its_own(cluster: Cluster) -> None:
    c = await cluster(VOLUME_ATTACHMENTS)
    spec: dict[str, Any] = {"attacher": "example.com", "nodeName": "n", "source": {}}
    body = {"metadata": {"name": "v"}, "spec": spec}
    assert await c.faults(c.create("volumeattachments", body, group=GROUP)) == [
        "spec.source: Required value: must specify exactly one of inlineVolumeSpec and persistentVolumeName"
    ]
    spec["source"] = {"persistentVolumeName": "pv"}
    made = await c.create("volumeattachments", {**body, "status": {"attached": True}}, group=GROUP)
    assert made["status"] == {"attached": False}
    made["metadata"]["labels"] = {"a": "b"}
    made["status"] = {"attached": True}
    made = await c.update("volumeattachments", made, group=GROUP, subresource="status")
    assert made["status"]["attached"]
    assert "labels" not in made["metadata"]
    made["spec"]["nodeName"] = "m"
    assert await c.faults(c.update("volumeattachments", made, group=GROUP)) == [
        'spec: Invalid value: {"Attacher":"example.com","Source":{"PersistentVolumeName":"pv",'
        '"InlineVolumeSpec":null},"NodeName":"m"}: field is immutable'
    ]


async def test_a_volume_that_is_no_object_is_one_of_csi_that_nobody_claims(cluster: Cluster) -> None:
    c = await cluster(VOLUME_ATTACHMENTS)
    inline: dict[str, Any] = {"accessModes": ["ReadWriteOnce"], "csi": {"driver": "d.e", "volumeHandle": "h"}}

    def attachment(**more: Any) -> dict[str, Any]:
        spec = {"attacher": "d.e", "nodeName": "n", "source": {"inlineVolumeSpec": {**inline, **more}}}
        return {"metadata": {"name": "a"}, "spec": spec}

    path, elsewhere = "spec.source.inlineVolumeSpec", "may not be specified in the context of inline volumes"
    all_wrong = attachment(
        claimRef={"name": "c"},
        capacity={"storage": "1Gi"},
        persistentVolumeReclaimPolicy="Delete",
        nodeAffinity={},
        storageClassName="s",
        volumeMode="Block",
        accessModes=[],
    )
    assert await c.faults(c.create("volumeattachments", all_wrong, group=GROUP)) == [
        f"{path}.claimRef: Forbidden: {elsewhere}",
        f"{path}.capacity: Forbidden: {elsewhere}",
        f"{path}.accessModes: Required value",
        f"{path}.persistentVolumeReclaimPolicy: Forbidden: may only be Retain in the context of inline volumes",
        f"{path}.nodeAffinity: Forbidden: {elsewhere}",
        f"{path}.storageClassName: Forbidden: {elsewhere}",
        f"{path}.volumeMode: Forbidden: may not specify volumeMode other than Filesystem in the context of inline "
        "volumes",
    ]
    assert await c.faults(c.create("volumeattachments", attachment(csi=None), group=GROUP)) == [
        f"{path}.csi: Required value: has to be specified in the context of inline volumes",
        f"{path}: Required value: must specify a volume type",
    ]
    assert await c.create("volumeattachments", attachment(volumeMode="Filesystem"), group=GROUP)


async def test_a_driver_has_defaults_and_is_told_how_to_get_tokens(cluster: Cluster) -> None:
    c = await cluster(CSI_DRIVERS)
    body = {"metadata": {"name": "d"}, "spec": {"tokenRequests": [{"audience": "a"}]}}
    warnings: list[str] = []
    made = await c.create("csidrivers", body, group=GROUP, warnings=warnings)
    assert warnings == [TOKENS_IN_SECRETS]
    assert made["spec"] == {
        "attachRequired": True,
        "podInfoOnMount": False,
        "storageCapacity": False,
        "requiresRepublish": False,
        "fsGroupPolicy": "ReadWriteOnceWithFSType",
        "volumeLifecycleModes": ["Persistent"],
        "seLinuxMount": False,
        "tokenRequests": [{"audience": "a"}],
    }
    made["spec"]["attachRequired"] = False
    assert await c.faults(c.update("csidrivers", made, group=GROUP)) == [
        "spec.attachedRequired: Invalid value: false: field is immutable"
    ]


async def test_a_nodes_drivers_keep_all_but_how_many_volumes_they_take(cluster: Cluster) -> None:
    c = await cluster(CSI_NODES)
    driver = {"name": "d", "nodeID": "n", "topologyKeys": None, "allocatable": {"count": 1}}
    made = await c.create("csinodes", {"metadata": {"name": "n"}, "spec": {"drivers": [driver]}}, group=GROUP)
    made["spec"]["drivers"][0]["allocatable"] = {"count": 2}
    made = await c.update("csinodes", made, group=GROUP)
    made["spec"]["drivers"][0]["nodeID"] = "m"
    assert await c.faults(c.update("csinodes", made, group=GROUP)) == [
        'spec.drivers: Invalid value: {"Name":"d","NodeID":"m","TopologyKeys":null,"Allocatable":null}: '
        "field is immutable"
    ]


async def test_capacity_is_of_a_class_and_a_topology(cluster: Cluster) -> None:
    c = await cluster(CSI_STORAGE_CAPACITIES)
    body = {"metadata": {"name": "c"}, "storageClassName": "s", "capacity": "-1"}
    assert await c.faults(c.create("csistoragecapacities", body, group=GROUP)) == [
        'capacity: Invalid value: "-1": must be greater than or equal to 0'
    ]
    made = await c.create("csistoragecapacities", {**body, "capacity": "1Gi"}, group=GROUP)
    assert await c.faults(c.update("csistoragecapacities", {**made, "storageClassName": "t"}, group=GROUP)) == [
        'storageClassName: Invalid value: "t": field is immutable'
    ]
