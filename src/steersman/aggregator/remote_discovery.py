"""What discovery says of the group versions that other servers answer: asked of these, and again every minute.

Follows kube-aggregator's `apiserver` (discoveryManager). A server tells of all its group versions in one document,
which is kept for all APIServices that lead to it; an old one is asked for the list of each by itself.
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
"""Bytes of a document; a longer one is no answer."""
_TIMEOUT: Final = 5.0
_WORKERS: Final = 2
_FIRST: Final = 0.5
_ACCEPTED: Final = ",".join(
    f"application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList" for version in ("v2", "v2beta1")
)
_ASKS_FOR_ALL: Final = UserInfo("system:kube-aggregator", groups=(SYSTEM_MASTERS,))
_ASKS_FOR_ONE: Final = UserInfo("system:kube-aggregator")

GroupVersion = tuple[str, str]


class BadDocument(Exception):
    """A server tells something that is no discovery."""


@dataclass(frozen=True, slots=True)
class _Known:
    """What a server has told: the group versions in its document, and when it was asked."""

    versions: Mapping[GroupVersion, APIVersionDiscovery]
    wanted: frozenset[GroupVersion]
    """Those that were looked for in it."""
    etag: str
    digest: bytes
    asked: float


class RemoteDiscovery:
    """Keeps the `catalogue` told. `start` begins, `stop` ends."""

    def __init__(self, catalogue: Catalogue, backends: Callable[[str], Backend | None]) -> None:
        self._catalogue = catalogue
        self._backends = backends
        self._known: dict[ServiceKey, _Known] = {}
        self._changed: dict[str, tuple[Registration, float]] = {}
        """Each APIService, and when it changed: what was asked before that says nothing."""
        self._queue: WorkQueue[str] = WorkQueue(base_delay=_FIRST, max_delay=REFRESH)

    def start(self) -> None:
        """Asks from now on."""
        self._queue.start(self._sync, name="discovery", workers=_WORKERS)

    async def stop(self) -> None:
        """Returns once nobody is asked any more."""
        await self._queue.stop()

    def changed(self, name: str, registration: Registration | None) -> None:
        """An APIService has changed, or there is none of this name that leads to another server."""
        if registration is None:
            if self._changed.pop(name, None) is not None:
                self._queue.discard(name)
                self._forget_unused()
            return
        self._changed[name] = registration, monotonic()
        self._forget_unused()
        self._queue.add(name)

    def _forget_unused(self) -> None:
        used = {registration.service for registration, _ in self._changed.values()}
        self._known = {key: known for key, known in self._known.items() if key in used}

    async def _sync(self, name: str) -> float | None:
        """Raises TryLater for what the server does not tell, once that is shown."""
        backend = self._backends(name)
        if backend is None or name not in self._changed:
            return None
        registration, changed = self._changed[name]
        wanted = (registration.group, registration.version)
        failure = ""
        found: APIVersionDiscovery | None = None
        try:
            versions = await self._versions(backend, registration, changed)
            found = versions.get(wanted)
        except (BadDocument, Unreachable, NoRoute) as error:
            failure = str(error)
        told = APIVersionDiscovery(version=registration.version) if found is None else found
        told.freshness = "Stale" if failure else "Current"
        text = await offload_if(True, encode, told)
        if self._changed.get(name, (None,))[0] is registration:
            self._catalogue.declare(*wanted, text)
        if failure:
            raise TryLater(failure)
        if self._changed.get(name, (None,))[0] is registration:
            self._changed[name] = registration, monotonic()
        return REFRESH

    async def _versions(
        self, backend: Backend, registration: Registration, changed: float
    ) -> Mapping[GroupVersion, APIVersionDiscovery]:
        key = registration.service
        assert key is not None
        known = self._known.get(key)
        if known is not None and known.asked > changed:
            return known.versions
        asked, wanted = monotonic(), self._wanted_of(key)
        known = known if known is not None and known.wanted == wanted else None
        headers = [("Accept", _ACCEPTED)]
        if known is not None and known.etag:
            headers.append(("If-None-Match", known.etag))
        answer = await backend.fetch("/apis", _ASKS_FOR_ALL, headers, limit=MAX_DOCUMENT, seconds=_TIMEOUT)
        if answer.status == 304 and known is not None:
            self._keep(key, replace(known, asked=asked))
            return known.versions
        if answer.status == 503:
            raise Unreachable(f"service {key} returned non-success response code: 503")
        if answer.status == 200 and _is_aggregated(answer.headers.get("content-type", "")):
            digest = b"" if known is None else known.digest
            found, digest = await offload_if(True, _read_groups, _body_of(answer), wanted, digest)
            versions = known.versions if found is None and known is not None else found or {}
            self._keep(key, _Known(versions, wanted, answer.headers.get("etag", ""), digest, asked))
            return versions
        return await self._legacy(backend, registration)

    def _wanted_of(self, key: ServiceKey) -> frozenset[GroupVersion]:
        """The group versions that APIServices say this server answers."""
        return frozenset((each.group, each.version) for each, _ in self._changed.values() if each.service == key)

    def _keep(self, key: ServiceKey, known: _Known) -> None:
        if any(each.service == key for each, _ in self._changed.values()):
            self._known[key] = known

    async def _legacy(self, backend: Backend, registration: Registration) -> Mapping[GroupVersion, APIVersionDiscovery]:
        path = registration.discovery_path
        headers = [("Accept", "application/json")]
        answer = await backend.fetch(path, _ASKS_FOR_ONE, headers, limit=MAX_DOCUMENT, seconds=_TIMEOUT)
        if answer.status != 200:
            raise Unreachable(f"failed to download legacy discovery for {path}: status {answer.status}")
        found = await offload_if(True, _read_list, _body_of(answer), registration.version)
        return {(registration.group, registration.version): found}


def _is_aggregated(content_type: str) -> bool:
    media, *parameters = (trim_space(each) for each in content_type.split(";"))
    found = dict(each.split("=", 1) for each in parameters if "=" in each)
    return (
        media == "application/json"
        and (found.get("g"), found.get("as")) == ("apidiscovery.k8s.io", "APIGroupDiscoveryList")
        and found.get("v") in ("v2", "v2beta1")
    )


def _body_of(answer: Fetched) -> bytes:
    if answer.body is None:
        raise BadDocument(f"a document of more than {MAX_DOCUMENT} bytes")
    return answer.body


class _Groups(msgspec.Struct):
    items: list[msgspec.Raw] | None = None


def _read_groups(
    data: bytes, wanted: frozenset[GroupVersion], known: bytes
) -> tuple[dict[GroupVersion, APIVersionDiscovery] | None, bytes]:
    """The wanted group versions of an APIGroupDiscoveryList, and its digest; None for one of the `known` digest.

    Runs in a worker thread. Raises BadDocument.
    """
    digest = sha256(data).digest()
    if digest == known:
        return None, digest
    found: dict[GroupVersion, APIVersionDiscovery] = {}
    names = {group for group, _ in wanted}
    try:
        for item in _GROUPS.decode(data).items or ():
            give_way()
            if _NAME.decode(item).metadata.name not in names:
                continue
            group = _GROUP.decode(item)
            for version in group.versions:
                if (group.metadata.name, version.version) in wanted:
                    found[group.metadata.name, version.version] = _completed(version)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise BadDocument(f"cannot be read: {error}") from None
    return found, digest


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


def _completed(version: APIVersionDiscovery) -> APIVersionDiscovery:
    """With a kind for each answer, as some clients need one."""
    for resource in version.resources:
        resource.response_kind = resource.response_kind or GroupVersionKind()
        for each in resource.subresources:
            each.response_kind = each.response_kind or GroupVersionKind()
    return version


def _read_list(data: bytes, version: str) -> APIVersionDiscovery:
    """An APIResourceList as discovery of a version. Runs in a worker thread. Raises BadDocument."""
    try:
        listed = _LIST.decode(data)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise BadDocument(f"cannot be read: {error}") from None
    return APIVersionDiscovery(version=version, resources=_resources(listed.resources or ()))


def _resources(listed: Iterable[APIResource]) -> list[APIResourceDiscovery]:
    """Raises BadDocument for a subresource of another scope than its resource."""
    listed = list(listed)
    found: dict[str, APIResourceDiscovery] = {}
    ordered: list[APIResourceDiscovery] = []
    below: dict[str, list[APISubresourceDiscovery]] = {}
    for each in listed:
        if "/" not in each.name:
            found[each.name] = _resource(each)
            ordered.append(found[each.name])
    for each in listed:
        give_way()
        name, slash, subresource = each.name.partition("/")
        if not slash:
            continue
        scope = _scope_of(each)
        parent = found.get(name)
        if parent is None:
            parent = found[name] = APIResourceDiscovery(resource=name, scope=scope, response_kind=GroupVersionKind())
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
        found[name].subresources = subresources
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
