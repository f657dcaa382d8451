"""Descriptions of operations, on the documents of the package."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from steersman.openapi.documents import manifest
from steersman.openapi.texts import describe_operations

NAMESPACED = "/api/v1/namespaces/{namespace}"


@cache
def v2() -> dict[str, Any]:
    document = manifest().v2.load()
    describe_operations(document)
    return document


@pytest.mark.parametrize(
    ("path", "method", "expected"),
    [
        (f"{NAMESPACED}/pods", "get", "list or watch objects of kind Pod"),
        ("/api/v1/componentstatuses", "get", "list objects of kind ComponentStatus"),
        (f"{NAMESPACED}/pods", "post", "create a Pod"),
        (f"{NAMESPACED}/events", "post", "create an Event"),
        (f"{NAMESPACED}/endpoints", "post", "create Endpoints"),
        (f"{NAMESPACED}/pods", "delete", "delete collection of Pod"),
        (f"{NAMESPACED}/pods/{{name}}", "get", "read the specified Pod"),
        (f"{NAMESPACED}/pods/{{name}}", "put", "replace the specified Pod"),
        (f"{NAMESPACED}/pods/{{name}}", "patch", "partially update the specified Pod"),
        (f"{NAMESPACED}/pods/{{name}}", "delete", "delete a Pod"),
        (f"{NAMESPACED}/pods/{{name}}/status", "patch", "partially update status of the specified Pod"),
        (f"{NAMESPACED}/pods/{{name}}/binding", "post", "create binding of a Pod"),
        (f"{NAMESPACED}/pods/{{name}}/exec", "post", "connect POST requests to exec of Pod"),
        (f"{NAMESPACED}/services/{{name}}/proxy/{{path}}", "get", "connect GET requests to proxy of Service"),
        (f"{NAMESPACED}/replicationcontrollers/{{name}}/scale", "get",
         "read scale of the specified ReplicationController"),
        ("/api/", "get", "get available API versions"),
        ("/api/v1/", "get", "get available resources"),
        ("/apis/apps/", "get", "get information of a group"),
        ("/apis/apps/v1/", "get", "get available resources"),
        ("/version/", "get", "get the version information for this server"),
    ],
)  # fmt: skip
def test_an_operation_says_what_it_does(path: str, method: str, expected: str) -> None:
    assert v2()["paths"][path][method]["description"] == expected


def test_every_operation_of_every_document_is_described() -> None:
    silent = []
    for stored in (manifest().v2, *manifest().v3.values()):
        document = stored.load()
        describe_operations(document)
        silent += [
            f"{stored.file} {method} {path}"
            for path, item in document["paths"].items()
            for method, operation in item.items()
            if method != "parameters" and not operation.get("description")
        ]
    assert silent == []


def test_path_parameters_and_security_are_described() -> None:
    document = manifest().v3["api/v1"].load()
    describe_operations(document)
    parameters = document["paths"][f"{NAMESPACED}/pods/{{name}}/exec"]["parameters"]
    texts = {each["name"]: each.get("description") for each in parameters if each["in"] == "path"}
    assert texts == {
        "name": "name of the PodExecOptions",
        "namespace": "object name and auth scope, such as for teams and projects",
    }
    assert document["components"]["securitySchemes"]["BearerToken"]["description"] == "Bearer Token authentication"


def test_a_description_that_is_there_stays() -> None:
    document: dict[str, Any] = {"paths": {"/version/": {"get": {"description": "mine"}}}}
    describe_operations(document)
    assert document["paths"]["/version/"]["get"]["description"] == "mine"
