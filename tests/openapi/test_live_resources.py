"""Documents of resources that come and go while the server runs."""

from __future__ import annotations

import asyncio
import json
import shutil
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from steersman.controlplane.control_plane import ControlPlane
from steersman.kinds.kind import ANY_OBJECT
from steersman.kinds.open import OpenKind
from steersman.machinery.identity.schema import GroupVersionKind
from steersman.machinery.large_work.nesting import raise_recursion_limit
from steersman.machinery.validation.object_meta import name_is_dns_subdomain
from steersman.openapi import builder, schemas, service
from steersman.openapi.builder import Document
from steersman.openapi.custom import schemas_of
from steersman.openapi.derived import GVK
from steersman.rest.resource import Resource
from tests.noted import noted

V2 = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
V3 = "application/com.github.proto-openapi.spec.v3.v1.0+protobuf"
SCHEMA = {
    "type": "object",
    "description": "A gadget is a thing of use.",
    "properties": {
        "spec": {
            "type": "object",
            "description": "what it is to be",
            "required": ["color"],
            "properties": {"color": {"type": "string", "description": "its color"}, "size": {"type": "integer"}},
        }
    },
}


def resource(plural: str = "gadgets", kind: str = "Gadget", group: str = "e.x", **more: Any) -> Resource[Any]:
    return Resource(
        kind=OpenKind(GroupVersionKind(group, "v1", kind), **more), plural=plural, name_validator=name_is_dns_subdomain
    )


@pytest_asyncio.fixture
async def plane(start_control_plane: Any) -> AsyncIterator[ControlPlane]:
    yield await start_control_plane()


@pytest.fixture
def client(plane: ControlPlane, client_of: Any) -> Any:
    return client_of(plane)


async def index_of(client: Any) -> dict[str, str]:
    paths = (await client.get("/openapi/v3")).json()["paths"]
    return {name: each["serverRelativeURL"] for name, each in paths.items()}


async def test_a_kind_is_published_while_it_is_served(plane: ControlPlane, client: Any) -> None:
    before, v2 = await index_of(client), await client.get("/openapi/v2")
    plane.serve(resource(openapi=SCHEMA))
    index = await index_of(client)
    assert index.keys() - before.keys() == {"apis/e.x/v1"}
    document = (await client.get(index["apis/e.x/v1"])).json()
    assert "/apis/e.x/v1/namespaces/{namespace}/gadgets/{name}" in document["paths"]
    gadget = document["components"]["schemas"]["x.e.v1.Gadget"]
    assert gadget["properties"]["spec"]["properties"]["color"] == {"type": "string", "description": "its color"}
    now = await client.get("/openapi/v2")
    assert now.headers["etag"] != v2.headers["etag"]
    assert now.json()["definitions"].keys() - v2.json()["definitions"].keys() == {"x.e.v1.Gadget", "x.e.v1.GadgetList"}
    await plane.withdraw("e.x", "gadgets")
    assert await index_of(client) == before
    assert (await client.get("/openapi/v3/apis/e.x/v1")).status == 404
    gone = await client.get("/openapi/v2")
    assert (gone.headers["etag"], gone.body) == (v2.headers["etag"], v2.body)


async def test_a_change_of_one_group_leaves_the_others_as_they_are(
    plane: ControlPlane, client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    built: list[str] = []
    make = Document.fragments

    def counted(self: Document, *args: Any) -> Any:
        built.append(self.name)
        return make(self, *args)

    monkeypatch.setattr(Document, "fragments", counted)
    plane.serve(resource(group="a.x"))
    before = await index_of(client)
    await client.get("/openapi/v2")
    assert set(built) == set(before)
    assert len(built) == len(before)
    built.clear()
    plane.serve(resource(group="e.x"))
    await client.get("/openapi/v2")
    assert built == ["apis/e.x/v1"]
    built.clear()
    await plane.withdraw("e.x", "gadgets")
    plane.serve(resource(group="e.x", openapi=SCHEMA))
    await client.get("/openapi/v2")
    assert built == ["apis/e.x/v1"]
    after = await index_of(client)
    assert {name: url for name, url in after.items() if name != "apis/e.x/v1"} == before


async def test_a_new_kind_leaves_those_of_its_group_version_as_they_are_in_v2(
    plane: ControlPlane, client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []
    monkeypatch.setattr(schemas, "schemas_of", noted(schemas_of, lambda kind, *_, **__: made.append(kind.name)))
    for number in range(5):
        plane.serve(resource(f"gadgets{number}", f"Gadget{number}", openapi=SCHEMA))
    await client.get("/openapi/v2")
    assert len(made) == 5
    made.clear()
    plane.serve(resource("more", "More", openapi=SCHEMA))
    document = (await client.get("/openapi/v2")).json()
    assert made == ["More"]
    assert {"x.e.v1.Gadget0", "x.e.v1.Gadget4", "x.e.v1.More"} <= document["definitions"].keys()
    made.clear()
    await plane.withdraw("e.x", "gadgets0")
    assert "x.e.v1.Gadget0" not in (await client.get("/openapi/v2")).json()["definitions"]
    assert made == []
    plane.serve(resource("gadgets0", "Gadget0", openapi=ANY_OBJECT))
    assert (await client.get("/openapi/v2")).json()["definitions"]["x.e.v1.Gadget0"].keys() == {"type", GVK}
    assert made == ["Gadget0"]


def deep(levels: int, leaf: Any) -> Any:
    for _ in range(levels):
        leaf = {"type": "array", "items": leaf}
    return leaf


@pytest.mark.slow
async def test_documents_hold_schemas_of_any_depth_and_width(plane: ControlPlane, client: Any) -> None:
    raise_recursion_limit()  # as every process does that serves
    wide = {f"p{number}": {"type": "string", "maxLength": number} for number in range(50_000)}
    value: Any = 1.0
    for _ in range(480):
        value = [value]
    open_ = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    spec = {"deep": deep(480, {"type": "string"}), "value": {**open_, "default": value, "example": value}}
    plane.serve(resource(openapi={"type": "object", "properties": {"spec": {"type": "object", "properties": spec}}}))
    plane.serve(resource("wides", "Wide", "w.x", openapi={"type": "object", "properties": wide}))
    document = (await client.get("/openapi/v3/apis/e.x/v1")).json()
    found = document["components"]["schemas"]["x.e.v1.Gadget"]["properties"]["spec"]["properties"]
    assert found["deep"] == spec["deep"]
    assert found["value"]["default"] == value
    document = (await client.get("/openapi/v3/apis/w.x/v1")).json()
    assert len(document["components"]["schemas"]["x.w.v1.Wide"]["properties"]) == 50_003
    definitions = (await client.get("/openapi/v2")).json()["definitions"]
    assert definitions["x.e.v1.Gadget"]["properties"]["spec"]["properties"]["deep"] == spec["deep"]
    for path, accept in (("/openapi/v2", V2), ("/openapi/v3/apis/e.x/v1", V3), ("/openapi/v3/apis/w.x/v1", V3)):
        answer = await client.get(path, accept=accept)
        assert (answer.status, answer.headers["content-type"]) == (200, accept)


async def test_nothing_is_built_or_encoded_on_the_loop(
    plane: ControlPlane, client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: set[threading.Thread] = set()

    def noted(work: Any) -> Any:
        def run(*args: Any, **more: Any) -> Any:
            threads.add(threading.current_thread())
            return work(*args, **more)

        return run

    for owner, name in (
        (Document, "fragments"),
        (Document, "members"),
        (service, "_joined"),
        (service, "_encode"),
        (builder, "_schema_state"),
        (schemas, "schemas_of"),
    ):
        monkeypatch.setattr(owner, name, noted(getattr(owner, name)))
    for path in ("/openapi/v2", "/openapi/v3/api/v1", "/openapi/v3/apis/e.x/v1", "/openapi/v3"):
        plane.serve(resource(openapi=SCHEMA))
        assert (await client.get(path)).status == 200
        assert threads
        assert threading.current_thread() not in threads
        threads.clear()
        await plane.withdraw("e.x", "gadgets")


async def test_another_schema_is_another_state(plane: ControlPlane, client: Any) -> None:
    plane.serve(resource())
    first = (await index_of(client))["apis/e.x/v1"]
    await plane.withdraw("e.x", "gadgets")
    plane.serve(resource(openapi=SCHEMA))
    second = (await index_of(client))["apis/e.x/v1"]
    assert first != second
    assert (await client.get(first)).headers["location"] == second
    await plane.withdraw("e.x", "gadgets")
    plane.serve(resource())
    assert (await index_of(client))["apis/e.x/v1"] == first


async def test_a_hundred_kinds_that_came_and_went_leave_nothing_behind(plane: ControlPlane, client: Any) -> None:
    before, v2 = await index_of(client), (await client.get("/openapi/v2")).body
    for number in range(100):
        plane.serve(resource(f"gadgets{number}", f"Gadget{number}", f"g{number % 10}.e.x"))
    index = await index_of(client)
    assert len(index) == len(before) + 10
    assert len((await client.get("/openapi/v2")).json()["paths"]) >= len(json.loads(v2)["paths"]) + 300
    for number in range(100):
        await plane.withdraw(f"g{number % 10}.e.x", f"gadgets{number}")
    assert await index_of(client) == before
    assert (await client.get("/openapi/v2")).body == v2


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
async def test_kubectl_explains_a_kind_that_is_served_later(start_control_plane: Any, tmp_path: Path) -> None:
    plane = await start_control_plane(listen=True, data_dir=tmp_path / "data", secure_port=0)
    config = tmp_path / "data" / "admin.kubeconfig"

    async def explain(*arguments: str) -> tuple[int | None, str]:
        process = await asyncio.create_subprocess_exec(
            "kubectl",
            f"--kubeconfig={config}",
            f"--cache-dir={tmp_path / 'cache'}",
            "explain",
            *arguments,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env={"HOME": str(tmp_path)},
            executable=shutil.which("kubectl"),
        )
        out, _ = await process.communicate()
        shutil.rmtree(tmp_path / "cache", ignore_errors=True)  # kubectl would know what it knew for hours
        return process.returncode, out.decode()

    plane.serve(resource(openapi=SCHEMA))
    for arguments in (("gadgets.spec",), ("gadgets.spec", "--output=plaintext-openapiv2")):
        code, text = await explain(*arguments)
        assert code == 0, text
        assert "what it is to be" in text
        assert "color\t<string> -required-" in text
        assert "size\t<integer>" in text
    code, text = await explain("gadget", "--recursive")
    assert (code, "A gadget is a thing of use." in text, "kind\t<string>" in text) == (0, True, True)
    await plane.withdraw("e.x", "gadgets")
    code, text = await explain("gadgets")
    assert code == 1
    assert "gadgets" in text
