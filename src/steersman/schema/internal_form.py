"""Schemas as upstream's messages print them: the JSON of the internal type, under its Go names.

Follows k8s.io/apiextensions-apiserver `pkg/apis/apiextensions` (JSONSchemaProps).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from steersman.machinery.errors.field import with_go_floats

FIELDS: Final[Mapping[str, tuple[str, Any]]] = {
    "ID": ("id", ""),
    "Schema": ("$schema", ""),
    "Ref": ("$ref", None),
    "Description": ("description", ""),
    "Type": ("type", ""),
    "Nullable": ("nullable", False),
    "Format": ("format", ""),
    "Title": ("title", ""),
    "Default": ("default", None),
    "Maximum": ("maximum", None),
    "ExclusiveMaximum": ("exclusiveMaximum", False),
    "Minimum": ("minimum", None),
    "ExclusiveMinimum": ("exclusiveMinimum", False),
    "MaxLength": ("maxLength", None),
    "MinLength": ("minLength", None),
    "Pattern": ("pattern", ""),
    "MaxItems": ("maxItems", None),
    "MinItems": ("minItems", None),
    "UniqueItems": ("uniqueItems", False),
    "MultipleOf": ("multipleOf", None),
    "Enum": ("enum", None),
    "MaxProperties": ("maxProperties", None),
    "MinProperties": ("minProperties", None),
    "Required": ("required", None),
    "Items": ("items", None),
    "AllOf": ("allOf", None),
    "OneOf": ("oneOf", None),
    "AnyOf": ("anyOf", None),
    "Not": ("not", None),
    "Properties": ("properties", None),
    "AdditionalProperties": ("additionalProperties", None),
    "PatternProperties": ("patternProperties", None),
    "Dependencies": ("dependencies", None),
    "AdditionalItems": ("additionalItems", None),
    "Definitions": ("definitions", None),
    "ExternalDocs": ("externalDocs", None),
    "Example": ("example", None),
    "XPreserveUnknownFields": ("x-kubernetes-preserve-unknown-fields", None),
    "XEmbeddedResource": ("x-kubernetes-embedded-resource", False),
    "XIntOrString": ("x-kubernetes-int-or-string", False),
    "XListMapKeys": ("x-kubernetes-list-map-keys", None),
    "XListType": ("x-kubernetes-list-type", None),
    "XMapType": ("x-kubernetes-map-type", None),
    "XValidations": ("x-kubernetes-validations", None),
}
"""Members of the internal type in its order: the wire name of each, and its zero value."""

_RULE: Final = {
    "Rule": ("rule", ""),
    "Message": ("message", ""),
    "MessageExpression": ("messageExpression", ""),
    "Reason": ("reason", None),
    "FieldPath": ("fieldPath", ""),
    "OptionalOldSelf": ("optionalOldSelf", None),
}
_DOCS: Final = {"Description": ("description", ""), "URL": ("url", "")}
_LISTS: Final = frozenset({"AllOf", "OneOf", "AnyOf"})
_MAPS: Final = frozenset({"Properties", "PatternProperties", "Definitions"})
_OR_BOOL: Final = frozenset({"AdditionalProperties", "AdditionalItems"})


def _struct(name: str, fields: Iterable[str]) -> type[msgspec.Struct]:
    """Return a Struct type whose JSON has these members in this order."""
    return msgspec.defstruct(name, list(fields))


_Props: Final = _struct("JSONSchemaProps", FIELDS)
_PropsOrArray: Final = _struct("JSONSchemaPropsOrArray", ("Schema", "JSONSchemas"))
_PropsOrBool: Final = _struct("JSONSchemaPropsOrBool", ("Allows", "Schema"))
_PropsOrStrings: Final = _struct("JSONSchemaPropsOrStringArray", ("Schema", "Property"))
_ExternalDocs: Final = _struct("ExternalDocumentation", _DOCS)
_ValidationRule: Final = _struct("ValidationRule", _RULE)


def internal(plain: Mapping[str, Any]) -> Any:
    """Return the internal form of a schema, for printing."""
    members = []
    for name, (sent_as, zero) in FIELDS.items():
        value = plain.get(sent_as)
        members.append(zero if value is None else _member(name, value))
    return _Props(*members)


def is_set(name: str, plain: Mapping[str, Any]) -> bool:
    """Return True if a schema sets the member with this Go name."""
    sent_as, zero = FIELDS[name]
    value = plain.get(sent_as)
    return value is not None and not (value.__class__ is zero.__class__ and value == zero)


def items_form(items: Any) -> Any:
    """Return the internal form of `items`: one schema or several."""
    if isinstance(items, list):
        return _PropsOrArray(None, [internal(each) for each in items])
    return _PropsOrArray(internal(items), None)


def rule_form(rule: Mapping[str, Any]) -> Any:
    """Return the internal form of a rule."""
    return _ValidationRule(*_members(_RULE, rule))


def _members(names: Mapping[str, tuple[str, Any]], plain: Mapping[str, Any]) -> list[Any]:
    found = ((plain.get(sent_as), zero) for sent_as, zero in names.values())
    return [zero if value is None else value for value, zero in found]


def _member(name: str, value: Any) -> Any:
    if name in _LISTS:
        return [internal(each) for each in value]
    if name in _MAPS:
        return {key: internal(each) for key, each in value.items()}
    if name in _OR_BOOL:
        is_schema = isinstance(value, Mapping)
        return _PropsOrBool(is_schema or bool(value), internal(value) if is_schema else None)
    match name:
        case "Maximum" | "Minimum" | "MultipleOf":
            return with_go_floats(float(value))
        case "Default" | "Example" | "Enum":
            return with_go_floats(value)
        case "Not":
            return internal(value)
        case "Items":
            return items_form(value)
        case "Dependencies":
            return {key: _dependency(each) for key, each in value.items()}
        case "ExternalDocs":
            return _ExternalDocs(*_members(_DOCS, value))
        case "XValidations":
            return [rule_form(each) for each in value]
    return value


def _dependency(value: Any) -> Any:
    is_schema = isinstance(value, Mapping)
    return _PropsOrStrings(internal(value) if is_schema else None, None if is_schema else value)
