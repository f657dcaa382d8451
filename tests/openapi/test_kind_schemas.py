"""Schemas of kinds, wherever they come from."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.machinery.codec.serializer import encode
from steersman.machinery.identity.schema import GroupVersionKind
from steersman.openapi.kind_schemas import built_in_schema, document_schema

THING = GroupVersionKind("far.x", "v1", "Thing")
GVK = {"x-kubernetes-group-version-kind": [{"group": "far.x", "version": "v1", "kind": "Thing"}]}


@pytest.mark.parametrize(
    ("group", "version", "kind", "member"),
    [
        ("", "v1", "Pod", "spec"),
        ("", "v1", "PodList", "items"),
        ("", "v1", "List", "items"),
        ("apps", "v1", "Deployment", "spec"),
        ("apps", "v1", "DeleteOptions", "gracePeriodSeconds"),
        ("", "v1", "Status", "code"),
        ("autoscaling", "v1", "Scale", "spec"),
        ("apiregistration.k8s.io", "v1", "APIService", "spec"),
    ],
)
def test_kinds_of_kubernetes_are_known(group: str, version: str, kind: str, member: str) -> None:
    found = built_in_schema(GroupVersionKind(group, version, kind))
    assert found is not None
    assert member in found.schema["properties"]
    assert found.schema_of(found.reference) == found.schema


@pytest.mark.parametrize(
    ("group", "kind"),
    [("", "Deployment"), ("apps", "Pod"), ("", "PodSpec"), ("e.x", "Pod"), ("", ""), ("e.x", "Status")],
)
def test_others_are_not(group: str, kind: str) -> None:
    assert built_in_schema(GroupVersionKind(group, "v1", kind)) is None


def document(**schemas: Any) -> bytes:
    return encode({"openapi": "3.0.0", "components": {"schemas": schemas}})


def test_a_kind_of_a_document_refers_to_others_of_it() -> None:
    thing = {"type": "object", "properties": {"a": {"$ref": "#/components/schemas/A"}}, **GVK}
    found = document_schema(document(Thing=thing, A={"type": "string"}), THING)
    assert found is not None
    assert found.schema == thing
    assert found.schema_of("#/components/schemas/A") == {"type": "string"}


def test_schemas_may_be_within_themselves() -> None:
    thing = {"type": "object", "properties": {"a": {"$ref": "#/components/schemas/Thing"}}, **GVK}
    assert document_schema(document(Thing=thing), THING) is not None


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        encode({"components": 1}),
        encode({"components": {"schemas": []}}),
        document(),
        document(Thing=GVK["x-kubernetes-group-version-kind"]),
        document(Other={"type": "object"}),
        document(Thing={"properties": {"a": {"$ref": "#/components/schemas/A"}}, **GVK}),
        document(Thing={"properties": {"a": {"$ref": "#/components/schemas/A"}}, **GVK}, A={"$ref": "B"}),
    ],
)
def test_a_document_without_it_or_that_refers_to_nothing_gives_none(data: bytes) -> None:
    assert document_schema(data, THING) is None
