"""OpenAPI documents of aggregated servers."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from steersman.aggregator.remote_openapi import read_part
from steersman.testing import Client
from tests.aggregator.extension_server import (
    API_SERVICES,
    GROUP,
    NAME,
    ROOT,
    ExtensionServer,
    publish,
    response,
    until_reason,
)
from tests.aggregator.extension_server import until as until_so

PATH = f"{ROOT}/things"
URL = f"/openapi/v3{ROOT}?hash=ABC"
V2 = {
    "swagger": "2.0",
    "info": {"title": "things", "version": "1"},
    "paths": {
        PATH: {"get": {"responses": {"200": {"schema": {"$ref": "#/definitions/Thing"}}}}},
        "/version/": {"get": {"responses": {"200": {"schema": {"$ref": "#/definitions/Version"}}}}},
    },
    "definitions": {
        "Thing": {"type": "object", "properties": {"meta": {"$ref": "#/definitions/Meta"}}},
        "Meta": {"type": "object"},
        "Version": {"type": "object"},
    },
}
V3 = {"openapi": "3.0.0", "info": {"title": "things", "version": "1"}, "paths": {}}


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("steersman.aggregator.remote_openapi.DELAY", 0.0)


async def until(client: Client, path: str, member: str, *, there: bool = True) -> Any:
    """Return the document once it has a path, or no longer has it."""
    async with asyncio.timeout(20):
        while True:
            body = (await client.get(path)).json()
            if (member in body["paths"]) is there:
                return body
            await asyncio.sleep(0.01)


async def test_v2_documents_are_joined(client: Client, behind: ExtensionServer) -> None:
    behind.paths["/openapi/v2"] = response(V2)
    await publish(client, behind)
    found = await until(client, "/openapi/v2", PATH)
    assert found["definitions"]["Thing"] == V2["definitions"]["Thing"]  # type: ignore[index]
    assert "Meta" in found["definitions"]
    assert "Version" not in found["definitions"]
    assert "/api/v1/pods" in str(found["paths"].keys())
    (request, *_) = behind.requests_for("/openapi/v2")
    assert (request.first("x-remote-user"), request.fields.get("x-remote-group")) == ("system:aggregator", None)
    await client.delete(f"{API_SERVICES}/{NAME}")
    assert PATH not in (await client.get("/openapi/v2")).json()["paths"]


async def test_v3_documents_are_listed_and_passed_on(client: Client, behind: ExtensionServer) -> None:
    name = ROOT.removeprefix("/")
    theirs = {name: {"serverRelativeURL": URL}, "version": {"serverRelativeURL": "/openapi/v3/version?hash=X"}}
    behind.paths["/openapi/v3"] = response({"paths": theirs})
    behind.paths[f"/openapi/v3{ROOT}"] = response(V3)
    await publish(client, behind)
    found = await until(client, "/openapi/v3", name)
    assert found["paths"][name] == {"serverRelativeURL": URL}
    assert found["paths"]["version"]["serverRelativeURL"] != "/openapi/v3/version?hash=X"
    answer = await client.as_user("alice").get(URL)
    assert answer.json() == V3
    (request,) = behind.requests_for(f"/openapi/v3{ROOT}")
    assert (request.target, request.first("x-remote-user")) == (URL, "alice")
    await client.delete(f"{API_SERVICES}/{NAME}")
    assert name not in (await client.get("/openapi/v3")).json()["paths"]
    assert (await client.get(URL)).status == 404


async def test_old_servers_have_v3_documents_made_of_v2(client: Client, behind: ExtensionServer) -> None:
    behind.paths["/openapi/v2"] = response(V2)
    await publish(client, behind)
    name = ROOT.removeprefix("/")
    url = (await until(client, "/openapi/v3", name))["paths"][name]["serverRelativeURL"]
    assert url.startswith(f"/openapi/v3{ROOT}?hash=")
    body = (await client.get(url)).json()
    assert body["components"]["schemas"]["Thing"]["properties"] == {"meta": {"$ref": "#/components/schemas/Meta"}}
    assert list(body["paths"]) == [PATH]
    await client.delete(f"{API_SERVICES}/{NAME}")
    assert name not in (await client.get("/openapi/v3")).json()["paths"]


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'{"paths": [1], "definitions": 2}', b'{"paths": {"a": 1}}'])
async def test_what_is_no_document_changes_nothing(client: Client, behind: ExtensionServer, data: bytes) -> None:
    behind.paths["/openapi/v2"] = behind.paths["/openapi/v3"] = response(data, kind="application/json")
    before = (await client.get("/openapi/v2")).json()
    await publish(client, behind)
    await until_reason(client, "Passed")
    await behind.wait_for_requests("/openapi/v2")
    await behind.wait_for_requests("/openapi/v3")
    assert (await client.get("/openapi/v2")).json()["paths"] == before["paths"]
    assert GROUP not in str((await client.get("/openapi/v3")).json()["paths"].keys())


@pytest.mark.parametrize("has_v3", [True, False])
async def test_types_of_its_kinds_are_checked(client: Client, behind: ExtensionServer, has_v3: bool) -> None:
    """The types come from its v3 document, or from one converted from v2."""
    gvk = {"x-kubernetes-group-version-kind": [{"group": GROUP, "version": "v1", "kind": "Thing"}]}
    thing = {"type": "object", "properties": {"size": {"type": "integer"}}, **gvk}
    name = ROOT.removeprefix("/")
    if has_v3:
        behind.paths["/openapi/v3"] = response({"paths": {name: {"serverRelativeURL": URL}}})
        behind.paths[f"/openapi/v3{ROOT}"] = response({**V3, "components": {"schemas": {"Thing": thing}}})
    else:
        behind.paths["/openapi/v2"] = response({**V2, "definitions": {"Thing": thing}})
    await publish(client, behind)
    await until(client, "/openapi/v3", name)
    assert client.plane.server is not None
    catalogue = client.plane.server.catalogue

    async def is_discovered() -> bool:
        return bool(catalogue.remote_discovery(GROUP).get("v1"))

    await until_so(is_discovered)
    rule = {"apiGroups": [GROUP], "apiVersions": ["v1"], "resources": ["things"], "operations": ["CREATE"]}
    spec = {
        "matchConstraints": {"resourceRules": [rule]},
        "validations": [{"expression": "object.size == ''"}, {"expression": "object.size == 1"}],
    }
    policies = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
    await client.post(policies, {"metadata": {"name": "a"}, "spec": spec})

    async def is_checked() -> bool:
        return "observedGeneration" in (await client.get(f"{policies}/a")).json()["status"]

    await until_so(is_checked)
    (warning,) = (await client.get(f"{policies}/a")).json()["status"]["typeChecking"]["expressionWarnings"]
    assert warning["warning"].startswith(f"{GROUP}/v1, Kind=Thing: ERROR: <input>:1:13: found no matching overload")


def _document(definition: Any, **operation: Any) -> dict[str, Any]:
    path = {"get": {"responses": {"200": {"schema": {"$ref": "#/definitions/Thing"}}}, **operation}}
    return {**V2, "paths": {PATH: path}, "definitions": {"Thing": definition}}


@pytest.mark.parametrize(
    "document",
    [
        _document({"type": 5}),
        _document({"properties": 7}),
        _document({"description": ["x"]}),
        _document({"minimum": "abc"}),
        _document({"minimum": 10**400}),
        _document(3),
        _document(None),
        _document({}, tags=9),
        _document({}, parameters={"a": 1}),
        _document({}, responses="x"),
        {**V2, "paths": {PATH: {"get": 5}}},
    ],
)
def test_a_document_that_lies_breaks_that_of_nobody(document: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"not as OpenAPI has it|too large"):
        read_part(json.dumps(document).encode(), f"{ROOT}/", b"")


async def test_a_list_of_too_many_documents_is_none(client: Client, behind: ExtensionServer) -> None:
    many = {f"apis/g{each}/v1": {"serverRelativeURL": URL} for each in range(20_000)}
    behind.paths["/openapi/v3"] = response({"paths": many})
    await publish(client, behind)
    await until_reason(client, "Passed")
    await behind.wait_for_requests("/openapi/v3")
    assert "apis/g7/v1" not in (await client.get("/openapi/v3")).json()["paths"]
