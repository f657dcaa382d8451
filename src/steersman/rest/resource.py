"""The declaration of a resource: one `Resource` in one file reads as a fact sheet about a kind."""

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
"""Where every key begins."""
ALL_VERBS: Final = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


class Column(Struct, frozen=True):
    """A column of a Table after Name. `cell` gives the text or number for an object; `priority` 1 is shown by -o wide.

    `format` and `type` are OpenAPI's. `cell=None` stands for the age of the object.
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
    """The cell of the column Name."""
    name: str = obj.metadata.name
    return name


NAME: Final = Column("Name", name_of, format="name")
AGE: Final = Column("Age", None)


class OtherVersion(Struct, frozen=True):
    """Another version (or group) that serves the same stored objects.

    `to_hub` and `from_hub` convert between its objects and the resource's own; `hub_default` fills in the defaults of
    the stored version after conversion, where reading it back would do so.
    """

    kind: Kind[Any]
    to_hub: Callable[[Any], Any]
    from_hub: Callable[[Any], Any]
    hub_default: Callable[[Any], None] | None = None
    columns: tuple[Column, ...] | None = None
    short_names: tuple[str, ...] | None = None
    selectable_fields: Mapping[str, str] | None = None
    """Names of selectable fields in this version -> the hub's."""
    deprecation_warning: str = ""
    """Sent with every request in this version."""
    own_fields: Mapping[str, Callable[[Any], str]] | None = None
    """Where the resource has a `conversion`: what reads the selectable fields of this version's objects."""
    subresources: tuple[Subresource[Any], ...] | None = None
    """Those of this version, where they are not the stored version's."""

    def hub(self, obj: Any) -> Any:
        """An object of this version as the stored version's, with the defaults of that."""
        hub = self.to_hub(obj)
        if self.hub_default is not None:
            self.hub_default(hub)
        return hub

    @property
    def group(self) -> str:
        """The group it is served in."""
        return self.kind.group

    @property
    def version(self) -> str:
        """The version it is served in."""
        return self.kind.version


def _same(obj: Any) -> Any:
    return obj


class Subresource(Struct, Generic[S], frozen=True, kw_only=True):
    """Something below an object, e.g. `status` or `scale`.

    Exactly one of these makes it work:
    - `strategy`: the object itself is read and updated, under another strategy (status, approval, resize...)
    - `view`: another kind is read from and written into the object (scale)
    - `create`: a POST of another kind acts on the object (binding, eviction, token)
    - `connect`: the request is handed over whole (log, exec, proxy)

    `inquiry`, `allocator`, `create` and `connect` are given the services that the resource is bound to.
    """

    name: str
    verbs: tuple[str, ...] = ("get", "patch", "update")
    strategy: Strategy[Any, S] | None = None
    kind: Kind[Any] | None = None
    """The kind of `view` and `create` bodies; None where it is the resource's own."""
    view: ObjectView | None = None
    inquiry: Callable[[S], Inquiry[Any]] | None = None
    """As that of a Resource, for updates under this strategy."""
    allocator: Callable[[S], Allocator[Any]] | None = None
    """The same."""
    create: Callable[[S, Context, str, Any], Awaitable[Any]] | None = None
    """(services, context, name of the object, body) -> the object or Status struct to answer with, with 201."""
    connect: Callable[[S, Context, str, Any], Awaitable[Any]] | None = None
    """(services, context, name of the object, HTTP request) -> HTTP response."""
    options: Kind[Any] | None = None
    """The kind whose members are the query parameters of `connect` where what is read is the resource's own (log)."""
    connect_path: bool = False
    """Whether more path may follow (proxy)."""
    connect_methods: tuple[str, ...] = ("GET", "POST")
    tables: bool = True
    """Whether a Table of it can be asked for."""
    columns: tuple[Column, ...] = ()
    """Those of `view`, after Name."""
    also_accepts: tuple[str, ...] = ()
    """Other API versions of `kind` that `create` takes, alike in all that counts."""


class ObjectView(Protocol):
    """Another kind's view of an object, e.g. Scale of a Deployment."""

    @property
    def replicas(self) -> tuple[str, ...]:
        """Where objects say the number that the view changes, as the tracking of ownership names it: `f:spec`,
        `f:replicas`."""
        ...

    def read(self, obj: Any) -> Any:
        """The view of `obj`. Raises StatusError."""
        ...

    def read_to_change(self, obj: Any) -> Any:
        """The same for what is to be written; the object may lack what is to be shown. Raises StatusError."""
        ...

    def write(self, obj: Any, view: Any) -> None:
        """Puts the view's changes into `obj`. Raises StatusError."""
        ...


class Resource(Struct, Generic[T, S], frozen=True, kw_only=True):
    """Everything about one resource that the server needs to serve it.

    `kind` is that of the hub (= storage) version. `S` is what it uses of the rest of the server: `rest.bound.bind`
    gives it to the strategies, and to the callables that take it.
    """

    kind: Kind[T]
    plural: str
    singular: str = ""
    namespaced: bool = True
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ALL_VERBS
    told_verbs: Callable[[], Sequence[str]] | None = None
    """Gives those that discovery names, as far as `verbs` has them, where it does not always name all of these."""
    strategy: Strategy[T, S] = field(default_factory=Strategy)
    name_validator: NameValidator
    name_validator_of: Callable[[T], NameValidator] | None = None
    """What judges the name of a new object in place of `name_validator`, where that depends on the object."""
    any_finalizers: bool = False
    """Whether finalizers of new objects need no domain."""
    revalidates_metadata: bool = False
    """Whether an update is checked as a whole new object too, so that clients see faults of the metadata once more."""
    columns: tuple[Column, ...] = (AGE,)
    """After Name."""
    row_conditions: Callable[[T], list[dict[str, Any]]] | None = None
    """The conditions of a Table row (pods that have run to their end)."""
    row_metadata: Callable[[ObjectMeta], ObjectMeta] | None = None
    """The metadata that Table rows show, where it is not the object's."""
    row_order: Callable[[T], Any] | None = None
    """The sort key of an object among the rows of a list's Table; None for the order of the list."""
    name_cell: Callable[[T], str] | None = None
    """The cell of the column Name where that is not the name alone ("standard (default)")."""
    name_column: bool = True
    """Whether Name comes first; events put it elsewhere."""
    selectable_fields: Mapping[str, Callable[[T], str]] = field(default_factory=dict)
    """Beside metadata.name and metadata.namespace."""
    indexed_field: str = ""
    """The selectable field by whose value many ask for a few objects each, as kubelets do for pods of their node."""
    literal_fields: frozenset[str] = frozenset()
    """Selectable fields that are texts of the object: whatever does not have a text in it does not have it there."""
    unknown_field_label: str = ""
    """The refusal of any other field: `{0}` is the field, `{1}` the API version; "" for the usual words."""
    subresources: tuple[Subresource[S], ...] = ()
    storage_prefix: str = ""
    """The key prefix below /registry/ (e.g. "services/specs", "minions"). Unless given it is `plural` for a built-in
    kind and GROUP/`plural` for any other, as upstream has it of custom resources."""
    stored_as: str = ""
    """The apiVersion in which its objects lie in the store, as upstream's do, where that is not the kind's own."""
    always_json: bool = False
    """Whether its objects lie there as JSON whatever --storage-media-type says."""
    unserved_versions: Callable[[], Sequence[OtherVersion]] = tuple
    """Gives versions that are never served, and in which objects may lie in the store."""
    storage_version_hash: str = ""
    returns_deleted_object: bool = False
    """Whether DELETE answers with the object instead of a Status."""
    other_versions: tuple[OtherVersion, ...] = ()
    conversion: Conversion | None = None
    """What converts where objects are stored and read: the storage takes and gives objects of the request's version,
    all that works on them sees that one, and of the other versions `to_hub` and `from_hub` are not used. None where
    objects become the stored version's before they come to the storage."""
    deprecation_warning: str = ""
    """Sent with every request for it in the stored version."""
    ttl: int | Callable[[S], int] = 0
    """How many seconds an object lives after its last write, 0 for ever; events have a ttl."""
    allocator: Callable[[S], Allocator[T]] | None = None
    """Makes what reserves addresses, ports or the like for an object before it is validated."""
    inquiry: Callable[[S], Inquiry[T]] | None = None
    """Makes what looks up, before validation, what strategies need to know and cannot wait for."""
    answerer: Callable[[S, Context, T], Awaitable[Any]] | None = None
    """For kinds that are never stored (reviews): (services, context, object) -> the object or Status to answer with."""
    reader: Callable[[S, Context], Sequence[T]] | None = None
    """For kinds that are computed, not stored (componentstatuses): (services, context) -> every object there is."""
    columns_take_long: bool = False
    """Whether the cells of one row, of however small an object, may take long to make."""
    takes_long: bool = False
    """True if even small objects are judged in the worker threads, as that takes longer than their size tells."""
    by_definition: bool = False
    """Whether a CustomResourceDefinition makes it: what there is not, and what is of another kind, is answered as
    k8s.io/apiextensions-apiserver does, and discovery names verbs and subresources in the order they are given in."""
    not_yet: str = ""
    """Why creating one is refused with 501 for now: nothing is accepted that would silently do nothing."""

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
        """Every version there is, the stored one too, which is its own."""
        stored = OtherVersion(self.kind, _same, _same)
        return {each.kind.gvk: each for each in (stored, *self.other_versions)}

    @property
    def group_resource(self) -> GroupResource:
        """For messages about the resource."""
        return GroupResource(self.group, self.plural)

    @property
    def group_kind(self) -> GroupKind:
        """For messages about the kind."""
        return self.kind.group_kind

    @property
    def key_prefix(self) -> str:
        """Where its objects are stored: `/registry/pods/`, `/registry/example.com/gadgets/`."""
        usual = self.plural if is_built_in(self.kind.gvk) else f"{self.group}/{self.plural}"
        return f"{KEYS}/{self.storage_prefix or usual}/"
