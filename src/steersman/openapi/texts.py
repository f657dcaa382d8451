"""Descriptions of operations, in kube-apiserver's words, and of parameters, in the project's own words."""

from __future__ import annotations

from typing import Final

from steersman.machinery.go.strings import to_upper
from steersman.openapi.sources import Tree

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
SECURITY: Final = "Bearer Token authentication"


_QUERY: Final = {
    "allowWatchBookmarks": "asks a watch for events of type BOOKMARK that tell how far it has come",
    "command": "the command to run, the parameter repeated for each of its words; no shell reads it",
    "container": "the container of the pod; it may be left out if there is only one",
    "continue": "the token of a list that was not finished: the answer goes on where that list ended",
    "dryRun": "All: the request is checked and answered as any other, and nothing is stored",
    "fieldManager": "the name that the changed fields are owned under",
    "fieldSelector": "selects objects by their fields, e.g. metadata.name=a",
    "fieldValidation": "what becomes of unknown and repeated fields: Ignore, Warn (the default) or Strict",
    "follow": "whether the answer goes on as the log grows",
    "force": "whether an apply takes fields over from their other managers; only for apply",
    "gracePeriodSeconds": "seconds that the object has to end by itself; 0 deletes at once",
    "ignoreStoreReadErrorWithClusterBreakingPotential": (
        "whether an object that cannot be read from storage is deleted all the same, nothing of it being respected"
    ),
    "insecureSkipTLSVerifyBackend": "whether the log is read from a kubelet whose certificate is not checked",
    "labelSelector": "selects objects by their labels, e.g. app=web",
    "limit": "how many objects a list has at most; the continue token of its metadata leads to the others",
    "limitBytes": "bytes after which the log is cut off",
    "orphanDependents": "deprecated, use propagationPolicy: whether dependents outlive the object",
    "path": "the path that is asked for behind the proxy",
    "ports": "the ports to forward; over WebSockets only",
    "pretty": "true: the answer is indented for people",
    "previous": "whether the log is that of the container's previous run",
    "propagationPolicy": "what becomes of dependents: Orphan, Background or Foreground",
    "resourceVersion": "the version that the answer is to be of, resourceVersionMatch says how closely",
    "resourceVersionMatch": "how resourceVersion counts for a list: Exact or NotOlderThan",
    "sendInitialEvents": "whether a watch begins with the objects there are, and marks their end with a bookmark",
    "shardSelector": "selects objects of a part of all by a hash of one of their fields",
    "sinceSeconds": "shows lines of the last seconds only, this many",
    "stderr": "whether the standard error is sent back",
    "stdin": "whether the standard input is passed on",
    "stdout": "whether the standard output is sent back",
    "stream": "which of the container's streams are shown: All (the default), Stdout or Stderr",
    "tailLines": "how many lines are shown, counted from the end",
    "timeoutSeconds": "seconds after which a list or watch ends, whatever is going on",
    "timestamps": "whether each line begins with its time (RFC 3339)",
    "tty": "whether the process has a terminal",
    "watch": "whether changes are sent as they happen, instead of a list",
}
"""Descriptions of query parameters by name."""


def describe_operations(paths: dict[str, Tree]) -> None:
    """Add descriptions, in place, to the operations and parameters of path items of OpenAPI v2 or v3.

    Existing descriptions are kept.
    """
    for path, item in paths.items():
        kind = ""
        for method, operation in item.items():
            if method == "parameters":
                continue
            kind = _kind(operation) or kind
            text = _described(paths, path, method, operation)
            if text:
                operation.setdefault("description", text)
            for parameter in operation.get("parameters", ()):
                describe_parameter(parameter, kind)
        for parameter in item.get("parameters", ()):
            describe_parameter(parameter, kind)


def describe_parameter(parameter: Tree, kind: str) -> None:
    """Add a description, in place, to a parameter of operations on a kind, unless it is a reference."""
    match parameter.get("name"), parameter.get("in"):
        case "name", "path":
            parameter.setdefault("description", f"name of the {kind}")
        case "namespace", "path":
            parameter.setdefault("description", "object name and auth scope, such as for teams and projects")
        case "path", "path":
            parameter.setdefault("description", "path to the resource")
        case name, "query" if name in _QUERY:
            parameter.setdefault("description", _QUERY[name])


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
    """Return the description of `/apis/GROUP/`, `/apis/GROUP/VERSION/` or `/api/VERSION/`, "" for other paths."""
    parts = path.strip("/").split("/")
    if parts[0] not in ("api", "apis"):
        return ""
    return "get information of a group" if len(parts) == 2 and parts[0] == "apis" else "get available resources"


def _kind(operation: Tree) -> str:
    kind: str = operation.get("x-kubernetes-group-version-kind", {}).get("kind", "")
    return kind


def _owner(paths: dict[str, Tree], path: str) -> str:
    """Return the kind of the objects at a path."""
    return _kind(paths.get(path, {}).get("get", {}))


def _is_watchable(paths: dict[str, Tree], path: str) -> bool:
    """Return True if a list has a counterpart among the deprecated watch paths."""
    parts = path.split("/")
    prefix = 3 if parts[1] == "api" else 4
    return "/".join([*parts[:prefix], "watch", *parts[prefix:]]) in paths


def _with_article(kind: str) -> str:
    """Return a kind with an indefinite article; a plural such as Endpoints gets none."""
    if kind.endswith("s") and not kind.endswith("ss"):
        return kind
    return f"{'an' if kind[:1] in 'AEIOU' else 'a'} {kind}"
