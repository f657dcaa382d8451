"""Discovery documents: /api, /apis, and a path for each group and version, plain and aggregated."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from msgspec import Struct

from steersman.catalogue.catalogue import Group
from steersman.endpoints.compression import compressed
from steersman.endpoints.discovery import etag_of, group_metadata, resource_list, version_discovery
from steersman.endpoints.negotiation import (
    JSON,
    YAML,
    Representation,
    consumes,
    discovery_form,
    negotiate,
    route_unsupported_media_type,
)
from steersman.endpoints.request import Request
from steersman.endpoints.responses import (
    error_response,
    method_not_allowed,
    object_response,
    pretty_wanted,
    protobuf_document,
)
from steersman.endpoints.scope import root_of
from steersman.machinery.codec.serializer import encode_in_order
from steersman.machinery.errors.status import StatusError
from steersman.net.message import Response
from steersman.server.server import PathHandler, Server
from steersman.work.offloading import offload_if

_AGGREGATORS_OWN: Final = "apiregistration.k8s.io"
AGGREGATED_PARAMETERS: Final = ";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_AGGREGATED_HEAD: Final = (
    b'{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","metadata":{},"items":['
)


class _Documents(Struct, frozen=True):
    """The documents of /api or /apis at one revision of the catalogue: the plain one, and the encoded aggregated
    one.
    """

    revision: int
    plain: dict[str, Any]
    aggregated: bytes
    etag: str


class Discovery:
    """The discovery paths of a server, which follow its catalogue.

    Documents are built on demand, from cached fragments that are dropped when their group changes.
    """

    def __init__(self, server: Server) -> None:
        self._server = server
        self._catalogue = server.catalogue
        self._paths: dict[str, set[str]] = {}
        """Installed paths by group, including those of its versions."""
        self._fragments: dict[str, bytes] = {}
        """Encoded fragments of the aggregated document, by group."""
        self._lists: dict[str, dict[str, Any]] = {}
        """APIResourceLists by path."""
        self._roots: dict[bool, _Documents] = {}

    def install(self, *, defined: bool = False) -> None:
        """Add the paths, and follow changes of groups and versions from now on.

        If groups may be `defined`, the index lists `/apis/`, as upstream's server of custom resources installs that
        path.
        """
        server = self._server
        server.add_web_service("/api", partial(self._answer_root, True))
        apis = self._compressing(partial(self._answer_root, False))
        server.add_path("/apis", apis)
        server.add_path("/apis/", apis, listed=defined)
        self._catalogue.subscribe(self._changed)

    def _changed(self, name: str) -> None:
        self._fragments.pop(name, None)
        there = self._paths.pop(name, set())
        handlers = self._handlers(name)
        for path in there:
            self._lists.pop(path, None)
            if path not in handlers:
                self._server.remove_path(path)
        for path, handler in handlers.items():
            if path not in there:
                self._server.add_web_service(path, handler)
        if handlers:
            self._paths[name] = set(handlers)

    def _handlers(self, name: str) -> dict[str, PathHandler]:
        group = self._catalogue.group(name)
        handlers: dict[str, PathHandler] = {}
        if group is not None:
            handlers |= {
                root_of(name, version): self._compressing(partial(self._answer_version, name, version))
                for version in group.versions
            }
        if name and self._catalogue.listed_group(name) is not None:
            handlers[f"/apis/{name}"] = partial(self._answer_group, name)
        return handlers

    def _compressing(self, handler: PathHandler) -> PathHandler:
        """Return a handler that compresses large answers for clients that accept it: there may be many groups."""
        executor = self._server.config.executor

        async def answer(request: Request) -> Response:
            return await compressed(request, await handler(request), executor)

        return answer

    async def _answer_root(self, legacy: bool, request: Request) -> Response:
        """Answer /api or /apis: the aggregated document if the client asks for it, else the plain list.

        As upstream, the aggregator answers /apis: it accepts any method, and at `/apis/` serves only the plain list.
        """
        if legacy and (refusal := _refused_by_router(request)) is not None:
            return refusal
        documents = self._documents(legacy)
        only_plain = request.info.path == "/apis/"
        form = "plain" if only_plain else discovery_form(request.headers.get("accept", ""), routed=legacy)
        if form != "plain":
            headers = [
                ("content-type", form + AGGREGATED_PARAMETERS),
                ("etag", documents.etag),
                ("vary", "Accept"),
                ("cache-control", "public"),
            ]
            if request.headers.get("if-none-match") == documents.etag:
                return Response(304, headers)
            data = documents.aggregated
            if request.audit is not None:
                request.audit.set_response_object((data,))
            return Response(200, headers, await self._encoded(request, form, data))
        return _document(documents.plain, request)

    async def _encoded(self, request: Request, media: str, data: bytes) -> bytes:
        """Return the aggregated document, given as JSON, in a media type."""
        if media == YAML:
            from steersman.machinery.codec.yaml import from_json  # most servers are never asked for any

            return await offload_if(True, from_json, data)
        return data + b"\n" if media == JSON else protobuf_document(data)

    def _documents(self, legacy: bool) -> _Documents:
        known = self._roots.get(legacy)
        if known is not None and known.revision == self._catalogue.revision:
            return known
        groups = [group for group in self._catalogue.listed_groups() if bool(group.name) is not legacy]
        data = _AGGREGATED_HEAD + b",".join(filter(None, map(self._fragment, groups))) + b"]}"
        plain = _versions(groups) if legacy else _group_list(groups)
        self._roots[legacy] = made = _Documents(self._catalogue.revision, plain, data, etag_of(data))
        return made

    def _fragment(self, group: Group) -> bytes:
        """Return a group's fragment of the aggregated document, b"" for a group whose versions are all unavailable."""
        known = self._fragments.get(group.name)
        if known is None:
            remote = self._catalogue.remote_discovery(group.name)
            versions = [
                remote.get(version) or self._version_fragment(group.name, version) for version in group.versions
            ]
            metadata = encode_in_order(group_metadata(group.name))
            known = b'{"metadata":%b,"versions":[%b]}' % (metadata, b",".join(filter(None, versions)))
            self._fragments[group.name] = known = known if any(versions) else b""
        return known

    def _version_fragment(self, group: str, version: str) -> bytes:
        resources = self._catalogue.resources(group, version)
        return encode_in_order(version_discovery(version, resources)) if resources else b""

    async def _answer_group(self, name: str, request: Request) -> Response:
        """Answer /apis/GROUP. With at most one slash at the end, the aggregator answers, which accepts any method.

        The aggregator's own group has another handler.
        """
        group = self._catalogue.listed_group(name)
        assert group is not None
        document = _api_group(group, standing_alone=True)
        path = f"/apis/{name}"
        if name != _AGGREGATORS_OWN and request.info.path in (path, f"{path}/"):
            return _document(document, request)
        return _plain(document, request)

    async def _answer_version(self, name: str, version: str, request: Request) -> Response:
        path = root_of(name, version)
        document = self._lists.get(path)
        if document is None:
            self._lists[path] = document = resource_list(name, version, self._catalogue.resources(name, version))
        if self._catalogue.is_defined(path):
            # upstream has no router for these paths, so that any method is accepted
            return _document(document, request)
        return _plain(document, request)


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


def _plain(document: dict[str, Any], request: Request) -> Response:
    return _refused_by_router(request) or _document(document, request)


def _refused_by_router(request: Request) -> Response | None:
    """Return the refusal of upstream's router before the check of the Accept header, or None."""
    if request.method != "GET":
        return error_response(request, method_not_allowed())
    if not consumes(request.headers.get("content-type", "")):
        return error_response(request, route_unsupported_media_type())
    return None


def _document(document: dict[str, Any], request: Request) -> Response:
    if request.info.path.rstrip("/") == "/api":
        host = request.http.host
        document = {**document, "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": host}]}
    try:
        wanted = negotiate_document(request)
    except StatusError as error:
        return error_response(request, error)
    return object_response(request, encode_in_order(document), wanted)


def negotiate_document(request: Request) -> Representation:
    """Return the representation of a document that is no resource. Raises StatusError 406."""
    parts = request.info.path.strip("/").split("/")
    aggregated = parts[0] == "apis" and len(parts) <= 2  # the aggregator's handlers have no router before them
    return negotiate(request.headers.get("accept", ""), pretty=pretty_wanted(request), routed=not aggregated)
