"""Objects of a dump on their way into a cluster, and the facts about them that decide how they are completed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from steersman.dumps.errors import DumpError
from steersman.dumps.reading import DumpObject
from steersman.machinery.codec.serializer import decode_plain, encode_in_order

Key = tuple[str, str, str, str]
"""Group, kind, namespace and name of an object."""


class Owner(msgspec.Struct, frozen=True, rename="camel"):
    """Members of an owner reference that identify the owner."""

    api_version: str = ""
    kind: str = ""
    uid: str = ""


class _Metadata(msgspec.Struct, frozen=True, rename="camel"):
    uid: str | None = None
    resource_version: str | None = None
    creation_timestamp: str | None = None
    owner_references: list[Owner] | None = None
    annotations: dict[str, str] | None = None


class _Object(msgspec.Struct):
    metadata: _Metadata
    kind: str = ""


class Ended(msgspec.Struct, rename="camel"):
    """Members of a terminated state of a container."""

    exit_code: int = 0
    reason: str | None = None
    started_at: str | None = None
    finished_at: str | None = None


class _Waiting(msgspec.Struct):
    reason: str | None = None
    message: str | None = None


class _State(msgspec.Struct):
    waiting: _Waiting | None = None
    running: dict[str, Any] | None = None
    terminated: Ended | None = None


class ContainerState(msgspec.Struct, rename="camel"):
    """Members of a container's status that decide how the container goes on."""

    name: str = ""
    ready: bool = False
    state: _State = msgspec.field(default_factory=_State)
    last_state: _State = msgspec.field(default_factory=_State)


class _Condition(msgspec.Struct):
    type: str = ""
    status: str = ""


class _Status(msgspec.Struct, rename="camel"):
    phase: str | None = None
    conditions: list[_Condition] | None = None
    container_statuses: list[ContainerState] | None = None
    init_container_statuses: list[ContainerState] | None = None


class _Container(msgspec.Struct, rename="camel"):
    name: str = ""
    readiness_probe: dict[str, Any] | None = None


class _Spec(msgspec.Struct, rename="camel"):
    node_name: str | None = None
    containers: list[_Container] | None = None
    service: dict[str, Any] | None = None
    group: str | None = None


class Parts(_Object):
    """Members of a Pod, a Node or an APIService that decide how it goes on."""

    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: _Status = msgspec.field(default_factory=_Status)


_DECODER: Final = msgspec.json.Decoder(_Object)
_PARTS: Final = msgspec.json.Decoder(Parts)
_WITH_PARTS: Final = frozenset({("", "Pod"), ("", "Node"), ("apiregistration.k8s.io", "APIService")})


class Item:
    """An object of a dump."""

    __slots__ = (
        "_has_kind",
        "_parts",
        "api_version",
        "created",
        "data",
        "group",
        "kind",
        "name",
        "namespace",
        "owners",
        "revision",
        "uid",
    )

    def __init__(self, found: DumpObject) -> None:
        """Read the object's metadata, and its parts if its kind has any, at once. Raises DumpError."""
        self.api_version, self.kind, self.namespace, self.name, self.data = found
        self.group = self.api_version.rpartition("/")[0]
        self._parts: Parts | None = None
        try:
            if (self.group, self.kind) in _WITH_PARTS:
                found_object: _Object = _PARTS.decode(self.data)
            else:
                found_object = _DECODER.decode(self.data)
        except msgspec.MsgspecError as error:
            raise DumpError(f"{self}: {error}") from None
        if isinstance(found_object, Parts):
            self._parts = found_object
        self._has_kind = bool(found_object.kind)
        metadata = found_object.metadata
        self.uid = metadata.uid or ""
        self.created = bool(metadata.creation_timestamp)
        self.revision = metadata.resource_version or ""
        self.owners = metadata.owner_references or []

    def __str__(self) -> str:
        return f"{self.kind} {f'{self.namespace}/' if self.namespace else ''}{self.name}"

    @property
    def key(self) -> Key:
        """Group, kind, namespace and name."""
        return self.group, self.kind, self.namespace, self.name

    @property
    def parts(self) -> Parts:
        """The parts of a Pod, a Node or an APIService, as they were in the dump."""
        assert self._parts is not None
        return self._parts

    def change(self, work: Callable[[dict[str, Any]], object]) -> None:
        """Change the object by `work`, which gets it as plain data. Raises DumpError."""
        plain = self._plain(bytes(self.data))
        work(plain)
        self.data = encode_in_order(plain)

    def plain(self) -> dict[str, Any]:
        """Return the object with its kind and apiVersion as plain data. Raises DumpError."""
        return self._plain(self.json())

    def _plain(self, data: bytes) -> dict[str, Any]:
        try:
            plain: dict[str, Any] = decode_plain(data)
        except msgspec.DecodeError as error:  # of a number that is too large
            raise DumpError(f"{self}: {error}") from None
        return plain

    def json(self) -> bytes:
        """Return the object's JSON, which begins with its kind and apiVersion."""
        data = bytes(self.data)
        if self._has_kind:
            return data
        rest = data.lstrip(b" \t\r\n")[1:]
        return msgspec.json.encode({"kind": self.kind, "apiVersion": self.api_version})[:-1] + b"," + rest


def made(
    api_version: str, kind: str, name: str, labels: dict[str, str], *, namespace: str = "", **members: Any
) -> Item:
    """Return an item of an object that the dump lacks."""
    metadata: dict[str, Any] = {"name": name, **({"namespace": namespace} if namespace else {}), "labels": labels}
    plain = {"kind": kind, "apiVersion": api_version, "metadata": metadata, **members}
    return Item(DumpObject(api_version, kind, namespace, name, encode_in_order(plain)))
