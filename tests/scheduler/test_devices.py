"""Pods that claim devices."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.api.resource.v1 import Device, DeviceClass, ResourceClaim, ResourceSlice
from steersman.client.resources import DEVICE_CLASSES, NODES, RESOURCE_CLAIMS, RESOURCE_SLICES
from steersman.machinery.codec.serializer import from_plain
from steersman.machinery.values import times
from steersman.scheduler.devices import selectors
from steersman.scheduler.devices.expressions import outcomes
from steersman.scheduler.devices.extended_resources import ClassNames
from tests.scheduler.scene import Scene, wait_for

DRIVER = "gpu.example.com"


async def make_class(scene: Scene, name: str = "gpu") -> None:
    selectors = [{"cel": {"expression": f"device.driver == '{DRIVER}'"}}]
    plain = {"metadata": {"name": name}, "spec": {"selectors": selectors}}
    await scene.client.create(DEVICE_CLASSES, from_plain(DeviceClass, plain))


def device(name: str, memory: str = "8Gi", **attributes: Any) -> dict[str, Any]:
    return {"name": name, "attributes": attributes, "capacity": {"memory": {"value": memory}}}


async def make_slice(scene: Scene, node: str, *devices: dict[str, Any]) -> None:
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": DRIVER, "pool": pool, "nodeName": node, "devices": list(devices)}
    plain = {"metadata": {"name": f"slice-{node}"}, "spec": spec}
    await scene.client.create(RESOURCE_SLICES, from_plain(ResourceSlice, plain))


async def make_claim(scene: Scene, name: str, *expressions: str, count: int = 1, **more: Any) -> None:
    selectors = [{"cel": {"expression": each}} for each in expressions]
    exactly = {"deviceClassName": "gpu", "selectors": selectors, "allocationMode": "ExactCount", "count": count}
    devices = {"requests": [{"name": "r", "exactly": exactly | more.pop("exactly", {})}], **more}
    plain = {"metadata": {"name": name, "namespace": "default"}, "spec": {"devices": devices}}
    await scene.client.create(RESOURCE_CLAIMS, from_plain(ResourceClaim, plain))


def with_claims(*names: str) -> dict[str, Any]:
    return {"resourceClaims": [{"name": each, "resourceClaimName": each} for each in names]}


async def allocated_devices(scene: Scene, name: str) -> list[str]:
    claim = await scene.client.get(RESOURCE_CLAIMS, name, "default")
    allocation = claim.status.allocation
    return [] if allocation is None else [f"{each.pool}/{each.device}" for each in allocation.devices.results]


async def test_a_claim_gets_a_device_that_its_expressions_select(scene: Scene) -> None:
    for name in ("a", "b"):
        await scene.node(name)
    await make_class(scene)
    await make_slice(scene, "a", device("one", "8Gi", model={"string": "old"}))
    await make_slice(scene, "b", device("one", "8Gi"), device("two", "40Gi", model={"string": "new"}))
    large = f"device.capacity['{DRIVER}'].memory.isGreaterThan(quantity('16Gi'))"
    await make_claim(scene, "c", large, f"device.attributes['{DRIVER}'].model == 'new'")
    await scene.pod("p", **with_claims("c"))
    assert await scene.wait_for_node("p") == "b"
    assert await allocated_devices(scene, "c") == ["b/two"]
    claim = await scene.client.get(RESOURCE_CLAIMS, "c", "default")
    assert [each.name for each in claim.status.reserved_for] == ["p"]
    assert claim.metadata.finalizers == ["resource.kubernetes.io/delete-protection"]
    assert claim.status.allocation is not None
    selector = claim.status.allocation.node_selector
    assert selector is not None
    assert selector.node_selector_terms is not None
    assert selector.node_selector_terms[0].match_fields[0].values == ["b"]


async def test_patterns_of_expressions_are_compiled_in_a_thread(scene: Scene) -> None:
    await scene.node("a")
    await make_class(scene)
    await make_slice(scene, "a", device("one", model={"string": "old"}), device("two", model={"string": "new"}))
    model = f"device.attributes['{DRIVER}'].model"
    await make_claim(scene, "c", f"{model}.matches('^n[ew]{{2,77}}$')", f"{model}.find('[ew]{{1,76}}$') == 'ew'")
    await scene.pod("p", **with_claims("c"))
    assert await scene.wait_for_node("p") == "a"
    assert await allocated_devices(scene, "c") == ["a/two"]


async def test_all_selectors_of_a_pod_have_one_budget(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selectors, "MOST_COST", 5_000)
    await scene.node("a")
    await make_class(scene)
    await make_slice(scene, "a", *(device(f"d{number}") for number in range(20)))
    await make_claim(scene, "cheap", "true")
    await scene.pod("p", **with_claims("cheap"))
    assert await scene.wait_for_node("p") == "a"
    await make_claim(scene, "dear", "lists.range(60).all(x, x >= 0) && false")
    await scene.pod("q", **with_claims("dear"))
    refusal = await scene.wait_for_refusal("q")
    assert "the pod's selectors cost more than 5000 CEL units on 20 devices" in refusal.message


def test_no_more_expressions_are_evaluated_than_the_budget_pays_for() -> None:
    devices = [(from_plain(Device, device(f"d{number}")), DRIVER) for number in range(10)]
    chains = [(f"{number} >= 0",) for number in range(10)]
    everything = outcomes(devices, chains, 1_000_000)
    assert (len(everything.found), everything.complete) == (100, True)
    some = outcomes(devices, chains, 1_500)
    assert 0 < len(some.found) < 100
    assert not some.complete
    assert not outcomes(devices, [("true || " * 1_000 + "true",)], 8_000).found  # compiling it costs more


async def test_devices_are_given_once(scene: Scene) -> None:
    await scene.node("a")
    await make_class(scene)
    await make_slice(scene, "a", device("one"), device("two"))
    for number in range(3):
        await make_claim(scene, f"c{number}")
    await scene.pod("p", **with_claims("c0", "c1"))
    assert await scene.wait_for_node("p") == "a"
    assert {*await allocated_devices(scene, "c0"), *await allocated_devices(scene, "c1")} == {"a/one", "a/two"}
    await scene.pod("q", **with_claims("c2"))
    assert (await scene.wait_for_refusal("q")).message == (
        "0/1 nodes are available: 1 cannot allocate all claims. still not schedulable, "
        "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
    )


async def test_devices_are_alike_where_that_is_asked_for(scene: Scene) -> None:
    await scene.node("a")
    await make_class(scene)
    boards = {"one": "1", "two": "2", "three": "2"}
    await make_slice(scene, "a", *(device(name, board={"string": board}) for name, board in boards.items()))
    await make_claim(scene, "c", count=2, constraints=[{"requests": ["r"], "matchAttribute": f"{DRIVER}/board"}])
    await scene.pod("p", **with_claims("c"))
    assert await scene.wait_for_node("p") == "a"
    assert await allocated_devices(scene, "c") == ["a/two", "a/three"]


async def test_devices_differ_where_that_is_asked_for(scene: Scene) -> None:
    await scene.node("a")
    await make_class(scene)
    boards = {"one": "1", "two": "1", "three": "2"}
    await make_slice(
        scene, "a", device("none"), *(device(name, board={"string": board}) for name, board in boards.items())
    )
    await make_claim(scene, "c", count=2, constraints=[{"requests": ["r"], "distinctAttribute": f"{DRIVER}/board"}])
    await scene.pod("p", **with_claims("c"))
    assert await scene.wait_for_node("p") == "a"
    assert await allocated_devices(scene, "c") == ["a/one", "a/three"]


async def create_pending(scene: Scene, *names: str) -> None:
    """Create a class, a slice of devices with binding conditions, a claim of one of them, and a pod that
    waits for it.
    """
    await scene.node("a")
    await make_class(scene)
    conditions = {"bindingConditions": ["Ready"], "bindingFailureConditions": ["Broken"], "bindsToNode": True}
    await make_slice(scene, "a", *(device(name) | conditions for name in names))
    await make_claim(scene, "c")
    await scene.pod("p", **with_claims("c"))
    note = await scene.wait_for_event("p", "BindingConditionsPending")
    assert note == "waiting for binding conditions for device on node a"
    assert (await scene.get("p")).spec.node_name == ""


async def report_condition(scene: Scene, type_: str) -> None:
    """Report a condition of the claim's device, as its driver does."""
    claim = await scene.client.get(RESOURCE_CLAIMS, "c", "default")
    assert claim.status.allocation is not None
    (result,) = claim.status.allocation.devices.results
    assert (result.binding_conditions, result.binding_failure_conditions) == (["Ready"], ["Broken"])
    condition = {"type": type_, "status": "True", "reason": "R", "message": "m", "lastTransitionTime": times.now()}
    said = {"driver": DRIVER, "pool": "a", "device": result.device, "conditions": [condition]}
    await scene.client.patch(RESOURCE_CLAIMS, "c", "default", {"status": {"devices": [said]}}, subresource="status")


@pytest.mark.slow
async def test_devices_are_waited_for_until_they_are_ready(scene: Scene) -> None:
    await create_pending(scene, "one")
    await report_condition(scene, "Ready")
    assert await scene.wait_for_node("p") == "a"


@pytest.mark.slow
async def test_a_claim_whose_device_fails_gets_another(scene: Scene) -> None:
    await create_pending(scene, "one")
    await report_condition(scene, "Broken")
    reported = 'running PreBind plugin "DynamicResources": device binding failed: claim=c, reason=R, message="m"'
    assert await scene.wait_for_event("p", "FailedScheduling") == reported
    await scene.client.delete(RESOURCE_SLICES, "slice-a")

    async def released() -> bool:
        return (await scene.client.get(RESOURCE_CLAIMS, "c", "default")).status.allocation is None

    await wait_for(released)
    claim = await scene.client.get(RESOURCE_CLAIMS, "c", "default")
    assert (claim.status.reserved_for, claim.status.devices) == ([], [])
    await make_slice(scene, "a", device("good"))
    assert await scene.wait_for_node("p") == "a"
    assert await allocated_devices(scene, "c") == ["a/good"]


async def test_an_unused_claim_follows_the_pod(scene: Scene) -> None:
    for name in ("a", "b"):
        await scene.node(name)
    await make_class(scene)
    await make_slice(scene, "a", device("one"))
    await make_slice(scene, "b", device("one"))
    await make_claim(scene, "c")
    await scene.pod("p", **with_claims("c"), nodeSelector={"kubernetes.io/hostname": "a"})
    assert await scene.wait_for_node("p") == "a"
    await scene.delete("p")
    await scene.client.patch(RESOURCE_CLAIMS, "c", "default", {"status": {"reservedFor": None}}, subresource="status")
    await scene.pod("q", **with_claims("c"), nodeSelector={"kubernetes.io/hostname": "b"})
    assert await scene.wait_for_node("q") == "b"
    assert await allocated_devices(scene, "c") == ["b/one"]
    assert "deallocation of ResourceClaim completed" in (await scene.events("q"))["FailedScheduling"]


async def test_all_devices_are_given_where_all_are_asked_for(scene: Scene) -> None:
    await scene.node("a")
    await make_class(scene)
    await make_slice(scene, "a", device("one"), device("two"))
    await make_claim(scene, "c", count=0, exactly={"allocationMode": "All"})
    await scene.pod("p", **with_claims("c"))
    assert await scene.wait_for_node("p") == "a"
    assert await allocated_devices(scene, "c") == ["a/one", "a/two"]


async def test_a_pod_is_not_tried_before_its_claim_is_there(scene: Scene) -> None:
    await scene.node("a")
    await make_class(scene)
    await make_slice(scene, "a", device("one"))
    await scene.pod("p", **with_claims("c"))
    await scene.pod("other")
    await scene.wait_for_node("other")
    assert (await scene.get("p")).status.conditions == []
    await make_claim(scene, "c")
    assert await scene.wait_for_node("p") == "a"


async def test_a_missing_class_is_reported_and_waited_for(scene: Scene) -> None:
    await scene.node("a")
    await make_slice(scene, "a", device("one"))
    await make_claim(scene, "c")
    await scene.pod("p", **with_claims("c"))
    assert (await scene.wait_for_refusal("p")).message == (
        "0/1 nodes are available: request r: device class gpu does not exist. no new claims to deallocate, "
        "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
    )
    await make_class(scene)
    assert await scene.wait_for_node("p") == "a"


async def test_a_pod_follows_a_claim_that_another_has(scene: Scene) -> None:
    for name in ("a", "b"):
        await scene.node(name)
    await make_class(scene)
    await make_slice(scene, "a", device("one"))
    await make_claim(scene, "c")
    await scene.pod("p", **with_claims("c"))
    assert await scene.wait_for_node("p") == "a"
    await scene.pod("q", **with_claims("c"))
    assert await scene.wait_for_node("q") == "a"
    claim = await scene.client.get(RESOURCE_CLAIMS, "c", "default")
    assert [each.name for each in claim.status.reserved_for] == ["p", "q"]


# Extended resources of DeviceClasses


async def make_extended_class(scene: Scene, name: str = "gpu", resource: str = "example.com/gpu") -> None:
    selectors = [{"cel": {"expression": f"device.driver == '{DRIVER}'"}}]
    plain = {"metadata": {"name": name}, "spec": {"selectors": selectors, "extendedResourceName": resource}}
    await scene.client.create(DEVICE_CLASSES, from_plain(DeviceClass, plain))


def with_gpus(*counts: str, resource: str = "example.com/gpu", **spec: Any) -> dict[str, Any]:
    containers = [
        {"name": f"c{number}", "image": "i", "resources": {"requests": {resource: count}, "limits": {resource: count}}}
        for number, count in enumerate(counts)
    ]
    return {"containers": containers, **spec}


async def extended_claim_of(scene: Scene, pod: str) -> ResourceClaim:
    status = (await scene.get(pod)).status.extended_resource_claim_status
    assert status is not None
    return await scene.client.get(RESOURCE_CLAIMS, status.resource_claim_name, "default")


@pytest.mark.parametrize("resource", ["example.com/gpu", "deviceclass.resource.kubernetes.io/gpu"])
async def test_devices_provide_an_extended_resource(scene: Scene, resource: str) -> None:
    for name in ("a", "b"):
        await scene.node(name)
    await make_extended_class(scene)
    await make_slice(scene, "a", device("one"))
    await make_slice(scene, "b", device("one"), device("two"), device("three"))
    pod = await scene.pod("p", **with_gpus("2", "1", resource=resource))
    assert await scene.wait_for_node("p") == "b"
    claim = await extended_claim_of(scene, "p")
    assert claim.metadata.name.startswith("p-extended-resources-")
    assert claim.metadata.annotations == {"resource.kubernetes.io/extended-resource-claim": "true"}
    assert [(each.kind, each.uid, each.controller) for each in claim.metadata.owner_references] == [
        ("Pod", pod.metadata.uid, True)
    ]
    assert [each.name for each in claim.status.reserved_for] == ["p"]
    assert sorted(await allocated_devices(scene, claim.metadata.name)) == ["b/one", "b/three", "b/two"]
    status = (await scene.get("p")).status.extended_resource_claim_status
    assert status is not None
    assert [(each.container_name, each.resource_name, each.request_name) for each in status.request_mappings or ()] == [
        ("c0", resource, "container-0-request-0"),
        ("c1", resource, "container-1-request-0"),
    ]


async def test_a_node_with_the_resource_of_its_own_needs_no_claim(scene: Scene) -> None:
    await scene.node("a", allocatable={"example.com/gpu": "1"})
    await make_extended_class(scene)
    await scene.pod("first", **with_gpus("1"))
    assert await scene.wait_for_node("first") == "a"
    assert (await scene.get("first")).status.extended_resource_claim_status is None
    await scene.pod("second", **with_gpus("1"))
    assert "Insufficient example.com/gpu" in ((await scene.wait_for_refusal("second")).message or "")


async def test_a_class_that_comes_later_helps_and_no_device_is_given_twice(scene: Scene) -> None:
    await scene.node("a", allocatable={"cpu": "64"})
    await make_slice(scene, "a", *(device(f"d{number}") for number in range(4)))
    for number in range(5):
        await scene.pod(f"p{number}", **with_gpus("1"))
    assert "Insufficient example.com/gpu" in ((await scene.wait_for_refusal("p0")).message or "")
    await make_extended_class(scene)

    async def placed() -> list[str]:
        names = [f"p{number}" for number in range(5)]
        found = [name for name in names if (await scene.get(name)).spec.node_name]
        return found if len(found) == 4 else []

    running = await wait_for(placed)
    devices = [
        one
        for name in running
        for one in await allocated_devices(scene, (await extended_claim_of(scene, name)).metadata.name)
    ]
    assert sorted(devices) == ["a/d0", "a/d1", "a/d2", "a/d3"]
    (waiting,) = {f"p{number}" for number in range(5)} - set(running)

    async def refused_for_devices() -> bool:  # the refusal from before the class may still stand
        return "cannot allocate all claims" in ((await scene.wait_for_refusal(waiting)).message or "")

    assert await wait_for(refused_for_devices)


async def test_init_containers_share_devices_with_those_that_follow(scene: Scene) -> None:
    await scene.node("a")
    await make_extended_class(scene)
    await make_slice(scene, "a", *(device(f"d{number}") for number in range(3)))
    spec = with_gpus("2")
    init = with_gpus("1", "3")["containers"]
    spec["initContainers"] = [{**each, "name": f"init{number}"} for number, each in enumerate(init)]
    await scene.pod("p", **spec)
    assert await scene.wait_for_node("p") == "a"
    claim = await extended_claim_of(scene, "p")
    assert [(each.name, each.exactly and each.exactly.count) for each in claim.spec.devices.requests or ()] == [
        ("container-1-request-0", 1),
        ("container-2-request-0", 2),
    ]
    status = (await scene.get("p")).status.extended_resource_claim_status
    assert status is not None
    assert [(each.container_name, each.request_name) for each in status.request_mappings or ()] == [
        ("c0", "container-2-request-0"),
        ("init0", "container-2-request-0"),
        ("init1", "container-2-request-0"),
        ("init1", "container-1-request-0"),
    ]


async def test_a_claim_of_an_attempt_that_failed_is_replaced(scene: Scene) -> None:
    await scene.node("a", unschedulable=True)
    await make_extended_class(scene)
    await make_slice(scene, "a", device("one"))
    pod = await scene.pod("p", **with_gpus("1"))
    await scene.wait_for_refusal("p")
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": pod.metadata.uid, "controller": True}
    metadata = {
        "name": "stale",
        "namespace": "default",
        "ownerReferences": [owner],
        "annotations": {"resource.kubernetes.io/extended-resource-claim": "true"},
    }
    exactly = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}
    plain = {"metadata": metadata, "spec": {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}}
    await scene.client.create(RESOURCE_CLAIMS, from_plain(ResourceClaim, plain))
    await scene.client.patch(NODES, "a", "", {"spec": {"unschedulable": None}})
    assert await scene.wait_for_node("p") == "a"
    assert await scene.client.find(RESOURCE_CLAIMS, "stale", "default") is None
    assert (await extended_claim_of(scene, "p")).metadata.name != "stale"


async def test_the_youngest_class_provides_a_resource_and_then_the_lowest_name() -> None:
    names = ClassNames()

    def device_class(name: str, second: int, resource: str | None = "example.com/gpu") -> DeviceClass:
        metadata = {"name": name, "creationTimestamp": f"2026-01-01T00:00:0{second}Z"}
        return from_plain(DeviceClass, {"metadata": metadata, "spec": {"extendedResourceName": resource}})

    first, second, third = device_class("c", 1), device_class("b", 2), device_class("a", 2)
    for each in (first, second, third):
        names.changed(None, each)
    assert names.class_of("example.com/gpu") is third
    assert names.class_of("deviceclass.resource.kubernetes.io/c") is first
    names.changed(third, device_class("a", 2, None))
    assert names.class_of("example.com/gpu") is second
    names.changed(second, None)
    names.changed(first, None)
    assert names.class_of("example.com/gpu") is None
