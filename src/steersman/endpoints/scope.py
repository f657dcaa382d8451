"""Data of one resource in one group version for its handlers, computed once when its routes are installed."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from steersman.admission.interface import Chain
from steersman.api.meta.v1 import ObjectMeta
from steersman.authorization.interface import Authorizer
from steersman.endpoints.metrics import RequestMetrics
from steersman.kinds.kind import Kind
from steersman.machinery.identity.schema import GroupResource, go_package
from steersman.machinery.managed_fields import FieldManager
from steersman.rest.capabilities import Item, ResourceStorage, Watcher, provides
from steersman.rest.conversion import run_with_conversions
from steersman.rest.resource import NAME, Column, OtherVersion, Resource
from steersman.work.offloading import offload

if TYPE_CHECKING:
    from typing_extensions import TypeVar as TypeVarWithDefault

    C = TypeVarWithDefault("C", bound=ResourceStorage, covariant=True, default=ResourceStorage)
else:
    C = TypeVar("C")


class Shared(Struct, frozen=True, kw_only=True):
    """Dependencies shared by all resources of a server."""

    admission: Chain
    authorizer: Authorizer
    metrics: RequestMetrics
    executor: Executor
    min_request_timeout: int
    max_body_bytes: int
    stopping: Callable[[], bool]
    watches: set[Any]


def root_of(group: str, version: str) -> str:
    """Return the path prefix of a group version: "/apis/apps/v1", "/api/v1"."""
    return f"/apis/{group}/{version}" if group else f"/api/{version}"


class Scope(Generic[C]):
    """One resource as served in one group version.

    `storage` implements the resource; handlers declare the capability (rest.capabilities) that they need of it.
    `watcher` is the same object if it can be watched, else None. `kind` is the kind in this version; `other` has the
    conversions to and from the storage's version, and is None for the storage's version itself.
    """

    def __init__(
        self, resource: Resource[Any], other: OtherVersion | None, storage: C, shared: Shared, *, tables: bool = True
    ) -> None:
        self.resource = resource
        self.other = other if resource.conversion is None else None
        self.storage = storage
        self.watcher: Watcher | None = None
        if "watch" in resource.verbs and provides(storage, Watcher):
            self.watcher = storage
        self.shared = shared
        self.tables = tables
        self.kind: Kind[Any] = other.kind if other else resource.kind
        self.api_version = self.kind.api_version
        self.group, self.version = self.kind.group, self.kind.version
        self.root = root_of(self.group, self.version)
        self.group_resource = GroupResource(self.group, resource.plural)
        self.go_package = go_package(self.group)
        self.prefix = self.kind.prefix
        self.gvk = self.kind.gvk
        self.run = offload if resource.conversion is None else run_with_conversions
        """Runner of work that converts objects, offloaded if large (rest.conversion)."""
        self.selectable_fields = None if other is None else other.selectable_fields
        """Storage's names of selectable fields by their names in this version; None if the resource's fields apply."""
        self._own_columns = None if other is None else other.columns
        self.field_managers: dict[str, FieldManager] = {}
        """Field managers by subresource, "" for the resource itself; created on demand."""
        self._representation = (self.group, self.version)
        self._protobuf = ("protobuf", self.group, self.version)

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """The columns of a Table. They read objects of the storage's version."""
        columns = self.resource.columns if self._own_columns is None else self._own_columns
        if not self.resource.name_column:
            return columns
        name = self.resource.name_cell
        return (NAME if name is None else replace(NAME, cell=name), *columns)

    @cached_property
    def replicas_paths(self) -> dict[str, tuple[str, ...] | None]:
        """Paths of the number of replicas that a Scale shows, by apiVersion; None for a version without Scale."""
        paths: dict[str, tuple[str, ...] | None] = {}
        for each in self.resource.versions.values():
            if each.group == self.group:
                below = self.resource.subresources if each.subresources is None else each.subresources
                views = (subresource.view for subresource in below)
                paths[each.kind.api_version] = next((view.replicas for view in views if view is not None), None)
        return paths

    def body(self, item: Item) -> bytes:
        """Return an item's body in this version; a converted body is cached with the item."""
        if self.other is None:
            return item.body
        known = item.representations
        body: bytes | None = known.get(self._representation) if known is not None else None
        if body is None:
            body = self.kind.body(self.other.from_hub(self.storage.decode(item)))
            self.storage.remember(item, self._representation, body)
        return body

    def protobuf(self, item: Item, *, remember: bool = True) -> bytes:
        """Return an item's protobuf message in this version, cached with the item within the cache's limits.

        A caller with many items may choose not to cache. The kind must have a protobuf form.
        """
        known = item.representations
        body: bytes | None = known.get(self._protobuf) if known is not None else None
        if body is None:
            body = self._encoded(item)
            if remember:
                self.storage.remember(item, self._protobuf, body)
        return body

    def _encoded(self, item: Item) -> bytes:
        form = self.kind.protobuf
        assert form is not None
        if self.other is None:
            with suppress(msgspec.ValidationError):  # another server stored the object in a different encoding
                return form.transcode(item.body)
        return form.encode(self.decode(item))

    def decode(self, item: Item) -> Any:
        """Return an item as an object of this version."""
        obj = self.storage.decode(item)
        return self.other.from_hub(obj) if self.other else obj

    def row_object(self, item: Item) -> Any:
        """Return an item as the object that columns read."""
        return self.storage.decode(item)

    def to_hub(self, obj: Any) -> Any:
        """Return an object of this version converted to the stored version."""
        return obj if self.other is None else self.other.hub(obj)

    def bookmark(self, revision: int, annotations: dict[str, str]) -> bytes:
        """Return the body of a bookmark: an empty object with a resourceVersion."""
        metadata = ObjectMeta(resource_version=str(revision), annotations=annotations)
        obj = self.kind.new()
        obj.metadata = metadata
        return self.kind.body(obj)
