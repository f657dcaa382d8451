"""Resources that are added and removed while the server runs."""

from __future__ import annotations

import asyncio
import gc
import json
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
import pytest_asyncio
from msgspec.structs import replace

from steersman.controlplane.control_plane import ControlPlane
from steersman.kinds.open import OpenKind
from steersman.machinery.identity.schema import GroupVersionKind
from steersman.machinery.validation.object_meta import name_is_dns_subdomain
from steersman.rest.resource import AGE, Column, OtherVersion, Resource
from steersman.testing import Client

GADGETS = "/apis/e.x/v1/namespaces/default/gadgets"
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
APPLY = "application/apply-patch+yaml"


def resource(plural: str = "gadgets", kind: str = "Gadget", group: str = "e.x") -> Resource[Any]:
    return Resource(
        kind=OpenKind(GroupVersionKind(group, "v1", kind)),
        plural=plural,
        name_validator=name_is_dns_subdomain,
        short_names=(plural[:2],),
        columns=(Column("Color", lambda each: each.content.get("color", "")), AGE),
    )


def gadget(name: str, **content: Any) -> dict[str, Any]:
    return {"apiVersion": "e.x/v1", "kind": "Gadget", "metadata": {"name": name}, **content}


@pytest_asyncio.fixture
async def plane(start_control_plane: Any) -> AsyncIterator[ControlPlane]:
    yield await start_control_plane()


@pytest.fixture
def client(plane: ControlPlane, client_of: Callable[..., Any]) -> Any:
    return client_of(plane)


async def discovered(client: Any) -> tuple[set[str], str]:
    """Return the groups of the aggregated document, and its ETag."""
    answer = await client.get("/apis", accept=AGGREGATED)
    return {each["metadata"]["name"] for each in answer.json()["items"]}, answer.headers["etag"]


async def test_what_is_served_later_is_discovered_and_is_not_any_more_once_it_is_withdrawn(
    plane: ControlPlane, client: Any
) -> None:
    groups, etag = await discovered(client)
    assert "e.x" not in groups
    assert (await client.get("/apis/e.x/v1")).status == 404
    plane.serve(resource())
    now, changed = await discovered(client)
    assert (now, changed != etag) == (groups | {"e.x"}, True)
    assert (await client.get("/apis", accept=AGGREGATED, if_none_match=etag)).status == 200
    assert [each["name"] for each in (await client.get("/apis")).json()["groups"]][-1] == "e.x"
    assert (await client.get("/apis/e.x")).json()["preferredVersion"] == {"groupVersion": "e.x/v1", "version": "v1"}
    listed = (await client.get("/apis/e.x/v1")).json()["resources"]
    assert [(each["name"], each["shortNames"]) for each in listed] == [("gadgets", ["ga"])]
    plane.serve(resource("tools", "Tool"))
    assert [each["name"] for each in (await client.get("/apis/e.x/v1")).json()["resources"]] == ["gadgets", "tools"]
    assert "/apis/e.x/v1" in (await client.get("/")).json()["paths"]
    await plane.withdraw("e.x", "tools")
    assert [each["name"] for each in (await client.get("/apis/e.x/v1")).json()["resources"]] == ["gadgets"]
    await plane.withdraw("e.x", "gadgets")
    assert await discovered(client) == (groups, etag)
    for path in ("/apis/e.x", "/apis/e.x/v1", GADGETS):
        assert (await client.get(path)).status == 404
    assert "/apis/e.x/v1" not in (await client.get("/")).json()["paths"]


async def test_objects_outlive_the_serving_of_their_resource(plane: ControlPlane, client: Any) -> None:
    plane.serve(resource())
    assert (await client.post(GADGETS, gadget("a", color="red"))).status == 201
    await plane.withdraw("e.x", "gadgets")
    assert (await client.post(GADGETS, gadget("b"))).status == 404
    plane.serve(resource())
    assert (await client.get(f"{GADGETS}/a")).json()["color"] == "red"
    table = await client.get(GADGETS, accept="application/json;as=Table;g=meta.k8s.io;v=v1")
    assert [row["cells"][:2] for row in table.json()["rows"]] == [["a", "red"]]


async def test_resources_of_one_name_in_several_groups_have_their_own_objects(plane: ControlPlane, client: Any) -> None:
    """A right to read secrets of one group is no right to those of another."""
    await client.post("/api/v1/namespaces/default/secrets", {"metadata": {"name": "core"}})
    for group in ("e.x", "f.x"):
        plane.serve(resource("secrets", "Secret", group))
        body = {"apiVersion": f"{group}/v1", "kind": "Secret", "metadata": {"name": group}}
        assert (await client.post(f"/apis/{group}/v1/namespaces/default/secrets", body)).status == 201
    await plane.withdraw("e.x", "secrets")
    plane.serve(resource("secrets", "Secret", "e.x"))
    for root, name in (("/api/v1", "core"), ("/apis/e.x/v1", "e.x"), ("/apis/f.x/v1", "f.x")):
        found = (await client.get(f"{root}/namespaces/default/secrets")).json()
        assert [each["metadata"]["name"] for each in found["items"]] == [name]


@pytest.mark.parametrize("prefix", ["secrets", "services", "services/specs/mine", "configmaps/e.x"])
async def test_nothing_is_stored_among_the_keys_of_another_resource(
    plane: ControlPlane, client: Any, prefix: Any
) -> None:
    with pytest.raises(ValueError, match=r"gadgets\.e\.x cannot be stored in /registry/"):
        plane.serve(replace(resource(), storage_prefix=prefix))
    assert (await client.get(GADGETS)).status == 404
    plane.serve(replace(resource(), storage_prefix=f"my-{prefix}"))
    assert (await client.get(GADGETS)).status == 200


async def test_of_a_resource_that_cannot_be_served_nothing_is_left(plane: ControlPlane, client: Any) -> None:
    other = OtherVersion(resource(group="f.x").kind, lambda obj: obj, lambda obj: obj)
    plane.serve(resource(group="f.x"))
    for _ in range(2):
        with pytest.raises(ValueError, match=r"gadgets of f\.x/v1 are served already"):
            plane.serve(replace(resource(), other_versions=(other,)))
        with pytest.raises(KeyError):
            plane.store("e.x", "gadgets")
    plane.serve(resource())
    assert (await client.get(GADGETS)).status == 200


async def test_what_is_not_stored_is_withdrawn_too(plane: ControlPlane, client: Any) -> None:
    plane.serve(replace(resource(), reader=lambda services, ctx: []))
    assert (await client.get(GADGETS)).status == 200
    await plane.withdraw("e.x", "gadgets")
    assert (await client.get(GADGETS)).status == 404


FIRST = {
    "get": ("GET", f"{GADGETS}/a", None, {}, 200),
    "get of any version": ("GET", f"{GADGETS}/a?resourceVersion=0", None, {}, 200),
    "list": ("GET", GADGETS, None, {}, 200),
    "watch": ("GET", f"{GADGETS}?watch=1&timeoutSeconds=0&resourceVersion=0", None, {}, 200),
    "create": ("POST", GADGETS, gadget("b"), {}, 201),
    "create of what is there": ("POST", GADGETS, gadget("a"), {}, 409),
    "update": ("PUT", f"{GADGETS}/a", gadget("a", color="blue"), {}, 200),
    "patch": ("PATCH", f"{GADGETS}/a", {"color": "blue"}, {"content_type": "application/merge-patch+json"}, 200),
    "apply": ("PATCH", f"{GADGETS}/a?fieldManager=me", gadget("a", size=1), {"content_type": APPLY}, 200),
    "delete": ("DELETE", f"{GADGETS}/a", None, {}, 200),
    "deletecollection": ("DELETE", GADGETS, None, {}, 200),
}


@pytest.mark.parametrize("first", FIRST)
async def test_the_cache_is_filled_when_it_is_needed_first(plane: ControlPlane, client: Any, first: Any) -> None:
    plane.serve(resource())
    await client.post(GADGETS, gadget("a", color="red"))
    await plane.withdraw("e.x", "gadgets")
    plane.serve(resource())
    assert not plane.store("e.x", "gadgets").cacher.ready
    assert 'resource="gadgets.e.x"' not in (await client.get("/metrics")).body.decode()
    method, path, body, headers, status = FIRST[first]
    answer = await client.open(method, path, body, **headers)
    assert answer.status == status
    await answer.aclose()
    assert plane.store("e.x", "gadgets").cacher.ready
    assert 'apiserver_storage_objects{resource="gadgets.e.x"}' in (await client.get("/metrics")).body.decode()


async def test_watches_end_when_their_resource_is_withdrawn(plane: ControlPlane, client: Any) -> None:
    plane.serve(resource())
    await client.post(GADGETS, gadget("a"))
    watch = await client.open("GET", f"{GADGETS}?watch=1")
    others = await client.open("GET", "/api/v1/configmaps?watch=1&resourceVersion=0")
    pieces = aiter(watch)
    assert json.loads(await anext(pieces))["type"] == "ADDED"
    await plane.withdraw("e.x", "gadgets")
    async with asyncio.timeout(5):
        assert [piece async for piece in pieces] == []
    await client.post("/api/v1/namespaces/default/configmaps", {"metadata": {"name": "still-watched"}})
    async with asyncio.timeout(5):
        async for piece in others:
            if b"still-watched" in piece:
                break
    await others.aclose()


async def test_what_is_being_written_as_its_resource_goes_is_answered(plane: ControlPlane, client: Any) -> None:
    plane.serve(resource())
    await client.get(GADGETS)
    writing = [asyncio.ensure_future(client.post(GADGETS, gadget(f"g{number}"))) for number in range(20)]
    await asyncio.sleep(0)
    await plane.withdraw("e.x", "gadgets")
    statuses = [answer.status for answer in await asyncio.gather(*writing)]
    plane.serve(resource())
    kept = {each["metadata"]["name"] for each in (await client.get(GADGETS)).json()["items"]}
    assert {f"g{number}" for number, status in enumerate(statuses) if status == 201} <= kept
    assert set(statuses) <= {201, 404, 429}


async def test_who_waits_for_the_first_objects_as_their_resource_goes_is_answered(
    plane: ControlPlane, client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    plane.serve(resource())
    cacher, asked = plane.store("e.x", "gadgets").cacher, asyncio.Event()

    async def never() -> None:
        asked.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(cacher, "start", never)
    requests = [
        client.get(GADGETS),
        client.get(f"{GADGETS}/a"),
        client.post(GADGETS, gadget("a")),
        client.get(f"{GADGETS}?watch=1"),
    ]
    waiting = [asyncio.ensure_future(each) for each in requests]
    await asked.wait()
    await plane.withdraw("e.x", "gadgets")
    async with asyncio.timeout(5):
        assert {answer.status for answer in await asyncio.gather(*waiting)} <= {404, 429}


async def test_owners_are_looked_for_among_what_is_served(
    start_control_plane: Callable[..., Awaitable[ControlPlane]], client_of: Callable[..., Client]
) -> None:
    """A user without the right to update an owner's finalizers must not block its deletion; unknown kinds are
    unknown.
    """
    plane = await start_control_plane(enable_admission_plugins=("OwnerReferencesPermissionEnforcement",))
    plane.serve(resource())
    admin, alice = client_of(plane), client_of(plane, "alice")
    rights = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["*"]}
    role = {"metadata": {"name": "writer"}, "rules": [rights]}
    subject = {"kind": "User", "name": "alice", "apiGroup": "rbac.authorization.k8s.io"}
    reference = {"kind": "Role", "name": "writer", "apiGroup": "rbac.authorization.k8s.io"}
    path = "/apis/rbac.authorization.k8s.io/v1/namespaces/default"
    assert (await admin.post(f"{path}/roles", role)).status == 201
    binding = {"metadata": {"name": "writer"}, "subjects": [subject], "roleRef": reference}
    assert (await admin.post(f"{path}/rolebindings", binding)).status == 201

    async def refusal() -> str:
        owner = {"apiVersion": "e.x/v1", "kind": "Gadget", "name": "a", "uid": "1", "blockOwnerDeletion": True}
        body = {"metadata": {"name": "owned", "ownerReferences": [owner]}}
        answer = await alice.post("/api/v1/namespaces/default/configmaps", body)
        assert answer.status == 403
        return str(answer.json()["message"])

    assert "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set" in await refusal()
    await plane.withdraw("e.x", "gadgets")
    assert "in this case because cannot find RESTMapping for APIVersion e.x/v1 Kind Gadget" in await refusal()


@pytest.mark.slow
async def test_a_thousand_resources_come_and_go_while_others_are_read(plane: ControlPlane, client: Any) -> None:
    """Others notice nothing, and nothing remains."""
    await client.post("/api/v1/namespaces/default/configmaps", {"metadata": {"name": "read"}})
    assert plane.server is not None
    routes = len(plane.server.catalogue.routes)
    groups, etag = await discovered(client)
    stores: list[weakref.ref[Any]] = []
    over = False

    async def read() -> int:
        reads = 0
        while not over:
            assert (await client.get("/api/v1/namespaces/default/configmaps/read")).status == 200
            reads += 1
            await asyncio.sleep(0)
        return reads

    reading = asyncio.ensure_future(read())
    for number in range(1000):
        group = f"g{number % 20}.e.x"
        plane.serve(resource(f"gadgets{number}", "Gadget", group))
        stores.append(weakref.ref(plane.store(group, f"gadgets{number}")))
        if number % 10 == 0:
            path = f"/apis/{group}/v1/namespaces/default/gadgets{number}"
            body = {"apiVersion": f"{group}/v1", "kind": "Gadget", "metadata": {"name": "a"}}
            assert (await client.post(path, body)).status == 201
            assert len((await client.get(path)).json()["items"]) == 1
        await asyncio.sleep(0)
    assert len((await discovered(client))[0] - groups) == 20
    for number in range(1000):
        await plane.withdraw(f"g{number % 20}.e.x", f"gadgets{number}")
    over = True
    assert await reading >= 100
    assert await discovered(client) == (groups, etag)
    assert len(plane.server.catalogue.routes) == routes
    gc.collect()
    assert [store for store in stores if store() is not None] == []
