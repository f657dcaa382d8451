"""The discovery of group versions that other servers answer: fetched from them, and again every minute.

Follows kube-aggregator's `apiserver` (discoveryManager). A server describes all of its group versions in one document,
which is cached for all APIServices of the server. An old server is requested for each resource list separately.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from time import monotonic
from typing import Final

import msgspec

from steersman.aggregator.backend import Backend, Fetched, Unreachable
from steersman.aggregator.remote_service import Registration, ServiceKey
from steersman.aggregator.service_resolver import NoRoute
from steersman.api.apidiscovery.v2 import (
    APIResourceDiscovery,
    APISubresourceDiscovery,
    APIVersionDiscovery,
)
from steersman.api.meta.v1 import APIResource, APIResourceList, GroupVersionKind
from steersman.authentication.user import SYSTEM_MASTERS, UserInfo
from steersman.catalogue.catalogue import Catalogue
from steersman.machinery.codec.serializer import encode
from steersman.machinery.go.strings import trim_space
from steersman.work.offloading import offload_if
from steersman.work.threads import give_way
from steersman.work.work_queue import TryLater, WorkQueue

REFRESH: Final = 60.0
MAX_DOCUMENT: Final = 32 << 20
"""Bytes of a document; a longer document is an error."""
_TIMEOUT: Final = 5.0
_WORKERS: Final = 2
_FIRST_RETRY: Final = 0.5
_ACCEPTED: Final = ",".join(
    f"application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList" for version in ("v2", "v2beta1")
)
_GROUPS_USER: Final = UserInfo("system:kube-aggregator", groups=(SYSTEM_MASTERS,))
_LIST_USER: Final = UserInfo("system:kube-aggregator")

GroupVersion = tuple[str, str]


class BadDocument(Exception):
    """Raised for an answer that is no discovery document."""


@dataclass(frozen=True, slots=True)
class _Document:
    """The last document of a server: its group versions, and the time of the request."""

    versions: Mapping[GroupVersion, APIVersionDiscovery]
    wanted: frozenset[GroupVersion]
    """The group versions that were extracted from the document."""
    etag: str
    digest: bytes
    requested: float


class RemoteDiscovery:
    """Fetches the discovery of remote group versions and declares it in the `catalogue`."""

    def __init__(self, catalogue: Catalogue, backends: Callable[[str], Backend | None]) -> None:
        self._catalogue = catalogue
        self._backends = backends
        self._document_cache: dict[ServiceKey, _Document] = {}
        self._registrations: dict[str, tuple[Registration, float]] = {}
        """APIServices by name, with the time of the last change: documents requested before are outdated."""
        self._queue: WorkQueue[str] = WorkQueue(base_delay=_FIRST_RETRY, max_delay=REFRESH)

    def start(self) -> None:
        """Start fetching."""
        self._queue.start(self._sync, name="discovery", workers=_WORKERS)

    async def stop(self) -> None:
        """Stop, and return once no request runs any more."""
        await self._queue.stop()

    def changed(self, name: str, registration: Registration | None) -> None:
        """Handle a changed APIService of another server; None if there is no such APIService any more."""
        if registration is None:
            if self._registrations.pop(name, None) is not None:
                self._queue.discard(name)
                self._forget_unused()
            return
        self._registrations[name] = registration, monotonic()
        self._forget_unused()
        self._queue.add(name)

    def _forget_unused(self) -> None:
        used = {registration.service for registration, _ in self._registrations.values()}
        self._document_cache = {key: known for key, known in self._document_cache.items() if key in used}

    async def _sync(self, name: str) -> float | None:
        """Fetch and declare the discovery of an APIService. Raises TryLater, after declaring it stale, on a failure."""
        backend = self._backends(name)
        if backend is None or name not in self._registrations:
            return None
        registration, changed = self._registrations[name]
        wanted = (registration.group, registration.version)
        failure = ""
        discovered: APIVersionDiscovery | None = None
        try:
            versions = await self._versions(backend, registration, changed)
            discovered = versions.get(wanted)
        except (BadDocument, Unreachable, NoRoute) as error:
            failure = str(error)
        discovery = APIVersionDiscovery(version=registration.version) if discovered is None else discovered
        discovery.freshness = "Stale" if failure else "Current"
        text = await offload_if(True, encode, discovery)
        if self._registrations.get(name, (None,))[0] is registration:
            self._catalogue.declare(*wanted, text)
        if failure:
            raise TryLater(failure)
        if self._registrations.get(name, (None,))[0] is registration:
            self._registrations[name] = registration, monotonic()
        return REFRESH

    async def _versions(
        self, backend: Backend, registration: Registration, changed: float
    ) -> Mapping[GroupVersion, APIVersionDiscovery]:
        key = registration.service
        assert key is not None
        known = self._document_cache.get(key)
        if known is not None and known.requested > changed:
            return known.versions
        requested, wanted = monotonic(), self._group_versions_of(key)
        known = known if known is not None and known.wanted == wanted else None
        headers = [("Accept", _ACCEPTED)]
        if known is not None and known.etag:
            headers.append(("If-None-Match", known.etag))
        answer = await backend.fetch("/apis", _GROUPS_USER, headers, limit=MAX_DOCUMENT, seconds=_TIMEOUT)
        if answer.status == 304 and known is not None:
            self._cache_document(key, replace(known, requested=requested))
            return known.versions
        if answer.status == 503:
            raise Unreachable(f"service {key} returned non-success response code: 503")
        if answer.status == 200 and is_aggregated(answer.headers.get("content-type", "")):
            digest = b"" if known is None else known.digest
            found, digest = await offload_if(True, read_groups, _body_of(answer), wanted, digest)
            versions = known.versions if found is None and known is not None else found or {}
            self._cache_document(key, _Document(versions, wanted, answer.headers.get("etag", ""), digest, requested))
            return versions
        return await self._legacy(backend, registration)

    def _group_versions_of(self, key: ServiceKey) -> frozenset[GroupVersion]:
        """Return the group versions of all APIServices of this server."""
        return frozenset((each.group, each.version) for each, _ in self._registrations.values() if each.service == key)

    def _cache_document(self, key: ServiceKey, known: _Document) -> None:
        if any(each.service == key for each, _ in self._registrations.values()):
            self._document_cache[key] = known

    async def _legacy(self, backend: Backend, registration: Registration) -> Mapping[GroupVersion, APIVersionDiscovery]:
        path = registration.discovery_path
        headers = [("Accept", "application/json")]
        answer = await backend.fetch(path, _LIST_USER, headers, limit=MAX_DOCUMENT, seconds=_TIMEOUT)
        if answer.status != 200:
            raise Unreachable(f"failed to download legacy discovery for {path}: status {answer.status}")
        found = await offload_if(True, read_list, _body_of(answer), registration.version)
        return {(registration.group, registration.version): found}


def is_aggregated(content_type: str) -> bool:
    """Return True for the media type of aggregated discovery documents."""
    media, *parameters = (trim_space(each) for each in content_type.split(";"))
    values = dict(each.split("=", 1) for each in parameters if "=" in each)
    return (
        media == "application/json"
        and (values.get("g"), values.get("as")) == ("apidiscovery.k8s.io", "APIGroupDiscoveryList")
        and values.get("v") in ("v2", "v2beta1")
    )


def _body_of(answer: Fetched) -> bytes:
    if answer.body is None:
        raise BadDocument(f"a document of more than {MAX_DOCUMENT} bytes")
    return answer.body


class _Groups(msgspec.Struct):
    items: list[msgspec.Raw] | None = None


def read_groups(
    data: bytes, wanted: frozenset[GroupVersion], known: bytes
) -> tuple[dict[GroupVersion, APIVersionDiscovery] | None, bytes]:
    """Return the wanted group versions of an APIGroupDiscoveryList, None if its digest is `known`; and its digest.

    Runs in a worker thread. Raises BadDocument.
    """
    digest = sha256(data).digest()
    if digest == known:
        return None, digest
    versions: dict[GroupVersion, APIVersionDiscovery] = {}
    names = {group for group, _ in wanted}
    try:
        for item in _GROUPS.decode(data).items or ():
            give_way()
            if _NAME.decode(item).metadata.name not in names:
                continue
            group = _GROUP.decode(item)
            for version in group.versions:
                if (group.metadata.name, version.version) in wanted:
                    versions[group.metadata.name, version.version] = _with_response_kinds(version)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise BadDocument(f"cannot be read: {error}") from None
    return versions, digest


class _Metadata(msgspec.Struct):
    name: str = ""


class _Named(msgspec.Struct):
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)


class _Group(_Named):
    versions: list[APIVersionDiscovery] = []


_GROUPS: Final = msgspec.json.Decoder(_Groups)
_NAME: Final = msgspec.json.Decoder(_Named)
_GROUP: Final = msgspec.json.Decoder(_Group)
_LIST: Final = msgspec.json.Decoder(APIResourceList)


def _with_response_kinds(version: APIVersionDiscovery) -> APIVersionDiscovery:
    """Return the version with every response kind set, which some clients require."""
    for resource in version.resources:
        resource.response_kind = resource.response_kind or GroupVersionKind()
        for each in resource.subresources:
            each.response_kind = each.response_kind or GroupVersionKind()
    return version


def read_list(data: bytes, version: str) -> APIVersionDiscovery:
    """Convert an APIResourceList to discovery of a version. Runs in a worker thread. Raises BadDocument."""
    try:
        listed = _LIST.decode(data)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise BadDocument(f"cannot be read: {error}") from None
    return APIVersionDiscovery(version=version, resources=_resources(listed.resources or ()))


def _resources(listed: Iterable[APIResource]) -> list[APIResourceDiscovery]:
    """Convert resources. Raises BadDocument if a subresource has another scope than its resource."""
    listed = list(listed)
    resources: dict[str, APIResourceDiscovery] = {}
    ordered: list[APIResourceDiscovery] = []
    below: dict[str, list[APISubresourceDiscovery]] = {}
    for each in listed:
        if "/" not in each.name:
            resources[each.name] = _resource(each)
            ordered.append(resources[each.name])
    for each in listed:
        give_way()
        name, slash, subresource = each.name.partition("/")
        if not slash:
            continue
        scope = _scope_of(each)
        parent = resources.get(name)
        if parent is None:
            parent = resources[name] = APIResourceDiscovery(
                resource=name, scope=scope, response_kind=GroupVersionKind()
            )
            ordered.append(parent)
        if parent.scope != scope:
            raise BadDocument(
                f"Error: Parent {name} (scope: {parent.scope}) and subresource {subresource} (scope: {scope}) "
                "scope do not match"
            )
        kind = GroupVersionKind(each.group, each.version, each.kind) if each.kind else GroupVersionKind()
        below.setdefault(name, []).append(
            APISubresourceDiscovery(subresource=subresource, verbs=each.verbs, response_kind=kind)
        )
    for name, subresources in below.items():
        resources[name].subresources = subresources
    return ordered


def _resource(each: APIResource) -> APIResourceDiscovery:
    return APIResourceDiscovery(
        resource=each.name,
        scope=_scope_of(each),
        verbs=each.verbs,
        short_names=each.short_names,
        response_kind=GroupVersionKind(each.group, each.version, each.kind),
        categories=each.categories,
        singular_resource=each.singular_name,
    )


def _scope_of(each: APIResource) -> str:
    return "Namespaced" if each.namespaced else "Cluster"
