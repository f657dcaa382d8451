"""A kind of arbitrary JSON, served with every verb by the handlers and the store of all other kinds."""

from __future__ import annotations

import json
from typing import Any

import pytest

from steersman.kinds.open import OpenKind, OpenObject
from steersman.machinery.errors import field
from steersman.machinery.identity.schema import GroupVersionKind
from steersman.machinery.managed_fields import custom_schema
from steersman.machinery.validation.object_meta import name_is_dns_subdomain
from steersman.rest.context import Context
from steersman.rest.resource import AGE, Column, Resource, Subresource
from steersman.rest.strategy import StatusStrategy, Strategy
from tests.endpoints.small_server import SmallServer

GADGETS = "/apis/e.x/v1/namespaces/ns/gadgets"
MERGE = "application/merge-patch+json"
APPLY = "application/apply-patch+yaml"
SCHEMA = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "color": {"type": "string"},
                "size": {"type": "integer"},
                "parts": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name"],
                    "items": {"type": "object", "properties": {"name": {"type": "string"}, "n": {"type": "integer"}}},
                },
            },
        },
        "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    },
}


def set_defaults(gadget: OpenObject) -> None:
    spec = gadget.content.setdefault("spec", {})
    if isinstance(spec, dict):
        spec.setdefault("color", "grey")


class GadgetStrategy(Strategy[OpenObject]):
    """An update of the object does not change its status."""

    resets = ("status",)

    def prepare_for_create(self, ctx: Context, obj: OpenObject) -> None:
        obj.content.pop("status", None)
        obj.metadata.generation = 1

    def prepare_for_update(self, ctx: Context, new: OpenObject, old: OpenObject) -> None:
        new.content.pop("status", None)
        if "status" in old.content:
            new.content["status"] = old.content["status"]
        if new.content.get("spec") != old.content.get("spec"):
            new.metadata.generation = (old.metadata.generation or 0) + 1

    def validate(self, ctx: Context, obj: OpenObject) -> Any:
        if obj.content["spec"].get("size", 0) < 0:
            yield field.invalid(field.Path("spec", "size"), obj.content["spec"]["size"], "must not be negative")

    def validate_update(self, ctx: Context, new: OpenObject, old: OpenObject) -> Any:
        return self.validate(ctx, new)


class GadgetStatusStrategy(StatusStrategy[OpenObject]):
    resets = ("spec", "metadata")


KIND = OpenKind(GroupVersionKind("e.x", "v1", "Gadget"), schema=custom_schema(SCHEMA), default=set_defaults)
RESOURCE = Resource(
    kind=KIND,
    plural="gadgets",
    short_names=("gd",),
    name_validator=name_is_dns_subdomain,
    strategy=GadgetStrategy(),
    columns=(Column("Color", lambda gadget: gadget.content["spec"]["color"]), AGE),
    selectable_fields={"spec.color": lambda gadget: str(gadget.content.get("spec", {}).get("color", ""))},
    subresources=(Subresource(name="status", strategy=GadgetStatusStrategy()),),
)


@pytest.fixture
async def gadgets(start_server: Any) -> SmallServer:
    server: SmallServer = await start_server(resources=(RESOURCE,))
    return server


def gadget(name: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "e.x/v1", "kind": "Gadget", "metadata": {"name": name}, "spec": spec}


async def made(server: SmallServer, name: str, **spec: Any) -> dict[str, Any]:
    answer = await server.ask("POST", GADGETS, gadget(name, **spec))
    assert answer.status == 201, answer.text
    body: dict[str, Any] = answer.json()
    return body


def is_sorted(value: Any) -> bool:
    """Return True if the keys of all objects are sorted."""
    if isinstance(value, dict):
        return list(value) == sorted(value) and all(map(is_sorted, value.values()))
    return all(map(is_sorted, value)) if isinstance(value, list) else True


async def test_it_is_created_defaulted_and_read_with_its_keys_in_order(gadgets: SmallServer) -> None:
    created = await gadgets.ask("POST", GADGETS, gadget("a", size=3, parts=[{"name": "x"}], z=1.0, big=2**60))
    assert created.status == 201
    obj = created.json()
    spec = {"big": 2**60, "color": "grey", "parts": [{"name": "x"}], "size": 3, "z": 1}
    assert (obj["kind"], obj["apiVersion"], obj["spec"]) == ("Gadget", "e.x/v1", spec)
    assert obj["metadata"]["generation"] == 1
    assert is_sorted(obj)
    assert list(obj["metadata"])[-2:] == ["resourceVersion", "uid"]
    assert (await gadgets.get(f"{GADGETS}/a")).body == created.body


async def test_a_list_has_its_keys_in_order_and_its_items_say_what_they_are(gadgets: SmallServer) -> None:
    first, second = await made(gadgets, "a", size=1), await made(gadgets, "b", size=2)
    body = (await gadgets.get(GADGETS)).json()
    assert list(body) == ["apiVersion", "items", "kind", "metadata"]
    assert (body["kind"], body["items"]) == ("GadgetList", [first, second])
    assert body["metadata"] == {"continue": "", "resourceVersion": second["metadata"]["resourceVersion"]}
    page = (await gadgets.get(f"{GADGETS}?limit=1")).json()
    rest = (await gadgets.get(f"{GADGETS}?limit=1&continue={page['metadata']['continue']}")).json()
    assert page["items"] + rest["items"] == [first, second]
    pretty = await gadgets.get(f"{GADGETS}?pretty=1")
    assert pretty.json() == body
    as_yaml = await gadgets.get(GADGETS, accept="application/yaml")
    assert as_yaml.text.startswith("apiVersion: e.x/v1\nitems:\n- apiVersion: e.x/v1\n  kind: Gadget\n")
    empty = (await gadgets.get(f"{GADGETS}?labelSelector=a=b")).json()
    assert empty["items"] == []


async def test_labels_and_fields_select(gadgets: SmallServer) -> None:
    red = gadget("red", color="red")
    red["metadata"]["labels"] = {"l": "1"}
    await gadgets.ask("POST", GADGETS, red)
    await made(gadgets, "grey")
    for selector in ("labelSelector=l=1", "fieldSelector=spec.color=red", "fieldSelector=metadata.name=red"):
        body = (await gadgets.get(f"{GADGETS}?{selector}")).json()
        assert [each["metadata"]["name"] for each in body["items"]] == ["red"], selector


async def test_it_is_replaced_and_only_for_the_version_it_was_read_at(gadgets: SmallServer) -> None:
    obj = await made(gadgets, "a", size=1)
    changed = {**obj, "spec": {"size": 2}}
    answer = await gadgets.ask("PUT", f"{GADGETS}/a", changed)
    assert answer.status == 200
    assert (answer.json()["spec"], answer.json()["metadata"]["generation"]) == ({"color": "grey", "size": 2}, 2)
    assert (await gadgets.ask("PUT", f"{GADGETS}/a", changed)).status == 409
    wrong = await gadgets.ask("PUT", f"{GADGETS}/a", gadget("a", size=-1))
    assert (wrong.status, wrong.json()["details"]["causes"][0]["field"]) == (422, "spec.size")
    assert wrong.json()["details"]["kind"] == "Gadget"


async def test_its_status_is_written_by_itself(gadgets: SmallServer) -> None:
    obj = await made(gadgets, "a", size=1)
    assert "status" not in obj
    status = {**gadget("a", size=9), "status": {"ready": True}}
    answer = await gadgets.ask("PUT", f"{GADGETS}/a/status", status)
    assert (answer.status, answer.json()["spec"]["size"], answer.json()["status"]) == (200, 1, {"ready": True})
    plain = await gadgets.ask("PUT", f"{GADGETS}/a", gadget("a", size=4))
    assert (plain.json()["spec"]["size"], plain.json()["status"]) == (4, {"ready": True})


async def test_nobody_owns_what_was_sent_and_not_taken(gadgets: SmallServer) -> None:
    sent = {**gadget("a", size=1), "status": {"ready": False}}
    assert (await gadgets.ask("POST", f"{GADGETS}?fieldManager=me", sent)).status == 201
    status = {"spec": {"size": 9}, "status": {"ready": True}}
    answer = await gadgets.ask("PATCH", f"{GADGETS}/a/status?fieldManager=controller", status, content_type=MERGE)
    assert answer.status == 200
    owners = {each["manager"]: each["fieldsV1"] for each in answer.json()["metadata"]["managedFields"]}
    assert owners == {
        "me": {"f:spec": {".": {}, "f:color": {}, "f:size": {}}},
        "controller": {"f:status": {".": {}, "f:ready": {}}},
    }


@pytest.mark.parametrize(
    ("media", "body"),
    [
        ("application/json-patch+json", [{"op": "add", "path": "/spec/size", "value": 7}]),
        (MERGE, {"spec": {"size": 7}}),
    ],
)
async def test_it_is_patched(gadgets: SmallServer, media: str, body: Any) -> None:
    await made(gadgets, "a", size=1)
    answer = await gadgets.ask("PATCH", f"{GADGETS}/a", body, content_type=media)
    assert (answer.status, answer.json()["spec"]) == (200, {"color": "grey", "size": 7})
    assert (await gadgets.get(f"{GADGETS}/a")).body == answer.body


async def test_what_needs_a_type_is_refused(gadgets: SmallServer) -> None:
    await made(gadgets, "a")
    strategic = await gadgets.ask("PATCH", f"{GADGETS}/a", {}, content_type="application/strategic-merge-patch+json")
    assert strategic.status == 415
    protobuf = "application/vnd.kubernetes.protobuf"
    assert (await gadgets.get(f"{GADGETS}/a", accept=protobuf)).status == 406
    assert (await gadgets.get(GADGETS, accept=protobuf)).status == 406
    assert (await gadgets.get(f"{GADGETS}?watch=1&timeoutSeconds=1", accept=protobuf)).status == 406
    assert (await gadgets.ask("POST", GADGETS, b"k8s\0", content_type=protobuf)).status == 415


async def test_it_is_applied_and_its_fields_have_owners(gadgets: SmallServer) -> None:
    mine = json.dumps(gadget("a", parts=[{"name": "x", "n": 1}])).encode()
    answer = await gadgets.ask("PATCH", f"{GADGETS}/a?fieldManager=me", mine, content_type=APPLY)
    assert (answer.status, answer.json()["spec"]["color"]) == (201, "grey")
    theirs = json.dumps(gadget("a", parts=[{"name": "y"}])).encode()
    answer = await gadgets.ask("PATCH", f"{GADGETS}/a?fieldManager=them", theirs, content_type=APPLY)
    assert [each["name"] for each in answer.json()["spec"]["parts"]] == ["x", "y"]
    owners = {each["manager"]: each["fieldsV1"] for each in answer.json()["metadata"]["managedFields"]}
    assert owners["me"] == {"f:spec": {"f:parts": {'k:{"name":"x"}': {".": {}, "f:n": {}, "f:name": {}}}}}
    rival = json.dumps(gadget("a", parts=[{"name": "x", "n": 2}])).encode()
    conflict = await gadgets.ask("PATCH", f"{GADGETS}/a?fieldManager=them", rival, content_type=APPLY)
    assert (conflict.status, conflict.json()["details"]["causes"][0]["field"]) == (409, '.spec.parts[name="x"].n')
    gone = await gadgets.ask(
        "PATCH", f"{GADGETS}/a?fieldManager=me", json.dumps(gadget("a")).encode(), content_type=APPLY
    )
    assert [each["name"] for each in gone.json()["spec"]["parts"]] == ["y"]


async def test_members_given_twice_are_told(gadgets: SmallServer) -> None:
    twice = b'{"apiVersion":"e.x/v1","kind":"Gadget","metadata":{"name":"a","nme":"b"},"spec":{"size":1,"size":2}}'
    strict = await gadgets.ask("POST", f"{GADGETS}?fieldValidation=Strict", twice)
    assert strict.status == 400
    assert 'duplicate field "spec.size", unknown field "metadata.nme"' in strict.json()["message"]
    warned = await gadgets.ask("POST", GADGETS, twice)
    assert (warned.status, warned.json()["spec"]["size"]) == (201, 2)
    assert "spec.size" in warned.headers["warning"]


async def test_it_is_watched(gadgets: SmallServer) -> None:
    obj = await made(gadgets, "a", size=1)
    version = obj["metadata"]["resourceVersion"]
    watch = await gadgets.open("GET", f"{GADGETS}?watch=1&resourceVersion={version}&allowWatchBookmarks=1")
    lines = watch.__aiter__()
    changed = (await gadgets.ask("PATCH", f"{GADGETS}/a", {"spec": {"size": 2}}, content_type=MERGE)).json()
    event = json.loads(await anext(lines))
    assert event == {"type": "MODIFIED", "object": changed}
    assert is_sorted(event["object"])
    await gadgets.ask("DELETE", f"{GADGETS}/a")
    event = json.loads(await anext(lines))
    assert (event["type"], event["object"]["spec"]) == ("DELETED", changed["spec"])
    await watch.aclose()


async def test_it_is_shown_as_a_table_and_as_its_metadata(gadgets: SmallServer) -> None:
    obj = await made(gadgets, "a", color="red")
    table = (await gadgets.get(GADGETS, accept="application/json;as=Table;v=v1;g=meta.k8s.io")).json()
    assert [each["name"] for each in table["columnDefinitions"]] == ["Name", "Color", "Age"]
    assert table["rows"][0]["cells"][:2] == ["a", "red"]
    whole = await gadgets.get(f"{GADGETS}?includeObject=Object", accept="application/json;as=Table;v=v1;g=meta.k8s.io")
    assert whole.json()["rows"][0]["object"] == obj
    metadata = await gadgets.get(f"{GADGETS}/a", accept="application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io")
    assert metadata.json()["metadata"] == obj["metadata"]
    assert metadata.json()["kind"] == "PartialObjectMetadata"


async def test_it_is_deleted_alone_and_with_others(gadgets: SmallServer) -> None:
    for name in ("a", "b", "c"):
        await made(gadgets, name)
    assert (await gadgets.ask("DELETE", f"{GADGETS}/a")).json()["details"]["kind"] == "gadgets"
    many = await gadgets.ask("DELETE", GADGETS)
    assert [each["metadata"]["name"] for each in many.json()["items"]] == ["b", "c"]
    assert (await gadgets.get(GADGETS)).json()["items"] == []
    missing = await gadgets.get(f"{GADGETS}/a")
    assert (missing.status, missing.json()["message"]) == (404, 'gadgets.e.x "a" not found')


async def test_a_body_of_another_kind_is_refused(gadgets: SmallServer) -> None:
    other = {**gadget("a"), "kind": "Widget"}
    assert (await gadgets.ask("POST", GADGETS, other)).status == 400
    assert (await gadgets.ask("POST", GADGETS, b"[]")).status == 400
    assert (await gadgets.ask("POST", GADGETS, {**gadget("a"), "metadata": {"labels": {"a": 1}}})).status == 400
