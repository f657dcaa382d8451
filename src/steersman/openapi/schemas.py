"""Schemas of documents: derived from the Go types, changed by recorded facts, and described.

`data/schemas.json` has, for each schema, the facts that kube-openapi reads from comments: a merge patch (RFC 7386) to
the schema that `derived` derives from the Go type, or a whole schema where there is no Go type.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
import orjson

from steersman.api.index import MODULES
from steersman.endpoints.discovery import ServedResource
from steersman.machinery.codec.serializer import encode
from steersman.machinery.patch import merge_patch
from steersman.openapi.custom import ObjectTexts, schemas_of
from steersman.openapi.derived import GVK, Schema, derive, type_named
from steersman.openapi.descriptions import Descriptions
from steersman.openapi.names import META
from steersman.openapi.part_cache import PartCache
from steersman.work.threads import give_way

_FILE: Final = Path(__file__).parent / "data" / "schemas.json"
_PREFIX: Final = "#/components/schemas/"
_OF_EVERY_GROUP: Final = (f"{META}DeleteOptions", f"{META}WatchEvent")
"""Kinds that every group version has. The record of such a kind lists the group versions of all."""
_NOT_IN_CLIENTS: Final = ("admission.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "imagepolicy.k8s.io")
"""Groups missing from the scheme of k8s.io/client-go, from which custom resources are described."""
_POD: Final = "io.k8s.api.core.v1.Pod"
_OF_EVERY_OBJECT: Final = ("apiVersion", "kind", "metadata")


class _Own(NamedTuple):
    """An encoded schema that a kind brings, and the built-in types to which it refers."""

    encoded: bytes
    references: frozenset[str]


class Schemas:
    """The schemas for documents that are built in sequence; each schema is built and described once."""

    def __init__(self, kept: PartCache | None = None) -> None:
        self.kept: Final = kept or PartCache()
        self._descriptions = Descriptions()
        self._reached: dict[str, frozenset[str]] = {}

    def v3(
        self, names: Iterable[str], resources: Iterable[ServedResource], group: str, version: str
    ) -> dict[str, bytes]:
        """Return the described, encoded schemas of a group version's v3 document: the named ones and all that they
        refer to.
        """
        kept = {} if (group, version) in MODULES else self.kept.of_custom

        def built_in(name: str) -> bytes:
            schema = recorded(name)
            if name in _OF_EVERY_GROUP:
                schema[GVK] = _gvks(schema[GVK], group, version)
            return encode(self._described(name, schema))

        return self._found(names, self._own(resources, v2=False), kept, built_in)

    def v2(self, names: Iterable[str], resources: Iterable[ServedResource]) -> dict[str, bytes]:
        """Return the described, encoded definitions for v2, by name."""

        def built_in(name: str) -> bytes:
            return encode(self._described(name, _as_v2(recorded(name))))

        return self._found(names, self._own(resources, v2=True), self.kept.v2, built_in)

    def _found(
        self, names: Iterable[str], own: Mapping[str, _Own], kept: dict[str, bytes], built_in: Callable[[str], bytes]
    ) -> dict[str, bytes]:
        """Return the named schemas and all that they refer to; new schemas of built-in types are added to `kept`."""
        found = {}
        for name in self._closure(names, own):
            give_way()
            if name in own:
                found[name] = own[name].encoded
            elif (known := kept.get(name)) is not None:
                found[name] = known
            else:
                found[name] = kept[name] = built_in(name)
        return found

    def _own(self, resources: Iterable[ServedResource], *, v2: bool) -> dict[str, _Own]:
        """Return the schemas that kinds of resources and subresources bring, by name.

        Each is encoded before the next is built, because freeing many trees at once would hold the interpreter.
        """
        found: dict[str, _Own] = {}
        for each in resources:
            give_way()
            views = (subresource.kind for subresource in each.subresources)
            for kind in (each.form, *views):
                if kind is not None and kind.brings_openapi:
                    selectable = each.selectable_fields if kind is each.form else ()
                    own = schemas_of(kind, each.resource.plural, selectable, self._object_texts(), v2=v2)
                    found |= {name: _Own(encode(schema), own.references) for name, schema in own.schemas.items()}
        return found

    def _object_texts(self) -> ObjectTexts:
        """Return the descriptions of the members that every object has, taken from those of pods."""
        if self.kept.texts is None:
            objects, lists = (
                {} if (known := self._descriptions.find(name)) is None else known.fields
                for name in (_POD, f"{_POD}List")
            )
            self.kept.texts = ObjectTexts(
                *({name: fields.get(name, "") for name in _OF_EVERY_OBJECT} for fields in (objects, lists))
            )
        return self.kept.texts

    def _closure(self, names: Iterable[str], own: Mapping[str, _Own]) -> set[str]:
        """Return the names and those of all schemas to which they lead."""
        found: set[str] = set()
        pending = list(names)
        while pending:
            name = pending.pop()
            if name not in found:
                found.add(name)
                pending += filter(_is_known, own[name].references) if name in own else self._references(name)
        return found

    def _references(self, name: str) -> frozenset[str]:
        known = self._reached.get(name)
        if known is None:
            self._reached[name] = known = frozenset(references(recorded(name)))
        return known

    def _described(self, name: str, schema: Schema) -> Schema:
        described: Schema = in_order(schema)
        self._descriptions.describe({name: described})
        return described


def _gvks(every: list[Schema], group: str, version: str) -> list[Schema]:
    """Return, from the kinds of this name, those that belong into the document of a group version."""
    if (group, version) in MODULES:
        return [each for each in every if (each["group"], each["version"]) in (("", "v1"), (group, version))]
    return [each for each in every if each["group"] not in _NOT_IN_CLIENTS]


def _is_known(name: str) -> bool:
    """Return True if the schema exists, because a schema that a kind brings may refer to anything."""
    return bool(type_named(name)) or name in _facts()


def references(schema: Any) -> Iterator[str]:
    """Yield the names of all schemas to which a v3 schema refers."""
    pending = [schema]
    while pending:
        each = pending.pop()
        if isinstance(each, dict):
            reference = each.get("$ref")
            if isinstance(reference, str):
                yield reference.removeprefix(_PREFIX)
            pending.extend(each.values())
        elif isinstance(each, list):
            pending.extend(each)


def recorded(name: str) -> Schema:
    """Return a new copy of the v3 schema of a built-in type, without descriptions. Raises LookupError."""
    type_name = type_named(name)
    facts = _facts().get(name)
    if not type_name and facts is None:
        raise LookupError(f"there is no schema {name}")
    schema = derive(type_name) if type_name else {}
    if facts is None:
        return schema
    found: Schema = merge_patch.apply(schema, orjson.loads(bytes(facts)))
    return found


@cache
def _facts() -> dict[str, msgspec.Raw]:
    return msgspec.json.decode(_FILE.read_bytes(), type=dict[str, msgspec.Raw])


@cache
def digest() -> str:
    """Return a digest of the recorded facts."""
    return hashlib.sha256(_FILE.read_bytes()).hexdigest()


def in_order(value: Any) -> Any:
    """Return a copy with the keys of all objects sorted."""
    if isinstance(value, dict):
        return {key: in_order(value[key]) for key in sorted(value)}
    return [in_order(each) for each in value] if isinstance(value, list) else value


def _as_v2(schema: Schema, *, is_named: bool = False) -> Schema:
    """Return a schema as kube-openapi's v2 builder makes it: references have no siblings, and there are no defaults.

    `is_named` means that the keys are names of properties.
    """
    found: Schema = {}
    for key, value in schema.items():
        if is_named:
            found[key] = _as_v2(value)
        elif key == "$ref":
            found[key] = value.replace(_PREFIX, "#/definitions/")
        elif key == "allOf" and len(value) == 1:
            found |= _as_v2(value[0])
        elif key == "oneOf":
            found["type"] = "string"
        elif key == "properties":
            found[key] = _as_v2(value, is_named=True)
        elif key in ("items", "additionalProperties") and isinstance(value, dict):
            found[key] = _as_v2(value)
        elif key != "default":
            found[key] = value
    return found
