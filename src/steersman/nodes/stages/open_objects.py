"""Objects of any kind as stages see them: their metadata, and their JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from steersman.api.meta.v1 import ListMeta, ObjectMeta
from steersman.client.api_resource import APIResource, ObjectList
from steersman.machinery.codec.serializer import encode_in_order


class OpenObject(msgspec.Struct):
    """Object of any kind."""

    metadata: ObjectMeta
    text: bytes
    """JSON without managed fields."""


class _List(msgspec.Struct):
    metadata: ListMeta = msgspec.field(default_factory=ListMeta)
    items: list[msgspec.Raw] | None = None


class _Metadata(msgspec.Struct):
    """Members of an object's metadata that stages need; others may have any shape."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = msgspec.field(name="resourceVersion", default="")
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    finalizers: list[str] | None = None


@dataclass(frozen=True)
class OpenResource(APIResource[OpenObject]):
    """Resource whose objects keep all that the server has sent."""

    def decode(self, data: bytes | msgspec.Raw) -> OpenObject:
        """Return the object in a server's response body. Raises msgspec.DecodeError, msgspec.ValidationError."""
        plain: dict[str, Any] = msgspec.json.decode(bytes(data), type=dict[str, Any])
        metadata = plain.get("metadata")
        if isinstance(metadata, dict):
            metadata.pop("managedFields", None)
        plain.setdefault("apiVersion", self.api_version)
        plain.setdefault("kind", self.kind)
        known = msgspec.convert(metadata or {}, _Metadata)
        return OpenObject(
            ObjectMeta(
                name=known.name,
                namespace=known.namespace,
                uid=known.uid,
                resource_version=known.resource_version,
                labels=known.labels or {},
                annotations=known.annotations or {},
                finalizers=known.finalizers or [],
            ),
            encode_in_order(plain),
        )

    def decode_list(self, data: bytes) -> ObjectList[OpenObject]:
        """Return the list in a server's response body. Raises msgspec.DecodeError, msgspec.ValidationError."""
        found = msgspec.json.decode(data, type=_List)
        return ObjectList([self.decode(each) for each in found.items or ()], found.metadata)

    def encode(self, obj: OpenObject) -> bytes:
        """Return the JSON of an object."""
        return obj.text


def open_resource(group: str, version: str, plural: str, kind: str, *, namespaced: bool) -> OpenResource:
    """Return a resource whose objects are open."""
    return OpenResource(group, version, plural, kind, OpenObject, namespaced)
