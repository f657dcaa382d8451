"""Conversion of v2 documents to v3, for servers that publish no v3. Parts without a v3 equivalent are lost.

Follows k8s.io/kube-openapi `pkg/openapiconv` (ConvertV2ToV3).
"""

from __future__ import annotations

from typing import Any, Final

from steersman.openapi.sources import Tree
from steersman.work.threads import give_way

_VERBS: Final = ("get", "put", "post", "delete", "options", "head", "patch")
_REFERENCES: Final = {
    "#/definitions/": "#/components/schemas/",
    "#/parameters/": "#/components/parameters/",
    "#/responses/": "#/components/responses/",
}
_OF_OPERATION: Final = ("description", "externalDocs", "tags", "summary", "deprecated", "operationId")
_OF_PARAMETER: Final = ("name", "description", "in", "required", "allowEmptyValue")
_SIMPLE: Final = ("type", "format", "uniqueItems")


def as_v3(document: Tree) -> Tree:
    """Convert a v2 document to v3. Runs in any thread. A value that should be an object and is not counts as missing."""
    schemas = {name: _schema(each) for name, each in _members(document, "definitions")}
    found: Tree = {"openapi": "3.0.0", "info": document.get("info", {})}
    found["paths"] = {path: _path(item) for path, item in _members(document, "paths")}
    found["components"] = {"schemas": schemas} if schemas else {}
    return found


def _members(tree: Tree, name: str) -> list[tuple[str, Tree]]:
    """Return the members of an object member that are themselves objects."""
    found = tree.get(name)
    return [(key, each) for key, each in found.items() if isinstance(each, dict)] if isinstance(found, dict) else []


def _items(tree: Tree, name: str) -> list[Tree]:
    found = tree.get(name)
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _texts(tree: Tree, name: str) -> list[str]:
    found = tree.get(name)
    return [each for each in found if isinstance(each, str)] if isinstance(found, list) else []


def _extensions(tree: Tree) -> Tree:
    return {name: each for name, each in tree.items() if name.startswith("x-")}


def _path(item: Tree) -> Tree:
    give_way()
    extensions = _extensions(item)
    for verb, operation in _members({"of": item}, "of"):
        if verb in _VERBS:
            extensions[verb] = _operation(operation)
    if parameters := [_parameter(each) for each in _items(item, "parameters")]:
        extensions["parameters"] = parameters
    return extensions


def _operation(operation: Tree) -> Tree:
    found = _extensions(operation) | {name: operation[name] for name in _OF_OPERATION if name in operation}
    consumes, produces = _texts(operation, "consumes"), _texts(operation, "produces")
    parameters = []
    for each in _items(operation, "parameters"):
        if each.get("name") == "body" and isinstance(each.get("schema"), dict):
            found["requestBody"] = {"content": {media: {"schema": _schema(each["schema"])} for media in consumes}}
        else:
            parameters.append(_parameter(each))
    if parameters:
        found["parameters"] = parameters
    found["responses"] = {code: _response(each, produces) for code, each in _members(operation, "responses")}
    return found


def _response(response: Tree, produces: list[str]) -> Tree:
    if "$ref" in response:
        return {"$ref": _reference(response["$ref"])}
    found = _extensions(response) | {"description": response.get("description", "")}
    schema = response.get("schema")
    if isinstance(schema, dict) and produces:
        found["content"] = {media: {"schema": _schema(schema)} for media in produces}
    return found


def _parameter(parameter: Tree) -> Tree:
    if "$ref" in parameter:
        return {"$ref": _reference(parameter["$ref"])}
    found = _extensions(parameter) | {name: parameter[name] for name in _OF_PARAMETER if name in parameter}
    schema = parameter.get("schema")
    if isinstance(schema, dict):
        found["schema"] = _schema(schema)
    else:
        found["schema"] = {name: parameter[name] for name in _SIMPLE if name in parameter}
    return found


def _schema(schema: Tree) -> Tree:
    """Convert a schema. In v3 nothing is permitted beside a reference, so a reference with siblings moves into `allOf`."""
    give_way()
    found = dict(schema)
    if isinstance(schema.get("properties"), dict):
        found["properties"] = {name: _of(each) for name, each in schema["properties"].items()}
    for name in ("items", "additionalProperties", "additionalItems"):
        if name in schema:
            found[name] = _of(schema[name])
    if "$ref" not in found:
        return found
    reference = {"$ref": _reference(found.pop("$ref"))}
    return {**found, "allOf": [reference]} if found else reference


def _of(value: Any) -> Any:
    if isinstance(value, dict):
        return _schema(value)
    return [_of(each) for each in value] if isinstance(value, list) else value


def _reference(text: Any) -> Any:
    if isinstance(text, str):
        for old, new in _REFERENCES.items():
            if text.startswith(old):
                return new + text.removeprefix(old)
    return text
