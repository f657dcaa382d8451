"""A kind with a Struct that is not in `steersman.api`, served with every verb."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from steersman.api.meta.v1 import ObjectMeta
from steersman.api.scalars import Int32, Quantity, Time, Wire
from steersman.kinds.structs import StructKind
from steersman.machinery.codec.derived_types import schema_of, type_of
from steersman.machinery.identity.schema import GroupVersionKind
from steersman.machinery.validation.object_meta import name_is_dns_subdomain
from steersman.rest.resource import AGE, Column, Resource
from tests.endpoints.small_server import SmallServer

WIDGETS = "/apis/e.x/v1/namespaces/ns/widgets"
MERGE = "application/merge-patch+json"
APPLY = "application/apply-patch+yaml"


class Part(Wire):
    name: str = ""
    n: Int32 = 0


class WidgetSpec(Wire):
    color: str = ""
    size: Quantity | None = None
    since: Time | None = None
    parts: list[Part] = []
    tags: dict[str, str] = {}
    port: int | str | None = None
    rest: Any = None


class Widget(Wire):
    kind: str = ""
    api_version: str = ""
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: WidgetSpec = msgspec.field(default_factory=WidgetSpec)


def set_defaults(widget: Widget) -> None:
    widget.spec.color = widget.spec.color or "grey"


KIND = StructKind(Widget, GroupVersionKind("e.x", "v1", "Widget"), default=set_defaults)
RESOURCE = Resource(
    kind=KIND,
    plural="widgets",
    name_validator=name_is_dns_subdomain,
    columns=(Column("Color", lambda widget: widget.spec.color), AGE),
    selectable_fields={"spec.color": lambda widget: widget.spec.color},
)


@pytest.fixture
async def widgets(start_server: Any) -> SmallServer:
    server: SmallServer = await start_server(resources=(RESOURCE,))
    return server


def widget(name: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "e.x/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec}


async def test_it_is_created_with_its_values_in_their_one_form(widgets: SmallServer) -> None:
    sent = widget("a", size="1000m", since="2026-01-01T01:00:00+01:00", parts=[{"name": "x", "n": 1}], port="http")
    created = await widgets.ask("POST", WIDGETS, sent)
    assert created.status == 201, created.text
    assert list(created.json()) == ["kind", "apiVersion", "metadata", "spec"]
    assert created.json()["spec"] == {
        "color": "grey",
        "size": "1",
        "since": "2026-01-01T00:00:00Z",
        "parts": [{"name": "x", "n": 1}],
        "port": "http",
    }
    assert (await widgets.get(f"{WIDGETS}/a")).body == created.body
    body = (await widgets.get(f"{WIDGETS}?fieldSelector=spec.color=grey")).json()
    assert (body["kind"], len(body["items"]), "kind" in body["items"][0]) == ("WidgetList", 1, False)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"color": 1}, "json: cannot unmarshal number into Go struct field WidgetSpec.spec.color of type string"),
        ({"parts": [{"n": 2**31}]}, "number 2147483648 into Go struct field Part.spec.parts.n of type int32"),
        ({"size": "much"}, "quantities must match the regular expression"),
    ],
)
async def test_what_does_not_fit_is_told_as_of_any_kind(widgets: SmallServer, spec: Any, message: str) -> None:
    answer = await widgets.ask("POST", WIDGETS, widget("a", **spec))
    assert answer.status == 400
    assert message in answer.json()["message"]


async def test_unknown_members_are_told(widgets: SmallServer) -> None:
    answer = await widgets.ask("POST", f"{WIDGETS}?fieldValidation=Strict", widget("a", colour="red"))
    assert (answer.status, 'unknown field "spec.colour"' in answer.json()["message"]) == (400, True)
    assert (await widgets.ask("POST", WIDGETS, widget("a", colour="red"))).headers["warning"]


async def test_it_is_patched_and_applied_and_its_fields_have_owners(widgets: SmallServer) -> None:
    await widgets.ask("POST", WIDGETS, widget("a", tags={"a": "1"}))
    patched = await widgets.ask("PATCH", f"{WIDGETS}/a", {"spec": {"tags": {"b": "2"}}}, content_type=MERGE)
    assert patched.json()["spec"]["tags"] == {"a": "1", "b": "2"}
    strategic = "application/strategic-merge-patch+json"
    assert (await widgets.ask("PATCH", f"{WIDGETS}/a", {}, content_type=strategic)).status == 415
    body = json.dumps(widget("a", tags={"c": "3"}, parts=[{"name": "x"}])).encode()
    applied = await widgets.ask("PATCH", f"{WIDGETS}/a?fieldManager=me", body, content_type=APPLY)
    assert applied.status == 200, applied.text
    owners = {each["manager"]: each["fieldsV1"] for each in applied.json()["metadata"]["managedFields"]}
    assert owners["me"] == {"f:spec": {"f:parts": {}, "f:tags": {"f:c": {}}}}


async def test_it_is_watched_and_shown_as_a_table(widgets: SmallServer) -> None:
    watch = await widgets.open("GET", f"{WIDGETS}?watch=1&resourceVersion=0")
    lines = watch.__aiter__()
    made = (await widgets.ask("POST", WIDGETS, widget("a"))).json()
    assert json.loads(await anext(lines)) == {"type": "ADDED", "object": made}
    await watch.aclose()
    table = await widgets.get(WIDGETS, accept="application/json;as=Table;v=v1;g=meta.k8s.io")
    assert table.json()["rows"][0]["cells"][:2] == ["a", "grey"]
    assert (await widgets.get(WIDGETS, accept="application/vnd.kubernetes.protobuf")).status == 406


class Tree(Wire):
    name: str = ""
    below: list[Tree] = []


def test_a_class_may_be_within_itself() -> None:
    made = type_of(Tree)
    below = made.members["below"].type.element
    assert below is made
    assert schema_of(made)["properties"]["below"]["items"]["x-kubernetes-preserve-unknown-fields"] is True


class Sized(Wire):
    size: Int32
    color: str = "grey"
    label: str = ""
    parts: list[Part] = []


def test_its_schema_says_what_is_required_and_what_is_the_default() -> None:
    schema = schema_of(type_of(Sized))
    assert schema["required"] == ["size"]
    assert {name: each["default"] for name, each in schema["properties"].items() if "default" in each} == {
        "color": "grey"
    }
    assert "required" not in schema["properties"]["parts"]["items"]


def test_a_member_that_an_api_cannot_have_is_refused() -> None:
    class Odd(Wire):
        pair: tuple[int, int] = (0, 0)

    class Empty(Wire):
        pass

    with pytest.raises(TypeError, match=r"Odd\.pair: Tuple is nothing that an API's JSON can hold"):
        type_of(Odd)
    with pytest.raises(TypeError, match="Empty is no Struct with members"):
        type_of(Empty)
