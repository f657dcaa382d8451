"""Which resources a server serves (aggregated discovery, apidiscovery.k8s.io/v2)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from msgspec import Struct

from steersman.api.meta.v1 import PartialObjectMetadata
from steersman.client.api_resource import APIResource
from steersman.client.client import Client
from steersman.work.yielding import TimeSlice

_ACCEPT: Final = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


class Served(Struct, frozen=True):
    """A resource in the version that its group prefers, and what can be done with it."""

    resource: APIResource[PartialObjectMetadata]
    verbs: frozenset[str]


@dataclass(frozen=True, slots=True)
class Discovered:
    """All that is served, and the group versions of which that could not be found out ("GROUP/VERSION")."""

    served: Sequence[Served]
    failed: Sequence[str] = field(default=())


async def preferred_resources(client: Client) -> Discovered:
    """Each resource once, in the version of it that stands first. Raises StatusError, Unreachable."""
    served: dict[tuple[str, str], Served] = {}
    failed: list[str] = []
    time_slice = TimeSlice()
    for path in ("/api", "/apis"):
        for group in (await client.plain(path, _ACCEPT)).get("items") or ():
            name = group.get("metadata", {}).get("name", "")
            for version in group.get("versions") or ():
                if version.get("freshness") == "Stale":
                    failed.append(f"{name}/{version['version']}" if name else version["version"])
                for each in _resources(name, version):
                    served.setdefault((name, each.resource.plural), each)
                    await time_slice.pause_if_over()
    return Discovered(tuple(served.values()), tuple(failed))


def _resources(group: str, version: dict[str, Any]) -> Iterator[Served]:
    for each in version.get("resources") or ():
        kind = (each.get("responseKind") or {}).get("kind", "")
        resource = APIResource(
            group, version["version"], each["resource"], kind, PartialObjectMetadata, each.get("scope") == "Namespaced"
        )
        yield Served(resource, frozenset(each.get("verbs") or ()))
