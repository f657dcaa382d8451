"""Discovery documents of the built-in resources, compared with those of kube-apiserver 1.36."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import yaml

from steersman.authentication.anonymous import AnonymousAuthenticator
from steersman.authorization.always_allow import AlwaysAllowAuthorizer
from steersman.controlplane import on_request
from steersman.controlplane.group_order import GroupOrder
from steersman.controlplane.resources import AGGREGATOR, API_EXTENSIONS, KUBE_API
from steersman.net.in_process import InProcessClient
from steersman.rest.resource import Resource
from steersman.server.config import Config
from steersman.server.discovery import Discovery
from steersman.server.server import Server
from tests.unasked import unasked

pytestmark = pytest.mark.asyncio(loop_scope="module")

FACTS = json.loads(Path(__file__).with_name("recorded_discovery.json").read_bytes())
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


def groups_of(*sources: str) -> dict[str, Any]:
    return {item["metadata"].get("name", ""): item for source in sources for item in FACTS[source]}


def versions_of(groups: dict[str, Any]) -> list[tuple[str, str]]:
    return [(group, found["version"]) for group, item in groups.items() for found in item["versions"]]


GROUPS = groups_of("api", "apis")
VERSIONS = versions_of(GROUPS)
MORE_GROUPS = groups_of("all")
MORE_VERSIONS = versions_of(MORE_GROUPS)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def client() -> AsyncIterator[InProcessClient]:
    """A client of a server whose documents list every built-in resource that is served by default."""
    async for found in client_of_server(KUBE_API):
        yield found


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def whole_client() -> AsyncIterator[InProcessClient]:
    """A client of a server whose documents also list everything that --runtime-config can enable."""
    async for found in client_of_server(on_request.kube_api(lambda *_: True)):
        yield found


async def client_of_server(resources: Iterable[Resource[Any]]) -> AsyncIterator[InProcessClient]:
    config = Config(authenticator=AnonymousAuthenticator(), authorizer=AlwaysAllowAuthorizer()).complete()
    server = Server(config)
    for resource in (*resources, *API_EXTENSIONS, *AGGREGATOR):
        server.catalogue.put(*unasked(resource))
    GroupOrder(server.catalogue)
    server.prepare_run()
    Discovery(server).install()
    server.lifecycle.serving = True
    yield InProcessClient(server.handler)
    config.executor.shutdown()


async def document(client: InProcessClient, path: str, accept: str = "application/json") -> Any:
    async with await client.request("GET", path, [("accept", accept)]) as response:
        body = await response.read()
        assert response.status == 200, body
        return json.loads(body)


def expected_resources(groups: dict[str, Any], group: str, version: str) -> list[dict[str, Any]]:
    """Return the meta/v1 APIResourceList that matches the aggregated document."""
    found = next(each for each in groups[group]["versions"] if each["version"] == version)
    out = []
    for resource in found["resources"]:
        namespaced = resource["scope"] == "Namespaced"
        entry = {
            "name": resource["resource"],
            "singularName": resource["singularResource"],
            "namespaced": namespaced,
            "kind": resource["responseKind"]["kind"],
            "verbs": resource["verbs"],
        }
        entry |= {key: resource[key] for key in ("shortNames", "categories") if key in resource}
        if stored := FACTS["storageVersionHashes"].get(f"{group}/{version}/{resource['resource']}"):
            entry["storageVersionHash"] = stored
        out.append(entry)
        for sub in resource.get("subresources", ()):
            kind = sub["responseKind"]
            entry = {
                "name": f"{resource['resource']}/{sub['subresource']}",
                "singularName": "",
                "namespaced": namespaced,
            }
            entry |= {key: kind[key] for key in ("group", "version") if kind[key]}
            out.append(entry | {"kind": kind["kind"], "verbs": sub["verbs"]})
    return out


@pytest.mark.parametrize("root", ["api", "apis"])
async def test_groups_and_versions_come_in_upstreams_order(client: InProcessClient, root: str) -> None:
    found = await document(client, f"/{root}", AGGREGATED)
    order = [(item["metadata"], [each["version"] for each in item["versions"]]) for item in found["items"]]
    assert order == [(item["metadata"], [each["version"] for each in item["versions"]]) for item in FACTS[root]]


@pytest.mark.parametrize("group", GROUPS)
async def test_aggregated_document_of_a_group_is_upstreams(client: InProcessClient, group: str) -> None:
    found = await document(client, "/apis" if group else "/api", AGGREGATED)
    assert [item for item in found["items"] if item["metadata"].get("name", "") == group] == [GROUPS[group]]


@pytest.mark.parametrize(("group", "version"), VERSIONS)
async def test_resource_list_of_a_group_version_is_upstreams(client: InProcessClient, group: str, version: str) -> None:
    found = await document(client, f"/apis/{group}/{version}" if group else f"/api/{version}")
    assert found["groupVersion"] == (f"{group}/{version}" if group else version)
    assert found["kind"] == "APIResourceList"
    assert found["resources"] == expected_resources(GROUPS, group, version)


@pytest.mark.parametrize("group", MORE_GROUPS)
async def test_a_group_with_all_its_versions_is_as_upstreams(whole_client: InProcessClient, group: str) -> None:
    found = await document(whole_client, "/apis", AGGREGATED)
    assert [item for item in found["items"] if item["metadata"]["name"] == group] == [MORE_GROUPS[group]]
    order = [item["metadata"]["name"] for item in found["items"]]
    assert [name for name in order if name in MORE_GROUPS] == list(MORE_GROUPS)


@pytest.mark.parametrize(("group", "version"), MORE_VERSIONS)
async def test_resource_list_of_any_version_is_upstreams(
    whole_client: InProcessClient, group: str, version: str
) -> None:
    found = await document(whole_client, f"/apis/{group}/{version}")
    assert found["resources"] == expected_resources(MORE_GROUPS, group, version)


@pytest.mark.parametrize("group", [group for group in GROUPS if group])
async def test_group_document_prefers_the_first_version(client: InProcessClient, group: str) -> None:
    found = await document(client, f"/apis/{group}")
    versions = [each["version"] for each in GROUPS[group]["versions"]]
    assert [each["version"] for each in found["versions"]] == versions
    assert found["preferredVersion"] == {"groupVersion": f"{group}/{versions[0]}", "version": versions[0]}
    listed = await document(client, "/apis")
    assert {"kind": "APIGroup", "apiVersion": "v1", **next(g for g in listed["groups"] if g["name"] == group)} == found


async def test_aggregated_document_is_not_sent_again_to_who_has_it(client: InProcessClient) -> None:
    first = await client.request("GET", "/apis", [("accept", AGGREGATED)])
    assert len(await first.read()) > 1000
    again = await client.request("GET", "/apis", [("accept", AGGREGATED), ("if-none-match", first.headers["etag"])])
    assert (again.status, await again.read()) == (304, b"")


@pytest.mark.parametrize("path", ["/api", "/api/", "/apis"])
async def test_the_aggregated_document_is_there_in_yaml(client: InProcessClient, path: str) -> None:
    in_json = await client.request("GET", path, [("accept", AGGREGATED)])
    accept = AGGREGATED.replace("json", "yaml")
    in_yaml = await client.request("GET", path, [("accept", f"{accept},application/json")])
    assert (in_yaml.headers["content-type"], in_yaml.headers["etag"]) == (accept, in_json.headers["etag"])
    assert yaml.safe_load(await in_yaml.read()) == json.loads(await in_json.read())


@pytest.mark.parametrize(
    ("method", "path", "accept", "status"),
    [
        ("HEAD", "/apis", AGGREGATED, 200),
        ("HEAD", "/apis", "application/json", 200),
        ("POST", "/apis", AGGREGATED, 200),
        ("GET", "/apis/", AGGREGATED, 406),
        ("GET", "/apis/", f"{AGGREGATED},application/json", 200),
        ("GET", "/api", AGGREGATED, 200),
        ("HEAD", "/api", AGGREGATED, 405),
        ("GET", "/api", AGGREGATED.replace("json", "*"), 406),
        ("GET", "/apis", AGGREGATED.replace("json", "*"), 200),
        ("GET", "/apis", AGGREGATED.replace("v=v2", "v=v2beta1"), 406),
        ("POST", "/api", AGGREGATED, 405),
    ],
)
async def test_the_list_of_groups_is_the_aggregators(
    client: InProcessClient, method: str, path: str, accept: str, status: int
) -> None:
    """The aggregator ignores the method; with a trailing slash it knows only the plain form."""
    async with await client.request(method, path, [("accept", accept)]) as response:
        assert response.status == status
