"""Kinds whose objects are any JSON with metadata. The keys of their JSON are sorted, as Go prints a map.

A body is the JSON of the object without the opening brace. It contains kind and apiVersion, in lists too, as keys like
any other. The resourceVersion is spliced in before the uid, which comes last in the metadata:

    value  {"apiVersion":"e.x/v1","kind":"Foo","metadata":{"name":"a","uid":"..."},"spec":{...}}
    body   "apiVersion":"e.x/v1","kind":"Foo","metadata":{"name":"a","resourceVersion":"7","uid":"..."},"spec":{...}}
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from steersman.api.meta.v1 import ObjectMeta
from steersman.kinds.kind import ANY_OBJECT, Kind, Plain
from steersman.machinery.codec.serializer import decode_json, decode_plain, decoder, encode, encode_sorted
from steersman.machinery.codec.strict import MAX_STRICT_ERRORS, Decoded, DecodeError, Media, decode_object
from steersman.machinery.identity.schema import GroupVersionKind
from steersman.machinery.managed_fields import DEDUCED, Schema, differing_dicts, differing_metadata, plain_metadata
from steersman.work.patterns import late_pattern

_TYPE_META: Final = ("apiVersion", "kind", "metadata")
_UID: Final = b'"uid":"'


class OpenObject:
    """An object of any JSON: `content` is all of it except kind, apiVersion and metadata.

    `unsaid` is a merge patch for the stored version of this object, applied after conversion; None for none. Code that
    works in the stored version sets it where the object's own version cannot represent a field.
    """

    __slots__ = ("api_version", "content", "kind", "metadata", "unsaid")

    def __init__(self, metadata: ObjectMeta | None = None, content: Plain | None = None) -> None:
        self.kind = ""
        self.api_version = ""
        self.metadata = metadata or ObjectMeta()
        self.content: Plain = {} if content is None else content
        self.unsaid: Plain | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OpenObject) and self.metadata == other.metadata and self.content == other.content

    __hash__ = None  # type: ignore[assignment]  # objects are mutable

    def __repr__(self) -> str:
        return f"OpenObject({self.metadata.namespace}/{self.metadata.name})"


class _Raw(msgspec.Struct):
    metadata: msgspec.Raw = msgspec.Raw(b"{}")


class _ApiVersion(msgspec.Struct):
    api_version: str = msgspec.field(name="apiVersion", default="")


class _Metadata(msgspec.Struct):
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)


_RAW: Final = msgspec.json.Decoder(_Raw)
_API_VERSION_DECODER: Final = msgspec.json.Decoder(_ApiVersion)
_API_VERSION: Final = b'"apiVersion":"'
_VERSION_AT_END: Final = late_pattern(rb'"resourceVersion":"[^"]*",\Z')


class OpenKind(Kind[OpenObject]):
    """A kind of any JSON, without protobuf form and strategic merge patch.

    `default` fills in defaults. `schema` governs field ownership (the default deduces it from the JSON). `openapi` is
    the published structural schema (apiextensions.k8s.io/v1).
    """

    is_open = True
    prefix = b"{"

    def __init__(
        self,
        gvk: GroupVersionKind,
        list_name: str = "",
        *,
        schema: Schema = DEDUCED,
        default: Callable[[OpenObject], None] | None = None,
        openapi: Mapping[str, Any] = ANY_OBJECT,
    ) -> None:
        super().__init__(gvk, list_name, default=default)
        self.family: Mapping[str, OpenKind] = {self.api_version: self}
        """The kind in all versions, by apiVersion. Objects may be stored in any version and are not rewritten."""
        self._openapi = openapi
        self._schema = schema
        self._head = encode_sorted({"apiVersion": self.api_version, "kind": self.name})[:-1] + b',"metadata":'
        self._list_head = encode_sorted({"apiVersion": self.api_version})[:-1] + b',"items":['
        self._list_kind = b'],"kind":' + encode(self.list_name) + b',"metadata":'

    @property
    def openapi(self) -> Mapping[str, Any]:
        return self._openapi

    # Objects

    def new(self) -> OpenObject:
        return OpenObject()

    def copy(self, obj: OpenObject) -> OpenObject:
        return self._decode(self._encoded(obj))

    # Objects from clients

    def read(self, data: bytes, media: Media, *, strict: bool) -> Decoded[OpenObject]:
        read: Decoded[Plain] = decode_object(dict, data, media, want_strict=strict, is_peeked=True)
        return _object(read.obj, read.warnings, strict=strict)

    def read_internal(self, data: bytes, *, strict: bool) -> Decoded[OpenObject]:
        read: Decoded[Plain] = decode_object(dict, data, "json", want_strict=strict, is_ours=True)
        return _object(read.obj, read.warnings, strict=strict)

    def from_plain(self, data: Plain) -> Decoded[OpenObject]:
        return _object(data, [], strict=True)

    # Stored and served forms

    def value(self, obj: OpenObject) -> bytes:
        return self.value_as_is(obj)

    def value_as_is(self, obj: OpenObject) -> bytes:
        """Return the value of an object that need not fit the kind's schema."""
        metadata = obj.metadata
        version, metadata.resource_version = metadata.resource_version, ""
        try:
            return self._encoded(obj)
        finally:
            metadata.resource_version = version

    def _encoded(self, obj: OpenObject) -> bytes:
        return encode_sorted(
            {"apiVersion": self.api_version, "kind": self.name, "metadata": obj.metadata, **obj.content}
        )

    def body(self, obj: OpenObject) -> bytes:
        return self._encoded(obj)[1:]

    def present(self, value: bytes, revision: int) -> bytes:
        value = value.removesuffix(b"\n")
        source = self if len(self.family) == 1 else self.family.get(self.version_of(value[1:]), self)
        return source.at_revision(value, revision)

    def at_revision(self, value: bytes, revision: int) -> bytes:
        """Return the body of a value of this version, without fitting it to a schema."""
        head = self._head
        if value.startswith(head):  # no member of the object's own sorts before the metadata
            metadata = bytes(_RAW.decode(value).metadata)
            found = metadata.rfind(_UID)
            uid = metadata[found + len(_UID) : -2]
            if found > 0 and metadata.endswith(b'"}') and b'"' not in uid and b'"resourceVersion":' not in metadata:
                at = len(head) + found
                return b'%b"resourceVersion":"%d",%b' % (value[1:at], revision, value[at:])
        obj = self._decode(value)
        obj.metadata.resource_version = str(revision)
        return self.body(obj)

    def body_at(self, body: bytes, revision: int) -> bytes:
        source = self if len(self.family) == 1 else self.family.get(self.version_of(body), self)
        return source.at_revision(source.value_of(body), revision)

    def body_of(self, value: bytes) -> bytes:
        return value[1:]

    def value_of(self, body: bytes) -> bytes:
        """Return the value of a body of this version: without the resourceVersion, which `at_revision` put in."""
        head = self._head[1:]
        if body.startswith(head):
            metadata = bytes(_RAW.decode(b"{" + body).metadata)
            found = metadata.rfind(_UID)
            if found > 0 and metadata.endswith(b'"}') and b'"' not in metadata[found + len(_UID) : -2]:
                version = _VERSION_AT_END.search(metadata, 0, found)
                if version is not None:
                    at = len(head)
                    return b"{" + body[: at + version.start()] + body[at + found :]
        obj = self.decode(body)
        obj.metadata.resource_version = ""
        return self._encoded(obj)

    @staticmethod
    def version_of(body: bytes) -> str:
        """Return the apiVersion in a body."""
        if body.startswith(_API_VERSION):  # no member of the object's own sorts before it
            return body[len(_API_VERSION) : body.index(b'"', len(_API_VERSION))].decode()
        return _API_VERSION_DECODER.decode(b"{" + body).api_version

    def decode(self, body: bytes) -> OpenObject:
        return self._decode(b"{" + body)

    def _decode(self, data: bytes) -> OpenObject:
        plain: Plain = decode_plain(data)
        try:
            return OpenObject(decode_json(_Metadata, data).metadata, _content(plain))
        except msgspec.ValidationError:  # written by a server that knows members which this server does not
            return _object(plain, [], strict=False).obj

    def _make_partial_decoder(self, paths: tuple[str, ...]) -> Callable[[bytes], Any]:
        split = [tuple(path.split(".")) for path in paths]
        decode = decoder(_part(self.name, [path for path in split if path[0] != "metadata"], _Metadata)).decode

        def read(body: bytes) -> OpenObject:
            try:
                found: Any = decode(b"{" + body)
            except msgspec.ValidationError:  # a member on one of the paths is no object
                return self.decode(body)
            return OpenObject(found.metadata, _members(found))

        return read

    def list_ends(self, metadata: Mapping[str, Any]) -> tuple[bytes, bytes]:
        return self._list_head, self._list_kind + encode_sorted({"continue": "", **metadata}) + b"}"

    # Plain data and field ownership

    @property
    def schema(self) -> Schema:
        return self._schema

    def to_plain(self, obj: OpenObject) -> Plain:
        metadata: Plain = decode_plain(encode(obj.metadata))
        return {"metadata": metadata, **obj.content}

    def owned(self, obj: OpenObject) -> Plain:
        return {"metadata": plain_metadata(obj.metadata), **obj.content}

    def differing(self, old: OpenObject, new: OpenObject) -> tuple[Plain, Plain]:
        before, after = differing_dicts(old.content, new.content)
        if old.metadata != new.metadata:
            before["metadata"], after["metadata"] = differing_metadata(old.metadata, new.metadata)
        return before, after


def _content(plain: Plain) -> Plain:
    return {name: value for name, value in plain.items() if name not in _TYPE_META}


def _object(plain: Plain, warnings: list[str], *, strict: bool) -> Decoded[OpenObject]:
    """Return the object of plain data, with its kind and apiVersion. Raises DecodeError."""
    metadata = plain.get("metadata")
    if metadata is None:
        found = Decoded(ObjectMeta())
    else:
        found = decode_object(ObjectMeta, encode_sorted(metadata), "json", want_strict=strict, is_ours=True)
    obj = OpenObject(found.obj, _content(plain))
    obj.kind, obj.api_version = (_text(plain, name) for name in ("kind", "apiVersion"))
    unknown = [text.replace('unknown field "', 'unknown field "metadata.', 1) for text in found.warnings]
    return Decoded(obj, (warnings + unknown)[:MAX_STRICT_ERRORS])


def _members(found: msgspec.Struct) -> Plain:
    """Return the decoded members of an object except its metadata."""
    values = {each.encode_name: getattr(found, each.name) for each in msgspec.structs.fields(found)}
    values.pop("metadata", None)
    return {name: msgspec.to_builtins(value) for name, value in values.items() if value is not msgspec.UNSET}


def _text(plain: Plain, name: str) -> str:
    value = plain.get(name, "")
    if not isinstance(value, str):
        raise DecodeError(f"{name} is no text")
    return value


def _part(name: str, paths: Sequence[tuple[str, ...]], base: type[msgspec.Struct] | None = None) -> Any:
    """Return a Struct type with the members on these paths and those of `base`; missing members are unset.

    A member at the end of a path may have any value.
    """
    if () in paths:
        return Any
    below: dict[str, list[tuple[str, ...]]] = {}
    for first, *rest in paths:
        below.setdefault(first, []).append(tuple(rest))
    members: list[tuple[str, Any, Any]] = [
        (f"member{number}", _part(each, rests) | msgspec.UnsetType, msgspec.UNSET)
        for number, (each, rests) in enumerate(below.items())
    ]
    rename = {f"member{number}": each for number, each in enumerate(below)}
    return msgspec.defstruct(name, members, bases=None if base is None else (base,), rename=rename, kw_only=True)
