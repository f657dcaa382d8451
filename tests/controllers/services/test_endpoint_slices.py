"""Tests of the EndpointSlice controller."""

from __future__ import annotations

import pytest

from steersman.client.client import Client
from steersman.client.resources import ENDPOINT_SLICES, EVENTS, NODES, PODS, SERVICES
from steersman.controllers.services import packing
from steersman.controllers.services.addresses import families_of, pod_addresses
from steersman.controllers.services.endpoint_slices import EndpointSliceController
from tests.controllers.services.objects import (
    make_node,
    make_service,
    pod,
    ready_in_slices,
    run_pod,
    service,
    slices_of,
)
from tests.controllers.waiting import Run, eventually


async def wait_for_endpoints(client: Client, expected: dict[str, bool], service: str = "s") -> None:
    async def as_expected() -> bool:
        return await ready_in_slices(client, service) == expected

    await eventually(as_expected)


async def test_slices_follow_pods(run: Run) -> None:
    client = await run(EndpointSliceController)
    await make_node(client, zone="a")
    await make_service(client)
    await run_pod(client, "one", "10.1.0.1")
    await run_pod(client, "two", "10.1.0.2", ready=False)
    await wait_for_endpoints(client, {"one": True, "two": False})
    (slice_,) = await slices_of(client)
    endpoint = (slice_.endpoints or [])[0]
    assert (endpoint.node_name, endpoint.zone, slice_.address_type) == ("node-a", "a", "IPv4")
    assert slice_.metadata.annotations["endpoints.kubernetes.io/last-change-trigger-time"]
    await client.delete(PODS, "one", "default")
    await run_pod(client, "two", "10.1.0.2")
    await wait_for_endpoints(client, {"one": False, "two": True})
    await client.patch(PODS, "two", "default", {"metadata": {"labels": {"app": "other"}}})
    await wait_for_endpoints(client, {"one": False})


async def test_endpoints_are_spread_over_slices_that_stay_as_they_are(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packing, "MOST", 3)
    client = await run(EndpointSliceController)
    await make_node(client)
    for number in range(8):
        await run_pod(client, f"p{number}", f"10.1.0.{number + 1}")
    await make_service(client)  # after the pods: those that come in between may begin slices of their own
    await wait_for_endpoints(client, {f"p{number}": True for number in range(8)})
    before = {each.metadata.name: each.metadata.resource_version for each in await slices_of(client)}
    assert len(before) == 3
    await run_pod(client, "p0", "10.1.0.1", ready=False)
    await wait_for_endpoints(client, {f"p{number}": number > 0 for number in range(8)})
    after = {each.metadata.name: each.metadata.resource_version for each in await slices_of(client)}
    assert sum(before[name] != version for name, version in after.items()) == 1


async def test_a_pod_is_listed_when_its_node_is_known(run: Run) -> None:
    client = await run(EndpointSliceController)
    await make_service(client)
    await run_pod(client, "one", "10.1.0.1")

    async def messages() -> list[str]:
        found = (await client.list(EVENTS, "default")).items
        return [each.message for each in found if each.reason == "FailedToUpdateEndpointSlices"]

    (text, *_) = await eventually(messages)
    assert text == (
        "Error updating Endpoint Slices for Service default/s: "
        "skipping Pod one for Service default/s: Node node-a Not Found"
    )
    assert await ready_in_slices(client) == {}
    await make_node(client, zone="z")
    await wait_for_endpoints(client, {"one": True})


async def test_what_others_do_to_slices_is_undone(run: Run) -> None:
    client = await run(EndpointSliceController)
    await make_node(client)
    await make_service(client)
    await run_pod(client, "one", "10.1.0.1")
    await wait_for_endpoints(client, {"one": True})
    (slice_,) = await slices_of(client)
    await client.patch(ENDPOINT_SLICES, slice_.metadata.name, "default", {"endpoints": []})
    await wait_for_endpoints(client, {"one": True})
    await client.delete(ENDPOINT_SLICES, slice_.metadata.name, "default")
    await wait_for_endpoints(client, {"one": True})
    assert len(await slices_of(client)) == 1


async def test_slices_that_were_there_before_are_kept(run: Run) -> None:
    client = await run(EndpointSliceController)
    await make_node(client)
    await make_service(client)
    await run_pod(client, "one", "10.1.0.1")
    await wait_for_endpoints(client, {"one": True})
    (before,) = await slices_of(client)
    client = await run(EndpointSliceController)
    await run_pod(client, "two", "10.1.0.2")
    await wait_for_endpoints(client, {"one": True, "two": True})
    assert [each.metadata.uid for each in await slices_of(client)] == [before.metadata.uid]


async def hints(client: Client) -> list[list[str]]:
    return sorted(
        [each.name for each in (endpoint.hints.for_zones if endpoint.hints is not None else ())]
        for slice_ in await slices_of(client)
        for endpoint in slice_.endpoints or ()
    )


async def test_hints_follow_the_traffic_distribution(run: Run) -> None:
    client = await run(EndpointSliceController)
    await make_node(client, zone="a")
    await make_service(client, traffic_distribution="PreferSameZone")
    await run_pod(client, "one", "10.1.0.1")

    async def near() -> bool:
        return await hints(client) == [["a"]]

    await eventually(near)
    await client.patch(SERVICES, "s", "default", {"spec": {"trafficDistribution": None}})

    async def anywhere() -> bool:
        return await hints(client) == [[]]

    await eventually(anywhere)


async def test_zones_get_their_shares(run: Run) -> None:
    client = await run(EndpointSliceController)
    for name, zone in (("node-a", "a"), ("node-b", "b")):
        await make_node(client, name, zone)
        status = {"allocatable": {"cpu": "2"}, "conditions": [{"type": "Ready", "status": "True"}]}
        await client.patch(NODES, name, "", {"status": status}, subresource="status")
    await make_service(client)
    mode = {"metadata": {"annotations": {"service.kubernetes.io/topology-mode": "Auto"}}}
    await client.patch(SERVICES, "s", "default", mode)
    for number in range(6):
        await run_pod(client, f"p{number}", f"10.1.0.{number + 1}", node="node-a" if number else "node-b")

    async def shared() -> bool:
        return await hints(client) == [["a"]] * 3 + [["b"]] * 3

    await eventually(shared)
    mode["metadata"]["annotations"]["service.kubernetes.io/topology-mode"] = "Disabled"
    await client.patch(SERVICES, "s", "default", mode)

    async def taken_away() -> bool:
        return await hints(client) == [[]] * 6

    await eventually(taken_away)


def test_each_family_of_a_service_has_its_slices() -> None:
    both = service(ip_families=["IPv6", "IPv4"], cluster_ip="fd00::1")
    assert families_of(both) == ["IPv4", "IPv6"]
    one = pod("p", "10.1.0.1", "fd00::0:2")
    assert [pod_addresses(one, each) for each in families_of(both)] == [["10.1.0.1"], ["fd00::2"]]
    assert families_of(service(cluster_ip="fd00::1")) == ["IPv6"]
    assert families_of(service(cluster_ip="None")) == ["IPv4", "IPv6"]
