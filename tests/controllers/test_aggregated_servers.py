"""Tests of controllers with aggregated servers that are silent, or send endless lists."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from steersman.server.certificates import CertificateFiles, ensure_certificates
from steersman.testing import Client, Environment, User
from tests.aggregator.extension_server import (
    GROUP,
    LIST,
    RESOURCES,
    ROOT,
    ExtensionServer,
    Received,
    own_address,
    publish,
    response,
    until,
    until_reason,
)

NAMESPACES = "/api/v1/namespaces"
CONFIG_MAPS = f"{NAMESPACES}/default/configmaps"
ALL = {**RESOURCES[0], "verbs": ["delete", "deletecollection", "get", "list", "patch", "watch"]}
THINGS = f"{ROOT}/things"


def is_list_path(path: str) -> bool:
    return path.endswith("/things")


@pytest.fixture(scope="session")
def certificate_files(tmp_path_factory: pytest.TempPathFactory) -> CertificateFiles:
    return ensure_certificates(tmp_path_factory.mktemp("behind"), ["things.default.svc", "127.0.0.1"])


@pytest.fixture
async def extension_server(certificate_files: CertificateFiles) -> AsyncIterator[ExtensionServer]:
    server = ExtensionServer(certificate_files, own_address())
    server.paths[ROOT] = response({**LIST, "resources": [ALL]})
    await server.start()
    yield server
    await server.stop()


@pytest.fixture
async def client(
    keys_folder: Path, certificate_files: CertificateFiles, extension_server: ExtensionServer
) -> AsyncIterator[Client]:
    """Yield the client of a server with controllers and an aggregated server behind it."""
    options: dict[str, Any] = {
        "proxy_client_cert_file": str(certificate_files.admin),
        "proxy_client_key_file": str(certificate_files.admin_key),
        "controllers": ("namespace-controller", "garbage-collector-controller", "resourcequota-controller"),
    }
    users = (User("admin", ("system:masters",)),)
    async with Environment(users=users, folder=keys_folder, **options) as environment:
        client = environment.client()
        await publish(client, extension_server)
        await until_reason(client, "Passed")
        await until(lambda: _is_discovered(client))
        yield client


async def _is_discovered(client: Client) -> bool:
    accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    items = (await client.get("/apis", accept=accept)).json()["items"]
    return any(each["metadata"]["name"] == GROUP and each["versions"][0]["freshness"] == "Current" for each in items)


async def make_namespace(client: Client, name: str) -> None:
    assert (await client.post(NAMESPACES, {"metadata": {"name": name}})).status == 201
    body = {"metadata": {"name": "mine"}}
    assert (await client.post(f"{NAMESPACES}/{name}/configmaps", body)).status == 201


async def test_many_namespaces_on_a_silent_server_hold_no_other_up(
    client: Client, extension_server: ExtensionServer
) -> None:
    extension_server.silent = lambda path: is_list_path(path) and "/held-" in path
    extension_server.paths |= {
        f"{ROOT}/namespaces/free/things": response({"kind": "ThingList", "metadata": {}, "items": []}),
        THINGS: response({"kind": "ThingList", "metadata": {}, "items": []}),
    }
    held = [f"held-{number}" for number in range(18)]
    for name in (*held, "free"):
        await make_namespace(client, name)
    for name in held:
        await client.delete(f"{NAMESPACES}/{name}")
    await until(lambda: _has_list_requests(extension_server, 10))
    await client.delete(f"{NAMESPACES}/free")
    await until(lambda: _is_gone(client, "free"))  # which took a minute where the others were waited for
    # Other content is deleted, and the conditions name the remaining resource.
    await until(lambda: _are_empty(client, held))

    async def is_reported() -> bool:
        conditions = [(await client.get(f"{NAMESPACES}/{name}")).json()["status"].get("conditions") for name in held]
        failing = [
            any(one["type"] == "NamespaceDeletionContentFailure" and one["status"] == "True" for one in each or ())
            for each in conditions
        ]
        return sum(failing) >= len(held) - 5  # the others wait still

    await until(is_reported)


async def _has_list_requests(extension_server: ExtensionServer, number: int) -> bool:
    return sum(is_list_path(each.path) and "/held-" in each.path for each in extension_server.received) >= number


async def _is_gone(client: Client, name: str) -> bool:
    return (await client.get(f"{NAMESPACES}/{name}")).status == 404


async def _are_empty(client: Client, names: list[str]) -> bool:
    found = (await client.get("/api/v1/configmaps")).json()["items"]
    return not any(each["metadata"]["namespace"] in names and each["metadata"]["name"] == "mine" for each in found)


async def test_a_list_without_an_end_is_given_up(
    client: Client, extension_server: ExtensionServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("steersman.controllers.namespaces.controller.MOST_PAGES", 20)
    pages = 0

    def page(_: Received) -> bytes:
        nonlocal pages
        pages += 1
        items = [{"metadata": {"name": f"t-{pages}-{each}", "namespace": "endless"}} for each in range(500)]
        return response({"kind": "ThingList", "metadata": {"continue": f"after-{pages}"}, "items": items})

    extension_server.paths[f"{ROOT}/namespaces/endless/things"] = page
    await make_namespace(client, "endless")
    await client.delete(f"{NAMESPACES}/endless")

    async def is_reported() -> bool:
        conditions = (await client.get(f"{NAMESPACES}/endless")).json()["status"].get("conditions", ())
        return any("things.things.example.com has 10000 resource instances" in each["message"] for each in conditions)

    await until(is_reported)


async def test_owners_on_a_silent_server_hold_up_no_other_garbage(
    client: Client, extension_server: ExtensionServer
) -> None:
    extension_server.silent = lambda path: "/things/" in path
    extension_server.paths[THINGS] = response({"kind": "ThingList", "metadata": {"resourceVersion": "1"}, "items": []})
    thing = {"apiVersion": f"{GROUP}/v1", "kind": "Thing"}
    for number in range(40):
        owner = {**thing, "name": f"t-{number}", "uid": f"00000000-0000-0000-0000-{number:012}"}
        body = {"metadata": {"name": f"waits-{number}", "ownerReferences": [owner]}}
        assert (await client.post(CONFIG_MAPS, body)).status == 201
    await until(lambda: _owners_asked(extension_server))
    gone = {"apiVersion": "v1", "kind": "ConfigMap", "name": "none", "uid": "00000000-0000-0000-0000-00000000abcd"}
    assert (await client.post(CONFIG_MAPS, {"metadata": {"name": "garbage", "ownerReferences": [gone]}})).status == 201

    async def collected() -> bool:
        return (await client.get(f"{CONFIG_MAPS}/garbage")).status == 404

    await until(collected)
    assert (await client.get(f"{CONFIG_MAPS}/waits-0")).status == 200


async def _owners_asked(extension_server: ExtensionServer) -> bool:
    return sum("/things/" in each.path for each in extension_server.received) >= 2
