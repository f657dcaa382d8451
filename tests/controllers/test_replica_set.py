"""Tests of the ReplicaSet controller."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from steersman.api.apps.v1 import ReplicaSet, ReplicaSetSpec
from steersman.api.core.v1 import Event, Pod, ResourceQuota, ResourceQuotaSpec
from steersman.api.meta.v1 import LabelSelector, ObjectMeta
from steersman.client.api_resource import APIResource
from steersman.client.client import Client
from steersman.client.informer import Informer, Key
from steersman.client.resources import EVENTS, PODS, REPLICA_SETS
from steersman.controllers import replica_set
from steersman.controllers.controller import ControllerDependencies
from steersman.controllers.replica_set import ReplicaSetController
from steersman.controllers.workloads.pod_control import PodControl
from steersman.machinery.selectors.labels import Selector
from steersman.testing import Environment
from tests.controllers.kubelet import LABELS, end_pods, pods_of, run_pods, template
from tests.controllers.waiting import Run, eventually

QUOTAS = APIResource("", "v1", "resourcequotas", "ResourceQuota", ResourceQuota)


async def make(client: Client, replicas: int, **spec: Any) -> ReplicaSet:
    given = ReplicaSetSpec(replicas=replicas, selector=LabelSelector(match_labels=LABELS), template=template(), **spec)
    return await client.create(
        REPLICA_SETS, ReplicaSet(metadata=ObjectMeta(name="rs", namespace="default"), spec=given)
    )


async def status(client: Client) -> dict[str, Any]:
    found = (await client.get(REPLICA_SETS, "rs", "default")).status
    return {name: getattr(found, name) for name in ("replicas", "ready_replicas", "available_replicas")}


async def scale(client: Client, replicas: int) -> None:
    await client.patch(REPLICA_SETS, "rs", "default", {"spec": {"replicas": replicas}})


async def events(client: Client, reason: str) -> list[Event]:
    return [each for each in (await client.list(EVENTS, "default")).items if each.reason == reason]


async def test_as_many_pods_are_made_as_are_asked_for_and_told_of(run: Run) -> None:
    client = await run(ReplicaSetController)
    is_recovered = await make(client, 3)

    async def all_made() -> bool:
        return (await status(client))["replicas"] == 3 and len(await events(client, "SuccessfulCreate")) == 3

    await eventually(all_made)
    pods = await pods_of(client)
    assert {pod.metadata.generate_name for pod in pods} == {"rs-"}
    assert {each.uid for pod in pods for each in pod.metadata.owner_references} == {is_recovered.metadata.uid}
    event = (await events(client, "SuccessfulCreate"))[0]
    assert event.source.component == "replicaset-controller"
    assert event.message.startswith("Created pod: rs-")
    await run_pods(client)

    async def all_ready() -> bool:
        return await status(client) == {"replicas": 3, "ready_replicas": 3, "available_replicas": 3}

    await eventually(all_ready)


async def test_the_status_is_kept_up_while_many_pods_are_made(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replica_set, "STATUS_INTERVAL", 0.001)
    create, goes_on = PodControl.create, asyncio.Event()

    async def creates_some(control: PodControl, pod: Pod, owner: ReplicaSet) -> Pod:
        if len(await pods_of(client)) >= 3:
            await goes_on.wait()
        return await create(control, pod, owner)

    monkeypatch.setattr(PodControl, "create", creates_some)
    client = await run(ReplicaSetController)
    await make(client, 7)

    async def has(replicas: int) -> bool:
        return int((await status(client))["replicas"]) == replicas

    await eventually(lambda: has(3))
    notified: list[int] = []
    informer = Informer(client, REPLICA_SETS)
    informer.on_change(lambda _, new: notified.append(new.status.replicas if new else -1))
    informer.start()
    await informer.wait_until_synced()
    goes_on.set()
    await eventually(lambda: has(7))
    assert notified == sorted(notified)
    await informer.stop()


async def test_a_pod_that_goes_is_replaced_at_once(run: Run) -> None:
    client = await run(ReplicaSetController)
    await make(client, 1)
    first = (await eventually(lambda: pods_of(client)))[0]
    await run_pods(client)
    await client.delete(PODS, first.metadata.name, "default")

    async def another() -> bool:
        return [pod.metadata.uid for pod in await pods_of(client)] not in ([], [first.metadata.uid])

    await eventually(another)


async def test_the_pods_that_are_missed_least_go_first(run: Run) -> None:
    client = await run(ReplicaSetController)
    await make(client, 3)

    async def count(wanted: int) -> bool:
        await end_pods(client)
        return int((await status(client))["replicas"]) == wanted == len(await pods_of(client))

    await eventually(lambda: count(3))
    await run_pods(client, count=2)
    ready = {pod.metadata.name for pod in await pods_of(client) if pod.status.phase == "Running"}
    cheap = sorted(ready)[0]
    cost = {"metadata": {"annotations": {"controller.kubernetes.io/pod-deletion-cost": "-1"}}}
    await client.patch(PODS, cheap, "default", cost)
    await scale(client, 2)
    await eventually(lambda: count(2))
    assert {pod.metadata.name for pod in await pods_of(client)} == ready
    await scale(client, 1)
    await eventually(lambda: count(1))
    assert {pod.metadata.name for pod in await pods_of(client)} == ready - {cheap}


async def test_pods_are_adopted_and_released_by_their_labels(run: Run) -> None:
    client = await run(ReplicaSetController)
    mine = Pod(metadata=ObjectMeta(name="mine", namespace="default", labels=LABELS), spec=template().spec)
    await client.create(PODS, mine)
    is_recovered = await make(client, 1)

    async def owners() -> list[str]:
        return [each.uid for each in (await client.get(PODS, "mine", "default")).metadata.owner_references]

    assert await eventually(owners) == [is_recovered.metadata.uid]
    await eventually(lambda: _member_equals(status(client), "replicas", 1))
    await client.patch(PODS, "mine", "default", {"metadata": {"labels": {"app": "other"}}})

    async def released() -> bool:
        return not await owners() and len(await pods_of(client)) == 2

    await eventually(released)


async def _member_equals(found: Any, name: str, value: Any) -> bool:
    return bool((await found)[name] == value)


async def test_a_refused_pod_is_told_of_until_it_can_be_made(run: Run) -> None:
    client = await run(ReplicaSetController)
    quota = ResourceQuota(
        metadata=ObjectMeta(name="q", namespace="default"), spec=ResourceQuotaSpec(hard={"pods": "0"})
    )
    await client.create(QUOTAS, quota)
    used = {"status": {"hard": {"pods": "0"}, "used": {"pods": "0"}}}
    await client.patch(QUOTAS, "q", "default", used, subresource="status")
    await make(client, 1)

    async def conditions() -> list[Any]:
        return (await client.get(REPLICA_SETS, "rs", "default")).status.conditions

    condition = (await eventually(conditions))[0]
    assert (condition.type, condition.status, condition.reason) == ("ReplicaFailure", "True", "FailedCreate")
    assert "is forbidden: exceeded quota: q, requested: pods=1, used: pods=0, limited: pods=0" in condition.message
    await client.delete(QUOTAS, "q", "default")

    async def is_recovered() -> bool:
        return bool(await pods_of(client)) and not await conditions()

    await eventually(is_recovered)


async def test_pods_are_available_when_they_have_been_ready_for_long_enough(run: Run) -> None:
    client = await run(ReplicaSetController)
    await make(client, 2, min_ready_seconds=3600)
    await eventually(lambda: _member_equals(status(client), "replicas", 2))
    await run_pods(client, count=1, since="2024-01-01T00:00:00Z")
    await run_pods(client)

    async def one() -> bool:
        return await status(client) == {"replicas": 2, "ready_replicas": 2, "available_replicas": 1}

    await eventually(one)


async def test_nothing_is_made_for_a_set_that_is_being_deleted(run: Run) -> None:
    client = await run(ReplicaSetController)
    await make(client, 1)
    pod = (await eventually(lambda: pods_of(client)))[0]
    await client.patch(REPLICA_SETS, "rs", "default", {"metadata": {"finalizers": ["example.com/keep"]}})
    await client.delete(REPLICA_SETS, "rs", "default")
    await client.delete(PODS, pod.metadata.name, "default")
    await eventually(lambda: _member_equals(status(client), "replicas", 0))
    assert await pods_of(client) == []


class HeldController(ReplicaSetController):
    """Controller that waits for `goes_on` between the check of its expectations and its writes, and before its second
    reconciliation.
    """

    def __init__(self, dependencies: ControllerDependencies) -> None:
        super().__init__(dependencies)
        HELD.append(self)
        self.waits = asyncio.Event()
        self.goes_on = asyncio.Event()
        self._reconciliations = 0

    async def _hold(self) -> None:
        self.waits.set()
        await self.goes_on.wait()
        self.goes_on.clear()

    async def sync(self, key: Key) -> None:
        self._reconciliations += 1
        if self._reconciliations == 2:
            await self._hold()
        await super().sync(key)

    async def compile_selector(self, owner: ReplicaSet) -> Selector:
        if self._reconciliations == 1:
            await self._hold()
        return await super().compile_selector(owner)

    def cached(self, resource: APIResource[Any]) -> int:
        """Return the number of objects in the informer of a resource."""
        return len(self.informers.for_resource(resource))


HELD: list[HeldController] = []


async def test_pods_made_while_the_set_is_gone_are_not_waited_for_once_a_snapshot_brings_it_back(
    run: Run, shared_environment: Environment
) -> None:
    HELD.clear()
    client = await run(HeldController)
    await make(client, 2)
    (controller,) = HELD
    await controller.waits.wait()
    snapshot = shared_environment.snapshot()

    async def cached(resource: APIResource[Any], count: int) -> None:
        async def is_cached() -> bool:
            return controller.cached(resource) == count

        await eventually(is_cached)

    await client.delete(REPLICA_SETS, "rs", "default")
    await cached(REPLICA_SETS, 0)
    controller.goes_on.set()
    await cached(PODS, 2)
    await shared_environment.restore(snapshot)
    await cached(REPLICA_SETS, 1)
    await cached(PODS, 0)
    controller.goes_on.set()
    await cached(PODS, 2)
