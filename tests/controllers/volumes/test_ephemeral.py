"""Tests of claims of ephemeral volumes."""

from __future__ import annotations

from steersman.api.core.v1 import (
    Container,
    EphemeralVolumeSource,
    PersistentVolumeClaim,
    PersistentVolumeClaimTemplate,
    Pod,
    PodSpec,
    Volume,
)
from steersman.api.meta.v1 import ObjectMeta
from steersman.client.resources import EVENTS, PERSISTENT_VOLUME_CLAIMS, PODS
from steersman.controllers.volumes.ephemeral import EphemeralVolumes
from tests.controllers.volumes.objects import claim
from tests.controllers.waiting import Run, eventually


def pod_with_ephemeral_volume(name: str) -> Pod:
    template = PersistentVolumeClaimTemplate(metadata=ObjectMeta(labels={"a": "b"}), spec=claim().spec)
    source = Volume(name="v", ephemeral=EphemeralVolumeSource(volume_claim_template=template))
    spec = PodSpec(containers=[Container(name="c", image="i")], volumes=[source])
    return Pod(metadata=ObjectMeta(name=name, namespace="default"), spec=spec)


async def test_a_pod_gets_its_claim_and_owns_it(run: Run) -> None:
    client = await run(EphemeralVolumes)
    made = await client.create(PODS, pod_with_ephemeral_volume("p"))

    async def claims() -> list[PersistentVolumeClaim]:
        return (await client.list(PERSISTENT_VOLUME_CLAIMS, "default")).items

    (found,) = await eventually(claims)
    assert (found.metadata.name, found.metadata.labels) == ("p-v", {"a": "b"})
    assert [(each.uid, each.controller) for each in found.metadata.owner_references] == [(made.metadata.uid, True)]


async def test_a_claim_of_somebody_else_is_left_alone(run: Run) -> None:
    client = await run(EphemeralVolumes)
    await client.create(PERSISTENT_VOLUME_CLAIMS, claim("p-v"))
    await client.create(PODS, pod_with_ephemeral_volume("p"))

    async def messages() -> list[str]:
        return [each.message for each in (await client.list(EVENTS, "default")).items]

    expected = "ephemeral volume v: PVC default/p-v was not created for pod default/p (pod is not owner)"
    assert (await eventually(messages))[0] == expected
