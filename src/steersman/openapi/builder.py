"""Makes the documents: of a group version from the resources that are served in it, of a group, of other paths.

A `Document` knows what it is made of and names its state; nothing is built before somebody asks for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from hashlib import sha256
from typing import Any, Final
from weakref import WeakKeyDictionary

import orjson

from steersman.endpoints.discovery import ServedResource
from steersman.endpoints.scope import root_of
from steersman.kinds.kind import Kind
from steersman.openapi import schemas
from steersman.openapi.descriptions import source_version
from steersman.openapi.fragments import Fragments
from steersman.openapi.names import META, group_tag, tag_of, titled
from steersman.openapi.operations import Operation, operation_of_path, operations_of
from steersman.openapi.paths import parameters_v2, paths_v2, paths_v3
from steersman.openapi.schemas import Schemas
from steersman.openapi.sources import Tree, etag_of
from steersman.openapi.texts import SECURITY, describe_operations, describe_parameter

_REVISION: Final = "3"
"""To be raised when the same inputs make another document."""

_KUBERNETES: Final = {"title": "Kubernetes", "version": "1.36"}
_CUSTOM: Final = {"title": "Kubernetes CRD Swagger", "version": "v0.1.0"}
_BEARER: Final = {"in": "header", "name": "authorization", "type": "apiKey", "description": SECURITY}
V2_ENDS: Final = {
    "info": _KUBERNETES, "security": [{"BearerToken": []}], "securityDefinitions": {"BearerToken": _BEARER},
    "swagger": "2.0",
}  # fmt: skip
"""What a v2 document has besides paths, definitions and parameters."""


class Document:
    """One v3 document, and what it adds to that of v2.

    `group` and `version` are those of a group version, "" for other documents; `extra` are operations on no resource.
    """

    def __init__(
        self, name: str, group: str = "", version: str = "", resources: Iterable[ServedResource] = (),
        extra: tuple[Operation, ...] = (),
    ) -> None:  # fmt: skip
        self.name = name
        self._group = group
        self._version = version
        self._resources = tuple(resources)
        self._extra = extra

    @cached_property
    def etag(self) -> str:
        """Of all that it is made of."""
        state = orjson.dumps([_state(each) for each in self._resources]).decode()
        return etag_of((_REVISION, schemas.digest(), source_version(), self.name, state))

    @property
    def is_custom(self) -> bool:
        """Whether it is about no built-in kind at all."""
        return bool(self._resources) and not self._extra

    def operations(self) -> Iterator[Operation]:
        """All of them, by no order."""
        yield from self._extra
        for each in self._resources:
            yield from operations_of(each)

    def build(self, shared: Schemas | None = None) -> Tree:
        """The v3 document. Runs in any thread."""
        operations = list(self.operations())
        paths = paths_v3(operations)
        describe_operations(paths)
        found = (shared or Schemas()).v3(_names(operations), self._resources, self._group, self._version)
        components: Tree = {"schemas": found} if found else {}
        if not self.is_custom:
            components["securitySchemes"] = {"BearerToken": dict(_BEARER)}
        info = _CUSTOM if self.is_custom else _KUBERNETES
        return {"components": components, "info": info, "openapi": "3.0.0", "paths": paths}

    def fragments(self, shared: Schemas) -> Fragments:
        """Its part of v2. Runs in any thread; each member is encoded by itself, so that none takes long."""
        operations = list(self.operations())
        paths = paths_v2(operations)
        describe_operations(paths)
        parameters = {}
        for name, tree in parameters_v2(operations).items():
            describe_parameter(tree, "")
            parameters[name] = orjson.dumps(tree)
        encoded = {path: orjson.dumps(item) for path, item in paths.items()}
        return Fragments(shared.v2(_names(operations), self._resources), parameters, encoded)


def _names(operations: Iterable[Operation]) -> set[str]:
    """The schemas that operations refer to."""
    found = {each.answer for each in operations if each.answer}
    return found | {each.body.schema for each in operations if each.body is not None}


def _state(served: ServedResource) -> Any:
    """All that the documents tell of a resource, as JSON has it."""
    resource, kind = served.resource, served.form
    subresources = [
        (each.name, each.verbs, _kind_state(each.kind), _kind_state(each.options), each.connect is not None,
         each.create is not None, each.connect_methods, each.connect_path)
        for each in served.subresources
    ]  # fmt: skip
    return (
        resource.plural, resource.namespaced, resource.verbs, resource.returns_deleted_object,
        kind.go_type is not None, _kind_state(kind), subresources,
    )  # fmt: skip


def _kind_state(kind: Kind[Any] | None) -> Any:
    return None if kind is None else (str(kind.gvk), kind.list_name, _schema_state(kind))


_SCHEMA_STATES: Final[WeakKeyDictionary[Kind[Any], str]] = WeakKeyDictionary()


def _schema_state(kind: Kind[Any]) -> str:
    """A digest of the schema that a kind brings, made once: it may be large."""
    if kind.openapi is None:
        return ""
    known = _SCHEMA_STATES.get(kind)
    if known is None:
        _SCHEMA_STATES[kind] = known = sha256(orjson.dumps(kind.openapi)).hexdigest()
    return known


def group_version_document(group: str, version: str, resources: Iterable[ServedResource]) -> Document:
    """The document of a group version."""
    found = tuple(resources)
    root = root_of(group, version)
    extra: tuple[Operation, ...] = ()
    if any(each.form.openapi is None for each in found):
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
        "/openid/v1/jwks/", "getServiceAccountIssuerOpenIDKeyset", "openid", "", ("application/jwk-set+json",),
        consumes=(),
    )  # fmt: skip
    issuer = operation_of_path(
        "/.well-known/openid-configuration/", "getServiceAccountIssuerOpenIDConfiguration", "WellKnown", "", text,
        consumes=(),
    )  # fmt: skip
    return tuple(Document(each.path.strip("/"), extra=(each,)) for each in (version, keys, issuer))
