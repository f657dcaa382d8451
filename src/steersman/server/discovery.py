"""The discovery documents of a chain: /api, /apis, a path for each group and version, plain and aggregated."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from steersman.endpoints.discovery import ServedResource, etag_of, group_discovery, resource_list
from steersman.endpoints.negotiation import JSON, Representation, discovery_form, negotiate
from steersman.endpoints.request import Request
from steersman.endpoints.responses import (
    encoded_response,
    error_response,
    method_not_allowed,
    pretty_wanted,
    protobuf_document,
)
from steersman.machinery.errors import StatusError
from steersman.machinery.serializer import encode_in_order
from steersman.net.message import Response
from steersman.server.server import Server

_AGGREGATORS_OWN: Final = "apiregistration.k8s.io"
AGGREGATED_PARAMETERS: Final = ";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


@dataclass(frozen=True, slots=True)
class Group:
    """A group and its versions, the preferred one first."""

    name: str
    versions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Aggregated:
    """One aggregated document, encoded once."""

    data: bytes
    etag: str


def groups_in_order(order: Iterable[tuple[str, str]], served: Sequence[ServedResource]) -> list[Group]:
    """The groups of what is served, in the given order of group versions."""
    present = {(each.group, each.version) for each in served}
    groups: dict[str, list[str]] = {}
    for group, version in order:
        if (group, version) in present:
            groups.setdefault(group, []).append(version)
    return [Group(name, tuple(versions)) for name, versions in groups.items()]


def install_discovery(server: Server, order: Iterable[tuple[str, str]]) -> None:
    """Adds the discovery paths for everything the chain serves."""
    served = server.all_served()
    by_version: dict[tuple[str, str], list[ServedResource]] = {}
    for each in served:
        by_version.setdefault((each.group, each.version), []).append(each)
    groups = groups_in_order(order, served)
    legacy = [group for group in groups if not group.name]
    named = [group for group in groups if group.name]

    server.add_web_service("/api", partial(_root, _versions(legacy), _aggregated(legacy, by_version)))
    apis = partial(_root, _group_list(named), _aggregated(named, by_version))
    server.add_path("/apis", apis)
    server.add_path("/apis/", apis, listed=False)
    for group in named:
        document = _api_group(group, standing_alone=True)
        handler = partial(_plain, document)
        if group.name != _AGGREGATORS_OWN:
            handler = partial(_group, f"/apis/{group.name}", document)
        server.add_web_service(f"/apis/{group.name}", handler)
    for (group_name, version), found in by_version.items():
        path = f"/apis/{group_name}/{version}" if group_name else f"/api/{version}"
        server.add_web_service(path, partial(_plain, resource_list(group_name, version, found)))


def _versions(groups: Sequence[Group]) -> dict[str, Any]:
    return {
        "kind": "APIVersions",
        "versions": [version for group in groups for version in group.versions],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": None}],
    }


def _group_list(groups: Sequence[Group]) -> dict[str, Any]:
    documents = [_api_group(group, standing_alone=False) for group in groups]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": documents}


def _api_group(group: Group, *, standing_alone: bool) -> dict[str, Any]:
    versions = [{"groupVersion": f"{group.name}/{version}", "version": version} for version in group.versions]
    head = {"kind": "APIGroup", "apiVersion": "v1"} if standing_alone else {}
    return {**head, "name": group.name, "versions": versions, "preferredVersion": versions[0]}


def _aggregated(groups: Sequence[Group], by_version: dict[tuple[str, str], list[ServedResource]]) -> _Aggregated:
    items = [
        group_discovery(group.name, [(version, by_version[group.name, version]) for version in group.versions])
        for group in groups
    ]
    document = {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items}
    return _Aggregated(encode_in_order(document) + b"\n", etag_of(document))


async def _root(plain: dict[str, Any], aggregated: _Aggregated, request: Request) -> Response:
    """/api and /apis: aggregated for clients that ask for that form, else the plain list."""
    if request.method == "HEAD":
        return error_response(request, method_not_allowed())
    form = discovery_form(request.headers.get("accept", ""))
    if form != "plain":
        headers = [("content-type", form + AGGREGATED_PARAMETERS), ("etag", aggregated.etag), ("vary", "Accept"),
                   ("cache-control", "public")]  # fmt: skip
        if request.headers.get("if-none-match") == aggregated.etag:
            return Response(304, headers)
        data = aggregated.data if form == JSON else protobuf_document(aggregated.data)
        return Response(200, headers, data)
    if request.info.path.rstrip("/") == "/api" and request.method != "GET":
        return error_response(request, method_not_allowed())
    return _document(plain, request)


async def _group(path: str, document: dict[str, Any], request: Request) -> Response:
    """/apis/GROUP: with one slash behind it or none it is the aggregator that answers, which looks at no method."""
    if request.info.path in (path, f"{path}/"):
        return _document(document, request)
    return await _plain(document, request)


async def _plain(document: dict[str, Any], request: Request) -> Response:
    if request.method != "GET":
        return error_response(request, method_not_allowed())
    return _document(document, request)


def _document(document: dict[str, Any], request: Request) -> Response:
    if request.info.path.rstrip("/") == "/api":
        host = request.http.host
        document = {
            **document, "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": host}],
        }  # fmt: skip
    try:
        wanted = negotiate_document(request)
    except StatusError as error:
        return error_response(request, error)
    return encoded_response(encode_in_order(document), wanted)


def negotiate_document(request: Request) -> Representation:
    """The representation of a document that is no resource. Raises StatusError 406."""
    parts = request.info.path.strip("/").split("/")
    aggregated = parts[0] == "apis" and len(parts) <= 2  # the aggregator's own handlers, behind no router
    return negotiate(request.headers.get("accept", ""), pretty=pretty_wanted(request), routed=not aggregated)
