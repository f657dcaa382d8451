"""Tests of the disruption controller: budgets, and stale conditions of pods."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.api.apiextensions import v1 as apiextensions
from steersman.api.apps.v1 import ReplicaSet, ReplicaSetSpec
from steersman.api.core.v1 import Pod
from steersman.api.meta.v1 import LabelSelector, ObjectMeta, OwnerReference
from steersman.api.policy.v1 import Eviction, PodDisruptionBudget, PodDisruptionBudgetSpec
from steersman.client.api_resource import APIResource
from steersman.client.client import Client
from steersman.client.resources import EVENTS, POD_DISRUPTION_BUDGETS, PODS, REPLICA_SETS
from steersman.controllers.disruption.controller import DisruptionController
from steersman.controllers.replica_set import ReplicaSetController
from steersman.machinery.codec.serializer import encode
from steersman.machinery.errors.status import StatusError
from steersman.machinery.values import times
from steersman.testing.clock import Clock
from tests.controllers.kubelet import LABELS, pods_of, run_pods, template
from tests.controllers.waiting import Run, eventually

DEFINITIONS = APIResource(
    "apiextensions.k8s.io",
    "v1",
    "customresourcedefinitions",
    "CustomResourceDefinition",
    apiextensions.CustomResourceDefinition,
    namespaced=False,
)


async def make_budget(client: Client, **spec: Any) -> None:
    given = PodDisruptionBudgetSpec(selector=LabelSelector(match_labels=LABELS), **spec)
    metadata = ObjectMeta(name="b", namespace="default")
    await client.create(POD_DISRUPTION_BUDGETS, PodDisruptionBudget(metadata=metadata, spec=given))


async def make_replica_set(client: Client, replicas: int) -> None:
    spec = ReplicaSetSpec(replicas=replicas, selector=LabelSelector(match_labels=LABELS), template=template())
    await client.create(REPLICA_SETS, ReplicaSet(metadata=ObjectMeta(name="rs", namespace="default"), spec=spec))

    async def all_made() -> bool:
        return len(await pods_of(client)) == replicas

    await eventually(all_made)


async def make_pod(client: Client, name: str, **metadata: Any) -> None:
    made = Pod(metadata=ObjectMeta(name=name, namespace="default", labels=LABELS, **metadata), spec=template().spec)
    await client.create(PODS, made)


async def wait_for_status(client: Client, *expected: int) -> None:
    """Wait for the numbers in the status: expected, healthy, desired, allowed."""

    async def as_expected() -> bool:
        status = (await client.get(POD_DISRUPTION_BUDGETS, "b", "default")).status
        numbers = status.expected_pods, status.current_healthy, status.desired_healthy, status.disruptions_allowed
        return numbers == expected and bool(status.conditions)

    await eventually(as_expected)


async def test_a_budget_follows_its_pods_and_what_their_owners_ask_for(run: Run) -> None:
    client = await run(ReplicaSetController, DisruptionController)
    await make_replica_set(client, 4)
    await make_budget(client, max_unavailable="25%")
    await wait_for_status(client, 4, 0, 3, 0)
    await run_pods(client, count=3)
    await wait_for_status(client, 4, 3, 3, 0)
    await run_pods(client)
    await wait_for_status(client, 4, 4, 3, 1)
    await client.patch(REPLICA_SETS, "rs", "default", {"spec": {"replicas": 8}})
    await wait_for_status(client, 8, 4, 6, 0)


async def evict(client: Client) -> str:
    name = (await pods_of(client))[0].metadata.name
    eviction = Eviction(metadata=ObjectMeta(name=name, namespace="default"))
    await client.post_to_subresource(PODS, name, "default", "eviction", encode(eviction))
    return name


async def test_evictions_are_counted_until_the_budget_is_used_up(run: Run) -> None:
    client = await run(ReplicaSetController, DisruptionController)
    await make_replica_set(client, 2)
    await make_budget(client, min_available=1)
    await wait_for_status(client, 2, 0, 1, 0)
    await run_pods(client)
    await wait_for_status(client, 2, 2, 1, 1)
    await evict(client)
    with pytest.raises(StatusError, match="disruption budget"):
        await evict(client)


async def make_definition(client: Client) -> None:
    scale = apiextensions.CustomResourceSubresourceScale(
        spec_replicas_path=".spec.replicas", status_replicas_path=".status.replicas"
    )
    schema = apiextensions.JSONSchemaProps(type="object", x_kubernetes_preserve_unknown_fields=True)
    version = apiextensions.CustomResourceDefinitionVersion(
        name="v1",
        served=True,
        storage=True,
        schema=apiextensions.CustomResourceValidation(open_api_v3_schema=schema),
        subresources=apiextensions.CustomResourceSubresources(scale=scale),
    )
    names = apiextensions.CustomResourceDefinitionNames(plural="fleets", kind="Fleet")
    spec = apiextensions.CustomResourceDefinitionSpec(
        group="example.com", scope="Namespaced", names=names, versions=[version]
    )
    definition = apiextensions.CustomResourceDefinition(metadata=ObjectMeta(name="fleets.example.com"), spec=spec)
    await client.create(DEFINITIONS, definition)


async def test_owners_of_any_kind_are_asked_for_their_scale(run: Run) -> None:
    client = await run(DisruptionController)
    await make_definition(client)
    fleets: APIResource[Any] = APIResource("example.com", "v1", "fleets", "Fleet", dict)
    fleet = {"metadata": {"name": "f", "namespace": "default"}, "spec": {"replicas": 5}}

    async def served() -> bool:
        try:
            said = await client.get_plain("/apis/example.com/v1")
        except StatusError:
            return False
        return any(each["name"] == "fleets/scale" for each in said["resources"])

    await eventually(served)
    made = await client.create(fleets, fleet, "default")
    owner = OwnerReference(
        api_version="example.com/v1", kind="Fleet", name="f", uid=made["metadata"]["uid"], controller=True
    )
    await make_pod(client, "one", owner_references=[owner])
    await run_pods(client)
    await make_budget(client, max_unavailable="20%")
    await wait_for_status(client, 5, 1, 4, 0)


async def condition(client: Client) -> tuple[str, str]:
    found = (await client.get(POD_DISRUPTION_BUDGETS, "b", "default")).status.conditions
    return (found[0].reason, found[0].message) if found else ("", "")


@pytest.mark.parametrize(
    ("api_version", "kind", "message"),
    [
        ("example.com/v1", "None", 'no matches for kind "None" in version "example.com/v1"'),
        ("v1", "ConfigMap", "configmaps does not implement the scale subresource"),
        ("apps/v1", "ReplicaSet", 'found no controllers for pod "one"'),
    ],
)
async def test_a_budget_that_cannot_be_counted_lets_no_pod_go(
    run: Run, api_version: str, kind: str, message: str
) -> None:
    client = await run(DisruptionController)
    owner = OwnerReference(api_version=api_version, kind=kind, name="w", uid="u", controller=True)
    await make_pod(client, "one", owner_references=[owner])
    await make_budget(client, max_unavailable=1)

    async def failed() -> bool:
        return await condition(client) == ("SyncFailed", message)

    await eventually(failed)
    told = [each.message for each in (await client.list(EVENTS, "default")).items]
    assert f"Failed to calculate the number of expected pods: {message}" in told


async def disruption_target(client: Client) -> tuple[str, str | None]:
    for each in (await client.get(PODS, "one", "default")).status.conditions:
        if each.type == "DisruptionTarget":
            return each.status, each.reason
    return "", ""


async def test_a_pod_that_stays_is_not_to_be_disrupted_any_more(run: Run) -> None:
    clock = Clock()
    client = await run(DisruptionController)
    await make_pod(client, "one")
    target = {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}
    status = {"status": {"conditions": [{**target, "lastTransitionTime": times.now()}]}}
    await client.patch(PODS, "one", "default", status, subresource="status")
    await clock.advance(seconds=100)
    assert await disruption_target(client) == ("True", "EvictionByEvictionAPI")
    await clock.advance(seconds=30)
    assert await disruption_target(client) == ("False", "")


async def test_a_pod_that_does_not_go_after_its_eviction_is_told_of(run: Run) -> None:
    clock = Clock()
    client = await run(ReplicaSetController, DisruptionController)
    await make_replica_set(client, 2)
    await make_budget(client, min_available=1)
    await clock.settle()
    await run_pods(client)
    await clock.settle()
    name = (await client.list(PODS, "default")).items[0].metadata.name
    status = {"status": {"disruptedPods": {name: times.now()}}}
    await client.patch(POD_DISRUPTION_BUDGETS, "b", "default", status, subresource="status")
    await clock.settle()
    await wait_for_status(client, 2, 1, 1, 0)
    await clock.advance(seconds=125)
    await wait_for_status(client, 2, 2, 1, 1)
    told = [each.message for each in (await client.list(EVENTS, "default")).items if each.reason == "NotDeleted"]
    assert told == ["Pod was expected by PDB default/default to be deleted but it wasn't"]
