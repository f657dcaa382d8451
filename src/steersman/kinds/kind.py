"""The interface of kinds: names, and operations on objects."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, Final, Generic, TypeVar

from steersman.machinery.codec.go_types import GoType
from steersman.machinery.codec.serializer import encode
from steersman.machinery.codec.strict import Decoded, Media
from steersman.machinery.identity.schema import GroupKind, GroupVersionKind
from steersman.machinery.managed_fields import Schema

T = TypeVar("T")

Plain = dict[str, Any]

NEWLINE: Final = 0x0A

ANY_OBJECT: Final = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
"""The schema of objects about which nothing is declared."""


class ProtobufForm(ABC, Generic[T]):
    """The protobuf messages of a kind's objects, without the envelope."""

    @abstractmethod
    def encode(self, obj: T) -> bytes:
        """Return the message of an object. Raises NotMarshalableError."""

    @abstractmethod
    def decode(self, message: bytes) -> T:
        """Return the object of a message. Raises DecodeError."""

    @abstractmethod
    def transcode(self, body: bytes) -> bytes:
        """Return the message of a stored body.

        Raises msgspec.ValidationError if another server stored the body in a form of its own.
        """


class Kind(ABC, Generic[T]):
    """One kind in one version.

    `T` is the Python type of its objects: it has `metadata`, an ObjectMeta, and `kind` and `api_version`, which are ""
    while code works on an object.

    A *value* is stored: JSON with kind and apiVersion and without resourceVersion; a newline may follow, as Go's
    encoder ends a document with a newline. A *body* is served and cached: the same JSON without `prefix`, but with the
    resourceVersion in its position.
    """

    protobuf: ProtobufForm[T] | None = None
    """None for kinds without a protobuf form: a request that accepts only protobuf gets 406, a protobuf body gets 415.
    """
    go_type: GoType | None = None
    """The type that governs strategic merge patches; None for kinds that do not support them (415)."""
    is_open = False
    """True if its objects are any JSON, with keys sorted as Go prints a map; the kind has its own schema for OpenAPI."""
    refits = False
    """True if a served object may differ from the stored one: pruned, defaulted, or of another version."""
    needs_type_meta = False
    """True if objects from clients must have kind and apiVersion."""
    prefix: bytes
    """The bytes before a body in an answer."""

    def __init__(
        self, gvk: GroupVersionKind, list_name: str = "", *, default: Callable[[T], None] | None = None
    ) -> None:
        self.gvk: Final = gvk
        self.group: Final = gvk.group
        self.version: Final = gvk.version
        self.name: Final = gvk.kind
        self.list_name: Final = list_name or f"{gvk.kind}List"
        self.api_version: Final = str(gvk.group_version)
        self.group_kind: Final = GroupKind(gvk.group, gvk.kind)
        self.has_defaults: Final = default is not None
        """True if `default` does anything."""
        self.default: Final[Callable[[T], None]] = default or _nothing
        """Fills in the defaults of this version, after decoding and before everything else."""
        self._parts: dict[tuple[str, ...], Callable[[bytes], Any]] = {}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.gvk})"

    takes_long: bool = False
    """True if work on any object of this kind is large work, however small the object is; valid while not cold."""

    is_cold: bool = False
    """True if `warm` must be called, in a worker thread, before objects are read; that may take some milliseconds."""

    @property
    def brings_openapi(self) -> bool:
        """True if the kind has an OpenAPI schema of its own, which may take long to make."""
        return True

    @property
    def openapi(self) -> Mapping[str, Any] | None:
        """The published structural schema (apiextensions.k8s.io/v1) of its objects as JSON; None for the built-in
        kinds.

        apiVersion, kind and metadata may be missing in it.
        """
        return ANY_OBJECT

    @property
    def openapi_text(self) -> bytes:
        """The JSON from which `openapi` is made: kinds with equal texts have equal schemas."""
        return encode(self.openapi)

    def warm(self) -> None:
        """Prepare slow parts that are not needed before the first object is read."""

    # Objects

    @abstractmethod
    def new(self) -> T:
        """Return an empty object."""

    @abstractmethod
    def copy(self, obj: T) -> T:
        """Return a copy that shares nothing with `obj`."""

    def internal_error(self, obj: T) -> str:
        """Return the reason why an object as sent cannot become upstream's internal type, "" if it can.

        An object with a reason is refused like an object that does not decode. May bring parts that it reads into
        canonical form.
        """
        return ""

    # Objects from clients

    @abstractmethod
    def read(self, data: bytes, media: Media, *, strict: bool) -> Decoded[T]:
        """Decode a request body whose type meta has been peeked at. Raises DecodeError.

        With `strict`, the warnings name unknown and repeated members.
        """

    @abstractmethod
    def read_internal(self, data: bytes, *, strict: bool) -> Decoded[T]:
        """Decode a JSON document of this server's own, such as the result of a patch: no member occurs twice in it."""

    @abstractmethod
    def from_plain(self, data: Plain) -> Decoded[T]:
        """Convert plain values to an object as apimachinery's converter does, which is more lenient than JSON decoding.

        Warnings are about unknown members. Raises DecodeError.
        """

    def from_applied(self, data: Plain) -> Decoded[T]:
        """Convert plain values, merged by an apply or for finding owners, to an object without pruning.

        Raises DecodeError.
        """
        return self.from_plain(data)

    # Stored and served forms

    @abstractmethod
    def value(self, obj: T) -> bytes:
        """Return the value to store for `obj`, whose kind, apiVersion and resourceVersion are omitted or set by the
        kind.
        """

    @abstractmethod
    def body(self, obj: T) -> bytes:
        """Return the body of an object as it is, with its resourceVersion."""

    @abstractmethod
    def present(self, value: bytes, revision: int) -> bytes:
        """Return the body to serve for a stored value that was written at `revision`."""

    def shows(self, body: bytes, value: bytes, revision: int) -> bool:
        """Return True if `body` is served for a value written at `revision`."""
        return self.present(value, revision) == body

    @abstractmethod
    def body_at(self, body: bytes, revision: int) -> bytes:
        """Return the body of the same object at another revision."""

    def body_as_read(self, value: bytes) -> bytes:
        """Return the body that a client would read if this value were stored."""
        return self.body_of(value)

    @abstractmethod
    def body_of(self, value: bytes) -> bytes:
        """Return the body of a value that is not stored (yet), without a resourceVersion."""

    @abstractmethod
    def decode(self, body: bytes) -> T:
        """Return the object of a body; the caller owns it."""

    def partial_decoder(self, paths: tuple[str, ...]) -> Callable[[bytes], Any]:
        """Return a function that decodes only the members on `paths` (`spec.nodeName`) of a body.

        A call takes a few milliseconds at most, however large the object is. Its result has the attributes of an
        object.
        """
        found = self._parts.get(paths)
        if found is None:
            found = self._parts[paths] = self._make_partial_decoder(paths)
        return found

    @abstractmethod
    def _make_partial_decoder(self, paths: tuple[str, ...]) -> Callable[[bytes], Any]:
        """Make the function that `partial_decoder` returns, once for each set of paths."""

    @abstractmethod
    def list_ends(self, metadata: Mapping[str, Any]) -> tuple[bytes, bytes]:
        """Return the JSON of a list before its first and after its last item, with this ListMeta.

        Items are an opening brace and a body, with commas between.
        """

    # Plain data and field ownership

    @abstractmethod
    def to_plain(self, obj: T) -> Plain:
        """Return the object as dicts and lists by JSON name, with exactly the members of its JSON."""

    def to_plain_for(self, obj: T, patch: Plain) -> Plain:
        """Return the object as `to_plain` does for a merge patch; what it does not reach may be kept as JSON."""
        return self.to_plain(obj)

    @abstractmethod
    def owned(self, obj: T) -> Plain:
        """Return the object as plain data without managedFields, for field ownership. The caller must not change it."""

    @cached_property
    def empty(self) -> Plain:
        """An empty object in the form of `owned`. The caller must not change it."""
        return self.owned(self.new())

    @abstractmethod
    def differing(self, old: T, new: T) -> tuple[Plain, Plain]:
        """Return two objects in the form of `owned`, without the members that are equal in both."""

    @property
    @abstractmethod
    def schema(self) -> Schema:
        """The schema for field ownership. Raises LookupError if there is none."""


def _nothing(obj: object) -> None:
    """Fill in no defaults."""
