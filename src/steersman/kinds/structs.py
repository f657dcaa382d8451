"""Kinds whose objects are Structs. Their JSON has the order of the Struct's members, as Go prints structs.

A body is the JSON of the object without the opening brace, kind and apiVersion. The resourceVersion is spliced in after
the uid, where Go prints it:

    value  {"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","uid":"...","creationTimestamp":...
    body   "metadata":{"name":"a","uid":"...","resourceVersion":"7","creationTimestamp":...
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, Final, TypeVar

import msgspec

from steersman.kinds.kind import NEWLINE, Kind, Plain, ProtobufForm
from steersman.machinery.codec.derived_types import definition_of, schema_of, type_of
from steersman.machinery.codec.go_types import GoType, struct_of
from steersman.machinery.codec.partial import part_of
from steersman.machinery.codec.protobuf import documents as protobuf
from steersman.machinery.codec.serializer import (
    decoder,
    decoder_of_own,
    deep_copy,
    empty_to_null,
    encode,
    encode_in_order,
    to_plain,
)
from steersman.machinery.codec.strict import Decoded, Media, decode_object
from steersman.machinery.codec.unstructured import from_unstructured_with_validation
from steersman.machinery.identity.schema import GroupVersionKind
from steersman.machinery.managed_fields import Schema, custom_schema, differing_structs, plain_object, schema_of_kind
from steersman.machinery.patch.merge_patch import members_for

T = TypeVar("T", bound=msgspec.Struct)

_UID: Final = b'"uid":"'
_METADATA: Final = b'"metadata":{'
_VERSION: Final = b'"resourceVersion":'
_EMPTY_LIST: Final = b'":[]'
_BRACE: Final = ord("{")
_BRACKET: Final = ord("[")


def type_meta_prefix(kind: str, api_version: str) -> bytes:
    """Return `{"kind":...,"apiVersion":...,`, the bytes before a body in an answer."""
    return f'{{"kind":"{kind}","apiVersion":"{api_version}",'.encode()


class StructProtobuf(ProtobufForm[T]):
    """The protobuf form of a generated class."""

    def __init__(self, cls: type[T]) -> None:
        self._cls = cls

    def encode(self, obj: T) -> bytes:
        return protobuf.encode_body(obj)

    def decode(self, message: bytes) -> T:
        return protobuf.decode(self._cls, message)

    def transcode(self, body: bytes) -> bytes:
        return protobuf.transcode(self._cls, b"{" + body)


class StructKind(Kind[T]):
    """A kind of Structs, of a class of `steersman.api` or a class that also begins with `kind`, `api_version`,
    `metadata`.

    Only classes of `steersman.api` have a protobuf form and strategic merge patches. `default` fills in the defaults of
    its version (SetDefaults_* of upstream). `keeps_raw_data` keeps RawExtensions to the byte as upstream does; no
    client can see a difference for other kinds.
    """

    def __init__(
        self,
        cls: type[T],
        gvk: GroupVersionKind,
        *,
        default: Callable[[T], None] | None = None,
        internal_error: Callable[[T], str] | None = None,
        keeps_raw_data: bool = False,
    ) -> None:
        super().__init__(gvk, default=default)
        self.cls: Final = cls
        self.prefix = type_meta_prefix(self.name, self.api_version)
        self.keeps_raw_data = keeps_raw_data
        self._is_generated = cls.__module__.startswith("steersman.api.")
        self.protobuf = StructProtobuf(cls) if self._is_generated else None
        self._internal_error = internal_error
        self._head = self.prefix + _METADATA
        self._list_head = type_meta_prefix(self.list_name, self.api_version) + b'"metadata":'

    @cached_property
    def _decode_own(self) -> Callable[[bytes], T]:
        return decoder_of_own(self.cls).decode

    @property
    def brings_openapi(self) -> bool:
        return not self._is_generated

    @cached_property
    def openapi(self) -> Mapping[str, Any] | None:
        """The schema derived from the class, None for generated classes."""
        return None if self._is_generated else schema_of(type_of(self.cls))

    @cached_property
    def go_type(self) -> GoType | None:  # type: ignore[override]  # made when the first patch needs it
        """The type that governs strategic merge patches; only generated classes declare how their lists are merged."""
        return struct_of(self.cls) if self._is_generated else None

    # Objects

    def new(self) -> T:
        return self.cls()

    def copy(self, obj: T) -> T:
        return deep_copy(obj)

    def internal_error(self, obj: T) -> str:
        return "" if self._internal_error is None else self._internal_error(obj)

    # Objects from clients

    def read(self, data: bytes, media: Media, *, strict: bool) -> Decoded[T]:
        return decode_object(self.cls, data, media, want_strict=strict, as_sent=self.keeps_raw_data, is_peeked=True)

    def read_internal(self, data: bytes, *, strict: bool) -> Decoded[T]:
        return decode_object(self.cls, data, "json", want_strict=strict, is_ours=True)

    def from_plain(self, data: Plain) -> Decoded[T]:
        return from_unstructured_with_validation(self.cls, data)

    # Stored and served forms

    def value(self, obj: T) -> bytes:
        """Return the value to store; empty lists become null where Go prints null for an unset list."""
        metadata: Any = obj.metadata  # type: ignore[attr-defined]
        version, metadata.resource_version = metadata.resource_version, ""
        try:
            body = encode(obj)
            if body.find(_EMPTY_LIST) >= 0:  # `in` would first ask for a number
                empty_to_null(obj)
                body = encode(obj)
            return self.prefix + body[1:]
        finally:
            metadata.resource_version = version

    def body(self, obj: T) -> bytes:
        return encode(obj)[1:]

    def present(self, value: bytes, revision: int) -> bytes:
        head = self._head
        if not value.startswith(head):
            return self._present_foreign(value, revision)
        inside = len(head)
        found = value.find(_UID, inside)
        if found < 0:
            return self._present_foreign(value, revision)
        before = value[inside:found]
        if _BRACE in before or _BRACKET in before:  # the uid of an owner: only names stand before the object's own
            return self._present_foreign(value, revision)
        end = value.index(b'"', found + 7) + 1
        if value.startswith(_VERSION, end + 1):  # after a comma
            return self._present_foreign(value, revision)
        rest = value[end:-1] if value[-1] == NEWLINE else value[end:]
        return b'%b,"resourceVersion":"%d"%b' % (value[len(self.prefix) : end], revision, rest)

    def shows(self, body: bytes, value: bytes, revision: int) -> bool:
        # Only texts stand before it, as below: without it the body is the value, of a kind that is this one.
        begin = body.index(_VERSION)
        end = body.index(b'"', begin + len(_VERSION) + 1) + 1
        return value == self.prefix + body[: begin - 1] + body[end:]

    def _present_foreign(self, value: bytes, revision: int) -> bytes:
        """Return the body of a value that another program wrote: decoded, and encoded as by this server."""
        obj: Any = decode_object(self.cls, value, "json", want_strict=False, is_ours=True).obj
        obj.kind = obj.api_version = ""
        obj.metadata.resource_version = str(revision)
        return encode(obj)[1:]

    def body_at(self, body: bytes, revision: int) -> bytes:
        # Only strings stand before the resourceVersion (name, namespace, uid), and their quotes are escaped.
        begin = body.index(_VERSION) + len(_VERSION) + 1  # after the quote
        return b"%b%d%b" % (body[:begin], revision, body[body.index(b'"', begin) :])

    def body_of(self, value: bytes) -> bytes:
        return value[len(self.prefix) :]

    def decode(self, body: bytes) -> T:
        return self.decode_struct(b"{" + body)

    def decode_struct(self, data: bytes) -> T:
        """Decode stored JSON, whose unknown members are left out. Raises DecodeError."""
        try:
            return self._decode_own(data)
        except msgspec.ValidationError:
            # written by a server that knows members which this server does not
            return decode_object(self.cls, data, "json", want_strict=False, is_ours=True).obj

    def _make_partial_decoder(self, paths: tuple[str, ...]) -> Callable[[bytes], Any]:
        decode = decoder(part_of(self.cls, paths)).decode

        def read(body: bytes) -> Any:
            try:
                return decode(b"{" + body)
            except msgspec.ValidationError:  # another program has written it
                return self.decode(body)

        return read

    def list_ends(self, metadata: Mapping[str, Any]) -> tuple[bytes, bytes]:
        return self._list_head + encode_in_order(metadata) + b',"items":[', b"]}"

    # Plain data and field ownership

    def to_plain(self, obj: T) -> Plain:
        plain: Plain = to_plain(obj)
        return plain

    def to_plain_for(self, obj: T, patch: Plain) -> Plain:
        return members_for(encode(obj), patch)

    def owned(self, obj: T) -> Plain:
        return plain_object(obj)

    def differing(self, old: T, new: T) -> tuple[Plain, Plain]:
        return differing_structs(old, new)

    @cached_property
    def schema(self) -> Schema:
        """The schema of the built-in kind, or the schema derived from the class."""
        return schema_of_kind(self.gvk) if self._is_generated else custom_schema(definition_of(type_of(self.cls)))
