"""Between stored values and served bodies.

A stored value is the JSON of the storage version without a resourceVersion; a served body is the same without the
opening brace, kind and apiVersion, and with the resourceVersion spliced in behind the uid, where Go prints it:

    stored  {"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","uid":"...","creationTimestamp":...
    body    "metadata":{"name":"a","uid":"...","resourceVersion":"7","creationTimestamp":...
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar

import msgspec

from steersman.machinery.partial import part_of
from steersman.machinery.serializer import decode_json, decoder, empty_to_null, encode
from steersman.machinery.strict import decode_object

T = TypeVar("T")

_UID: Final = b'"uid":"'
_METADATA: Final = b'"metadata":{'
_VERSION: Final = b',"resourceVersion":'
_EMPTY_LIST: Final = b'":[]'


class Encoding(Generic[T]):
    """The stored form of one kind."""

    def __init__(self, kind: type[T], group: str, version: str) -> None:
        self.kind = kind
        self.prefix: bytes = type_meta_prefix(kind.__name__, group, version)
        self._head: bytes = self.prefix + _METADATA
        self._parts: dict[tuple[str, ...], Callable[[bytes], Any]] = {}

    def value(self, obj: T) -> bytes:
        """The value to store for `obj`, whose kind, apiVersion and resourceVersion are left out or set aside.

        Empty lists become null where Go prints a list that is not set.
        """
        metadata = obj.metadata  # type: ignore[attr-defined]
        version, metadata.resource_version = metadata.resource_version, ""
        try:
            body = encode(obj)
            if _EMPTY_LIST in body:
                empty_to_null(obj)
                body = encode(obj)
            return self.prefix + body[1:]
        finally:
            metadata.resource_version = version

    def present(self, value: bytes, revision: int) -> bytes:
        """The body served for a stored value written at `revision`."""
        head = self._head
        if not value.startswith(head):
            return self._present_foreign(value, revision)
        inside = len(head)
        found = value.find(_UID, inside)
        # the uid must be the object's own, not that of an owner: only names stand before it
        if found < 0 or value.find(b"{", inside, found) >= 0 or value.find(b"[", inside, found) >= 0:
            return self._present_foreign(value, revision)
        end = value.index(b'"', found + 7) + 1
        if value.startswith(_VERSION, end):
            return self._present_foreign(value, revision)
        return b'%b,"resourceVersion":"%d"%b' % (value[len(self.prefix) : end], revision, value[end:])

    def _present_foreign(self, value: bytes, revision: int) -> bytes:
        """For what another program wrote: decoded and encoded as this server would have."""
        obj: Any = self._decode(value)
        obj.kind = obj.api_version = ""
        obj.metadata.resource_version = str(revision)
        return encode(obj)[1:]

    def decode(self, body: bytes) -> T:
        """The object of a body."""
        return self._decode(b"{" + body)

    def part(self, paths: tuple[str, ...]) -> Callable[[bytes], Any]:
        """A function that reads these members of a body (machinery.partial) and skips the rest: a few milliseconds at
        most, however large the object is."""
        found = self._parts.get(paths)
        if found is None:
            found = self._parts[paths] = self._reader(paths)
        return found

    def _reader(self, paths: tuple[str, ...]) -> Callable[[bytes], Any]:
        decode = decoder(part_of(self.kind, paths)).decode

        def read(body: bytes) -> Any:
            try:
                return decode(b"{" + body)
            except msgspec.ValidationError:  # another program has written it
                return self.decode(body)

        return read

    def _decode(self, data: bytes) -> T:
        try:
            return decode_json(self.kind, data)
        except msgspec.ValidationError:
            # written by a server that knows members which this one does not
            obj: T = decode_object(self.kind, data, "json", want_strict=False, is_ours=True).obj
            return obj


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
