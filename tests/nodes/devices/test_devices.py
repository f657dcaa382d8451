"""Devices of simulated nodes in a cluster: published, allocated, prepared and released."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from steersman.api.core.v1 import Container, Pod, PodResourceClaim, PodSpec
from steersman.api.meta.v1 import ObjectMeta
from steersman.api.resource.v1 import (
    Device,
    DeviceClaim,
    DeviceClass,
    DeviceRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
)
from steersman.authentication.user import UserInfo
from steersman.client.api_resource import APIResource
from steersman.client.client import Client
from steersman.client.resources import EVENTS, NODES, PODS, RESOURCE_CLAIMS, RESOURCE_SLICES
from steersman.cluster.cluster import Cluster
from steersman.cluster.configuration import Configuration, NodeGroup
from steersman.controlplane.options import Options
from steersman.nodes.devices.slices import DeviceSet, DeviceSets
from tests.controllers.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="module")

CLASSES = APIResource("resource.k8s.io", "v1", "deviceclasses", "DeviceClass", DeviceClass, False)
ERROR = "simulation.steersman.dev/prepare-error"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def client(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Client]:
    devices = DeviceSets([DeviceSet("gpu.example.com", [Device(name="card")], nodes="gpu=true", count=2)])
    nodes = (NodeGroup("gpu", labels={"gpu": "true"}), NodeGroup("cpu"))
    options = Options(data_dir=tmp_path_factory.mktemp("devices"), storage="memory", listen=False)
    cluster = Cluster(options, Configuration(nodes, devices=devices))
    await cluster.start()
    try:
        client = cluster.client(UserInfo("admin", groups=("system:masters",)), "tests")
        await client.create(CLASSES, DeviceClass(metadata=ObjectMeta(name="gpu")))
        yield client
    finally:
        await cluster.stop()


async def claim(client: Client, name: str) -> None:
    request = DeviceRequest(name="gpu", exactly=ExactDeviceRequest(device_class_name="gpu"))
    spec = ResourceClaimSpec(devices=DeviceClaim(requests=[request]))
    await client.create(RESOURCE_CLAIMS, ResourceClaim(metadata=ObjectMeta(name=name, namespace="default"), spec=spec))


async def pod(client: Client, name: str, claim: str, **annotations: str) -> None:
    metadata = ObjectMeta(name=name, namespace="default", annotations=annotations)
    spec = PodSpec(
        containers=[Container(name="c", image="nginx")],
        resource_claims=[PodResourceClaim(name="gpu", resource_claim_name=claim)],
        termination_grace_period_seconds=0,
    )
    await client.create(PODS, Pod(metadata=metadata, spec=spec))


async def runs(client: Client, name: str) -> bool:
    return (await client.get(PODS, name, "default")).status.phase == "Running"


async def reported(client: Client, name: str) -> list[str]:
    status = (await client.get(RESOURCE_CLAIMS, name, "default")).status
    return [each.device for each in status.devices if (each.conditions or [])[0].type == "Ready"]


async def test_nodes_publish_their_devices_again_after_they_were_deleted(client: Client) -> None:
    async def is_published() -> bool:
        slices = (await client.list(RESOURCE_SLICES)).items
        return [(each.spec.node_name, len(each.spec.devices or ())) for each in slices] == [("gpu-0", 2)]

    await eventually(is_published)
    (first,) = (await client.list(RESOURCE_SLICES)).items
    await client.delete(RESOURCE_SLICES, first.metadata.name)
    await eventually(is_published)
    assert [each.uid for each in first.metadata.owner_references] == [(await client.get(NODES, "gpu-0")).metadata.uid]


async def test_labels_of_a_node_decide_about_its_devices(client: Client) -> None:
    async def nodes() -> set[str | None]:
        return {each.spec.node_name for each in (await client.list(RESOURCE_SLICES)).items}

    async def are(*names: str) -> bool:
        return await nodes() == set(names)

    await client.patch(NODES, "cpu-0", "", {"metadata": {"labels": {"gpu": "true"}}})
    await eventually(lambda: are("cpu-0", "gpu-0"))
    await client.patch(NODES, "cpu-0", "", {"metadata": {"labels": {"gpu": None}}})
    await eventually(lambda: are("gpu-0"))


async def test_claims_are_prepared_for_the_first_pod_and_released_after_the_last(client: Client) -> None:
    await claim(client, "shared")
    for name in ("one", "two"):
        await pod(client, name, "shared")
        await eventually(lambda name=name: runs(client, name))  # type: ignore[misc]
    assert len(await reported(client, "shared")) == 1
    await client.delete(PODS, "one", "default")
    await eventually(lambda: is_gone(client, "one"))
    assert len(await reported(client, "shared")) == 1
    await client.delete(PODS, "two", "default")

    async def is_released() -> bool:
        return not await reported(client, "shared")

    await eventually(is_released)


async def is_gone(client: Client, name: str) -> bool:
    return await client.find(PODS, name, "default") is None


@pytest.mark.parametrize("on", ["pod", "claim"])
async def test_a_driver_fails_on_demand_until_the_cause_is_gone(client: Client, on: str) -> None:
    name = f"failing-{on}"
    await claim(client, name)
    told = {ERROR: "the card is broken"}
    if on == "claim":
        await client.patch(RESOURCE_CLAIMS, name, "default", {"metadata": {"annotations": told}})
    await pod(client, name, name, **(told if on == "pod" else {}))
    text = (
        "Failed to prepare dynamic resources: prepare dynamic resources: NodePrepareResources failed for "
        f"ResourceClaim {name}: the card is broken"
    )

    async def is_told() -> bool:
        events = (await client.list(EVENTS, "default")).items
        return any(each.reason == "FailedPrepareDynamicResources" and each.message == text for each in events)

    await eventually(is_told)
    assert not await runs(client, name)
    assert await reported(client, name) == []
    resource: APIResource[Any] = PODS if on == "pod" else RESOURCE_CLAIMS
    await client.patch(resource, name, "default", {"metadata": {"annotations": {ERROR: None}}})
    await eventually(lambda: runs(client, name))
    assert len(await reported(client, name)) == 1
    await client.delete(PODS, name, "default")
    await eventually(lambda: is_gone(client, name))
