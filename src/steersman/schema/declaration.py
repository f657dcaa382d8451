"""Validation of the schema of a version in a CustomResourceDefinition.

Follows k8s.io/apiextensions-apiserver `pkg/apis/apiextensions/validation` (validateCustomResourceDefinitionValidation,
ValidateCustomResourceDefinitionOpenAPISchema).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from steersman.machinery.errors import field
from steersman.machinery.errors.field import FieldError, Path
from steersman.machinery.go.strings import trim_space
from steersman.work.threads import give_way

from .compiling import Compiler, UnsupportedSchemaError, compile_node
from .default_checks import DefaultChecks
from .default_pruning import pruned_defaults
from .field_paths import FieldPathError, valid_field_path
from .internal_form import FIELDS, internal, is_set
from .list_declarations import list_type_errors, map_key_errors, set_errors
from .nodes import DEFAULTS_BELOW, MISSING, Node
from .rules import RuleValidator, SchemaPosition
from .structure import invariant_errors
from .walking import Schema, any_schema

TYPES: Final = ("array", "boolean", "integer", "number", "object", "string")
_REASONS: Final = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")
_META_FIELDS: Final = frozenset({"apiVersion", "kind", "metadata"})
_AT_ROOT: Final = (
    "Description",
    "Type",
    "Format",
    "Title",
    "Maximum",
    "ExclusiveMaximum",
    "Minimum",
    "ExclusiveMinimum",
    "MaxLength",
    "MinLength",
    "Pattern",
    "MaxItems",
    "MinItems",
    "UniqueItems",
    "MultipleOf",
    "Required",
    "Items",
    "Properties",
    "ExternalDocs",
    "Example",
    "XPreserveUnknownFields",
    "XValidations",
)
_OBJECT_AT_ROOT: Final = (
    'only "object" is allowed as the type at the root of the schema if the status subresource is enabled'
)
_UNSUPPORTED: Final = ("id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref")
_POINTERS: Final = frozenset({"additionalItems", "dependencies", "$ref"})


@dataclass(frozen=True, slots=True)
class SchemaChecks:
    """A selection of the checks of a schema; by default all checks, as for a new definition."""

    known_types: bool = True
    structural: bool = True
    pruned_defaults: bool = True
    atomic_sets: bool = True
    """Items of sets must be atomic."""
    sound_keys: bool = True
    """Keys of lists, and items of sets and of lists with keys, may not be nullable; keys must be required or have a
    default.
    """

    @staticmethod
    def of_update(old: Iterable[Schema | None]) -> SchemaChecks:
        """Return the checks of an update: those that no stored schema (of any version) fails."""
        schemas = [each for each in old if each is not None]
        return SchemaChecks(
            known_types=not any(any_schema(each, _has_unknown_type) for each in schemas),
            structural=not any(map(_is_not_structural, schemas)),
            pruned_defaults=not any(map(_has_unpruned_defaults, schemas)),
            atomic_sets=not any(any_schema(each, lambda one: any(set_errors(one, _NOWHERE))) for each in schemas),
            sound_keys=not any(any_schema(each, lambda one: any(map_key_errors(one, _NOWHERE))) for each in schemas),
        )


_NOWHERE: Final = Path("")


def _has_unknown_type(plain: Schema) -> bool:
    return bool(plain.get("type")) and plain["type"] not in TYPES


def _is_not_structural(plain: Schema) -> bool:
    try:
        compile_node(plain)
    except UnsupportedSchemaError:
        return True
    return bool(invariant_errors(plain, _NOWHERE))


def _has_unpruned_defaults(plain: Schema) -> bool:
    if _is_not_structural(plain):
        return False
    node = compile_node(plain)
    return bool(node.traits & DEFAULTS_BELOW) and bool(pruned_defaults(node))


def schema_errors(
    plain: Schema,
    path: Path,
    checks: SchemaChecks,
    *,
    status_enabled: bool,
    rules: RuleValidator | None = None,
) -> list[FieldError]:
    """Return all errors of a version's schema, in upstream's order.

    `status_enabled` tells whether there is a status subresource (of that version; of any version if all share one schema).
    """
    errors: list[FieldError] = []
    if status_enabled:
        errors += _root_errors(plain, path)
    if plain.get("nullable"):
        errors.append(field.forbidden(path / "nullable", "nullable cannot be true at the root"))
    unsupported = ""
    is_sound = False
    node: Node | None = None
    compiler = Compiler()
    if checks.structural:
        try:
            node = compiler.node(plain)
        except UnsupportedSchemaError as error:
            unsupported = str(error)
        else:
            found = invariant_errors(plain, path)
            if not found and (node.traits & DEFAULTS_BELOW or node.default is not MISSING):
                judge = DefaultChecks(pruned=checks.pruned_defaults, rules=rules)
                found = list(judge.errors(compiler.node_of_defaults(plain), path))
            errors += found
            is_sound = not found
    rule_validator = rules if is_sound else None
    walk = _Walk(checks, rule_validator)
    place = None if rule_validator is None else SchemaPosition(plain, path, None, "", "", None, node)
    walk.schema(plain, path, _Context(), place, is_root=True)
    errors += walk.errors + walk.rule_errors
    if not errors and unsupported:
        errors.append(field.invalid(path, "", unsupported))
    if rule_validator is not None:
        errors += rule_validator.total_errors(path)
    return errors


def _root_errors(plain: Schema, path: Path) -> Iterator[FieldError]:
    """Yield the errors of the root schema if the status is validated separately."""
    for name in FIELDS:
        if not is_set(name, plain):
            continue
        if name == "Type":
            if plain["type"] != "object":
                yield field.invalid(path / "type", plain["type"], _OBJECT_AT_ROOT)
                return
        elif name not in _AT_ROOT:
            text = (
                f"only [{' '.join(_AT_ROOT)}] fields are allowed at the root of the schema if the status subresource is"
                " enabled"
            )
            yield field.invalid(path, internal(plain), text)
            return


@dataclass(frozen=True, slots=True)
class _Context:
    """Facts about a schema that follow from the schemas around it."""

    no_defaults: str | None = None
    """The reason why a default is forbidden here, None if it is allowed."""
    in_meta: bool = False
    """True within the kind, apiVersion or metadata of a resource."""
    uncorrelatable: Path | None = None

    def uncorrelated(self, path: Path) -> _Context:
        return self if self.uncorrelatable is not None else replace(self, uncorrelatable=path)


class _Walk:
    """A walk through a schema that collects errors, and those of rules separately."""

    def __init__(self, checks: SchemaChecks, rules: RuleValidator | None) -> None:
        self._checks = checks
        self._rules = rules
        self.errors: list[FieldError] = []
        self.rule_errors: list[FieldError] = []

    def schema(
        self, plain: Schema, path: Path, context: _Context, place: SchemaPosition | None, *, is_root: bool = False
    ) -> None:
        """Collect the errors of a schema and its subschemas; `place` is None where rules are not checked."""
        give_way()
        before = len(self.errors)
        self.errors += _standard_errors(plain, path, context, known_types=self._checks.known_types)
        if plain.get("uniqueItems"):
            text = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
            self.errors.append(field.forbidden(path / "uniqueItems", text))
        self._additional(plain, path, context, place)
        for name, each in (plain.get("properties") or {}).items():
            self._property(plain, name, each, path, context, place, is_root=is_root)
        self._alternatives(plain, path, context)
        self._items(plain, path, context, place)
        for name, each in (plain.get("dependencies") or {}).items():
            if isinstance(each, Mapping):
                self.schema(each, (path / "dependencies")[name], context, None)
        self.errors += _extension_errors(plain, path)
        self.errors += list_type_errors(plain, path, atomic_sets=self._checks.atomic_sets)
        if self._checks.sound_keys:
            self.errors += map_key_errors(plain, path)
        if plain.get("x-kubernetes-validations"):
            self.errors += _rule_errors(plain, path / "x-kubernetes-validations")
            if self._rules is not None and place is not None and len(self.errors) == before:
                place = place._replace(uncorrelatable=context.uncorrelatable)
                self.rule_errors += self._rules.rule_errors(place)

    def _additional(self, plain: Schema, path: Path, context: _Context, place: SchemaPosition | None) -> None:
        additional = plain.get("additionalProperties")
        if additional is None:
            return
        is_schema = isinstance(additional, Mapping)
        if plain.get("properties") and (is_schema or not additional):
            text = "additionalProperties and properties are mutual exclusive"
            self.errors.append(field.forbidden(path / "additionalProperties", text))
        if is_schema:
            if context.in_meta:
                context = replace(context, no_defaults="inside additionalProperties applying to object metadata")
            below = path / "additionalProperties"
            self.schema(additional, below, context, _below(place, additional, below, "additionalProperties"))

    def _property(
        self,
        plain: Schema,
        name: str,
        each: Schema,
        path: Path,
        context: _Context,
        place: SchemaPosition | None,
        *,
        is_root: bool,
    ) -> None:
        if plain.get("x-kubernetes-map-type") not in (None, "granular", "atomic"):
            context = context.uncorrelated(path)
        if name in _META_FIELDS and (is_root or plain.get("x-kubernetes-embedded-resource")):
            context = replace(context, in_meta=True)
            if is_root:
                context = replace(context, no_defaults=f"in top-level {name}")
        below = (path / "properties")[name]
        self.schema(each, below, context, _below(place, each, below, "properties", name))

    def _alternatives(self, plain: Schema, path: Path, context: _Context) -> None:
        negated = plain.get("not")
        if negated is not None:
            self.schema(negated, path / "not", context, None)
        for junctor in ("allOf", "oneOf", "anyOf"):
            for number, each in enumerate(plain.get(junctor) or ()):
                self.schema(each, (path / junctor)[number], context, None)
        for name, each in (plain.get("definitions") or {}).items():
            self.schema(each, (path / "definitions")[name], context, None)

    def _items(self, plain: Schema, path: Path, context: _Context, place: SchemaPosition | None) -> None:
        items = plain.get("items")
        if items is None:
            return
        if plain.get("x-kubernetes-list-type") != "map":
            context = context.uncorrelated(path)
        below = path / "items"
        if isinstance(items, Mapping):
            self.schema(items, below, context, _below(place, items, below, "items"))
        else:
            for number, each in enumerate(items):
                self.schema(each, below[number], context, None)


def _below(place: SchemaPosition | None, plain: Schema, path: Path, step: str, name: str = "") -> SchemaPosition | None:
    return None if place is None else SchemaPosition(plain, path, place, step, name, None)


def _standard_errors(plain: Schema, path: Path, context: _Context, *, known_types: bool) -> Iterator[FieldError]:
    """Yield the errors of OpenAPI features that definitions may not use."""
    if known_types and _has_unknown_type(plain):
        yield field.not_supported(path / "type", plain["type"], TYPES)
    if plain.get("default") is not None and context.no_defaults is not None:
        yield field.forbidden(path / "default", f"must not be set {context.no_defaults}")
    for name in _UNSUPPORTED:
        value = plain.get(name)
        if value or (value is not None and name in _POINTERS):
            yield field.forbidden(path / name, f"{name} is not supported")
    if plain.get("type") == "null":
        text = "type cannot be set to null, use nullable as an alternative"
        yield field.forbidden(path / "type", text)
    if isinstance(plain.get("items"), list) and plain["items"]:
        yield field.forbidden(path / "items", "items must be a schema object and not an array")
    if context.in_meta and plain.get("x-kubernetes-embedded-resource"):
        yield field.forbidden(path / "x-kubernetes-embedded-resource", "must not be used inside of resource meta")


def _extension_errors(plain: Schema, path: Path) -> Iterator[FieldError]:
    if plain.get("x-kubernetes-preserve-unknown-fields") is False:
        yield field.invalid(path / "x-kubernetes-preserve-unknown-fields", False, "must be true or undefined")
    map_type = plain.get("x-kubernetes-map-type")
    if map_type is None:
        return
    kind = plain.get("type") or ""
    if kind != "object":
        text = "must be object if x-kubernetes-map-type is specified"
        yield field.invalid(path / "type", kind, text) if kind else field.required(path / "type", text)
    if map_type not in ("atomic", "granular"):
        yield field.not_supported(path / "x-kubernetes-map-type", map_type, ("atomic", "granular"))


def _rule_errors(plain: Schema, path: Path) -> Iterator[FieldError]:
    """Yield the errors of rules, apart from their expressions."""
    for number, rule in enumerate(plain["x-kubernetes-validations"]):
        at = path[number]
        yield from _text_errors(rule, at)
        reason = rule.get("reason")
        if reason is not None and reason not in _REASONS:
            yield field.not_supported(at / "reason", reason, _REASONS)
        place = rule.get("fieldPath") or ""
        if place:
            if not trim_space(place):
                yield field.invalid(at / "fieldPath", place, "must be non-empty if specified")
            if _has_line_breaks(place):
                yield field.invalid(at / "fieldPath", place, "must not contain line breaks")
            if not _is_valid_path(plain, place):
                yield field.invalid(at / "fieldPath", place, "must be a valid path")


def _text_errors(rule: Mapping[str, Any], path: Path) -> Iterator[FieldError]:
    text, message = rule.get("rule") or "", rule.get("message") or ""
    expression = rule.get("messageExpression") or ""
    if not trim_space(text):
        yield field.required(path / "rule", "rule is not specified")
    elif message and not trim_space(message):
        yield field.invalid(path / "message", message, "must be non-empty if specified")
    elif _has_line_breaks(trim_space(message)):
        yield field.invalid(path / "message", message, "must not contain line breaks")
    elif _has_line_breaks(trim_space(text)) and not trim_space(message):
        yield field.required(path / "message", "message must be specified if rule contains line breaks")
    if expression and not trim_space(expression):
        yield field.required(path / "messageExpression", "messageExpression must be non-empty if specified")


def _has_line_breaks(text: str) -> bool:
    return "\n" in text or "\r" in text


def _is_valid_path(plain: Schema, place: str) -> bool:
    try:
        valid_field_path(place, plain)
    except FieldPathError:
        pass
    else:
        return True
    try:
        compile_node(plain)
    except UnsupportedSchemaError:
        return True  # upstream cannot decide this case
    return False
