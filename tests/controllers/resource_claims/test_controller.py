"""Tests of the resource claim controller."""

from __future__ import annotations

from steersman.api.core.v1 import Container, Pod, PodResourceClaim, PodSpec
from steersman.api.meta.v1 import ObjectMeta
from steersman.api.resource.v1 import (
    AllocationResult,
    DeviceClaim,
    DeviceRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimSpec,
    ResourceClaimTemplate,
    ResourceClaimTemplateSpec,
)
from steersman.client.client import Client
from steersman.client.resources import EVENTS, PODS, RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS
from steersman.controllers.resource_claims.controller import ResourceClaimController
from tests.controllers.waiting import Run, eventually

SPEC = ResourceClaimSpec(
    devices=DeviceClaim(requests=[DeviceRequest(name="r", exactly=ExactDeviceRequest(device_class_name="c"))])
)
FINALIZER = "resource.kubernetes.io/delete-protection"


def pod_with_claim(claim: PodResourceClaim) -> Pod:
    spec = PodSpec(containers=[Container(name="c", image="i")], resource_claims=[claim])
    return Pod(metadata=ObjectMeta(name="p", namespace="default"), spec=spec)


async def claims(client: Client) -> list[ResourceClaim]:
    return (await client.list(RESOURCE_CLAIMS, "default")).items


async def test_a_claim_is_made_of_the_template_and_given_back_when_the_pod_has_ended(run: Run) -> None:
    client = await run(ResourceClaimController)
    await client.create(PODS, pod_with_claim(PodResourceClaim(name="first", resource_claim_template_name="t")))

    async def messages() -> list[str]:
        return [each.message for each in (await client.list(EVENTS, "default")).items]

    assert (await eventually(messages))[0] == (
        'PodResourceClaim first: resource claim template "t": resourceclaimtemplate.resource.k8s.io "t" not found'
    )
    template = ResourceClaimTemplate(
        metadata=ObjectMeta(name="t", namespace="default"), spec=ResourceClaimTemplateSpec(spec=SPEC)
    )
    await client.create(RESOURCE_CLAIM_TEMPLATES, template)

    async def claim_name() -> str:
        pod = await client.get(PODS, "p", "default")
        return next((each.resource_claim_name or "" for each in pod.status.resource_claim_statuses), "")

    name = await eventually(claim_name)
    assert name.startswith("p-first-")
    (made,) = await claims(client)
    assert made.metadata.annotations == {"resource.kubernetes.io/pod-claim-name": "first"}
    pod = await client.get(PODS, "p", "default")
    await allocate(client, name, pod)
    await client.patch(PODS, "p", "default", {"status": {"phase": "Succeeded"}}, subresource="status")

    async def is_deleted() -> bool:
        return not await claims(client)

    await eventually(is_deleted)


async def allocate(client: Client, name: str, pod: Pod) -> None:
    """Allocate and reserve a claim, as the scheduler does."""
    await client.patch(RESOURCE_CLAIMS, name, "default", {"metadata": {"finalizers": [FINALIZER]}})
    claim = await client.get(RESOURCE_CLAIMS, name, "default")
    claim.status.allocation = AllocationResult()
    consumer = ResourceClaimConsumerReference(resource="pods", name=pod.metadata.name, uid=pod.metadata.uid)
    claim.status.reserved_for = [consumer]
    await client.update_status(RESOURCE_CLAIMS, claim)


async def test_a_claim_that_its_user_made_stays_without_devices(run: Run) -> None:
    client = await run(ResourceClaimController)
    await client.create(RESOURCE_CLAIMS, ResourceClaim(metadata=ObjectMeta(name="m", namespace="default"), spec=SPEC))
    pod = await client.create(PODS, pod_with_claim(PodResourceClaim(name="first", resource_claim_name="m")))
    await allocate(client, "m", pod)
    await client.delete(PODS, "p", "default")

    async def free() -> bool:
        claim = await client.get(RESOURCE_CLAIMS, "m", "default")
        return claim.status.allocation is None and not claim.status.reserved_for and not claim.metadata.finalizers

    await eventually(free)
