"""The declaration of a resource: one `Resource` in one file, which reads as a fact sheet."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, Generic, Protocol, TypeVar

from msgspec import Struct, field

from steersman.api.meta.v1 import ObjectMeta
from steersman.kinds.built_in import is_built_in
from steersman.kinds.kind import Kind
from steersman.machinery.identity.schema import GroupKind, GroupResource, GroupVersionKind
from steersman.rest.allocator import Allocator, Inquiry
from steersman.rest.context import Context
from steersman.rest.conversion import Conversion
from steersman.rest.needs import S
from steersman.rest.strategy import NameValidator, Strategy

T = TypeVar("T")

KEYS: Final = "/registry"
"""The prefix of all keys in storage."""
ALL_VERBS: Final = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


class Column(Struct, frozen=True):
    """A column of a Table after Name. `cell` returns the text or number for an object; `-o wide` shows `priority` 1.

    `format` and `type` are OpenAPI's. `cell=None` shows the age of the object.
    """

    name: str
    cell: Callable[[Any], Any] | None
    type: str = "string"
    priority: int = 0
    format: str = ""
    description: str = ""
    defined: bool = True
    """False for a cell that rows have and the column definitions do not."""


def name_of(obj: Any) -> str:
    """Return the cell of the column Name."""
    name: str = obj.metadata.name
    return name


NAME: Final = Column("Name", name_of, format="name")
AGE: Final = Column("Age", None)


class OtherVersion(Struct, frozen=True):
    """Another version (or group) in which the same stored objects are served.

    `to_hub` and `from_hub` convert between objects of this version and of the hub version. `hub_default` fills in the
    hub version's defaults after conversion, where reading the object back would do so.
    """

    kind: Kind[Any]
    to_hub: Callable[[Any], Any]
    from_hub: Callable[[Any], Any]
    hub_default: Callable[[Any], None] | None = None
    columns: tuple[Column, ...] | None = None
    short_names: tuple[str, ...] | None = None
    selectable_fields: Mapping[str, str] | None = None
    """Selectable field names of this version -> those of the hub version."""
    deprecation_warning: str = ""
    """Sent as a warning with every request in this version."""
    own_fields: Mapping[str, Callable[[Any], str]] | None = None
    """Functions that read the selectable fields from objects of this version; only if the resource has a `conversion`.
    """
    subresources: tuple[Subresource[Any], ...] | None = None
    """The subresources of this version, if they differ from the stored version's."""

    def hub(self, obj: Any) -> Any:
        """Return an object of this version converted to the stored version, with the defaults of the stored version."""
        hub = self.to_hub(obj)
        if self.hub_default is not None:
            self.hub_default(hub)
        return hub

    @property
    def group(self) -> str:
        """The group in which this version is served."""
        return self.kind.group

    @property
    def version(self) -> str:
        """The name of this version."""
        return self.kind.version


def _unchanged(obj: Any) -> Any:
    return obj


class Subresource(Struct, Generic[S], frozen=True, kw_only=True):
    """An endpoint below an object, e.g. `status` or `scale`.

    Exactly one of these fields implements it:
    - `strategy`: the object itself is read and updated, under another strategy (status, approval, resize...)
    - `view`: another kind is read from and written into the object (scale)
    - `create`: a POST of another kind acts on the object (binding, eviction, token)
    - `connect`: the whole HTTP request is handed over (log, exec, proxy)

    `inquiry`, `allocator`, `create` and `connect` are given the services to which the resource is bound.
    """

    name: str
    verbs: tuple[str, ...] = ("get", "patch", "update")
    strategy: Strategy[Any, S] | None = None
    kind: Kind[Any] | None = None
    """The kind of `view` and `create` bodies; None if it is the resource's own kind."""
    view: ObjectView | None = None
    inquiry: Callable[[S], Inquiry[Any]] | None = None
    """Makes the Inquiry for updates under this strategy, as `Resource.inquiry`."""
    allocator: Callable[[S], Allocator[Any]] | None = None
    """Makes the Allocator for updates under this strategy, as `Resource.allocator`."""
    create: Callable[[S, Context, str, Any], Awaitable[Any]] | None = None
    """(services, context, name of the object, body) -> the object or Status struct to answer with, with 201."""
    connect: Callable[[S, Context, str, Any], Awaitable[Any]] | None = None
    """(services, context, name of the object, HTTP request) -> HTTP response."""
    options: Kind[Any] | None = None
    """The kind whose members are the query parameters of `connect`, where GET answers with the resource's own kind
    (log).
    """
    connect_path: bool = False
    """True if a longer path may follow (proxy)."""
    connect_methods: tuple[str, ...] = ("GET", "POST")
    tables: bool = True
    """True if clients may request a Table."""
    columns: tuple[Column, ...] = ()
    """The columns of `view` after Name."""
    also_accepts: tuple[str, ...] = ()
    """Other API versions of `kind` that `create` accepts, which do not differ in any relevant field."""


class ObjectView(Protocol):
    """A view of an object as another kind, e.g. Scale of a Deployment."""

    @property
    def replicas(self) -> tuple[str, ...]:
        """The path of the replica count in objects, in the notation of managed fields: `f:spec`, `f:replicas`."""
        ...

    def read(self, obj: Any) -> Any:
        """Return the view of `obj`. Raises StatusError."""
        ...

    def read_to_change(self, obj: Any) -> Any:
        """Return the view of `obj` for an update; a field that only `read` needs may be missing. Raises StatusError."""
        ...

    def write(self, obj: Any, view: Any) -> None:
        """Write the view's changes into `obj`. Raises StatusError."""
        ...


class Resource(Struct, Generic[T, S], frozen=True, kw_only=True):
    """Everything about one resource that the server needs to serve it.

    `kind` is that of the hub (= storage) version. `S` is the type of the services that it uses: `rest.bound.bind`
    passes them to the strategies, and to the callables that take them.
    """

    kind: Kind[T]
    plural: str
    singular: str = ""
    namespaced: bool = True
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ALL_VERBS
    discovery_verbs: Callable[[], Sequence[str]] | None = None
    """Returns the verbs that discovery shows, intersected with `verbs`; for a resource that does not always show all.
    """
    strategy: Strategy[T, S] = field(default_factory=Strategy)
    name_validator: NameValidator
    name_validator_of: Callable[[T], NameValidator] | None = None
    """Returns the validator for the name of a new object, in place of `name_validator`, where it depends on the object.
    """
    any_finalizers: bool = False
    """True if finalizers of new objects need no domain."""
    revalidates_metadata: bool = False
    """True if an update is validated as a new object too, so that clients see errors of the metadata twice."""
    columns: tuple[Column, ...] = (AGE,)
    """The columns after Name."""
    row_conditions: Callable[[T], list[dict[str, Any]]] | None = None
    """Returns the conditions of a Table row (completed pods)."""
    row_metadata: Callable[[ObjectMeta], ObjectMeta] | None = None
    """Returns the metadata that Table rows show, if it differs from the object's."""
    row_order: Callable[[T], Any] | None = None
    """The sort key of an object among the rows of a list's Table; None for the order of the list."""
    name_cell: Callable[[T], str] | None = None
    """Returns the cell of the column Name if it is more than the name ("standard (default)")."""
    name_column: bool = True
    """True if Name is the first column; events have it elsewhere."""
    selectable_fields: Mapping[str, Callable[[T], str]] = field(default_factory=dict)
    """Selectable fields other than metadata.name and metadata.namespace, each with the function that reads it."""
    indexed_field: str = ""
    """The selectable field by which many clients each request a few objects, as kubelets request the pods of their
    node.
    """
    literal_fields: frozenset[str] = frozenset()
    """Selectable fields whose value is copied from the object's JSON, so a body without the text cannot match."""
    unknown_field_label: str = ""
    """The error text for any other field label: `{0}` is the field, `{1}` the API version; "" for the usual text."""
    subresources: tuple[Subresource[S], ...] = ()
    storage_prefix: str = ""
    """The key prefix below /registry/ (e.g. "services/specs", "minions"). The default is `plural` for a built-in kind,
    and GROUP/`plural` for any other, as upstream stores custom resources.
    """
    stored_as: str = ""
    """The apiVersion in which its objects are stored, as upstream's are, if it is not the kind's own."""
    always_json: bool = False
    """True if its objects are stored as JSON whatever --storage-media-type says."""
    unserved_versions: Callable[[], Sequence[OtherVersion]] = tuple
    """Returns versions that are never served, but in which objects may be stored."""
    storage_version_hash: str = ""
    returns_deleted_object: bool = False
    """True if DELETE answers with the object instead of a Status."""
    other_versions: tuple[OtherVersion, ...] = ()
    conversion: Conversion | None = None
    """The converter used where objects are stored and read, None if objects are converted to the stored version before
    they reach the storage. With a converter, the storage takes and returns objects of the request's version, all code
    that works on objects sees that version, and `to_hub` and `from_hub` of the other versions are unused.
    """
    deprecation_warning: str = ""
    """Sent as a warning with every request in the stored version."""
    ttl: int | Callable[[S], int] = 0
    """Seconds after its last write at which an object expires, 0 for never; events have a ttl."""
    allocator: Callable[[S], Allocator[T]] | None = None
    """Makes the Allocator that reserves addresses, ports or the like for an object before it is validated."""
    inquiry: Callable[[S], Inquiry[T]] | None = None
    """Makes the Inquiry that looks up, before validation, facts that strategies need and cannot wait for."""
    answerer: Callable[[S, Context, T], Awaitable[Any]] | None = None
    """For kinds that are never stored (reviews): (services, context, object) -> the object or Status to answer with."""
    reader: Callable[[S, Context], Sequence[T]] | None = None
    """For kinds that are computed, not stored (componentstatuses): (services, context) -> all objects."""
    columns_take_long: bool = False
    """True if the cells of one row may take long to compute, however small the object is."""
    takes_long: bool = False
    """True if even small objects are validated in the worker threads, as that takes longer than their size suggests."""
    by_definition: bool = False
    """True if a CustomResourceDefinition defines it. Unknown paths and objects of a wrong kind are then answered as
    k8s.io/apiextensions-apiserver does, and discovery lists verbs and subresources in the order of the declaration.
    """
    not_yet: str = ""
    """The reason why create is refused with 501 for now, so that nothing is accepted that would silently do nothing."""

    @property
    def group(self) -> str:
        """The group of the stored version."""
        return self.kind.group

    @property
    def version(self) -> str:
        """The stored version."""
        return self.kind.version

    @property
    def versions(self) -> dict[GroupVersionKind, OtherVersion]:
        """Every version including the stored one, which converts to itself."""
        stored = OtherVersion(self.kind, _unchanged, _unchanged)
        return {each.kind.gvk: each for each in (stored, *self.other_versions)}

    @property
    def group_resource(self) -> GroupResource:
        """The group and plural, for messages about the resource."""
        return GroupResource(self.group, self.plural)

    @property
    def group_kind(self) -> GroupKind:
        """The group and kind, for messages about the kind."""
        return self.kind.group_kind

    @property
    def key_prefix(self) -> str:
        """The prefix of the keys of its objects: `/registry/pods/`, `/registry/example.com/gadgets/`."""
        usual = self.plural if is_built_in(self.kind.gvk) else f"{self.group}/{self.plural}"
        return f"{KEYS}/{self.storage_prefix or usual}/"
