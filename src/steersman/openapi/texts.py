"""What the operations of OpenAPI documents do, said in one line each, in the words of kube-apiserver's documents."""

from __future__ import annotations

from typing import Final

from steersman.machinery.go_strings import to_upper
from steersman.openapi.documents import Tree

_ITEM: Final = "/{name}"
_OF_AN_ITEM: Final = {"get": "read", "put": "replace", "patch": "partially update"}
_OF_A_COLLECTION: Final = {
    "deletecollection": "delete collection of {}",
    "list": "list or watch objects of kind {}",
    "watch": (
        "watch changes to an object of kind {}. deprecated: use the 'watch' parameter with a list operation instead, "
        "filtered to a single item with the 'fieldSelector' parameter."
    ),
    "watchlist": (
        "watch individual changes to a list of {}. deprecated: use the 'watch' parameter with a list operation instead."
    ),
}
_FIXED: Final = {
    "/.well-known/openid-configuration/": (
        "get service account issuer OpenID configuration, also known as the 'OIDC discovery doc'"
    ),
    "/openid/v1/jwks/": (
        "get service account issuer OpenID JSON Web Key Set (contains public token verification keys)"
    ),
    "/version/": "get the version information for this server",
    "/api/": "get available API versions",
    "/apis/": "get available API versions",
}
_SECURITY: Final = "Bearer Token authentication"


def describe_operations(document: Tree) -> None:
    """Adds descriptions, in place, to the operations, their path parameters and the security schemes of a document.

    `document` is of OpenAPI v2 or v3. What has a description keeps it.
    """
    paths: dict[str, Tree] = document.get("paths", {})
    for path, item in paths.items():
        kind = ""
        for method, operation in item.items():
            if method == "parameters":
                continue
            kind = _kind(operation) or kind
            text = _described(paths, path, method, operation)
            if text:
                operation.setdefault("description", text)
        _describe_parameters(item.get("parameters", ()), kind)
    schemes = document.get("securityDefinitions") or document.get("components", {}).get("securitySchemes", {})
    for scheme in schemes.values():
        scheme.setdefault("description", _SECURITY)


def _describe_parameters(parameters: list[Tree], kind: str) -> None:
    for parameter in parameters:
        match parameter.get("name"), parameter.get("in"):
            case "name", "path":
                parameter.setdefault("description", f"name of the {kind}")
            case "namespace", "path":
                parameter.setdefault("description", "object name and auth scope, such as for teams and projects")
            case "path", "path":
                parameter.setdefault("description", "path to the resource")


def _described(paths: dict[str, Tree], path: str, method: str, operation: Tree) -> str:
    action = operation.get("x-kubernetes-action", "")
    if not action:
        return _FIXED.get(path) or _of_discovery(path)
    kind = _kind(operation)
    before, _, subresource = path.partition(_ITEM)
    parts = subresource.strip("/").split("/")
    if parts[0] and not action.startswith("watch"):
        owner = _owner(paths, before + _ITEM) or kind
        return _of_subresource(action, method, parts[0], owner)
    if action in _OF_AN_ITEM:
        return f"{_OF_AN_ITEM[action]} the specified {kind}"
    if action == "list" and not _is_watchable(paths, path):
        return f"list objects of kind {kind}"
    if action in _OF_A_COLLECTION:
        return _OF_A_COLLECTION[action].format(kind)
    verb = {"post": "create", "delete": "delete"}.get(action)
    return f"{verb} {_with_article(kind)}" if verb else ""


def _of_subresource(action: str, method: str, name: str, owner: str) -> str:
    if action == "connect":
        return f"connect {to_upper(method)} requests to {name} of {owner}"
    if action == "post":
        return f"create {name} of {_with_article(owner)}"
    return f"{_OF_AN_ITEM[action]} {name} of the specified {owner}" if action in _OF_AN_ITEM else ""


def _of_discovery(path: str) -> str:
    """Of `/apis/GROUP/`, `/apis/GROUP/VERSION/` and `/api/VERSION/`."""
    parts = path.strip("/").split("/")
    if parts[0] not in ("api", "apis"):
        return ""
    return "get information of a group" if len(parts) == 2 and parts[0] == "apis" else "get available resources"


def _kind(operation: Tree) -> str:
    kind: str = operation.get("x-kubernetes-group-version-kind", {}).get("kind", "")
    return kind


def _owner(paths: dict[str, Tree], path: str) -> str:
    """The kind of the objects at a path."""
    return _kind(paths.get(path, {}).get("get", {}))


def _is_watchable(paths: dict[str, Tree], path: str) -> bool:
    """Whether a list has its twin among the deprecated watch paths."""
    parts = path.split("/")
    prefix = 3 if parts[1] == "api" else 4
    return "/".join([*parts[:prefix], "watch", *parts[prefix:]]) in paths


def _with_article(kind: str) -> str:
    """A kind as one of many; one that is a plural already, such as Endpoints, has no article."""
    if kind.endswith("s") and not kind.endswith("ss"):
        return kind
    return f"{'an' if kind[:1] in 'AEIOU' else 'a'} {kind}"
