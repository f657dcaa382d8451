"""OpenAPI operations of resources: the routes as k8s.io/apiserver's installer describes them.

Kinds that bring their schema are described as the builder of k8s.io/apiextensions-apiserver describes custom resources.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

from steersman.endpoints.discovery import ServedResource
from steersman.endpoints.scope import root_of
from steersman.kinds.kind import Kind
from steersman.machinery.go.strings import to_lower, to_upper
from steersman.machinery.identity.schema import GroupVersionKind
from steersman.openapi.names import META, name_of_kind, tag_of, titled
from steersman.openapi.parameters import NAME, NAMESPACE, PATH, PRETTY, VERSION, Parameter, options
from steersman.rest.resource import Subresource

JSON: Final = ("application/json", "application/yaml")
MEDIA: Final = (*JSON, "application/vnd.kubernetes.protobuf")
STREAMS: Final = ("application/json;stream=watch", "application/vnd.kubernetes.protobuf;stream=watch")
ANY: Final = ("*/*",)
_PATCHES: Final = (
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
)
_STRATEGIC: Final = "application/strategic-merge-patch+json"

_LIST: Final = "meta.v1.ListOptions"
_CREATE: Final = "meta.v1.CreateOptions"
_UPDATE: Final = "meta.v1.UpdateOptions"
_PATCH: Final = "meta.v1.PatchOptions"
_DELETE: Final = "meta.v1.DeleteOptions"

_OK: Final = HTTPStatus.OK
_CREATED: Final = HTTPStatus.CREATED
_ACCEPTED: Final = HTTPStatus.ACCEPTED


_WATCHED: Final = ("allowWatchBookmarks", "watch")


@dataclass(frozen=True, slots=True)
class Body:
    """A request body: the name of its schema, and True if it is required."""

    schema: str
    required: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """A method of a path. `answer` is the schema of the response for each of `codes`, "" for text.

    `method` is in lower case. `kind` is None for operations without a kind.
    """

    path: str
    method: str
    id: str
    tag: str
    action: str = ""
    kind: GroupVersionKind | None = None
    parameters: tuple[Parameter, ...] = ()
    body: Body | None = None
    consumes: tuple[str, ...] = ANY
    produces: tuple[str, ...] = MEDIA
    codes: tuple[HTTPStatus, ...] = (_OK,)
    answer: str = ""


def operations_of(served: ServedResource) -> Iterator[Operation]:
    """Yield all operations on a resource and its subresources in one version."""
    described = (_Described if not served.form.brings_openapi else _DescribedAsCustom)(served)
    yield from described.on_objects()
    yield from described.on_collections()
    for subresource in served.subresources:
        yield from described.on_subresource(subresource)


class _Described:
    """A description of a resource of a built-in kind."""

    consumes: tuple[str, ...] = ANY
    produces: tuple[str, ...] = MEDIA
    streams: tuple[str, ...] = STREAMS
    patch_codes: tuple[HTTPStatus, ...] = (_OK, _CREATED)
    read: tuple[Parameter, ...] = (PRETTY,)
    old_watches = True
    deletes_watched = False
    """True if a deletecollection has the parameters of a watch and none of a delete."""
    delete_collection_body: Body | None = Body(f"{META}DeleteOptions", required=False)

    def __init__(self, served: ServedResource) -> None:
        self.served = served
        self.kind = served.form
        self.verbs = served.resource.verbs
        self.schema = name_of_kind(self.kind)
        self.namespaced = served.resource.namespaced
        self.root = root_of(served.group, served.version)
        self.title = titled(served.group, served.version)
        self.tag = tag_of(served.group, served.version)
        self.patches = tuple(each for each in _PATCHES if self.kind.go_type is not None or each != _STRATEGIC)

    def _make(
        self,
        method: str,
        action: str,
        verb: str,
        place: str,
        *parameters: Parameter,
        prefix: str = "",
        suffix: str = "",
        everywhere: bool = False,
        named: bool = False,
        watch: bool = False,
        **more: Any,
    ) -> Operation:
        """Return an operation at `place`, the path after the plural; `prefix` and `suffix` are around the kind in its
        id.
        """
        in_namespace = self.namespaced and not everywhere
        scope = f"{'watch/' if watch else ''}{'namespaces/{namespace}/' if in_namespace else ''}"
        around = (NAMESPACE,) if in_namespace else ()
        if self.namespaced and everywhere:
            suffix += "ForAllNamespaces"
        scoped = "Namespaced" if in_namespace else ""
        name = self.kind.name if scoped or prefix else to_upper(self.kind.name[:1]) + self.kind.name[1:]
        return Operation(
            path=f"{self.root}/{scope}{self.served.resource.plural}{'/{name}' if named else ''}{place}",
            method=method,
            id=f"{verb}{self.title}{prefix}{scoped}{name}{suffix}",
            tag=self.tag,
            action=action,
            parameters=(*parameters, *around, *((NAME,) if named else ())),
            **({"kind": self.kind.gvk, "consumes": self.consumes, "produces": self.produces} | more),
        )

    def on_objects(self) -> Iterator[Operation]:
        """Yield get, put, patch and delete of a single object."""
        for verb in ("get", "update", "patch"):
            if verb in self.verbs:
                yield self._on_object(verb, "", self.schema)
        if "delete" in self.verbs:
            # upstream's storage of namespaces returns them, too, but does not declare it: it has no deletecollection
            whole = self.served.resource.returns_deleted_object and "deletecollection" in self.verbs
            yield self._make(
                "delete",
                "delete",
                "delete",
                "",
                PRETTY,
                *options(_DELETE),
                named=True,
                codes=(_OK, _ACCEPTED),
                body=Body(f"{META}DeleteOptions", required=False),
                answer=self.schema if whole else f"{META}Status",
            )

    def _on_object(self, verb: str, place: str, schema: str, **more: Any) -> Operation:
        suffix = _title(place)
        if verb == "get":
            return self._make("get", "get", "read", place, *self.read, suffix=suffix, named=True, answer=schema, **more)
        if verb == "update":
            return self._make(
                "put",
                "put",
                "replace",
                place,
                PRETTY,
                *options(_UPDATE),
                suffix=suffix,
                named=True,
                codes=(_OK, _CREATED),
                body=Body(schema),
                answer=schema,
                **more,
            )
        return self._make(
            "patch",
            "patch",
            "patch",
            place,
            PRETTY,
            *options(_PATCH),
            suffix=suffix,
            named=True,
            codes=self.patch_codes,
            body=Body(f"{META}Patch"),
            answer=schema,
            **(more | {"consumes": self.patches}),
        )

    def on_collections(self) -> Iterator[Operation]:
        """Yield list, create, deletecollection, and the deprecated watch paths."""
        everywhere = (False, True) if self.namespaced else (False,)
        listing = (PRETTY, *options(_LIST))
        if "list" in self.verbs:
            for each in everywhere:
                yield self._make(
                    "get",
                    "list",
                    "list",
                    "",
                    *listing,
                    everywhere=each,
                    produces=(*self.produces, *self.streams),
                    answer=name_of_kind(self.kind, self.kind.list_name),
                )
        if "create" in self.verbs:
            yield self._make(
                "post",
                "post",
                "create",
                "",
                PRETTY,
                *options(_CREATE),
                codes=(_OK, _CREATED, _ACCEPTED),
                body=Body(self.schema),
                answer=self.schema,
            )
        if "deletecollection" in self.verbs:
            asked = [each for each in options(_LIST, _DELETE) if each.name not in _WATCHED]
            yield self._make(
                "delete",
                "deletecollection",
                "delete",
                "",
                *(listing if self.deletes_watched else (PRETTY, *asked)),
                prefix="Collection",
                body=self.delete_collection_body,
                answer=f"{META}Status",
            )
        if "watch" in self.verbs and self.old_watches:
            more: Any = {"produces": (*self.produces, *self.streams), "answer": f"{META}WatchEvent", "watch": True}
            for each in everywhere:
                yield self._make("get", "watchlist", "watch", "", *listing, suffix="List", everywhere=each, **more)
            yield self._make("get", "watch", "watch", "", *listing, named=True, **more)

    def on_subresource(self, subresource: Subresource) -> Iterator[Operation]:
        """Yield the operations on a subresource."""
        place = f"/{subresource.name}"
        kind = subresource.kind or self.kind
        gvk = self.kind_of_view(kind)
        if subresource.connect is not None:
            yield from self._connects(subresource, place)
        elif subresource.create is not None:
            schema = name_of_kind(kind)
            yield self._make(
                "post",
                "post",
                "create",
                place,
                PRETTY,
                *options(_CREATE),
                suffix=_title(place),
                named=True,
                codes=(_OK, _CREATED, _ACCEPTED),
                kind=gvk,
                body=Body(schema),
                answer=schema,
            )
        else:
            for verb in ("get", "update", "patch"):
                if verb in subresource.verbs:
                    yield self._on_object(verb, place, name_of_kind(kind), kind=gvk)

    def kind_of_view(self, kind: Kind[Any]) -> GroupVersionKind:
        """Return the kind of operations on a subresource with another kind."""
        return kind.gvk

    def _connects(self, subresource: Subresource, place: str) -> Iterator[Operation]:
        title = _title(place)
        asked = subresource.kind if subresource.options is None else subresource.options
        read = () if asked is None or asked.go_type is None else options(asked.go_type.name)
        if subresource.options is not None:
            yield self._make(
                "get",
                "get",
                "read",
                place,
                PRETTY,
                *read,
                suffix=title,
                named=True,
                produces=("text/plain", *self.produces),
            )
            return
        kind = self.kind if asked is None else asked
        for behind, more in (("", ()), ("/{path}", (PATH,))) if subresource.connect_path else (("", ()),):
            for method in subresource.connect_methods:
                yield self._make(
                    to_lower(method),
                    "connect",
                    "connect",
                    place + behind,
                    *read,
                    *more,
                    named=True,
                    prefix=method.capitalize(),
                    suffix=f"{title}{'WithPath' if behind else ''}",
                    kind=kind.gvk,
                    consumes=ANY,
                    produces=ANY,
                )


def _title(place: str) -> str:
    """Return the part of operation ids after the kind for a place such as "/log"."""
    return to_upper(place[1:2]) + place[2:]


class _DescribedAsCustom(_Described):
    """A description of a resource whose kind brings its schema, as upstream describes custom resources."""

    consumes = produces = JSON
    streams = ()
    patch_codes = (_OK,)
    read = (PRETTY, VERSION)
    old_watches = False
    deletes_watched = True
    delete_collection_body = None

    def kind_of_view(self, kind: Kind[Any]) -> GroupVersionKind:
        return self.kind.gvk


def operation_of_path(
    path: str, id_: str, tag: str, answer: str, produces: tuple[str, ...] = MEDIA, consumes: tuple[str, ...] = MEDIA
) -> Operation:
    """Return a GET operation outside of resources."""
    return Operation(path=path, method="get", id=id_, tag=tag, answer=answer, produces=produces, consumes=consumes)
