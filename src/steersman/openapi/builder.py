"""Builders of the documents of group versions, of groups, and of other paths.

A `Document` has its inputs and an ETag of them. It is only built when it is requested.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from hashlib import sha256
from itertools import chain
from typing import Any, Final
from weakref import WeakKeyDictionary

import orjson

from steersman.endpoints.discovery import ServedResource
from steersman.endpoints.scope import root_of
from steersman.kinds.kind import Kind
from steersman.machinery.codec.serializer import encode
from steersman.openapi import descriptions, schemas
from steersman.openapi.fragments import Fragments, Members, decoded, merged
from steersman.openapi.names import META, group_tag, tag_of, titled
from steersman.openapi.operations import Operation, operation_of_path, operations_of
from steersman.openapi.paths import parameters_v2, paths_v2, paths_v3
from steersman.openapi.schemas import Schemas
from steersman.openapi.sources import Tree, etag_of
from steersman.openapi.texts import SECURITY, describe_operations, describe_parameter
from steersman.work.threads import give_way

_REVISION: Final = "4"
"""A number to be raised when the same inputs give another document."""

_KUBERNETES: Final = {"title": "Kubernetes", "version": "1.36"}
_CUSTOM: Final = {"title": "Kubernetes CRD Swagger", "version": "v0.1.0"}
_BEARER: Final = {"in": "header", "name": "authorization", "type": "apiKey", "description": SECURITY}
V2_ENDS: Final = {
    "info": _KUBERNETES,
    "security": [{"BearerToken": []}],
    "securityDefinitions": {"BearerToken": _BEARER},
    "swagger": "2.0",
}
"""The parts of a v2 document besides paths, definitions and parameters."""


class Document:
    """A v3 document and the corresponding part of the v2 document.

    `group` and `version` are those of a group version, "" for other documents. `extra` are operations that belong to no
    resource.
    """

    def __init__(
        self,
        name: str,
        group: str = "",
        version: str = "",
        resources: Iterable[ServedResource] = (),
        extra: tuple[Operation, ...] = (),
    ) -> None:
        self.name = name
        self._group = group
        self._version = version
        self._resources = tuple(resources)
        self._extra = extra

    @cached_property
    def etag(self) -> str:
        """Return the ETag of all inputs. The first call serializes the schemas of the document's kinds."""
        state = orjson.dumps([_state(each) for each in self._resources]).decode()
        return etag_of((_REVISION, schemas.digest(), descriptions.digest(), self.name, state))

    @property
    def has_etag(self) -> bool:
        """Return True if the ETag has been computed already."""
        return "etag" in self.__dict__

    @property
    def is_custom(self) -> bool:
        """Return True if the document has only resources whose kinds bring their own schemas."""
        return bool(self._resources) and not self._extra

    def _operations(self) -> Iterator[list[Operation]]:
        """Yield the operations in lists: one list for each resource that brings its schema, one for all others.

        No path is in two lists.
        """
        yield [
            *self._extra,
            *(operation for each in self._resources if not _is_own(each) for operation in operations_of(each)),
        ]
        yield from (list(operations_of(each)) for each in self._resources if _is_own(each))

    def operations(self) -> Iterator[Operation]:
        """Return an iterator over all operations, in no particular order."""
        return chain.from_iterable(self._operations())

    def build(self) -> Tree:
        """Return the v3 document as a decoded object."""
        return decoded(self.members(Schemas()))

    def members(self, shared: Schemas) -> Members:
        """Return the v3 document in pieces. Runs in any thread.

        Each piece is encoded separately, so that no encoding takes long.
        """
        names: set[str] = set()
        paths: dict[str, bytes] = {}
        for operations in self._operations():
            give_way()
            names |= _names(operations)
            paths |= _encoded(paths_v3(operations))
        found = shared.v3(names, self._resources, self._group, self._version)
        components: dict[str, Members | bytes] = {"schemas": found} if found else {}
        if not self.is_custom:
            components["securitySchemes"] = encode({"BearerToken": _BEARER})
        info = encode(_CUSTOM if self.is_custom else _KUBERNETES)
        return {"components": components, "info": info, "openapi": encode("3.0.0"), "paths": paths}

    def fragments(self, shared: Schemas) -> Fragments:
        """Return the document's part of v2. Runs in any thread.

        The part of a resource that brings its schema is cached until the resource changes.
        """
        built_in, *_ = self._operations()
        parts = [_fragments(built_in, (), shared)]
        for each in self._resources:
            if _is_own(each):
                give_way()
                state, known = _state(each), shared.kept.resources.get(each.form)
                if known is None or known[0] != state:
                    known = state, _fragments(list(operations_of(each)), (each,), shared)
                    shared.kept.resources[each.form] = known
                parts.append(known[1])
        return merged(parts)


def _is_own(served: ServedResource) -> bool:
    """Return True if the resource's kind brings its own schema."""
    return served.form.brings_openapi


def _fragments(operations: list[Operation], resources: Iterable[ServedResource], shared: Schemas) -> Fragments:
    parameters = {}
    for name, tree in parameters_v2(operations).items():
        describe_parameter(tree, "")
        parameters[name] = encode(tree)
    return Fragments(shared.v2(_names(operations), resources), parameters, _encoded(paths_v2(operations)))


def _encoded(paths: dict[str, Tree]) -> dict[str, bytes]:
    describe_operations(paths)
    return {path: encode(item) for path, item in paths.items()}


def _names(operations: Iterable[Operation]) -> set[str]:
    """Return the names of the schemas to which operations refer."""
    found = {each.answer for each in operations if each.answer}
    return found | {each.body.schema for each in operations if each.body is not None}


def _state(served: ServedResource) -> Any:
    """Return everything in the documents that depends on a resource, as JSON data."""
    resource, kind = served.resource, served.form
    subresources = [
        (
            each.name,
            each.verbs,
            _kind_state(each.kind),
            _kind_state(each.options),
            each.connect is not None,
            each.create is not None,
            each.connect_methods,
            each.connect_path,
        )
        for each in served.subresources
    ]
    return (
        resource.plural,
        resource.namespaced,
        resource.verbs,
        resource.returns_deleted_object,
        kind.go_type is not None,
        _kind_state(kind),
        served.selectable_fields if _is_own(served) else (),
        subresources,
    )


def _kind_state(kind: Kind[Any] | None) -> Any:
    return None if kind is None else (str(kind.gvk), kind.list_name, _schema_state(kind))


_SCHEMA_STATES: Final[WeakKeyDictionary[Kind[Any], str]] = WeakKeyDictionary()


def _schema_state(kind: Kind[Any]) -> str:
    """Return a digest of the schema that a kind brings. Cached, because the schema may be large."""
    if not kind.brings_openapi:
        return ""
    known = _SCHEMA_STATES.get(kind)
    if known is None:
        _SCHEMA_STATES[kind] = known = sha256(kind.openapi_text).hexdigest()
    return known


def group_version_document(group: str, version: str, resources: Iterable[ServedResource]) -> Document:
    """Return the document of a group version."""
    found = tuple(resources)
    root = root_of(group, version)
    extra: tuple[Operation, ...] = ()
    if any(not each.form.brings_openapi for each in found):
        title = f"get{titled(group, version)}APIResources"
        extra = (_discovery(f"{root}/", title, tag_of(group, version), "APIResourceList"),)
    return Document(root[1:], group, version, found, extra)


def group_document(group: str) -> Document:
    """Return the document of a group's discovery path."""
    extra = _discovery(f"/apis/{group}/", f"get{titled(group)}APIGroup", group_tag(group), "APIGroup")
    return Document(f"apis/{group}", extra=(extra,))


def _discovery(path: str, id_: str, tag: str, answer: str) -> Operation:
    return operation_of_path(path, id_, tag, f"{META}{answer}")


def root_documents() -> tuple[Document, ...]:
    """Return the documents of the paths /api and /apis."""
    return (
        Document("api", extra=(_discovery("/api/", "getCoreAPIVersions", "core", "APIVersions"),)),
        Document("apis", extra=(_discovery("/apis/", "getAPIVersions", "apis", "APIGroupList"),)),
    )


def path_documents() -> tuple[Document, ...]:
    """Return the documents of paths outside of resources and discovery.

    A document is published if its path is served.
    """
    text = ("application/json",)
    version = operation_of_path(
        "/version/", "getCodeVersion", "version", "io.k8s.apimachinery.pkg.version.Info", text, consumes=text
    )
    keys = operation_of_path(
        "/openid/v1/jwks/",
        "getServiceAccountIssuerOpenIDKeyset",
        "openid",
        "",
        ("application/jwk-set+json",),
        consumes=(),
    )
    issuer = operation_of_path(
        "/.well-known/openid-configuration/",
        "getServiceAccountIssuerOpenIDConfiguration",
        "WellKnown",
        "",
        text,
        consumes=(),
    )
    return tuple(Document(each.path.strip("/"), extra=(each,)) for each in (version, keys, issuer))
