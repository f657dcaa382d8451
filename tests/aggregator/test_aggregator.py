"""Registration and removal of APIServices: what is listed, and which server answers."""

from __future__ import annotations

import asyncio
from typing import Any

from steersman.testing import Client
from tests.aggregator.extension_server import (
    API_SERVICES,
    GROUP,
    LIST,
    NAME,
    ROOT,
    THINGS,
    ExtensionServer,
    publish,
    register,
    response,
    until,
    until_reason,
)

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


async def groups(client: Client) -> list[str]:
    return [each["name"] for each in (await client.get("/apis")).json()["groups"]]


async def aggregated(client: Client, group: str = GROUP) -> dict[str, Any] | None:
    items = (await client.get("/apis", accept=AGGREGATED)).json()["items"]
    found: dict[str, Any] | None = next((each for each in items if each["metadata"]["name"] == group), None)
    return found


async def until_listed(client: Client, freshness: str) -> dict[str, Any]:
    async with asyncio.timeout(20):
        while True:
            found = await aggregated(client)
            if found is not None and found["versions"][0]["freshness"] == freshness:
                return found
            await asyncio.sleep(0.01)


async def test_its_group_is_listed_at_once_and_gone_with_it(client: Client) -> None:
    await register(client, None)
    assert GROUP in await groups(client)
    group = (await client.get(f"/apis/{GROUP}")).json()
    version = {"groupVersion": f"{GROUP}/v1", "version": "v1"}
    assert (group["versions"], group["preferredVersion"]) == ([version], version)
    assert f"/apis/{GROUP}" in (await client.get("/")).json()["paths"]
    assert ROOT in (await client.get("/")).json()["paths"]
    assert (await client.get(ROOT)).body == b"service unavailable\n"
    await client.delete(f"{API_SERVICES}/{NAME}")
    assert GROUP not in await groups(client)
    assert (await client.get(f"/apis/{GROUP}")).status == 404
    assert (await client.get(ROOT)).status == 404


async def test_groups_stand_in_the_order_of_their_priorities(client: Client) -> None:
    await register(client, None, "v1.last.example.com", groupPriorityMinimum=10)
    await register(client, None, "v1.first.example.com", groupPriorityMinimum=20000)
    await register(client, None, "v2.first.example.com", groupPriorityMinimum=10, versionPriority=100)
    found = await groups(client)
    assert found[:2] == ["apiregistration.k8s.io", "first.example.com"]
    assert found[-1] == "last.example.com"
    versions = (await client.get("/apis/first.example.com")).json()["versions"]
    assert [each["version"] for each in versions] == ["v2", "v1"]


async def test_old_servers_tell_of_each_group_version(things: Client, behind: ExtensionServer) -> None:
    found = await until_listed(things, "Current")
    assert found["versions"] == [
        {
            "version": "v1",
            "freshness": "Current",
            "resources": [
                {
                    "resource": "things",
                    "responseKind": {"group": "", "version": "", "kind": "Thing"},
                    "scope": "Namespaced",
                    "singularResource": "thing",
                    "verbs": ["get"],
                    "shortNames": ["th"],
                    "subresources": [
                        {
                            "subresource": "status",
                            "responseKind": {"group": "", "version": "", "kind": "Thing"},
                            "verbs": ["patch"],
                        }
                    ],
                }
            ],
        }
    ]
    (request, *_) = behind.requests_for("/apis")
    assert request.first("x-remote-user") == "system:kube-aggregator"
    assert request.first("accept").startswith(AGGREGATED)


async def test_other_servers_tell_of_all_at_once(client: Client, behind: ExtensionServer) -> None:
    resource = {"resource": "things", "scope": "Cluster", "singularResource": "thing", "verbs": ["get"]}
    items = [
        {
            "metadata": {"name": GROUP, "creationTimestamp": None},
            "versions": [{"version": "v1", "resources": [resource], "freshness": "Current"}, {"version": "v9"}],
        },
        {"metadata": {"name": "apps"}, "versions": [{"version": "v1"}]},
    ]
    body = {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items}
    text = response(body).replace(b"application/json", AGGREGATED.encode())
    behind.paths["/apis"] = text.replace(b"\r\n\r\n", b'\r\nEtag: "a"\r\n\r\n', 1)
    await publish(client, behind)
    found = await until_listed(client, "Current")
    assert found["versions"] == [
        {
            "version": "v1",
            "freshness": "Current",
            "resources": [{**resource, "responseKind": {"group": "", "version": "", "kind": ""}}],
        }
    ]
    apps = await aggregated(client, "apps")
    assert apps is not None
    assert len(apps["versions"][0]["resources"]) > 3
    await until_reason(client, "Passed")


async def test_a_server_that_tells_nothing_leaves_its_group_stale(client: Client) -> None:
    await register(client, None)
    found = await until_listed(client, "Stale")
    assert found["versions"] == [{"version": "v1", "freshness": "Stale"}]


async def test_garbage_leaves_its_group_stale(client: Client, behind: ExtensionServer) -> None:
    behind.paths["/apis"] = response("{", kind=AGGREGATED)
    await publish(client, behind)
    await until_listed(client, "Stale")
    behind.paths["/apis"] = response("[1]", kind="application/json")
    behind.paths[ROOT] = response(LIST | {"resources": "none"})


async def test_the_group_of_definitions_can_have_a_version_elsewhere(client: Client, behind: ExtensionServer) -> None:
    names = {"plural": "foos", "kind": "Foo"}
    schema = {"openAPIV3Schema": {"type": "object"}}
    body = {
        "metadata": {"name": f"foos.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Cluster",
            "names": names,
            "versions": [{"name": "v2", "served": True, "storage": True, "schema": schema}],
        },
    }
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    assert (await client.post(path, body)).status == 201
    await publish(client, behind)
    await until_reason(client, "Passed")
    behind.paths[THINGS] = response("there")

    async def are_foos_served() -> bool:
        return (await client.get(f"/apis/{GROUP}/v2/foos")).status == 200

    async def are_both_listed() -> bool:
        return len(((await aggregated(client)) or {"versions": []})["versions"]) == 2

    await until(are_foos_served)
    assert (await client.get(THINGS)).body == b"there"
    await until(are_both_listed)
    versions = (await client.get(f"/apis/{GROUP}")).json()["versions"]
    assert [each["version"] for each in versions] == ["v2", "v1"]
    await client.delete(f"{API_SERVICES}/{NAME}")
    versions = (await client.get(f"/apis/{GROUP}")).json()["versions"]
    assert [each["version"] for each in versions] == ["v2"]


async def test_a_built_in_group_version_can_be_answered_elsewhere(client: Client, behind: ExtensionServer) -> None:
    await publish(client, behind)
    behind.paths["/apis/batch/v1"] = response({"kind": "APIResourceList", "groupVersion": "batch/v1", "resources": []})
    behind.paths["/apis/batch/v1/jobs"] = response("theirs")
    service = {"name": "things", "namespace": "default"}
    patch = {"spec": {"service": service, "caBundle": behind.ca_bundle}}
    assert (await client.patch(f"{API_SERVICES}/v1.batch", patch)).status == 200
    await until_reason(client, "Passed", "v1.batch")
    assert (await client.get("/apis/batch/v1/jobs")).body == b"theirs"
    assert (await client.patch(f"{API_SERVICES}/v1.batch", {"spec": {"service": None, "caBundle": None}})).status == 200
    assert (await client.get("/apis/batch/v1/jobs")).json()["kind"] == "JobList"


async def test_the_trace_context_of_a_client_is_passed_on(things: Client, behind: ExtensionServer) -> None:
    behind.paths[THINGS] = response({"kind": "ThingList"})
    sent = f"00-{5:032x}-{6:016x}-01"
    await things.get(THINGS, traceparent=sent, baggage="k=v")
    received = behind.received[-1]
    assert received.fields["traceparent"] == [sent]
    assert received.fields["baggage"] == ["k=v"]
