"""The published form of structural schemas (apiextensions.k8s.io/v1); insignificant members are left out.

Follows k8s.io/apiextensions-apiserver: `pkg/apiserver/schema` (NewStructural, Unfold, ToKubeOpenAPI) and
`pkg/controller/openapi/v2` (ToStructuralOpenAPIV2), and the omissions of kube-openapi's encoder.

Schemas are walked without recursion, so they may be nested to any depth.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from steersman.machinery.codec.serializer import decode_plain, encode
from steersman.openapi.derived import Schema
from steersman.openapi.names import OBJECT_META
from steersman.schema.structure import says_int_or_string
from steersman.work.threads import give_way

PRESERVE: Final = "x-kubernetes-preserve-unknown-fields"
_INT_OR_STRING: Final = "x-kubernetes-int-or-string"
_EMBEDDED: Final = "x-kubernetes-embedded-resource"
_RULES: Final = "x-kubernetes-validations"
V3_PREFIX: Final = "#/components/schemas/"
V2_PREFIX: Final = "#/definitions/"

_IF_NOT_EMPTY: Final = (
    "description",
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "nullable",
    "pattern",
    "required",
    "title",
    "type",
    "uniqueItems",
    _EMBEDDED,
    _INT_OR_STRING,
    "x-kubernetes-list-map-keys",
    PRESERVE,
)
_IF_GIVEN: Final = (
    "default",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
)
_OF_RULES: Final = ("message", "messageExpression", "fieldPath")
_OF_RULES_IF_GIVEN: Final = ("reason", "optionalOldSelf")
_EMPTY: Final[tuple[Any, ...]] = (None, "", [], {})
_JUNCTORS: Final = ("allOf", "anyOf", "oneOf")
_EITHER: Final = [{"type": "integer"}, {"type": "string"}]

_METADATA: Final = (
    "Standard object's metadata. More info:"
    " https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata"
)
_OF_EMBEDDED: Final = {
    "apiVersion": (
        "apiVersion defines the versioned schema of this representation of an object. More info:"
        " https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#resources"
    ),
    "kind": (
        "kind is a string value representing the type of this object. In CamelCase. More info:"
        " https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds"
    ),
}
"""Upstream's descriptions of the members of embedded resources."""


def object_meta(*, v2: bool) -> Schema:
    """Return a reference to the metadata of objects, with room for a description beside it."""
    return _reference(V3_PREFIX + OBJECT_META, "", v2=v2)


def _reference(to: str, description: str, *, v2: bool) -> Schema:
    found: Schema = {"description": description} if description else {}
    if v2:
        return found | {"$ref": to.replace(V3_PREFIX, V2_PREFIX)}
    return found | {"allOf": [{"$ref": to}]}


class PublishedSchemas:
    """A converter of structural schemas to their form in v2 or v3 documents.

    `references` collects the full names of the built-in types to which the schemas refer.
    """

    def __init__(self, *, v2: bool) -> None:
        self._v2 = v2
        self._pending: list[tuple[Mapping[str, Any], Schema, bool]] = []
        self.references: set[str] = set()

    def schema(self, structural: Mapping[str, Any]) -> Schema:
        """Return the published form of a schema as a new object."""
        root = self._below(structural)
        while self._pending:
            give_way()
            source, target, is_nested = self._pending.pop()
            if isinstance(source.get("$ref"), str):
                self._refer(source, target)
            else:
                target.update(_own_members(source))
                self._junctors(source, target, is_nested=is_nested)
                self._parts(source, target, is_nested=is_nested)
        return root

    def _below(self, source: Mapping[str, Any], *, is_nested: bool = False) -> Schema:
        """Return the target of a subschema, which is filled later. `is_nested` is True within allOf, anyOf, oneOf and
        not.
        """
        target: Schema = {}
        self._pending.append((source, target, is_nested))
        return target

    def _refer(self, source: Mapping[str, Any], target: Schema) -> None:
        """Convert a reference; kinds declared by Structs refer to built-in types."""
        to = source["$ref"]
        self.references.add(to.removeprefix(V3_PREFIX))
        if source.get("description"):
            target |= _reference(to, source["description"], v2=self._v2)
        else:
            target["$ref"] = to.replace(V3_PREFIX, V2_PREFIX) if self._v2 else to

    def _junctors(self, source: Mapping[str, Any], target: Schema, *, is_nested: bool) -> None:
        if self._v2:
            return
        for name in _JUNCTORS:
            if alternatives := source.get(name):
                target[name] = [self._below(each, is_nested=True) for each in alternatives]
        if source.get("not") is not None:
            target["not"] = self._below(source["not"], is_nested=True)
        if source.get(_INT_OR_STRING) and not is_nested:
            _unfold(source, target)

    def _parts(self, source: Mapping[str, Any], target: Schema, *, is_nested: bool) -> None:
        """Add the subschemas, and changes of the schema itself that follow from them."""
        properties, items = source.get("properties") or {}, source.get("items")
        additional = None if is_nested else source.get("additionalProperties")
        if self._v2:
            if source.get("nullable") or source.get(PRESERVE):
                properties, items = {}, None
            _loosen(target, source, properties, items, additional)
        if properties:
            target["properties"] = {name: self._below(each, is_nested=is_nested) for name, each in properties.items()}
        if items is not None:
            target["items"] = self._below(items, is_nested=is_nested)
        if isinstance(additional, Mapping):
            target["additionalProperties"] = self._below(additional)
        elif additional is not None:
            target["additionalProperties"] = additional
        if source.get(_EMBEDDED) and not is_nested and not (self._v2 and source.get(PRESERVE)):
            self._embed(target)

    def _embed(self, target: Schema) -> None:
        """Add the members of an embedded resource."""
        self.references.add(OBJECT_META)
        whole = target.setdefault("properties", {})
        for name, text in _OF_EMBEDDED.items():
            whole[name] = {"description": text, "type": "string"}
        whole["metadata"] = object_meta(v2=self._v2) | {"description": _METADATA}
        required = target.get("required", [])
        target["required"] = [*required, *(name for name in ("kind", "apiVersion") if name not in required)]


def _own_members(source: Mapping[str, Any]) -> Schema:
    """Return the members that are not schemas."""
    own_members: Schema = {}
    for name in _IF_NOT_EMPTY:
        if value := source.get(name):
            own_members[name] = _as_go_prints(value)
    if (example := source.get("example")) not in _EMPTY:
        own_members["example"] = _as_go_prints(example)
    for name in _IF_GIVEN:
        if (value := source.get(name)) is not None:
            own_members[name] = _as_go_prints(value)
    if (documentation := source.get("externalDocs")) is not None:
        own_members["externalDocs"] = {name: text for name, text in documentation.items() if text}
    if rules := source.get(_RULES):
        own_members[_RULES] = [_rule(each) for each in rules]
    return own_members


def _rule(declared: Mapping[str, Any]) -> dict[str, Any]:
    texts = {name: declared[name] for name in _OF_RULES if declared.get(name)}
    others = {name: declared[name] for name in _OF_RULES_IF_GIVEN if declared.get(name) is not None}
    return {"rule": declared.get("rule") or "", **texts, **others}


def _as_go_prints(value: Any) -> Any:
    """Return a copy of a value with its numbers as Go prints them."""
    if value.__class__ in (str, bool) or (value.__class__ is int and -(2**63) <= value < 2**63):
        return value
    return decode_plain(encode(value))


def _unfold(source: Mapping[str, Any], target: Schema) -> None:
    """Add the two types of an int-or-string as alternatives, unless the schema has them already."""
    all_of = source.get("allOf") or ()
    if says_int_or_string(source) or (all_of and says_int_or_string(all_of[0])):
        return
    either = [dict(each) for each in _EITHER]
    if "anyOf" in target:
        target["allOf"] = [{"anyOf": either}, *target.get("allOf", ())]
    else:
        target["anyOf"] = either


def _loosen(
    target: Schema, source: Mapping[str, Any], properties: Mapping[str, Any], items: Any, additional: Any
) -> None:
    """Remove from a v2 schema the parts that v2 cannot express, or that its clients would interpret too strictly."""
    target.pop("default", None)
    type_ = target.get("type")
    if target.pop("nullable", False) or (type_ == "array" and items is None):
        target.pop("type", None)
    if source.get(PRESERVE) and type_ == "object":
        target.pop("type", None)
    if "required" in target:
        of_any = isinstance(additional, Mapping) and additional.get("nullable")
        required = [] if of_any else [name for name in target["required"] if not _may_be_null(properties.get(name))]
        target["required"] = required
        if not required:
            del target["required"]


def _may_be_null(schema: Mapping[str, Any] | None) -> bool:
    return schema is not None and bool(schema.get("nullable"))
