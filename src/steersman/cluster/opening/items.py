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


class _Object(msgspec.Struct, frozen=True):
    metadata: _Metadata


_DECODER: Final = msgspec.json.Decoder(_Object)


class Item:
    """An object of a dump."""

    __slots__ = ("api_version", "created", "data", "group", "kind", "name", "namespace", "owners", "revision", "uid")

    def __init__(self, found: DumpObject) -> None:
        """Read the object's metadata. Raises DumpError."""
        self.api_version, self.kind, self.namespace, self.name, self.data = found
        self.group = self.api_version.rpartition("/")[0]
        try:
            metadata = _DECODER.decode(self.data).metadata
        except msgspec.MsgspecError as error:
            raise DumpError(f"{self}: {error}") from None
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
        if msgspec.json.decode(data, type=_TypeMeta).kind:
            return data
        rest = data.lstrip(b" \t\r\n")[1:]
        return msgspec.json.encode({"kind": self.kind, "apiVersion": self.api_version})[:-1] + b"," + rest


class _TypeMeta(msgspec.Struct, rename="camel"):
    kind: str = ""


def made(
    api_version: str, kind: str, name: str, labels: dict[str, str], *, namespace: str = "", **members: Any
) -> Item:
    """Return an item of an object that the dump lacks."""
    metadata: dict[str, Any] = {"name": name, **({"namespace": namespace} if namespace else {}), "labels": labels}
    plain = {"kind": kind, "apiVersion": api_version, "metadata": metadata, **members}
    return Item(DumpObject(api_version, kind, namespace, name, encode_in_order(plain)))
