"""Discovery of the resources that a server serves (aggregated discovery, apidiscovery.k8s.io/v2)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Required, TypedDict
from urllib.parse import quote

from msgspec import Struct

from steersman.api.meta import v1 as meta
from steersman.api.meta.v1 import APIGroup, APIGroupList, APIResourceList, PartialObjectMetadata
from steersman.client.api_resource import APIResource
from steersman.client.client import Client, checked, decoded
from steersman.work.yielding import TimeSlice

_ACCEPT: Final = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_GROUP_LISTS: Final = APIResource("", "v1", "", "APIGroupList", APIGroupList, namespaced=False)
_RESOURCE_LISTS: Final = APIResource("", "v1", "", "APIResourceList", APIResourceList, namespaced=False)
"""APIResources without a path, which decode documents as Go does: unknown members are ignored."""


class _KindShape(TypedDict, total=False):
    kind: str


class _ResourceShape(TypedDict, total=False):
    resource: Required[str]
    responseKind: _KindShape | None
    scope: str
    singularResource: str
    shortNames: list[str] | None
    verbs: list[str] | None


class _VersionShape(TypedDict, total=False):
    version: Required[str]
    freshness: str
    resources: list[_ResourceShape] | None


class _MetadataShape(TypedDict, total=False):
    name: str


class _GroupShape(TypedDict, total=False):
    metadata: _MetadataShape
    versions: list[_VersionShape] | None


class _GroupsShape(TypedDict, total=False):
    """The members of an APIGroupDiscoveryList that are read."""

    items: list[_GroupShape] | None


class DiscoveredResource(Struct, frozen=True):
    """A served resource in the preferred version of its group, and the verbs that it supports."""

    resource: APIResource[PartialObjectMetadata]
    verbs: frozenset[str]
    singular: str = ""
    short_names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DiscoveryResult:
    """The served resources, and the group versions ("GROUP/VERSION") whose discovery is stale."""

    served: Sequence[DiscoveredResource]
    failed: Sequence[str] = field(default=())


async def preferred_resources(client: Client) -> DiscoveryResult:
    """Return every resource once, in the first version in which its group serves it. Raises StatusError, Unreachable."""
    served: dict[tuple[str, str], DiscoveredResource] = {}
    failed: list[str] = []
    time_slice = TimeSlice()
    for path in ("/api", "/apis"):
        for group in checked(await client.get_plain(path, _ACCEPT), _GroupsShape).get("items") or ():
            name = group.get("metadata", {}).get("name", "")
            for version in group.get("versions") or ():
                if version.get("freshness") == "Stale":
                    failed.append(f"{name}/{version['version']}" if name else version["version"])
                for each in _resources(name, version):
                    served.setdefault((name, each.resource.plural), each)
                    await time_slice.pause_if_over()
    return DiscoveryResult(tuple(served.values()), tuple(failed))


async def api_groups(client: Client) -> Sequence[APIGroup]:
    """Return the groups in `/apis`. Raises StatusError, Unreachable."""
    return (await decoded(_GROUP_LISTS.decode, await client.request("GET", "/apis"))).groups or ()


async def resources_of(client: Client, api_version: str) -> Sequence[meta.APIResource]:
    """Return the resources and subresources of a group version. Raises StatusError, Unreachable."""
    path = f"/{'apis' if '/' in api_version else 'api'}/{quote(api_version)}"
    return (await decoded(_RESOURCE_LISTS.decode, await client.request("GET", path))).resources or ()


def _resources(group: str, version: dict[str, Any]) -> Iterator[DiscoveredResource]:
    for each in version.get("resources") or ():
        kind = (each.get("responseKind") or {}).get("kind", "")
        resource = APIResource(
            group, version["version"], each["resource"], kind, PartialObjectMetadata, each.get("scope") == "Namespaced"
        )
        yield DiscoveredResource(
            resource,
            frozenset(each.get("verbs") or ()),
            each.get("singularResource", ""),
            tuple(each.get("shortNames") or ()),
        )
