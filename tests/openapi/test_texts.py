"""Descriptions of operations, on the documents of the package."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.openapi.texts import describe_operations
from tests.openapi.built_documents import every_v3, v2

NAMESPACED = "/api/v1/namespaces/{namespace}"


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
        (
            f"{NAMESPACED}/replicationcontrollers/{{name}}/scale",
            "get",
            "read scale of the specified ReplicationController",
        ),
        ("/api/", "get", "get available API versions"),
        ("/api/v1/", "get", "get available resources"),
        ("/apis/apps/", "get", "get information of a group"),
        ("/apis/apps/v1/", "get", "get available resources"),
        ("/version/", "get", "get the version information for this server"),
    ],
)
def test_an_operation_says_what_it_does(path: str, method: str, expected: str) -> None:
    assert v2()["paths"][path][method]["description"] == expected


def everything() -> list[tuple[str, str, Any]]:
    """Every operation and what operations of a path have in common, of all documents, with path and method."""
    documents = (v2(everything=True), *every_v3().values())
    return [
        (path, method, each)
        for document in documents
        for path, item in document["paths"].items()
        for method, each in item.items()
    ]


def test_every_operation_of_every_document_is_described() -> None:
    silent = [
        (path, method) for path, method, each in everything() if method != "parameters" and not each["description"]
    ]
    assert silent == []


def test_every_parameter_of_every_document_is_described() -> None:
    """Bodies are not, nor are they upstream."""
    parameters = [*v2(everything=True)["parameters"].values()]
    for _, method, each in everything():
        parameters += each if method == "parameters" else each.get("parameters", ())
    found = [each for each in parameters if "$ref" not in each and each["in"] != "body"]
    assert {each["name"] for each in found if not each.get("description")} == set()
    texts = {each["name"]: each["description"] for each in found}
    assert texts["limit"].startswith("how many objects a list has at most")


def test_path_parameters_and_security_are_described() -> None:
    document = every_v3()["api/v1"]
    parameters = document["paths"][f"{NAMESPACED}/pods/{{name}}/exec"]["parameters"]
    texts = {each["name"]: each.get("description") for each in parameters if each["in"] == "path"}
    assert texts == {
        "name": "name of the PodExecOptions",
        "namespace": "object name and auth scope, such as for teams and projects",
    }
    assert document["components"]["securitySchemes"]["BearerToken"]["description"] == "Bearer Token authentication"


def test_a_description_that_is_there_stays() -> None:
    paths: dict[str, Any] = {"/version/": {"get": {"description": "mine"}}}
    describe_operations(paths)
    assert paths["/version/"]["get"]["description"] == "mine"
