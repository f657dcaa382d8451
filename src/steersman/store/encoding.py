"""Between stored values and served bodies.

A stored value is the JSON of the storage version without a resourceVersion; a served body is the same without the
opening brace, kind and apiVersion, and with the resourceVersion spliced in behind the uid, where Go prints it:

    stored  {"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","uid":"...","creationTimestamp":...
    body    "metadata":{"name":"a","uid":"...","resourceVersion":"7","creationTimestamp":...
"""

from __future__ import annotations

from typing import Any, Final, Generic, TypeVar

import msgspec

from steersman.machinery.serializer import decode_json, encode

T = TypeVar("T")

_UID: Final = b'"uid":"'
_METADATA: Final = b'"metadata":{'


class Encoding(Generic[T]):
    """The stored form of one kind."""

    def __init__(self, kind: type[T], group: str, version: str) -> None:
        self.kind = kind
        self.prefix: bytes = type_meta_prefix(kind.__name__, group, version)

    def value(self, obj: T) -> bytes:
        """The value to store for `obj`, whose kind, apiVersion and resourceVersion are left out or set aside."""
        metadata = obj.metadata  # type: ignore[attr-defined]
        version, metadata.resource_version = metadata.resource_version, ""
        try:
            return self.prefix + encode(obj)[1:]
        finally:
            metadata.resource_version = version

    def present(self, value: bytes, revision: int) -> bytes:
        """The body served for a stored value written at `revision`."""
        prefix = self.prefix
        if not value.startswith(prefix + _METADATA):
            return self._present_foreign(value, revision)
        start = len(prefix)
        found = value.find(_UID, start)
        if found < 0:
            return self._present_foreign(value, revision)
        end = value.index(b'"', found + 7) + 1
        return b'%b,"resourceVersion":"%d"%b' % (value[start:end], revision, value[end:])

    def _present_foreign(self, value: bytes, revision: int) -> bytes:
        """For what another program wrote: decoded and encoded as this server would have."""
        obj: Any = decode_json(self.kind, value)
        obj.kind = obj.api_version = ""
        obj.metadata.resource_version = str(revision)
        return encode(obj)[1:]

    def decode(self, body: bytes) -> T:
        """The object of a body."""
        return decode_json(self.kind, b"{" + body)


def type_meta_prefix(kind: str, group: str, version: str) -> bytes:
    """`{"kind":...,"apiVersion":...,` of a kind: what is before a body in an answer."""
    api_version = f"{group}/{version}" if group else version
    return f'{{"kind":"{kind}","apiVersion":"{api_version}",'.encode()


class _Labels(msgspec.Struct, gc=False):
    name: str = ""
    namespace: str = ""
    labels: dict[str, str] = {}


class _Labelled(msgspec.Struct, gc=False):
    metadata: _Labels


_LABELS: Final = msgspec.json.Decoder(_Labelled)


def labels_of(body: bytes) -> tuple[dict[str, str], str, str]:
    """Labels, name and namespace of a body, with the rest of it skipped, not decoded."""
    metadata = _LABELS.decode(b"{" + body).metadata
    return metadata.labels, metadata.name, metadata.namespace
