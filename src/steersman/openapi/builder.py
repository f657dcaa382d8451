"""Makes the documents: of a group version from the resources that are served in it, of a group, of other paths.

A `Document` knows what it is made of and names its state; nothing is built before somebody asks for it.
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
"""To be raised when the same inputs make another document."""

_KUBERNETES: Final = {"title": "Kubernetes", "version": "1.36"}
_CUSTOM: Final = {"title": "Kubernetes CRD Swagger", "version": "v0.1.0"}
_BEARER: Final = {"in": "header", "name": "authorization", "type": "apiKey", "description": SECURITY}
V2_ENDS: Final = {
    "info": _KUBERNETES,
    "security": [{"BearerToken": []}],
    "securityDefinitions": {"BearerToken": _BEARER},
    "swagger": "2.0",
}
"""What a v2 document has besides paths, definitions and parameters."""


class Document:
    """One v3 document, and what it adds to that of v2.

    `group` and `version` are those of a group version, "" for other documents; `extra` are operations on no resource.
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
        """Of all that it is made of. Looks through the schemas of its kinds, once for each."""
        state = orjson.dumps([_state(each) for each in self._resources]).decode()
        return etag_of((_REVISION, schemas.digest(), descriptions.digest(), self.name, state))

    @property
    def has_etag(self) -> bool:
        """Whether the ETag was asked for before."""
        return "etag" in self.__dict__

    @property
    def is_custom(self) -> bool:
        """Whether it is about no built-in kind at all."""
        return bool(self._resources) and not self._extra

    def _operations(self) -> Iterator[list[Operation]]:
        """All of them, those of a resource that brings its schema by themselves, with no path in two lists."""
        yield [
            *self._extra,
            *(operation for each in self._resources if not _is_own(each) for operation in operations_of(each)),
        ]
        yield from (list(operations_of(each)) for each in self._resources if _is_own(each))

    def operations(self) -> Iterator[Operation]:
        """All of them, by no order."""
        return chain.from_iterable(self._operations())

    def build(self) -> Tree:
        """The v3 document."""
        return decoded(self.members(Schemas()))

    def members(self, shared: Schemas) -> Members:
        """The v3 document, in pieces. Runs in any thread; each is encoded by itself, so that none takes long."""
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
        """Its part of v2. Runs in any thread; that of a resource that brings its schema is kept until it changes."""
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
    """Whether it is of a kind that brings its schema."""
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
    """The schemas that operations refer to."""
    found = {each.answer for each in operations if each.answer}
    return found | {each.body.schema for each in operations if each.body is not None}


def _state(served: ServedResource) -> Any:
    """All that the documents tell of a resource, as JSON has it."""
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
    """A digest of the schema that a kind brings, made once: it may be large."""
    if not kind.brings_openapi:
        return ""
    known = _SCHEMA_STATES.get(kind)
    if known is None:
        _SCHEMA_STATES[kind] = known = sha256(kind.openapi_text).hexdigest()
    return known


def group_version_document(group: str, version: str, resources: Iterable[ServedResource]) -> Document:
    """The document of a group version."""
    found = tuple(resources)
    root = root_of(group, version)
    extra: tuple[Operation, ...] = ()
    if any(not each.form.brings_openapi for each in found):
        title = f"get{titled(group, version)}APIResources"
        extra = (_discovery(f"{root}/", title, tag_of(group, version), "APIResourceList"),)
    return Document(root[1:], group, version, found, extra)


def group_document(group: str) -> Document:
    """The document of what is told of a group."""
    extra = _discovery(f"/apis/{group}/", f"get{titled(group)}APIGroup", group_tag(group), "APIGroup")
    return Document(f"apis/{group}", extra=(extra,))


def _discovery(path: str, id_: str, tag: str, answer: str) -> Operation:
    return operation_of_path(path, id_, tag, f"{META}{answer}")


def root_documents() -> tuple[Document, ...]:
    """Those of /api and /apis."""
    return (
        Document("api", extra=(_discovery("/api/", "getCoreAPIVersions", "core", "APIVersions"),)),
        Document("apis", extra=(_discovery("/apis/", "getAPIVersions", "apis", "APIGroupList"),)),
    )


def path_documents() -> tuple[Document, ...]:
    """Those of paths that are neither of resources nor of discovery: each is served if its path is."""
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
