"""Kinds of custom resources: open JSON under a structural schema, by which objects are pruned and defaulted when read."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from threading import Lock
from typing import Any, Final
from zlib import compress, decompress

import msgspec

from steersman.kinds.open import OpenKind, OpenObject
from steersman.machinery.codec.serializer import decode_plain, deep_copy, encode
from steersman.machinery.codec.strict import MAX_STRICT_ERRORS, Decoded, DecodeError, Media
from steersman.machinery.errors.field import quote
from steersman.machinery.identity.schema import GroupVersionKind
from steersman.machinery.managed_fields import Schema
from steersman.schema import CoercionError, Structural, compile_schema

Plain = dict[str, Any]

_STATUS: Final = "status"
_SMALL: Final = 16 << 10
_SMALL_CACHE_BYTES: Final = 1 << 20
_CACHE_BYTES: Final = 16 << 20
"""Bytes of recent values of this server that are cached: enough for the writes that are in flight at one time.

So the event loop never has to fit a large value to its schema. Values up to `_SMALL` bytes fit in no time and have a
smaller cache.
"""


class MergedObject(OpenObject):
    """The result of an apply, which is validated before it is fitted to the schema."""

    __slots__ = ()


class CustomKind(OpenKind):
    """A kind in one version of a CustomResourceDefinition.

    Objects always fit the schema: an object from a client is pruned and defaulted when it is read. A value that was
    stored under another schema, or by another server, is pruned and defaulted when the cache reads it.
    """

    needs_type_meta = True
    refits = True

    def __init__(self, gvk: GroupVersionKind, list_name: str, schema: bytes) -> None:
        """Create the kind.

        `schema` is the JSON of an `openAPIV3Schema`, `null` for none; it is compiled on first use.
        """
        super().__init__(gvk, list_name, default=self._set_defaults)
        self._mark: Final = object()
        self._schema_text: Final = compress(schema, 1)
        self._structural: Structural | None = None
        self.is_cold = True
        self.family: Mapping[str, CustomKind] = {self.api_version: self}

    def warm(self) -> None:
        """Compile the schemas of all versions."""
        schemas = [each.structural for each in self.family.values()]
        for schema in schemas:
            schema.ownership  # noqa: B018 - a lazy property
        is_wide = any(schema.is_wide for schema in schemas)
        for each in self.family.values():
            each.takes_long = is_wide

    def cool(self) -> None:
        """Drop the compiled schema, which takes ten times the memory of the rest; it is compiled again on the next use."""
        self._structural = None
        self.is_cold = True

    @property
    def structural(self) -> Structural:
        """The compiled schema."""
        found = self._structural
        if found is None:
            found = self._structural = compile_schema(self.declared_schema)
            self.is_cold = False
        return found

    @property
    def declared_schema(self) -> Plain | None:
        """The schema as declared; the caller owns the dict."""
        plain: Plain | None = decode_plain(self.openapi_text)
        return plain

    @property
    def openapi_text(self) -> bytes:
        return decompress(self._schema_text)

    @property
    def openapi(self) -> Mapping[str, Any]:
        return self.declared_schema or {"type": "object"}

    @property
    def schema(self) -> Schema:
        return self.structural.ownership

    def _set_defaults(self, obj: OpenObject) -> None:
        self.structural.default(obj.content)

    def copy(self, obj: OpenObject) -> OpenObject:
        return OpenObject(deep_copy(obj.metadata), _deep_copy(obj.content))

    def whole(self, obj: OpenObject) -> Plain:
        """Return the object as schemas and rules see it: with apiVersion, kind and metadata."""
        return {"apiVersion": self.api_version, "kind": self.name, **self.to_plain(obj)}

    # Objects from clients

    def read(self, data: bytes, media: Media, *, strict: bool) -> Decoded[OpenObject]:
        return self._fit(super().read(data, media, strict=strict), strict=strict)

    def read_internal(self, data: bytes, *, strict: bool) -> Decoded[OpenObject]:
        return self._fit(super().read_internal(data, strict=strict), strict=strict)

    def from_plain(self, data: Plain) -> Decoded[OpenObject]:
        return self._fit(super().from_plain(_deep_copy(data)), strict=True)

    def from_applied(self, data: Plain) -> Decoded[OpenObject]:
        found = super().from_plain(_deep_copy(data))
        merged = MergedObject(found.obj.metadata, found.obj.content)
        merged.kind, merged.api_version = found.obj.kind, found.obj.api_version
        return Decoded(merged, found.warnings)

    def _fit(self, read: Decoded[OpenObject], *, strict: bool) -> Decoded[OpenObject]:
        try:
            unknown = self.structural.fit(read.obj.content, strict=strict)
        except CoercionError as error:
            raise DecodeError(str(error)) from None
        if not unknown:
            return read
        texts = [f"unknown field {quote(path)}" for path in unknown]
        return Decoded(read.obj, (read.warnings + texts)[:MAX_STRICT_ERRORS])

    # Versions

    def converted(self, obj: OpenObject, source: CustomKind) -> OpenObject:
        """Return an object of another version in this version without conversion, pruned to this version's schema.

        Both objects may share parts if the schemas are equal.
        """
        if self.structural.root is source.structural.root:
            return OpenObject(obj.metadata, obj.content)
        content = _deep_copy(obj.content)
        self.structural.fit(content, lenient=True)
        return OpenObject(obj.metadata, content)

    # Stored and served forms

    def value(self, obj: OpenObject) -> bytes:
        if isinstance(obj, MergedObject):
            self.structural.fit(obj.content, lenient=True)
        if _STATUS not in obj.content and any(name == _STATUS for name, _ in self.structural.root.defaulted):
            self._set_defaults(obj)  # the status was reset; reading the value would bring its defaults back
        value = super().value(obj)
        _recent_values_for(value).add(value, self._mark)
        return value

    def present(self, value: bytes, revision: int) -> bytes:
        """Return the body, in the version of the value.

        A value that this server wrote under this schema fits already. Any other value is decoded and fitted to the
        schema of its version.
        """
        value = value.removesuffix(b"\n")
        if _recent_values_for(value).has_mark(value, self._mark):
            return self.at_revision(value, revision)
        source, obj = self._decode_and_fit(value)
        obj.metadata.resource_version = str(revision)
        return source.body(obj)

    def body_as_read(self, value: bytes) -> bytes:
        if _recent_values_for(value).has_mark(value, self._mark):
            return self.body_of(value)
        source, obj = self._decode_and_fit(value)
        return source.body(obj)

    def _decode_and_fit(self, value: bytes) -> tuple[CustomKind, OpenObject]:
        """Decode a value that another schema or server produced; return the kind of its version, and the fitted object."""
        source = self.family.get(_api_version(value), self)
        obj = self._decode(value)
        source.structural.fit(obj.content, lenient=True)
        source.structural.default(obj.content)
        metadata = obj.metadata
        metadata.generation = metadata.generation or 1
        return source, obj


def _deep_copy(content: Plain) -> Plain:
    copied: Plain = decode_plain(encode(content))
    return copied


class _TypeMeta(msgspec.Struct):
    api_version: Any = msgspec.field(name="apiVersion", default="")


_TYPE_META: Final = msgspec.json.Decoder(_TypeMeta)


def _api_version(value: bytes) -> str:
    """Return the apiVersion of a value, "" if it has none. Nothing else is decoded."""
    try:
        found = _TYPE_META.decode(value).api_version
    except msgspec.ValidationError:
        return ""
    return found if isinstance(found, str) else ""


class _RecentValues:
    """The most recent values of this server, each with the mark of its kind, up to a number of bytes.

    These values need not be fitted again when the watch cache gets them from the storage.
    """

    def __init__(self, limit: int) -> None:
        self._marks: OrderedDict[bytes, object] = OrderedDict()
        self._limit = limit
        self._size = 0
        self._lock = Lock()  # values are encoded in worker threads too

    def add(self, value: bytes, mark: object) -> None:
        with self._lock:
            if value not in self._marks:
                self._size += len(value)
            self._marks[value] = mark
            while self._size > self._limit:
                evicted, _ = self._marks.popitem(last=False)
                self._size -= len(evicted)

    def has_mark(self, value: bytes, mark: object) -> bool:
        return self._marks.get(value) is mark


_recent_small: Final = _RecentValues(_SMALL_CACHE_BYTES)
_recent_large: Final = _RecentValues(_CACHE_BYTES)


def _recent_values_for(value: bytes) -> _RecentValues:
    """Return the cache for values of this size."""
    return _recent_small if len(value) <= _SMALL else _recent_large
