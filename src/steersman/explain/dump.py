"""Objects of a dump as the world of explanations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from steersman.api.meta.v1 import PartialObjectMetadata
from steersman.client import resources as built_in
from steersman.client.api_resource import APIResource
from steersman.client.discovery import DiscoveredResource, DiscoveryResult
from steersman.dumps.reading import DumpObject, read_dump, read_objects
from steersman.explain.kind_names import plural_of, short_names_of
from steersman.explain.world import Unreadable, World
from steersman.machinery.errors.field import quote
from steersman.machinery.go.strings import to_lower
from steersman.machinery.identity.schema import GroupKind
from steersman.machinery.values.times import unix_now

T = TypeVar("T")


class DumpWorld(World):
    """Objects of a dump. A resource of which the dump has no object at all counts as empty."""

    def __init__(self, objects: Iterable[DumpObject], now: float) -> None:
        super().__init__()
        self._now = now
        self._objects: dict[GroupKind, list[DumpObject]] = {}
        for each in objects:
            group = each.api_version.rpartition("/")[0]
            self._objects.setdefault(GroupKind(group, each.kind), []).append(each)

    @property
    def now(self) -> float:
        return self._now

    async def get(self, resource: APIResource[T], name: str, namespace: str = "") -> T | None:
        for each in self._of(resource, namespace):
            if each.name == name:
                return _decoded(resource, each)
        return None

    async def _list(self, resource: APIResource[T], namespace: str, field_selector: str) -> Sequence[T]:
        return [_decoded(resource, each) for each in self._of(resource, namespace)]

    def _of(self, resource: APIResource[Any], namespace: str) -> Iterator[DumpObject]:
        for each in self._objects.get(resource.group_kind, ()):
            if not namespace or each.namespace == namespace:
                yield each

    async def _discover(self) -> DiscoveryResult:
        found = {each.resource.group_kind: each for each in _built_in_resources()}
        for kind, objects in self._objects.items():
            if kind not in found:
                version = objects[0].api_version.rpartition("/")[2]
                namespaced = any(each.namespace for each in objects)
                plural = plural_of(kind.kind)
                found[kind] = DiscoveredResource(
                    APIResource(kind.group, version, plural, kind.kind, PartialObjectMetadata, namespaced),
                    frozenset({"get", "list"}),
                    to_lower(kind.kind),
                )
        return DiscoveryResult(tuple(found.values()))


def _built_in_resources() -> Iterator[DiscoveredResource]:
    for each in vars(built_in).values():
        if isinstance(each, APIResource):
            verbs = frozenset({"get", "list"})
            yield DiscoveredResource(each.metadata_only, verbs, to_lower(each.kind), short_names_of(each.plural))


def _decoded(resource: APIResource[T], stored: DumpObject) -> T:
    try:
        return resource.decode(stored.data)
    except msgspec.MsgspecError as error:
        name = quote(stored.name)
        raise Unreadable(resource, f"{stored.kind} {name} of the dump is malformed: {error}") from None


def load_dump(path: Path) -> DumpWorld:
    """Return the objects in a file, an archive, or all JSON and YAML files of a folder. Raises DumpError."""
    found = read_dump(path)
    return DumpWorld(found.objects, found.moment())


def read_manifests(data: bytes, name: str = "manifests") -> DumpWorld:
    """Return the objects of some YAML or JSON; `name` is what errors call it. Raises DumpError."""
    return DumpWorld(read_objects(data, name), unix_now())
