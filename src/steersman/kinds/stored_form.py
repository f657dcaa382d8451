"""How objects of a built-in kind lie in a store, whoever wrote them, and how this server writes them there.

What this server works with is a *value*: the JSON of the kind (`kinds.kind`). In a store an object may be JSON, YAML or
protobuf, of any version of the kind: kube-apiserver stores protobuf by default, and of some kinds another version than
the one that is worked with here (k8s.io/apiserver `server/storage/storage_codec.go`). Custom resources are JSON always.
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
    """What is stored is no object of the kind, or of a version that nobody here knows."""


class StoredVersion(NamedTuple):
    """A version of a kind: `to_own` and `from_own` convert its objects, which have their defaults, to the kind's own
    and back."""

    kind: Kind[Any]
    to_own: Callable[[Any], Any]
    from_own: Callable[[Any], Any]


class StoredForm:
    """The form of one kind's objects. `media_type` is written, and the version of `written`, an apiVersion, if that is
    not the kind's own, until `write_as` says another; anything is read. `find` gives the version of an apiVersion, None
    where there is none; `names` are those that it surely gives, beside these."""

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
        """The version that is written where nothing is against it."""
        self.names: Final = tuple(dict.fromkeys((self.preferred, kind.api_version, *names)))
        """Versions that are read and can be written, the preferred one first; there may be more (`reads`)."""
        self.written = self.preferred
        """The version that is written now."""
        self._find = find
        self._versions: dict[str, StoredVersion | None] = {kind.api_version: StoredVersion(kind, _same, _same)}
        self.prefix: Final = kind.prefix
        """The beginning of every value."""
        self.writes_own = self._writes_own()
        """Whether values are stored as they are, now."""

    def _writes_own(self) -> bool:
        return self._media_type == JSON and self.written == self._kind.api_version

    def reads(self, api_version: str) -> bool:
        """Whether objects of this version can be read, and written."""
        try:
            self._version(api_version, self._kind.name)
        except NotAnObject:
            return False
        return True

    def write_as(self, api_version: str) -> None:
        """Writes this version from now on, one of those that it reads."""
        self.written = api_version
        self.writes_own = self._writes_own()

    def version_of(self, stored: bytes) -> str:
        """The version in which an object is stored. Raises NotAnObject."""
        if self.is_own(stored):
            return self._kind.api_version
        try:
            if stored.startswith(protobuf.PREFIX):
                return protobuf.decode_envelope(stored).api_version
            return peek_type_meta(stored if stored.startswith(b"{") else yaml_as_json(stored))[0]
        except (StatusError, msgspec.MsgspecError, ValueError) as error:
            raise NotAnObject(str(error)) from error

    def is_own(self, stored: bytes) -> bool:
        """Whether what is stored is a value as it is: it begins as one."""
        return stored.startswith(self.prefix)

    def value(self, stored: bytes) -> bytes:
        """The value of what is stored in any form, with the defaults of its version; members that nobody knows are left
        out. Raises NotAnObject."""
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
            found = protobuf.decode_envelope(stored)
            version = self._version(found.api_version, found.kind)
            if version.kind.protobuf is None:
                raise NotAnObject(f"{found.api_version} {found.kind} has no protobuf form")
            return version, version.kind.protobuf.decode(found.raw)
        data = stored if stored.startswith(b"{") else yaml_as_json(stored)
        if not data.startswith(b"{"):
            raise NotAnObject("it is no object")
        version = self._version(*peek_type_meta(data))
        obj = version.kind.read_own(data, strict=False).obj
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
        """What is stored for a value."""
        if self.writes_own:
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


def _same(obj: Any) -> Any:
    return obj
