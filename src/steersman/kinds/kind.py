"""What a kind is: its names, and what can be done to its objects."""

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
"""A schema of objects of which nothing is known."""


class ProtobufForm(ABC, Generic[T]):
    """How objects of a kind look as protobuf messages, without the envelope."""

    @abstractmethod
    def encode(self, obj: T) -> bytes:
        """The message of an object. Raises NotMarshalableError."""

    @abstractmethod
    def decode(self, message: bytes) -> T:
        """The object of a message. Raises DecodeError."""

    @abstractmethod
    def transcode(self, body: bytes) -> bytes:
        """The message of a stored body. Raises msgspec.ValidationError if another server stored it in its own way."""


class Kind(ABC, Generic[T]):
    """One kind in one version. `T` is what its objects are in Python: they have `metadata`, an ObjectMeta, and `kind`
    and `api_version`, which are set aside ("") while an object is worked on.

    A *value* is what is stored: JSON with kind and apiVersion and without resourceVersion; a newline may follow, as
    Go's encoder ends a document with one. A *body* is what is served and cached: the same after `prefix`, with the
    resourceVersion in its place.
    """

    protobuf: ProtobufForm[T] | None = None
    """None for kinds that have no such form: asking for it is 406, sending it 415."""
    go_type: GoType | None = None
    """The type that strategic merge patches go by; None for kinds that cannot be patched so (415)."""
    is_open = False
    refits = False
    """Whether what is presented may be another object than what is stored: pruned, defaulted, of another version."""
    """Whether its JSON is any JSON, whose keys are sorted as Go prints a map; it brings its own schema for OpenAPI."""
    needs_type_meta = False
    """Whether what clients send must say kind and apiVersion."""
    prefix: bytes
    """What is before a body in an answer."""

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
        """Whether `default` does anything."""
        self.default: Final[Callable[[T], None]] = default or _nothing
        """Fills in the defaults of this version, after reading and before everything else."""
        self._parts: dict[tuple[str, ...], Callable[[bytes], Any]] = {}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.gvk})"

    takes_long: bool = False
    """Whether work on any object of it is large work, however small the object is; known once it is not cold."""

    is_cold: bool = False
    """True if `warm` is to be called before objects are read, beside the loop: it may take some milliseconds."""

    @property
    def brings_openapi(self) -> bool:
        """Whether there is one of its own, which may take long to make."""
        return True

    @property
    def openapi(self) -> Mapping[str, Any] | None:
        """The structural schema (apiextensions.k8s.io/v1) of its objects that is published, as JSON has it; apiVersion,
        kind and metadata need not be in it. None for the built-in kinds."""
        return ANY_OBJECT

    @property
    def openapi_text(self) -> bytes:
        """What it is made of, in JSON: kinds with equal texts have equal ones."""
        return encode(self.openapi)

    def warm(self) -> None:
        """Makes what takes long to make and is not needed before objects are."""

    # Objects

    @abstractmethod
    def new(self) -> T:
        """An empty object."""

    @abstractmethod
    def copy(self, obj: T) -> T:
        """A copy that shares nothing with `obj`."""

    def internal_error(self, obj: T) -> str:
        """Why an object as sent cannot become upstream's internal type, "" if it can; may bring what it reads into its
        one form. Such an object is refused as one that does not decode."""
        return ""

    # What clients send

    @abstractmethod
    def read(self, data: bytes, media: Media, *, strict: bool) -> Decoded[T]:
        """The object of a body whose type meta has been peeked at. Raises DecodeError.

        With `strict`, unknown and repeated members are among the warnings.
        """

    @abstractmethod
    def read_own(self, data: bytes, *, strict: bool) -> Decoded[T]:
        """The same of a JSON document that this server has made, as patches do: no member is in it twice."""

    @abstractmethod
    def from_plain(self, data: Plain) -> Decoded[T]:
        """The object of plain values as apimachinery's converter makes it: more lenient than JSON.

        Warnings are of unknown members. Raises DecodeError.
        """

    def from_applied(self, data: Plain) -> Decoded[T]:
        """The same of what an apply has merged, or converts to find owners: of a kind that is pruned nothing is taken
        out. Raises DecodeError."""
        return self.from_plain(data)

    # What is stored and served

    @abstractmethod
    def value(self, obj: T) -> bytes:
        """The value to store for `obj`, whose kind, apiVersion and resourceVersion are left out or set aside."""

    @abstractmethod
    def body(self, obj: T) -> bytes:
        """The body of an object as it is, its resourceVersion with it."""

    @abstractmethod
    def present(self, value: bytes, revision: int) -> bytes:
        """The body served for a stored value written at `revision`."""

    def shows(self, body: bytes, value: bytes, revision: int) -> bool:
        """Return True if `body` is served for a value written at `revision`."""
        return self.present(value, revision) == body

    @abstractmethod
    def body_at(self, body: bytes, revision: int) -> bytes:
        """The body of the same object, as of another revision."""

    def body_as_read(self, value: bytes) -> bytes:
        """The body of what would be read if this value were stored."""
        return self.body_of(value)

    @abstractmethod
    def body_of(self, value: bytes) -> bytes:
        """The body of a value that is not stored (yet): without a resourceVersion."""

    @abstractmethod
    def decode(self, body: bytes) -> T:
        """The object of a body, the caller's own."""

    def part(self, paths: tuple[str, ...]) -> Callable[[bytes], Any]:
        """A function that reads these members of a body (`spec.nodeName`) and skips the rest: a few milliseconds at
        most, however large the object is. What it gives has the attributes of an object."""
        found = self._parts.get(paths)
        if found is None:
            found = self._parts[paths] = self._part_reader(paths)
        return found

    @abstractmethod
    def _part_reader(self, paths: tuple[str, ...]) -> Callable[[bytes], Any]:
        """What `part` gives, made once for each set of paths."""

    @abstractmethod
    def list_ends(self, metadata: Mapping[str, Any]) -> tuple[bytes, bytes]:
        """What is before the first and after the last item of a list in JSON, with this ListMeta; items are an opening
        brace and a body, with commas between."""

    # Plain data, and who owns it

    @abstractmethod
    def to_plain(self, obj: T) -> Plain:
        """The object as dicts and lists under its wire names, with exactly the members its JSON has."""

    def to_plain_for(self, obj: T, patch: Plain) -> Plain:
        """Return the object as `to_plain` does for a merge patch; what it does not reach may be kept as JSON."""
        return self.to_plain(obj)

    @abstractmethod
    def owned(self, obj: T) -> Plain:
        """The same for the tracking of ownership: without managedFields, which nobody owns. Nothing may change it."""

    @cached_property
    def empty(self) -> Plain:
        """An empty object as `owned` has it. Nothing may change it."""
        return self.owned(self.new())

    @abstractmethod
    def differing(self, old: T, new: T) -> tuple[Plain, Plain]:
        """Two objects as `owned` has them, without members that are equal in both."""

    @property
    @abstractmethod
    def schema(self) -> Schema:
        """The schema by which fields are owned. Raises LookupError where there is none."""


def _nothing(obj: object) -> None:
    """Fills in no defaults."""
