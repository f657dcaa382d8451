"""The stored form of a kind's objects: media type and version, as read from any server and as written by this server.

This server works with a *value*: the JSON of the kind (`kinds.kind`). In a store an object may be JSON, YAML or
protobuf, of any version of the kind: kube-apiserver stores protobuf by default, and stores some kinds in another
version than the version in which this server works (k8s.io/apiserver `server/storage/storage_codec.go`). Custom
resources are always JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from steersman.kinds.kind import Kind
from steersman.machinery.codec.protobuf import documents as protobuf
from steersman.machinery.codec.protobuf.documents import NotMarshalableError
from steersman.machinery.codec.strict import peek_type_meta, yaml_as_json
from steersman.machinery.errors.status import StatusError

JSON: Final = "application/json"
YAML: Final = "application/yaml"


class NotAnObject(ValueError):
    """Stored bytes that are no object of the kind, or of a version that this server does not know."""


class StoredVersion(NamedTuple):
    """A version of a kind; `to_own` and `from_own` convert its defaulted objects to the kind's own version and back."""

    kind: Kind[Any]
    to_own: Callable[[Any], Any]
    from_own: Callable[[Any], Any]


class StoredForm:
    """The stored form of one kind's objects.

    Writes use `media_type` and the apiVersion `written` ("" for the kind's own), until `write_as` sets another version.
    Reads accept any form. `find` returns the version of an apiVersion, None if there is none. `names` are further
    versions that `find` is known to return.
    """

    def __init__(
        self,
        kind: Kind[Any],
        media_type: str,
        *,
        find: Callable[[str], StoredVersion | None],
        written: str = "",
        names: Sequence[str] = (),
    ) -> None:
        self._kind = kind
        self._media_type = media_type
        self.preferred: Final = written or kind.api_version
        """The version that is written unless another server needs an older version."""
        self.names: Final = tuple(dict.fromkeys((self.preferred, kind.api_version, *names)))
        """Versions that can be read and written, the preferred version first; there may be more (`reads`)."""
        self.written = self.preferred
        """The version that is written now."""
        self._find = find
        self._versions: dict[str, StoredVersion | None] = {
            kind.api_version: StoredVersion(kind, _unchanged, _unchanged)
        }
        self.prefix: Final = kind.prefix
        """The beginning of every value."""
        self.writes_unchanged = self._writes_unchanged()
        """True if values are now stored unchanged."""

    def _writes_unchanged(self) -> bool:
        return self._media_type == JSON and self.written == self._kind.api_version

    def reads(self, api_version: str) -> bool:
        """Return True if objects of this version can be read and written."""
        try:
            self._version(api_version, self._kind.name)
        except NotAnObject:
            return False
        return True

    def write_as(self, api_version: str) -> None:
        """Write this version, which must be readable, from now on."""
        self.written = api_version
        self.writes_unchanged = self._writes_unchanged()

    def version_of(self, stored: bytes) -> str:
        """Return the version in which an object is stored. Raises NotAnObject."""
        if self.is_unchanged(stored):
            return self._kind.api_version
        try:
            if stored.startswith(protobuf.PREFIX):
                return protobuf.decode_envelope(stored).api_version
            return peek_type_meta(stored if stored.startswith(b"{") else yaml_as_json(stored))[0]
        except (StatusError, msgspec.MsgspecError, ValueError) as error:
            raise NotAnObject(str(error)) from error

    def is_unchanged(self, stored: bytes) -> bool:
        """Return True if stored bytes are an unchanged value."""
        return stored.startswith(self.prefix)

    def value(self, stored: bytes) -> bytes:
        """Return the value of an object stored in any form, with the defaults of its version and without unknown
        members.

        Raises NotAnObject.
        """
        try:
            version, obj = self._read(stored)
            version.kind.default(obj)
            return self._kind.value(version.to_own(obj))
        except NotAnObject:
            raise
        except (StatusError, NotMarshalableError, msgspec.MsgspecError, ValueError) as error:
            raise NotAnObject(str(error)) from error

    def _read(self, stored: bytes) -> tuple[StoredVersion, Any]:
        if stored.startswith(protobuf.PREFIX):
            envelope = protobuf.decode_envelope(stored)
            version = self._version(envelope.api_version, envelope.kind)
            if version.kind.protobuf is None:
                raise NotAnObject(f"{envelope.api_version} {envelope.kind} has no protobuf form")
            return version, version.kind.protobuf.decode(envelope.raw)
        data = stored if stored.startswith(b"{") else yaml_as_json(stored)
        if not data.startswith(b"{"):
            raise NotAnObject("it is no object")
        version = self._version(*peek_type_meta(data))
        obj = version.kind.read_internal(data, strict=False).obj
        obj.kind = obj.api_version = ""
        return version, obj

    def _version(self, api_version: str, kind: str) -> StoredVersion:
        if api_version not in self._versions and kind == self._kind.name:
            self._versions[api_version] = self._find(api_version)
        version = self._versions.get(api_version)
        if version is None or kind != version.kind.name:
            raise NotAnObject(f"it is of {api_version or 'no version'}, {kind or 'no kind'}")
        return version

    def stored(self, value: bytes) -> bytes:
        """Return the bytes to store for a value."""
        if self.writes_unchanged:
            return value
        if self.written == self._kind.api_version:
            return self._in_media_type(value.removesuffix(b"\n"), self._kind)
        kind, _, from_own = self._version(self.written, self._kind.name)
        own = self._kind.decode(self._kind.body_of(value))
        own.kind = own.api_version = ""
        obj = from_own(own)
        obj.kind = obj.api_version = ""
        return self._in_media_type(kind.value(obj), kind)

    def _in_media_type(self, value: bytes, kind: Kind[Any]) -> bytes:
        if self._media_type == protobuf.MEDIA_TYPE and kind.protobuf is not None:
            return protobuf.envelope(kind.protobuf.transcode(kind.body_of(value)), kind.gvk)
        if self._media_type == YAML:
            from steersman.machinery.codec import yaml  # most servers never write any

            return yaml.from_json(value)
        return value + b"\n"


def _unchanged(obj: Any) -> Any:
    return obj
