"""What the handlers of one resource in one group version need, worked out once when its routes are installed."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import msgspec

from steersman.admission.interface import Chain
from steersman.api.meta.v1 import ObjectMeta
from steersman.authentication.user import SYSTEM_MASTERS
from steersman.authorization.interface import Authorizer
from steersman.endpoints.metrics import RequestMetrics
from steersman.endpoints.request import Request
from steersman.machinery.errors import GroupKind, GroupResource
from steersman.machinery.protobuf import encode_body, transcode
from steersman.machinery.schema import GroupVersionKind
from steersman.machinery.scheme import Scheme
from steersman.machinery.serializer import encode
from steersman.machinery.slow_lane import SlowLane
from steersman.rest.capabilities import Item
from steersman.rest.context import Context
from steersman.rest.resource import NAME, Column, OtherVersion, Resource


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """What all resources of a server share."""

    admission: Chain
    authorizer: Authorizer
    metrics: RequestMetrics
    executor: Executor
    slow_lane: SlowLane
    services: Any
    scheme: Scheme
    min_request_timeout: int
    max_body_bytes: int
    stopping: Callable[[], bool]
    watches: set[Any]


def go_package(group: str) -> str:
    """What upstream's messages call the package of a group's types: "core", "apps", "rbac"."""
    return group.partition(".")[0] or "core"


def root_of(group: str, version: str) -> str:
    """Where the paths of a group version begin: "/apis/apps/v1", "/api/v1"."""
    return f"/apis/{group}/{version}" if group else f"/api/{version}"


class Scope:
    """One resource as it is served in one group version.

    `storage` is what implements the capabilities. `kind` is the Struct of this version; `other` says how it converts
    to and from the stored one, None where it is the stored one.
    """

    def __init__(
        self, resource: Resource[Any], other: OtherVersion | None, storage: Any, shared: Shared, *, tables: bool = True
    ) -> None:
        self.resource = resource
        self.other = other
        self.storage = storage
        self.shared = shared
        self.tables = tables
        self.group = other.group if other else resource.group
        self.version = other.version if other else resource.version
        self.kind: type[Any] = other.kind if other else resource.kind
        self.kind_name: str = self.kind.__name__
        self.api_version = f"{self.group}/{self.version}" if self.group else self.version
        self.root = root_of(self.group, self.version)
        self.group_resource = GroupResource(self.group, resource.plural)
        self.group_kind = GroupKind(self.group, self.kind_name)
        self.go_package = go_package(self.group)
        self.prefix = self.type_meta(self.kind_name)
        self.list_prefix = self.type_meta(f"{self.kind_name}List")
        self.default = other.default if other else resource.default
        self.gvk = GroupVersionKind(self.group, self.version, self.kind_name)
        self._representation = (self.group, self.version)
        self._protobuf = ("protobuf", self.group, self.version)

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """The columns of a Table. They read the stored version's objects."""
        own = self.other.columns if self.other is not None else None
        columns = self.resource.columns if own is None else own
        if not self.resource.name_column:
            return columns
        name = self.resource.name_cell
        return (NAME if name is None else replace(NAME, cell=name), *columns)

    def type_meta(self, kind: str) -> bytes:
        """`{"kind":KIND,"apiVersion":...,` in this version."""
        return f'{{"kind":"{kind}","apiVersion":"{self.api_version}",'.encode()

    def body(self, item: Item) -> bytes:
        """An item's body in this version; one of another version is made once and kept with the item."""
        if self.other is None:
            return item.body
        known = item.representations
        body: bytes | None = known.get(self._representation) if known is not None else None
        if body is None:
            body = encode(self.other.from_hub(self.storage.decode(item)))[1:]
            self.storage.remember(item, self._representation, body)
        return body

    def protobuf(self, item: Item, *, remember: bool = True) -> bytes:
        """An item's own protobuf message in this version, made once and kept with it within the cache's bound.

        One of many that are asked for once need not be remembered.
        """
        known = item.representations
        body: bytes | None = known.get(self._protobuf) if known is not None else None
        if body is None:
            body = self._encoded(item)
            if remember:
                self.storage.remember(item, self._protobuf, body)
        return body

    def _encoded(self, item: Item) -> bytes:
        if self.other is None:
            with suppress(msgspec.ValidationError):  # another server stored it in its own way
                return transcode(self.kind, b"{" + item.body)
        return encode_body(self.decode(item))

    def decode(self, item: Item) -> Any:
        """An item as a Struct of this version."""
        obj = self.storage.decode(item)
        return self.other.from_hub(obj) if self.other else obj

    def to_hub(self, obj: Any) -> Any:
        """An object of this version as the stored version's."""
        other = self.other
        if other is None:
            return obj
        hub = other.to_hub(obj)
        if other.hub_default is not None:
            other.hub_default(hub)
        return hub

    def internal_error(self, obj: Any) -> str:
        """Why an object as sent, of whatever kind, cannot become upstream's internal type; "" if it can."""
        check = self.resource.internal_error
        return check(obj) if check is not None and type(obj) is self.resource.kind else ""

    def bookmark(self, revision: int, annotations: dict[str, str]) -> bytes:
        """The body of a bookmark: an empty object but for its version."""
        metadata = ObjectMeta(resource_version=str(revision), annotations=annotations)
        return encode(self.kind(metadata=metadata))[1:]

    def lane(self, request: Request) -> SlowLane:
        """Where what is large of a request is worked on, in turn with what others have asked for."""
        return self.shared.slow_lane.of(request.user.name, request.place)

    def lane_to_begin(self, request: Request) -> SlowLane:
        """The same before anything of the request is done.

        Raises StatusError 429 while much of the same user waits; administrators always get through.
        """
        lane = self.lane(request)
        if SYSTEM_MASTERS not in request.user.groups:
            lane.check_room()
        return lane

    def context(self, request: Request, *, dry_run: bool = False, lane: SlowLane | None = None) -> Context:
        """The request as the floors below see it."""
        target = request.target
        namespace = target.namespace if self.resource.namespaced else ""
        return Context(
            request.user, namespace, target.name, self.group, self.version, self.resource.plural, target.subresource,
            request.info.verb, dry_run, warnings=request.warnings, lane=lane,
        )  # fmt: skip
