"""API resources as a client sees them: names, paths, and encoding and decoding of objects."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, Generic, Protocol, TypeVar
from urllib.parse import quote

import msgspec
from msgspec import Struct

from steersman.api.meta.v1 import ListMeta, ObjectMeta, PartialObjectMetadata
from steersman.machinery.codec.serializer import decode_plain, decoder, encode_in_order
from steersman.machinery.codec.strict import DecodeError, decode_object
from steersman.machinery.errors.field import quote as go_quote
from steersman.machinery.errors.status import StatusError
from steersman.machinery.identity.schema import GroupKind, GroupResource
from steersman.machinery.validation.formats import is_path_segment_name

T = TypeVar("T")

_METADATA: Final = "application/json;as=PartialObjectMetadata{};g=meta.k8s.io;v=v1"


class Object(Protocol):
    """A Struct with object metadata, as every kind of the API has."""

    metadata: ObjectMeta


@dataclass(frozen=True)
class APIResource(Generic[T]):
    """A resource in one version (meta/v1 APIResource) whose objects are Structs of `type`, or plain data if it is
    `dict`.

    Structs are decoded with empty `kind` and `api_version`, as client-go does for typed objects. Plain data keeps
    everything that the server sent.
    """

    group: str
    version: str
    plural: str
    kind: str
    type: type[T] = field(compare=False)
    namespaced: bool = True

    @cached_property
    def api_version(self) -> str:
        """Return the apiVersion of the objects, such as `v1` or `apps/v1`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @cached_property
    def metadata_only(self) -> APIResource[PartialObjectMetadata]:
        """Return this resource with objects that consist of metadata only (PartialObjectMetadata)."""
        return APIResource(
            self.group, self.version, self.plural, self.kind, PartialObjectMetadata, namespaced=self.namespaced
        )

    def accept(self, *, as_list: bool = False) -> str:
        """Return the value of the Accept header for an object, or for a list with `as_list`."""
        return _METADATA.format("List" if as_list else "") if self.type is PartialObjectMetadata else "application/json"

    @cached_property
    def group_kind(self) -> GroupKind:
        return GroupKind(self.group, self.kind)

    @cached_property
    def group_resource(self) -> GroupResource:
        return GroupResource(self.group, self.plural)

    @cached_property
    def _root(self) -> str:
        return f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """Return the URL path of an object, of the objects of a namespace, or of all objects.

        Raises StatusError 400 BadRequest for a name that would lead to another path, as client-go does: names in object
        references are not always validated.
        """
        parts = [self._root]
        if namespace and self.namespaced:
            parts.append(f"namespaces/{_segment(namespace, 'namespace')}")
        parts.append(self.plural)
        if name:
            parts.append(_segment(name, "resource name"))
        if subresource:
            parts.append(subresource)
        return "/".join(parts)

    def decode(self, data: bytes | msgspec.Raw) -> T:
        """Return the object in a server's response body. Raises msgspec.DecodeError, msgspec.ValidationError."""
        if self.type is dict:
            return msgspec.convert(decode_plain(bytes(data)), dict)  # type: ignore[return-value]
        obj: Any
        try:
            obj = decoder(self.type).decode(data)
        except msgspec.ValidationError as error:
            obj = self._decode_as_go_does(bytes(data), error)
        obj.kind = obj.api_version = ""
        return obj  # type: ignore[no-any-return]

    def decode_list(self, data: bytes) -> ObjectList[T]:
        """Return the list in a server's response body. Raises msgspec.DecodeError, msgspec.ValidationError."""
        if self.type is dict:
            plain = msgspec.convert(decode_plain(data), _PlainList)
            for each in plain.items or ():
                each.setdefault("kind", self.kind)
                each.setdefault("apiVersion", self.api_version)
            return ObjectList(plain.items or [], plain.metadata or ListMeta())  # type: ignore[arg-type]
        try:
            objects = self._list_decoder.decode(data)
        except msgspec.ValidationError:
            each_raw = _RAW_LIST.decode(data)
            return ObjectList([self.decode(each) for each in each_raw.items or ()], each_raw.metadata)
        return ObjectList(objects.items or [], objects.metadata)

    def _decode_as_go_does(self, data: bytes, error: msgspec.ValidationError) -> T:
        """Return an object of a server of another release: nulls and unknown members are ignored, as Go ignores them.

        Raises `error` for an object that Go cannot decode either.
        """
        try:
            return decode_object(self.type, data, "json", want_strict=False).obj
        except DecodeError:
            raise error from None

    @cached_property
    def _list_decoder(self) -> msgspec.json.Decoder[Any]:
        return _list_decoder(self.type)

    def encode(self, obj: T) -> bytes:
        """Return the JSON of an object with its kind and apiVersion.

        Maps keep their order: the server sorts them.
        """
        if isinstance(obj, dict):
            return encode_in_order({"kind": self.kind, "apiVersion": self.api_version, **obj})
        whole: Any = obj
        return (
            b'{"kind":"%s","apiVersion":"%s",' % (self.kind.encode(), self.api_version.encode())
            + encode_in_order(whole)[1:]
        )


class ObjectList(Struct, Generic[T], frozen=True):
    """The objects of a list response, and the list's metadata."""

    items: list[T]
    metadata: ListMeta


class _RawList(msgspec.Struct):
    metadata: ListMeta = msgspec.field(default_factory=ListMeta)
    items: list[msgspec.Raw] | None = None


class _PlainList(msgspec.Struct):
    metadata: ListMeta | None = None
    items: list[dict[str, Any]] | None = None


_RAW_LIST: Final = msgspec.json.Decoder(_RawList)


def _list_decoder(cls: Any) -> msgspec.json.Decoder[Any]:
    members: list[Any] = [
        ("kind", str, ""),
        ("api_version", str, ""),
        ("metadata", ListMeta, msgspec.field(default_factory=ListMeta)),
        ("items", list[cls] | None, None),
    ]
    return decoder(msgspec.defstruct(f"{cls.__name__}List", members, rename="camel", kw_only=True))


_is_plain: Final = re.compile("[a-z0-9][a-z0-9.-]*", re.ASCII).fullmatch


def _segment(name: str, what: str) -> str:
    if _is_plain(name):
        return name
    if problems := is_path_segment_name(name):
        text = f"invalid {what} {go_quote(name)}: [{' '.join(problems)}]"
        raise StatusError(400, "BadRequest", text)
    return quote(name, safe="")
