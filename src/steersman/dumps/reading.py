"""Objects of a dump: files of YAML or JSON, also packed in an archive or compressed, and folders of these.

These are the outputs of `kubectl get -o yaml`, `kubectl cluster-info dump`, `oc adm must-gather`, support bundles,
`kwokctl snapshot save --format k8s`, `steersman import`, and manifests.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path, PurePosixPath
from typing import Final, NamedTuple

import msgspec

from steersman.dumps.archives import GZIP, ZIP, Bytes, Unpacked, is_tar, tar_members, zip_members
from steersman.dumps.errors import DumpError
from steersman.machinery.codec.document_streams import begins_as_json, pieces
from steersman.machinery.codec.serializer import encode_in_order
from steersman.machinery.codec.yaml import YAMLError, load_all
from steersman.machinery.large_work.nesting import is_too_deep
from steersman.machinery.values.times import unix, unix_now
from steersman.work.patterns import late_pattern

MOST_BYTES: Final = 512 << 20
"""Most bytes of all files of a dump, once they are unpacked."""
MOST_YAML_BYTES: Final = 64 << 20
"""Most bytes of YAML in a dump. YAML takes many times longer to read than JSON."""
MOST_FILES: Final = 100_000
"""Most files and folders in the folder of a dump."""
MOST_OBJECTS: Final = 1_000_000
"""Most objects of a dump."""
ETCD: Final = b"\xed\xda\x0c\xed"
"""Bytes of a file of etcd behind its first 16."""
_SUFFIXES: Final = frozenset({".json", ".yaml", ".yml"})
_MOST_VALUES: Final = 8_000_000
"""Most values of YAML in one file."""
_MOMENT: Final = late_pattern(
    rb'"(?:creationTimestamp|lastTimestamp|eventTime|renewTime|lastHeartbeatTime|lastTransitionTime)": ?'
    rb'"([0-9]{4}-[0-9TZ:.+-]{6,26})"'
)
"""Fields whose newest value tells the time of a dump."""
_HEAD_BYTES: Final = 512
"""Bytes of a file that tell its form."""


class Metadata(msgspec.Struct, frozen=True):
    """Name of an object."""

    name: str = ""
    namespace: str = ""


class Head(msgspec.Struct, frozen=True, rename="camel"):
    """Members that identify an object, or the items of a list."""

    api_version: str = ""
    kind: str = ""
    metadata: Metadata | None = None
    items: list[msgspec.Raw] | None = None


class DumpObject(NamedTuple):
    """An object of a dump in its JSON form."""

    api_version: str
    kind: str
    namespace: str
    name: str
    data: msgspec.Raw | bytes
    """JSON of the object; items of typed lists may lack kind and apiVersion."""


@dataclass(frozen=True, slots=True)
class Dump:
    """Objects of a cluster."""

    objects: list[DumpObject]

    def moment(self) -> float:
        """Return the time in seconds since 1970 at which the objects were read, as far as they tell it."""
        newest = max((_newest(each.data) for each in self.objects), default="")
        try:
            return float(min(unix(newest), unix_now()))
        except ValueError:
            return unix_now()


_HEAD: Final = msgspec.json.Decoder(Head)


class _File(NamedTuple):
    """A file of a dump. `is_alone` says that the user named this very file, so that it must have objects."""

    name: str
    content: Bytes
    is_alone: bool


class _Left:
    """The bytes that may still be read."""

    def __init__(self) -> None:
        self._bytes, self._yaml = MOST_BYTES, MOST_YAML_BYTES

    def read(self, file: _File) -> bytes:
        """Return the content of a file. Raises DumpError, OSError."""
        data = file.content.read(self._bytes + 1)
        if len(data) > self._bytes:
            raise DumpError(f"{file.name}: a dump may have at most {MOST_BYTES >> 20} MiB")
        self._bytes -= len(data)
        if not _is_json(data):
            self.count_yaml(file, len(data))
        return data

    def count_yaml(self, file: _File, size: int) -> None:
        """Count bytes of YAML, or of several JSON documents in a file, which are divided first. Raises DumpError."""
        if size > self._yaml:
            most = MOST_YAML_BYTES >> 20
            raise DumpError(f"{file.name}: a dump may have at most {most} MiB of YAML: use JSON (-o json)")
        self._yaml -= size


def read_dump(path: Path) -> Dump:
    """Return the objects in a file, an archive, or all JSON and YAML files of a folder. Raises DumpError."""
    objects: list[DumpObject] = []
    left = _Left()
    try:
        for file in _files(path):
            for document in _documents(file.name, left.read(file)):
                objects.extend(_objects(file, document, left))
                if len(objects) > MOST_OBJECTS:
                    raise DumpError(f"{path}: more than {MOST_OBJECTS} objects")
    except OSError as error:
        raise DumpError(f"{path}: {error.strerror or error}") from None
    if not objects:
        raise DumpError(f"{path}: no objects of Kubernetes in it")
    return Dump(objects)


def read_objects(data: bytes, name: str) -> list[DumpObject]:
    """Return the objects of some YAML or JSON; `name` is what errors call it. Raises DumpError."""
    file, left = _File(name, _NOTHING, is_alone=True), _Left()
    return [each for document in _documents(name, data) for each in _objects(file, document, left)]


class _Nothing:
    def read(self, size: int, /) -> bytes:
        return b""


_NOTHING: Final = _Nothing()


def _files(path: Path) -> Iterator[_File]:
    """Yield the files that may have objects. Raises DumpError, OSError."""
    if path.is_dir():
        yield from _files_of_folder(path)
        return
    if not path.is_file():
        raise DumpError(f"{path} is not a file or folder" if path.exists() else f"{path} does not exist")
    with path.open("rb") as raw:
        head = raw.read(_HEAD_BYTES)
        raw.seek(0)
        if head.startswith(ZIP):
            members = zip_members(path)
        else:
            content: Bytes = raw
            if head.startswith(GZIP):
                head = Unpacked(path, raw).read(_HEAD_BYTES)
                raw.seek(0)
                content = Unpacked(path, raw)
            if head[16:20] == ETCD:
                raise DumpError(f"{path}: a snapshot of etcd, which only `steersman up --from` opens")
            if not is_tar(head):
                yield _File(str(path), content, is_alone=True)
                return
            members = tar_members(path, content)
        for each in members:
            if _is_of_objects(each.name):
                yield _File(f"{path}: {each.name}", each.content, is_alone=False)


def _files_of_folder(path: Path) -> Iterator[_File]:
    seen, root = 0, path.resolve()
    for folder, folders, names in os.walk(path):
        folders.sort()
        for name in sorted(names):
            seen += 1
            if seen > MOST_FILES:
                raise DumpError(f"{path} has more than {MOST_FILES} files")
            file = Path(folder) / name
            if not _is_of_objects(name) or not file.is_file():
                continue
            if file.is_symlink() and not file.resolve().is_relative_to(root):
                raise DumpError(f"{file}: a link that leads out of the folder of the dump")
            with file.open("rb") as raw:
                if name.endswith(".gz"):
                    yield _File(str(file), Unpacked(file, raw), is_alone=False)
                else:
                    yield _File(str(file), raw, is_alone=False)


def _is_of_objects(name: str) -> bool:
    return PurePosixPath(name.removesuffix(".gz")).suffix in _SUFFIXES


def _is_json(data: bytes) -> bool:
    return data[:100].lstrip(b" \t\r\n")[:1] in (b"{", b"[")


def _documents(name: str, data: bytes) -> Iterator[bytes]:
    """Yield the JSON of each document of a file. Raises DumpError."""
    if _is_json(data):
        yield data
        return
    try:
        yield from _of_yaml(data)
    except YAMLError as error:
        raise DumpError(f"{name}: {error}") from None


def _of_yaml(data: bytes) -> Iterator[bytes]:
    """Yield the JSON of each document. Raises YAMLError."""
    for each in load_all(data, most_values=_MOST_VALUES):
        if each is not None:
            yield encode_in_order(each)


def _divided(file: _File, data: bytes, left: _Left, json_error: str) -> Iterator[bytes]:
    """Yield the JSON of each document of text that begins with a brace and is no JSON document. Raises DumpError."""
    left.count_yaml(file, len(data))
    try:
        for piece in pieces(data):
            if piece.is_json:
                is_all = len(piece.data) == len(data)
                if is_all:  # JSON for Python and not for msgspec, such as half of a surrogate pair
                    raise DumpError(f"{file.name}: {json_error}")
                yield piece.data
                continue
            yield from piece.read(_of_yaml)
    except YAMLError as error:
        raise DumpError(f"{file.name}: {error}") from None


def _objects(file: _File, document: bytes, left: _Left) -> Iterator[DumpObject]:
    """Yield the objects of a document, or of several. Raises DumpError.

    Files among others may have other data, which are skipped.
    """
    try:
        if document[:100].lstrip(b" \t\r\n")[:1] == b"[":  # as support bundles have custom resources
            yield from _items(file, "", "", msgspec.json.decode(document, type=list[msgspec.Raw]))
            return
        head = _HEAD.decode(document)
        if head.items is not None and (not head.kind or head.kind.endswith("List")):
            yield from _items(file, head.api_version, head.kind.removesuffix("List"), head.items)
        elif head.kind and head.api_version:
            _check_depth(file, document)
            metadata = head.metadata or Metadata()
            yield DumpObject(head.api_version, head.kind, metadata.namespace, metadata.name, document)
    except msgspec.ValidationError as error:
        if file.is_alone or not _is_other_data(document):
            raise DumpError(f"{file.name}: {error}") from None
    except msgspec.DecodeError as error:
        if not begins_as_json(document):
            raise DumpError(f"{file.name}: {error}") from None
        for each in _divided(file, document, left, str(error)):
            yield from _objects(file, each, left)
    except RecursionError:
        raise _too_deep(file) from None


def _check_depth(file: _File, data: msgspec.Raw | bytes) -> None:
    """Raise DumpError for an object with too many levels. Lists are not examined: most objects have few brackets."""
    if is_too_deep(bytes(data)):
        raise _too_deep(file)


def _too_deep(file: _File) -> DumpError:
    return DumpError(f"{file.name}: exceeded max depth")


def _is_other_data(document: bytes) -> bool:
    """Return True for valid JSON that is no object of Kubernetes."""
    plain = msgspec.json.decode(document)
    return not (isinstance(plain, dict) and plain.get("kind") and plain.get("apiVersion"))


def _items(file: _File, api_version: str, kind: str, items: list[msgspec.Raw]) -> Iterator[DumpObject]:
    for each in items:
        item = _HEAD.decode(each)
        metadata = item.metadata or Metadata()
        if item.kind or kind:
            _check_depth(file, each)
            yield DumpObject(
                item.api_version or api_version, item.kind or kind, metadata.namespace, metadata.name, each
            )


def _newest(data: msgspec.Raw | bytes) -> str:
    return max(map(itemgetter(1), _MOMENT.finditer(bytes(data))), default=b"").decode()
