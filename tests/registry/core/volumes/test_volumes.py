"""PersistentVolumes and claims: defaults and immutable fields."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from steersman.api.core.v1 import PersistentVolume
from steersman.machinery.codec.serializer import from_plain
from steersman.registry.core.volumes.persistentvolumeclaims import PERSISTENT_VOLUME_CLAIMS
from steersman.registry.core.volumes.persistentvolumes import PERSISTENT_VOLUMES

VOLUME: dict[str, Any] = {
    "metadata": {"name": "pv"},
    "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/data"}},
}
CLAIM: dict[str, Any] = {
    "metadata": {"name": "pvc"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "2Gi"}}},
}


def volume(**spec: Any) -> dict[str, Any]:
    return {**VOLUME, "spec": {**VOLUME["spec"], **spec}}


def claim(**spec: Any) -> dict[str, Any]:
    return {**CLAIM, "spec": {**CLAIM["spec"], **spec}}


async def test_volume_starts_pending_and_is_retained(cluster: Callable[..., Any]) -> None:
    c = await cluster(PERSISTENT_VOLUMES)
    made = await c.create("persistentvolumes", VOLUME)
    assert made["status"].keys() == {"phase", "lastPhaseTransitionTime"}
    assert made["status"]["phase"] == "Pending"
    assert (made["spec"]["persistentVolumeReclaimPolicy"], made["spec"]["volumeMode"]) == ("Retain", "Filesystem")


@pytest.mark.parametrize(
    ("spec", "faults"),
    [
        ({"hostPath": None}, ["spec: Required value: must specify a volume type"]),
        (
            {"nfs": {"server": "s", "path": "/p"}},
            ["spec.nfs: Forbidden: may not specify more than 1 volume type"],
        ),
        (
            {"capacity": {"cpu": "1"}},
            ['spec.capacity: Unsupported value: {"cpu":"1"}: supported values: "storage"'],
        ),
        (
            {"accessModes": ["ReadWriteOncePod", "ReadOnlyMany"]},
            ["spec.accessModes: Forbidden: may not use ReadWriteOncePod with other access modes"],
        ),
        (
            {"hostPath": {"path": "/x/.."}, "persistentVolumeReclaimPolicy": "Recycle"},
            [
                "spec.hostPath.path: Invalid value: \"/x/..\": must not contain '..'",
                "spec.persistentVolumeReclaimPolicy: Forbidden: may not be 'recycle' for a hostPath mount of '/'",
            ],
        ),
    ],
)
async def test_invalid_volume_is_refused(cluster: Callable[..., Any], spec: dict[str, Any], faults: list[str]) -> None:
    c = await cluster(PERSISTENT_VOLUMES)
    assert await c.faults(c.create("persistentvolumes", volume(**spec))) == faults


async def test_source_does_not_change(cluster: Callable[..., Any]) -> None:
    c = await cluster(PERSISTENT_VOLUMES)
    await c.create("persistentvolumes", VOLUME)
    await c.change("persistentvolumes", "pv", storageClassName="fast")
    (fault,) = await c.faults(c.change("persistentvolumes", "pv", hostPath={"path": "/other", "type": ""}))
    head, *difference = fault.splitlines()
    assert head == "spec.persistentvolumesource: Forbidden: spec.persistentvolumesource is immutable after creation"
    assert [" ".join(line.split()) for line in difference if line[0] in "+-"] == [
        '- "Path": "/data",',
        '+ "Path": "/other",',
    ]


async def test_claim_is_immutable_but_for_a_bound_ones_size(cluster: Callable[..., Any]) -> None:
    c = await cluster(PERSISTENT_VOLUME_CLAIMS)
    made = await c.create("persistentvolumeclaims", CLAIM)
    assert made["status"] == {"phase": "Pending"}
    larger = {"requests": {"storage": "3Gi"}}
    faults = await c.faults(c.change("persistentvolumeclaims", "pvc", resources=larger))
    assert len(faults) == 1
    assert faults[0].startswith("spec: Forbidden: spec is immutable after creation except resources.requests and ")

    made = await c.change("persistentvolumeclaims", "pvc", volumeName="pv")
    made["status"] = {"phase": "Bound", "capacity": {"storage": "2Gi"}}
    await c.update("persistentvolumeclaims", made, subresource="status")
    grown = await c.change("persistentvolumeclaims", "pvc", resources=larger)
    assert grown["spec"]["resources"] == larger
    smaller = {"requests": {"storage": "1Gi"}}
    assert await c.faults(c.change("persistentvolumeclaims", "pvc", resources=smaller)) == [
        "spec.resources.requests.storage: Forbidden: field can not be less than status.capacity"
    ]


async def test_both_data_sources_say_the_same(cluster: Callable[..., Any]) -> None:
    c = await cluster(PERSISTENT_VOLUME_CLAIMS)
    source = {"kind": "PersistentVolumeClaim", "name": "other"}
    made = await c.create("persistentvolumeclaims", claim(dataSource=source))
    assert made["spec"]["dataSourceRef"] == {"apiGroup": None, **source}
    odd = {**claim(dataSource={"apiGroup": "example.com", "kind": "Odd", "name": "x"}), "metadata": {"name": "odd"}}
    assert not {"dataSource", "dataSourceRef"} & (await c.create("persistentvolumeclaims", odd))["spec"].keys()


def test_volume_table_shows_its_claim() -> None:
    bound = from_plain(
        PersistentVolume, volume(claimRef={"namespace": "ns", "name": "pvc"}, accessModes=["ReadOnlyMany"])
    )
    cells = {column.name: column.cell(bound) for column in PERSISTENT_VOLUMES.columns if column.cell is not None}
    assert (cells["Claim"], cells["Access Modes"], cells["Capacity"]) == ("ns/pvc", "ROX", "1Gi")


def affinity(*keys: str) -> dict[str, Any]:
    expressions = [{"key": key, "operator": "In", "values": ["a"]} for key in keys]
    return {"required": {"nodeSelectorTerms": [{"matchExpressions": expressions}]}}


@pytest.mark.parametrize(
    ("keys", "allowed"),
    [
        (("disk", "kubernetes.io/os"), True),
        (("disk", "beta.kubernetes.io/os"), True),
        (("disk", "beta.kubernetes.io/arch"), False),
        (("other", "beta.kubernetes.io/os"), False),
        (("disk",), False),
        (("disk", "beta.kubernetes.io/os", "more"), False),
    ],
)
async def test_an_affinity_may_only_move_to_what_took_a_labels_place(
    cluster: Callable[..., Any], keys: tuple[str, ...], allowed: bool
) -> None:
    c = await cluster(PERSISTENT_VOLUMES)
    await c.create("persistentvolumes", volume(nodeAffinity=affinity("disk", "beta.kubernetes.io/os")))
    change = c.change("persistentvolumes", "pv", nodeAffinity=affinity(*keys))
    if allowed:
        await change
    else:
        (fault,) = await c.faults(change)
        assert fault.endswith("field is immutable, except for updating from beta label to GA")


async def test_an_update_tells_what_is_wrong_with_the_metadata_as_often_as_upstream(
    cluster: Callable[..., Any],
) -> None:
    c = await cluster(PERSISTENT_VOLUMES)
    made = await c.create("persistentvolumes", VOLUME)
    made["metadata"]["finalizers"] = ["sh"]
    why = 'Invalid value: "sh": name is neither a standard finalizer name nor is it fully qualified'
    assert await c.faults(c.update("persistentvolumes", made)) == [f"metadata.finalizers[0]: {why}"] * 2
