"""Tests of eviction by device taints."""

from __future__ import annotations

from steersman.api.core.v1 import Container, Pod, PodResourceClaim, PodSpec
from steersman.api.meta.v1 import ObjectMeta
from steersman.api.resource.v1 import (
    AllocationResult,
    Device,
    DeviceAllocationResult,
    DeviceClaim,
    DeviceRequest,
    DeviceRequestAllocationResult,
    DeviceTaint,
    DeviceToleration,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimSpec,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)
from steersman.client.client import Client
from steersman.client.resources import EVENTS, PODS, RESOURCE_CLAIMS, RESOURCE_SLICES
from steersman.controllers.resource_claims.taint_eviction import DeviceTaintEviction
from tests.controllers.waiting import Run, eventually


async def create_pod_with_device(client: Client, name: str, device: str, *tolerations: DeviceToleration) -> None:
    """Create a pod on a node that uses a device by its own claim."""
    request = DeviceRequest(name="r", exactly=ExactDeviceRequest(device_class_name="c"))
    spec = ResourceClaimSpec(devices=DeviceClaim(requests=[request]))
    await client.create(RESOURCE_CLAIMS, ResourceClaim(metadata=ObjectMeta(name=name, namespace="default"), spec=spec))
    claims = [PodResourceClaim(name="first", resource_claim_name=name)]
    pod_spec = PodSpec(node_name="n", containers=[Container(name="c", image="i")], resource_claims=claims)
    pod = await client.create(PODS, Pod(metadata=ObjectMeta(name=name, namespace="default"), spec=pod_spec))
    claim = await client.get(RESOURCE_CLAIMS, name, "default")
    result = DeviceRequestAllocationResult(
        request="r", driver="d.example.com", pool="p", device=device, tolerations=list(tolerations)
    )
    claim.status.allocation = AllocationResult(devices=DeviceAllocationResult(results=[result]))
    claim.status.reserved_for = [ResourceClaimConsumerReference(resource="pods", name=name, uid=pod.metadata.uid)]
    await client.update_status(RESOURCE_CLAIMS, claim)


async def taint(client: Client, *devices: str) -> None:
    """Taint devices, as their driver does."""
    broken = DeviceTaint(key="broken", effect="NoExecute")
    pool = ResourcePool(name="p", generation=1, resource_slice_count=1)
    listed = [Device(name=each, taints=[broken]) for each in devices]
    spec = ResourceSliceSpec(driver="d.example.com", node_name="n", pool=pool, devices=listed)
    await client.create(RESOURCE_SLICES, ResourceSlice(metadata=ObjectMeta(name="s"), spec=spec))


async def test_pods_on_broken_devices_go_unless_their_claims_tolerate_it(run: Run) -> None:
    client = await run(DeviceTaintEviction)
    await create_pod_with_device(client, "goes", "d-0")
    await create_pod_with_device(
        client, "stays", "d-1", DeviceToleration(key="broken", operator="Exists", effect="NoExecute")
    )
    await create_pod_with_device(client, "whole", "d-2")
    for_long = DeviceToleration(operator="Exists", effect="NoExecute", toleration_seconds=3600)
    await create_pod_with_device(client, "stays-for-long", "d-1", for_long)
    await taint(client, "d-0", "d-1")

    async def going() -> list[str]:
        found = (await client.list(PODS, "default")).items
        return [each.metadata.name for each in found if each.metadata.deletion_timestamp]

    assert await eventually(going) == ["goes"]
    condition = (await client.get(PODS, "goes", "default")).status.conditions[-1]
    assert (condition.type, condition.reason) == ("DisruptionTarget", "DeletionByDeviceTaintManager")

    async def reported() -> list[tuple[str, str]]:
        events = (await client.list(EVENTS, "default")).items
        return [(each.involved_object.name, each.message) for each in events]

    assert await eventually(reported) == [("goes", "Marking for deletion")]
    await client.delete(RESOURCE_SLICES, "s")

    async def cancelled() -> bool:
        return ("stays-for-long", "Cancelling deletion") in await reported()

    await eventually(cancelled)
    assert await going() == ["goes"]
