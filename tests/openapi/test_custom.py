"""Documents of kinds that bring their own schemas, held against those that kube-apiserver makes of custom resources."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import orjson
import pytest

from steersman.api.autoscaling.v1 import Scale
from steersman.api.core.v1 import PodSpec
from steersman.api.meta.v1 import ObjectMeta
from steersman.api.scalars import Duration, Int32, Quantity, Time, Wire
from steersman.endpoints.discovery import ServedResource, served_versions
from steersman.kinds.built_in import built_in
from steersman.kinds.kind import Kind
from steersman.kinds.open import OpenKind
from steersman.kinds.structs import StructKind
from steersman.machinery.codec.go_types import members_of, struct_of
from steersman.machinery.identity.schema import GroupVersionKind
from steersman.machinery.validation.object_meta import name_is_dns_subdomain
from steersman.openapi.builder import Document, group_version_document
from steersman.openapi.schemas import Schemas
from steersman.registry.core.configmaps import CONFIG_MAPS
from steersman.rest.resource import OtherVersion, Resource, Subresource
from steersman.rest.strategy import Strategy

RECORDED = json.loads(Path(__file__).with_name("recorded_custom_resources.json").read_text())
"""By kube-apiserver 1.36, of three CustomResourceDefinitions, without descriptions."""


def document_of(recorded: Any) -> Document:
    names = recorded["names"]
    gvk = GroupVersionKind(recorded["group"], "v1", names["kind"])
    subresources = {
        "scale": Subresource(name="scale", kind=built_in(Scale), view=NotImplemented),
        "status": Subresource(name="status", strategy=Strategy()),
    }
    resource = Resource(
        kind=OpenKind(gvk, names["listKind"], openapi=recorded["schema"]),
        plural=names["plural"],
        namespaced=recorded["scope"] == "Namespaced",
        name_validator=name_is_dns_subdomain,
        subresources=tuple(subresources[each] for each in recorded["subresources"]),
    )
    return group_version_document(gvk.group, gvk.version, served_versions(resource))


def undescribed(value: Any, *, named: bool = False) -> Any:
    """A document without its descriptions; `named`: the keys are names, of which "description" may be one."""
    if isinstance(value, list):
        return [undescribed(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        key: undescribed(each, named=not named and key in ("properties", "schemas", "paths"))
        for key, each in value.items()
        if named or key != "description" or not isinstance(each, str)
    }


@pytest.mark.parametrize("recorded", RECORDED, ids=lambda each: each["group"])
def test_the_v3_document_is_that_of_a_custom_resource(recorded: Any) -> None:
    document = undescribed(document_of(recorded).build())
    schemas = document["components"].pop("schemas")
    assert document.pop("openapi") == "3.0.0"
    assert document == {"components": {}, "info": recorded["v3"]["info"], "paths": recorded["v3"]["paths"]}
    assert {name: schemas.pop(name) for name in recorded["v3"]["schemas"]} == recorded["v3"]["schemas"]
    assert sorted(schemas) == recorded["v3"]["others"]


@pytest.mark.parametrize("recorded", RECORDED, ids=lambda each: each["group"])
def test_the_part_of_v2_is_that_of_a_custom_resource(recorded: Any) -> None:
    fragments = document_of(recorded).fragments(Schemas())
    paths = {path: undescribed(orjson.loads(item)) for path, item in fragments.paths.items()}
    assert paths == recorded["v2"]["paths"]
    for name, expected in recorded["v2"]["definitions"].items():
        assert undescribed(orjson.loads(fragments.definitions[name])) == expected


def test_what_every_object_has_is_described() -> None:
    schemas = document_of(RECORDED[0]).build()["components"]["schemas"]
    properties = schemas["x.e.v1.Gadget"]["properties"]
    assert properties["apiVersion"]["description"].startswith("APIVersion defines")
    assert properties["kind"]["description"].startswith("Kind is a string value")
    assert properties["metadata"]["description"].startswith("Standard object's metadata")
    assert properties["spec"]["properties"]["color"]["description"] == "its color"
    whole = schemas["x.e.v1.GadgetList"]
    assert whole["description"] == "GadgetList is a list of Gadget"
    assert "list" in whole["properties"]["metadata"]["description"]


def test_members_of_every_object_replace_those_of_the_schema() -> None:
    own = {"kind": {"type": "string", "description": "own"}, "metadata": {"type": "object", "properties": {"name": {}}}}
    kind = OpenKind(GroupVersionKind("e.x", "v1", "Gadget"), openapi={"type": "object", "properties": own})
    document = group_version_document("e.x", "v1", served(kind, "gadgets"))
    gadget = document.build()["components"]["schemas"]["x.e.v1.Gadget"]
    assert list(gadget["properties"]) == ["apiVersion", "kind", "metadata"]
    assert gadget["properties"]["kind"]["description"].startswith("Kind is a string value")
    assert gadget["properties"]["metadata"].keys() == {"allOf", "description"}
    of_v2 = orjson.loads(document.fragments(Schemas()).definitions["x.e.v1.Gadget"])
    assert of_v2["properties"]["metadata"].keys() == {"$ref", "description"}


def test_lists_tell_where_to_read_more() -> None:
    kind = OpenKind(GroupVersionKind("e.x", "v1", "Gadget"), "Gadgets")
    document = group_version_document("e.x", "v1", served(kind, "gadgets"))
    message = (
        "List of gadgets. More info:"
        " https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md"
    )
    for schema in (
        document.build()["components"]["schemas"]["x.e.v1.Gadgets"],
        orjson.loads(document.fragments(Schemas()).definitions["x.e.v1.Gadgets"]),
    ):
        assert schema["properties"]["items"]["description"] == message


def test_selectable_fields_are_published_of_each_version() -> None:
    schema = {"type": "object"}
    stored, other = (
        OpenKind(GroupVersionKind("e.x", version, "Gadget"), openapi=schema) for version in ("v1", "v2beta1")
    )
    same: Any = object
    in_both = served(
        stored,
        "gadgets",
        selectable_fields={"spec.color": str, "spec.size": str},
        other_versions=(OtherVersion(other, same, same, selectable_fields={"spec.hue": "spec.color"}),),
    )
    for each, fields in zip(in_both, (["spec.color", "spec.size"], ["spec.hue"]), strict=True):
        document = group_version_document("e.x", each.version, [each])
        expected = [{"fieldPath": field} for field in fields]
        found = document.build()["components"]["schemas"], document.fragments(Schemas()).definitions
        for kind in ("Gadget", "GadgetList"):
            name = f"x.e.{each.version}.{kind}"
            assert found[0][name]["x-kubernetes-selectable-fields"] == expected
            assert orjson.loads(found[1][name])["x-kubernetes-selectable-fields"] == expected


def test_other_selectable_fields_are_another_state() -> None:
    kind = OpenKind(GroupVersionKind("e.x", "v1", "Gadget"))
    one, other, again = (
        group_version_document("e.x", "v1", served(kind, "gadgets", selectable_fields=fields)).etag
        for fields in ({}, {"spec.color": str}, {})
    )
    assert one == again != other


class Part(Wire):
    name: str = ""
    n: Int32 = 0
    parts: list[Part] = []


class WidgetSpec(Wire):
    size: Quantity | None = None
    since: Time | None = None
    period: Duration | None = None
    parts: list[Part] = []
    tags: dict[str, str] = {}
    port: int | str | None = None
    rest: Any = None
    pod: PodSpec | None = None


class Widget(Wire):
    kind: str = ""
    api_version: str = ""
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: WidgetSpec = msgspec.field(default_factory=WidgetSpec)


def served(kind: Kind[Any], plural: str, **more: Any) -> list[ServedResource]:
    return served_versions(Resource(kind=kind, plural=plural, name_validator=name_is_dns_subdomain, **more))


def widgets() -> list[ServedResource]:
    return served(StructKind(Widget, GroupVersionKind("e.x", "v1", "Widget")), "widgets")


def test_a_struct_of_ones_own_is_published_by_its_members() -> None:
    members_of(struct_of(PodSpec))  # as reading a pod does
    schemas = undescribed(group_version_document("e.x", "v1", widgets()).build())["components"]["schemas"]
    widget = schemas["x.e.v1.Widget"]
    reference = "#/components/schemas/io.k8s"
    assert list(widget["properties"]) == ["apiVersion", "kind", "metadata", "spec"]
    meta = f"{reference}.apimachinery.pkg.apis.meta.v1"
    assert widget["properties"]["metadata"] == {"allOf": [{"$ref": f"{meta}.ObjectMeta"}]}
    part = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    assert widget["properties"]["spec"]["properties"] == {
        "size": {"$ref": f"{reference}.apimachinery.pkg.api.resource.Quantity"},
        "since": {"$ref": f"{meta}.Time"},
        "period": {"type": "string"},
        "parts": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "name": {"type": "string"},
                    "n": {"type": "integer", "format": "int32"},
                    "parts": {"type": "array", "items": part},
                },
            },
        },
        "tags": {"type": "object", "additionalProperties": {"type": "string"}},
        "port": {"$ref": f"{reference}.apimachinery.pkg.util.intstr.IntOrString"},
        "rest": {"x-kubernetes-preserve-unknown-fields": True},
        "pod": {"$ref": f"{reference}.api.core.v1.PodSpec"},
    }
    assert "io.k8s.api.core.v1.Container" in schemas


def test_its_part_of_v2_refers_to_what_is_there() -> None:
    fragments = group_version_document("e.x", "v1", widgets()).fragments(Schemas())
    spec = orjson.loads(fragments.definitions["x.e.v1.Widget"])["properties"]["spec"]
    assert spec["properties"]["pod"] == {"$ref": "#/definitions/io.k8s.api.core.v1.PodSpec"}
    assert "io.k8s.api.core.v1.PodSpec" in fragments.definitions


def test_what_a_subresource_brings_is_published_too() -> None:
    shape = {"type": "object", "properties": {"n": {"type": "integer"}}}
    view = OpenKind(GroupVersionKind("v.x", "v1", "View"), openapi=shape)
    subresource = Subresource(name="viewOf", kind=view, view=NotImplemented, verbs=("get",))
    gadgets = served(OpenKind(GroupVersionKind("e.x", "v1", "Gadget")), "gadgets", subresources=(subresource,))
    document = group_version_document("e.x", "v1", gadgets).build()
    read = document["paths"]["/apis/e.x/v1/namespaces/{namespace}/gadgets/{name}/viewOf"]["get"]
    assert read["operationId"] == "readEXV1NamespacedGadgetViewOf"
    schema = read["responses"]["200"]["content"]["application/json"]["schema"]
    assert schema == {"$ref": "#/components/schemas/x.v.v1.View"}
    assert "n" in document["components"]["schemas"]["x.v.v1.View"]["properties"]


@pytest.mark.parametrize("named", ["#/components/schemas/none", "elsewhere"])
def test_a_reference_to_nothing_harms_no_document(named: str) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "object", "default": {"$ref": named}}}}
    kind = OpenKind(GroupVersionKind("e.x", "v1", "Gadget"), openapi=schema)
    document = group_version_document("e.x", "v1", served(kind, "gadgets"))
    assert document.build()["components"]["schemas"]["x.e.v1.Gadget"]["properties"]["a"]["default"] == {"$ref": named}
    assert "x.e.v1.Gadget" in document.fragments(Schemas()).definitions


def test_kinds_of_ones_own_beside_built_in_ones_are_in_the_same_document() -> None:
    own = served(OpenKind(GroupVersionKind("", "v1", "Gadget")), "gadgets")
    document = group_version_document("", "v1", (*served_versions(CONFIG_MAPS), *own)).build()
    assert document["info"]["title"] == "Kubernetes"
    assert {"/api/v1/", "/api/v1/configmaps", "/api/v1/gadgets"} <= set(document["paths"])
    assert "/api/v1/watch/gadgets" not in document["paths"]
