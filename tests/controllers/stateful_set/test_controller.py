"""Tests of the StatefulSet controller."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.api.apps.v1 import (
    ControllerRevision,
    RollingUpdateStatefulSetStrategy,
    StatefulSet,
    StatefulSetOrdinals,
    StatefulSetPersistentVolumeClaimRetentionPolicy,
    StatefulSetSpec,
    StatefulSetUpdateStrategy,
)
from steersman.api.core.v1 import (
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    Pod,
    ResourceQuota,
    ResourceQuotaSpec,
    ResourceQuotaStatus,
    VolumeResourceRequirements,
)
from steersman.api.meta.v1 import LabelSelector, ObjectMeta
from steersman.client.client import STRATEGIC_MERGE_PATCH, Client
from steersman.client.resources import (
    CONTROLLER_REVISIONS,
    EVENTS,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    RESOURCE_QUOTAS,
    STATEFUL_SETS,
)
from steersman.controllers.stateful_set import update
from steersman.controllers.stateful_set.controller import StatefulSetController
from steersman.controllers.stateful_set.identity import new_pod
from tests.controllers.kubelet import LABELS, end_pods, live, pods_of, run_pods, template
from tests.controllers.waiting import Run, eventually


async def make(client: Client, replicas: int = 2, **spec: Any) -> StatefulSet:
    given = StatefulSetSpec(replicas=replicas, selector=LabelSelector(match_labels=LABELS), template=template(), **spec)
    metadata = ObjectMeta(name="web", namespace="default")
    return await client.create(STATEFUL_SETS, StatefulSet(metadata=metadata, spec=given))


async def images(client: Client) -> dict[str, str]:
    return {pod.metadata.name: (pod.spec.containers or [])[0].image for pod in await pods_of(client)}


async def has_images(client: Client, **wanted: str) -> bool:
    """Return True if exactly these pods exist with these images, and the status counts them."""
    status = (await client.get(STATEFUL_SETS, "web", "default")).status
    counted = status.replicas == status.ready_replicas == len(wanted)
    is_labelled = {name.replace("_", "-"): image for name, image in wanted.items()}
    return counted and await images(client) == is_labelled


async def patch(client: Client, spec: dict[str, Any]) -> None:
    await client.patch(STATEFUL_SETS, "web", "default", {"spec": spec}, media=STRATEGIC_MERGE_PATCH)


async def change_image(client: Client, image: str) -> None:
    await patch(client, {"template": {"spec": {"containers": [{"name": "c", "image": image}]}}})


async def revisions(client: Client) -> list[ControllerRevision]:
    found = (await client.list(CONTROLLER_REVISIONS, "default")).items
    return sorted(found, key=lambda each: each.revision)


async def test_a_pod_waits_for_the_one_before_it(run: Run) -> None:
    client = await run(StatefulSetController)
    await make(client, 3)

    async def first() -> bool:
        return list(await images(client)) == ["web-0"]

    await eventually(first)
    await run_pods(client)

    async def second() -> bool:
        found = await images(client)
        assert len(found) <= 2
        return sorted(found) == ["web-0", "web-1"]

    await eventually(second)
    await live(client, lambda: has_images(client, web_0="i", web_1="i", web_2="i"))
    await patch(client, {"replicas": 1})
    await live(client, lambda: has_images(client, web_0="i"))

    async def messages() -> list[str]:
        found = (await client.list(EVENTS, "default")).items
        deleted = [each.message for each in found if each.reason == "SuccessfulDelete"]
        return deleted if len(deleted) == 2 else []

    assert await eventually(messages) == [f"Delete Pod web-{number} in StatefulSet web successful" for number in (2, 1)]


async def test_a_new_template_replaces_the_last_pod_first(run: Run) -> None:
    client = await run(StatefulSetController)
    await make(client)
    await live(client, lambda: has_images(client, web_0="i", web_1="i"))
    await change_image(client, "j")

    async def last() -> bool:
        await end_pods(client)
        return await images(client) == {"web-0": "i", "web-1": "j"}

    await eventually(last)
    status = (await client.get(STATEFUL_SETS, "web", "default")).status
    assert status.current_revision != status.update_revision
    await live(client, lambda: has_images(client, web_0="j", web_1="j"))

    async def complete() -> bool:
        found = (await client.get(STATEFUL_SETS, "web", "default")).status
        return found.current_revision == found.update_revision == (await revisions(client))[-1].metadata.name

    await eventually(complete)
    assert [each.revision for each in await revisions(client)] == [1, 2]


async def test_below_the_partition_pods_stay_of_the_old_revision(run: Run) -> None:
    client = await run(StatefulSetController)
    rolling = RollingUpdateStatefulSetStrategy(partition=1)
    await make(client, update_strategy=StatefulSetUpdateStrategy(type="RollingUpdate", rolling_update=rolling))
    await live(client, lambda: has_images(client, web_0="i", web_1="i"))
    await change_image(client, "j")
    await live(client, lambda: has_images(client, web_0="i", web_1="j"))
    await client.delete(PODS, "web-0", "default")
    await live(client, lambda: has_images(client, web_0="i", web_1="j"))


async def test_in_parallel_all_are_made_at_once_from_where_numbers_begin(run: Run) -> None:
    client = await run(StatefulSetController)
    await make(client, 3, pod_management_policy="Parallel", ordinals=StatefulSetOrdinals(start=5))

    async def are_created() -> bool:
        return sorted(await images(client)) == ["web-5", "web-6", "web-7"]

    await eventually(are_created)
    await patch(client, {"replicas": 0})

    async def are_deleted() -> bool:
        return not await images(client)

    await eventually(are_deleted)


@pytest.mark.parametrize(("policy", "most"), [("OrderedReady", 1), ("Parallel", 2)])
async def test_only_pods_that_can_be_made_now_are_made_of_the_template(
    run: Run, monkeypatch: pytest.MonkeyPatch, policy: str, most: int
) -> None:
    given: list[int] = []

    def counted(stateful_set: StatefulSet, ordinal: int, revision: str) -> Pod:
        given.append(ordinal)
        return new_pod(stateful_set, ordinal, revision)

    monkeypatch.setattr(update, "new_pod", counted)
    client = await run()
    metadata = ObjectMeta(name="two", namespace="default")
    quota = ResourceQuota(metadata=metadata, spec=ResourceQuotaSpec(hard={"pods": "2"}))
    are_created = await client.create(RESOURCE_QUOTAS, quota)
    are_created.status = ResourceQuotaStatus(hard={"pods": "2"}, used={"pods": "0"})
    await client.update_status(RESOURCE_QUOTAS, are_created)
    await make(client, 2_000, pod_management_policy=policy)
    await run(StatefulSetController)

    async def are_made() -> bool:
        return len(await pods_of(client)) == most

    await eventually(are_made)
    assert len(given) < 20
    assert max(given) < 10 or max(given) == 1_999


async def test_on_delete_only_what_is_deleted_is_replaced(run: Run) -> None:
    client = await run(StatefulSetController)
    await make(client, 1, update_strategy=StatefulSetUpdateStrategy(type="OnDelete"))
    await live(client, lambda: has_images(client, web_0="i"))
    await change_image(client, "j")

    async def looked() -> bool:
        stateful_set = await client.get(STATEFUL_SETS, "web", "default")
        return stateful_set.status.observed_generation == stateful_set.metadata.generation == 2

    await eventually(looked)
    assert await images(client) == {"web-0": "i"}
    await client.delete(PODS, "web-0", "default")
    await live(client, lambda: has_images(client, web_0="j"))


def claim_template() -> PersistentVolumeClaim:
    resources = VolumeResourceRequirements(requests={"storage": "1Gi"})
    spec = PersistentVolumeClaimSpec(access_modes=["ReadWriteOnce"], resources=resources)
    return PersistentVolumeClaim(metadata=ObjectMeta(name="data"), spec=spec)


async def owners(client: Client) -> dict[str, list[str]]:
    found = (await client.list(PERSISTENT_VOLUME_CLAIMS, "default")).items
    return {each.metadata.name: [owner.name for owner in each.metadata.owner_references] for each in found}


async def test_each_pod_has_claims_that_go_when_the_policy_says(run: Run) -> None:
    client = await run(StatefulSetController)
    policy = StatefulSetPersistentVolumeClaimRetentionPolicy(when_deleted="Delete", when_scaled="Delete")
    await make(client, volume_claim_templates=[claim_template()], persistent_volume_claim_retention_policy=policy)
    await live(client, lambda: has_images(client, web_0="i", web_1="i"))

    async def owned(**wanted: str) -> bool:
        return await owners(client) == {name.replace("_", "-"): [owner] for name, owner in wanted.items()}

    await live(client, lambda: owned(data_web_0="web", data_web_1="web"))
    await patch(client, {"replicas": 1})
    await eventually(lambda: owned(data_web_0="web", data_web_1="web-1"))


async def test_a_pod_that_failed_is_made_again(run: Run) -> None:
    client = await run(StatefulSetController)
    await make(client, 1)
    await live(client, lambda: has_images(client, web_0="i"))
    (pod,) = await pods_of(client)
    await run_pods(client, phase="Failed", ready=False)

    async def is_recreated() -> bool:
        await end_pods(client)
        return [each.metadata.uid for each in await pods_of(client)] not in ([], [pod.metadata.uid])

    await eventually(is_recreated)


async def test_a_pod_is_adopted_and_put_right(run: Run) -> None:
    client = await run(StatefulSetController)
    mine = Pod(metadata=ObjectMeta(name="web-0", namespace="default", labels=LABELS), spec=template().spec)
    await client.create(PODS, mine)
    other = Pod(metadata=ObjectMeta(name="other", namespace="default", labels=LABELS), spec=template().spec)
    await client.create(PODS, other)
    are_created = await make(client, 1)

    async def adopted() -> bool:
        pod = await client.get(PODS, "web-0", "default")
        return [each.uid for each in pod.metadata.owner_references] == [are_created.metadata.uid]

    await eventually(adopted)
    await run_pods(client)

    async def is_labelled() -> bool:
        found = (await client.get(PODS, "web-0", "default")).metadata.labels
        return found.get("statefulset.kubernetes.io/pod-name") == "web-0"

    await live(client, is_labelled)
    assert (await client.get(PODS, "other", "default")).metadata.owner_references == []
