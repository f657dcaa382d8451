"""A control plane that is reset to an earlier state while it runs."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest_asyncio

from steersman.testing import ADMIN, Client, Environment, User

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
SERVICES = "/api/v1/namespaces/default/services"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"


@pytest_asyncio.fixture
async def environment(keys_folder: Path) -> AsyncIterator[Environment]:
    async with Environment(folder=keys_folder, users=[ADMIN, User("alice")]) as started:
        yield started


def service(name: str) -> dict[str, Any]:
    ports = [{"port": 80, "nodePort": 30080}]
    return {"metadata": {"name": name}, "spec": {"type": "NodePort", "clusterIP": "10.0.0.77", "ports": ports}}


def definition(plural: str, kind: str) -> dict[str, Any]:
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
    spec = {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": plural, "kind": kind},
        "versions": [version],
    }
    return {"metadata": {"name": f"{plural}.example.com"}, "spec": spec}


async def made(client: Client, target: str, body: Any) -> Any:
    answer = await client.post(target, body)
    assert answer.status == 201, answer.body
    return answer.json()


async def test_addresses_and_ports_of_services_are_free_again(environment: Environment) -> None:
    client = environment.client()
    snapshot = environment.snapshot()
    for _ in range(3):
        await made(client, SERVICES, service("a"))
        assert (await client.post(SERVICES, service("b"))).status == 422
        await environment.restore(snapshot)


async def test_definitions_come_and_go_with_their_objects(environment: Environment) -> None:
    client = environment.client()
    await made(client, DEFINITIONS, definition("boats", "Boat"))
    await environment.wait_for("crd", "boats.example.com", "condition=Established")
    boats = "/apis/example.com/v1/namespaces/default/boats"
    boat = {"apiVersion": "example.com/v1", "kind": "Boat", "metadata": {"name": "a"}}
    uid = (await made(client, boats, boat))["metadata"]["uid"]
    snapshot = environment.snapshot()
    await made(client, DEFINITIONS, definition("cars", "Car"))
    await environment.wait_for("crd", "cars.example.com", "condition=Established")
    await client.delete(f"{DEFINITIONS}/boats.example.com")
    await environment.wait_for("crd", "boats.example.com", "delete")
    assert (await client.get(boats)).status == 404
    await environment.restore(snapshot)
    assert (await client.get("/apis/example.com/v1/namespaces/default/cars")).status == 404
    assert (await client.get(f"{boats}/a")).json()["metadata"]["uid"] == uid


async def test_rights_are_what_they_were(environment: Environment) -> None:
    alice = environment.client("alice")
    snapshot = environment.snapshot()
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice"}
    await made(environment.client(), BINDINGS, {"metadata": {"name": "a"}, "roleRef": role, "subjects": [subject]})
    assert (await alice.get(CONFIG_MAPS)).status == 200
    await environment.restore(snapshot)
    assert (await alice.get(CONFIG_MAPS)).status == 403


async def test_watches_go_on_and_are_told(environment: Environment) -> None:
    client = environment.client()
    await made(client, CONFIG_MAPS, {"metadata": {"name": "a"}, "data": {"a": "1"}})
    version = (await client.get(CONFIG_MAPS)).json()["metadata"]["resourceVersion"]
    snapshot = environment.snapshot()
    await client.patch(f"{CONFIG_MAPS}/a", {"data": {"a": "2"}})
    await made(client, CONFIG_MAPS, {"metadata": {"name": "b"}})
    async with await client.open("GET", f"{CONFIG_MAPS}?watch=1&resourceVersion={version}") as watching:
        await environment.restore(snapshot)
        seen, text = [], b""
        async for piece in watching:
            *lines, text = (text + piece).split(b"\n")
            seen += [(each["type"], each["object"]["metadata"]["name"]) for each in map(json.loads, lines)]
            if len(seen) == 4:
                break
    assert seen == [("MODIFIED", "a"), ("ADDED", "b"), ("DELETED", "b"), ("MODIFIED", "a")]
