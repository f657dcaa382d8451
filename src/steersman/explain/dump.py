"""Objects of a dump: files of YAML or JSON, from `kubectl get -o yaml`, `kubectl cluster-info dump`, or manifests."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from steersman.api.meta.v1 import PartialObjectMetadata
from steersman.client import resources as built_in
from steersman.client.api_resource import APIResource
from steersman.client.discovery import DiscoveredResource, DiscoveryResult
from steersman.explain.kind_names import plural_of, short_names_of
from steersman.explain.world import Unreadable, World
from steersman.machinery.codec.serializer import encode_in_order
from steersman.machinery.codec.yaml import YAMLError, load_all
from steersman.machinery.errors.field import quote
from steersman.machinery.go.strings import to_lower
from steersman.machinery.identity.schema import GroupKind
from steersman.machinery.large_work.nesting import is_too_deep
from steersman.machinery.values.times import unix, unix_now

T = TypeVar("T")

MOST_BYTES: Final = 256 << 20
"""Most bytes of all files of a dump."""
MOST_YAML_BYTES: Final = 64 << 20
"""Most bytes of YAML in a dump. YAML takes many times longer to read than JSON."""
MOST_FILES: Final = 100_000
"""Most files and folders in the folder of a dump."""
_SUFFIXES: Final = frozenset({".json", ".yaml", ".yml"})
_MOST_VALUES: Final = 8_000_000
"""Most values of YAML in one file."""
_MOMENT: Final = re.compile(
    rb'"(?:creationTimestamp|lastTimestamp|eventTime|renewTime|lastHeartbeatTime|lastTransitionTime)": ?'
    rb'"([0-9]{4}-[0-9TZ:.+-]{6,26})"'
)
"""Fields whose newest value tells the time of a dump."""


class DumpError(ValueError):
    """The error for a dump that cannot be read; the message names the file."""


class _Metadata(msgspec.Struct, frozen=True):
    name: str = ""
    namespace: str = ""


class _Head(msgspec.Struct, frozen=True, rename="camel"):
    """Members that identify an object, or the items of a list."""

    api_version: str = ""
    kind: str = ""
    metadata: _Metadata = _Metadata()
    items: list[msgspec.Raw] | None = None


_HEAD: Final = msgspec.json.Decoder(_Head)


@dataclass(frozen=True, slots=True)
class _Stored:
    """An object of a dump in its JSON form."""

    head: _Head
    data: msgspec.Raw | bytes


class DumpWorld(World):
    """Objects of a dump. A resource of which the dump has no object at all counts as empty."""

    def __init__(self, objects: Iterable[_Stored], now: float) -> None:
        super().__init__()
        self._now = now
        self._objects: dict[GroupKind, list[_Stored]] = {}
        for each in objects:
            group = each.head.api_version.rpartition("/")[0]
            self._objects.setdefault(GroupKind(group, each.head.kind), []).append(each)

    @property
    def now(self) -> float:
        return self._now

    async def get(self, resource: APIResource[T], name: str, namespace: str = "") -> T | None:
        for each in self._of(resource, namespace):
            if each.head.metadata.name == name:
                return _decoded(resource, each)
        return None

    async def _list(self, resource: APIResource[T], namespace: str, field_selector: str) -> Sequence[T]:
        return [_decoded(resource, each) for each in self._of(resource, namespace)]

    def _of(self, resource: APIResource[Any], namespace: str) -> Iterator[_Stored]:
        for each in self._objects.get(resource.group_kind, ()):
            if not namespace or each.head.metadata.namespace == namespace:
                yield each

    async def _discover(self) -> DiscoveryResult:
        found = {each.resource.group_kind: each for each in _built_in_resources()}
        for kind, objects in self._objects.items():
            if kind not in found:
                version = objects[0].head.api_version.rpartition("/")[2]
                namespaced = any(each.head.metadata.namespace for each in objects)
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


def _decoded(resource: APIResource[T], stored: _Stored) -> T:
    try:
        return resource.decode(stored.data)
    except msgspec.MsgspecError as error:
        name = quote(stored.head.metadata.name)
        raise Unreadable(resource, f"{stored.head.kind} {name} of the dump is malformed: {error}") from None


def load_dump(path: Path) -> DumpWorld:
    """Return the objects in a file, or in all JSON and YAML files of a folder. Raises DumpError."""
    objects: list[_Stored] = []
    left, yaml_left = MOST_BYTES, MOST_YAML_BYTES
    newest = ""
    for file in _files(path):
        data = _read(file, left, yaml_left)
        left -= len(data)
        if not _is_json(data):
            yaml_left -= len(data)
        for document in _documents(file, data):
            objects.extend(_objects(file, document))
            newest = max(newest, _newest(document))
    if not objects:
        raise DumpError(f"{path}: no objects of Kubernetes in it")
    return DumpWorld(objects, _moment(newest))


def read_manifests(data: bytes, name: str = "manifests") -> DumpWorld:
    """Return the objects of some YAML or JSON; `name` is what errors call it. Raises DumpError."""
    file = Path(name)
    return DumpWorld([each for document in _documents(file, data) for each in _objects(file, document)], unix_now())


def _files(path: Path) -> Iterator[Path]:
    if not path.is_dir():
        yield path
        return
    seen = 0
    for folder, folders, names in os.walk(path):
        folders.sort()
        for name in sorted(names):
            seen += 1
            if seen > MOST_FILES:
                raise DumpError(f"{path} has more than {MOST_FILES} files")
            if Path(name).suffix in _SUFFIXES:
                yield Path(folder) / name


def _read(path: Path, left: int, yaml_left: int) -> bytes:
    try:
        if not path.is_file():
            raise DumpError(f"{path} is not a file or folder" if path.exists() else f"{path} does not exist")
        with path.open("rb") as file:
            data = file.read(left + 1)
    except OSError as error:
        raise DumpError(f"{path}: {error.strerror or error}") from None
    if len(data) > left:
        raise DumpError(f"{path}: a dump may have at most {MOST_BYTES >> 20} MiB")
    if len(data) > yaml_left and not _is_json(data):
        raise DumpError(f"{path}: a dump may have at most {MOST_YAML_BYTES >> 20} MiB of YAML: use JSON (-o json)")
    return data


def _is_json(data: bytes) -> bool:
    return data[:100].lstrip(b" \t\r\n")[:1] == b"{"


def _documents(path: Path, data: bytes) -> Iterator[bytes]:
    """Yield the JSON of each document of a file. Raises DumpError."""
    if _is_json(data):
        if is_too_deep(data):
            raise DumpError(f"{path}: exceeded max depth")
        yield data
        return
    try:
        for each in load_all(data, most_values=_MOST_VALUES):
            if each is not None:
                yield encode_in_order(each)
    except YAMLError as error:
        raise DumpError(f"{path}: {error}") from None


def _objects(path: Path, document: bytes) -> Iterator[_Stored]:
    try:
        head = _HEAD.decode(document)
        if head.items is None:
            if head.kind and head.api_version:
                yield _Stored(head, document)
            return
        kind = head.kind.removesuffix("List")
        for each in head.items:
            item = _HEAD.decode(each)
            yield _Stored(_Head(item.api_version or head.api_version, item.kind or kind, item.metadata), each)
    except msgspec.MsgspecError as error:
        raise DumpError(f"{path}: {error}") from None


def _newest(document: bytes) -> str:
    return max((each[1].decode() for each in _MOMENT.finditer(document)), default="")


def _moment(newest: str) -> float:
    try:
        return float(min(unix(newest), unix_now()))
    except ValueError:
        return unix_now()
